//! Settings that may change while the manager runs: the ConfigMap `kruise-configuration` in the manager's own namespace.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::error::ActError;

/// The name of the ConfigMap.
pub const CONFIG_MAP: &str = "kruise-configuration";

/// A setting, read from the API server, if there is one.
///
/// # Errors
/// Those of the request.
pub async fn setting(client: &Client, namespace: &str, key: &str) -> Result<Option<String>, ActError> {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let map = api.get_opt(CONFIG_MAP).await?;
    Ok(map.and_then(|map| map.data?.remove(key)))
}

/// Reads a setting in JSON whose fields have names in lower case here: Go takes the names of fields in any case.
///
/// # Errors
/// If it is not such a setting.
pub fn read<T: DeserializeOwned>(text: &str) -> Result<T, serde_json::Error> {
    serde_json::from_value(in_lower_case(serde_json::from_str(text)?))
}

/// The value with all keys in lower case.
fn in_lower_case(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let fields = map.into_iter();
            fields
                .map(|(key, value)| (key.to_lowercase(), in_lower_case(value)))
                .collect()
        }
        Value::Array(list) => list.into_iter().map(in_lower_case).collect(),
        value => value,
    }
}
