//! The cluster's answers to the questions of expressions.

use kube::api::{Api, DynamicObject};
use shared_json::{Value, json};

use super::objects::{is_not_found, list};
use crate::action::{ActionError, Kubectl};
use crate::assertion::questions::Question;

/// Asks the cluster.
///
/// # Errors
/// Its refusal.
pub(super) async fn answer(kubectl: &Kubectl, question: &Question) -> Result<Value, String> {
    let text = |index: usize| question.arguments.get(index).map_or("", String::as_str);
    let object = json!({
        "apiVersion": text(0), "kind": text(1), "metadata": {"namespace": text(2), "name": text(3)},
    });
    match question.function.as_str() {
        "x_k8s_server_version" => {
            let version = kubectl.request("GET", "/version", None).await;
            version.map_err(|error| error.to_string())
        }
        "x_k8s_resource_exists" => match kubectl.api_of(&object).await {
            Ok(_) => Ok(Value::Bool(true)),
            Err(ActionError::Object(_)) => Ok(Value::Bool(false)),
            Err(error) => Err(error.to_string()),
        },
        "x_k8s_exists" => match get(&api(kubectl, &object).await?, text(3)).await {
            Ok(_) => Ok(Value::Bool(true)),
            Err(error) if is_not_found(&error) => Ok(Value::Bool(false)),
            Err(error) => Err(error.to_string()),
        },
        "x_k8s_get" => {
            let found = get(&api(kubectl, &object).await?, text(3)).await;
            found.map_err(|error| error.to_string())
        }
        "x_k8s_list" if text(2).is_empty() => {
            // Without a namespace the objects of all are meant.
            let path = kubectl
                .path_of_all(&object)
                .await
                .map_err(|error| error.to_string())?;
            let found = kubectl.request("GET", &path, None).await;
            found.map_err(|error| error.to_string())
        }
        "x_k8s_list" => {
            let found = list(&api(kubectl, &object).await?, None).await;
            found
                .map(|items| json!({"items": items}))
                .map_err(|error| error.to_string())
        }
        unknown => Err(format!("{unknown} is not known")),
    }
}

async fn api(kubectl: &Kubectl, object: &Value) -> Result<Api<DynamicObject>, String> {
    let found = kubectl.api_of(object).await;
    found.map_err(|error| error.to_string())
}

async fn get(api: &Api<DynamicObject>, name: &str) -> Result<Value, kube::Error> {
    let found = api.get(name).await?;
    Ok(shared_json::to_value(found).unwrap_or_default())
}
