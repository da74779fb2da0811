//! Settings that may change while the manager runs: the ConfigMap `kruise-configuration` in the manager's own namespace.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client};

use super::error::ActError;

/// The name of the ConfigMap.
pub(crate) const CONFIG_MAP: &str = "kruise-configuration";

/// A setting, read from the API server, if there is one.
///
/// # Errors
/// Those of the request.
pub(crate) async fn setting(client: &Client, namespace: &str, key: &str) -> Result<Option<String>, ActError> {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let map = api.get_opt(CONFIG_MAP).await?;
    Ok(map.and_then(|map| map.data?.remove(key)))
}
