//! The objects that operations are about.

use kube::api::{Api, DynamicObject, ListParams};
use shared_json::{Value, json};

use crate::history::text;

/// A value as text, without the quotes of one.
pub(super) fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Whether an object shows a condition with this status.
pub(super) fn has_condition(object: &Value, name: &str, wanted: &str) -> bool {
    let list = object.pointer("/status/conditions").and_then(Value::as_array);
    list.into_iter()
        .flatten()
        .any(|condition| text(condition, "/type") == name && text(condition, "/status") == wanted)
}

/// Whether the requested object does not exist.
pub(super) fn is_not_found(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.is_not_found())
}

/// All objects, or those with these labels.
pub(super) async fn list(api: &Api<DynamicObject>, labels: Option<&str>) -> Result<Vec<Value>, kube::Error> {
    let mut params = ListParams::default();
    if let Some(labels) = labels {
        params = params.labels(labels);
    }
    let objects = api.list(&params).await?;
    let kind = kube::api::TypeMeta {
        api_version: objects.types.api_version.clone(),
        kind: objects.types.kind.trim_end_matches("List").to_owned(),
    };
    let with_kind = |mut object: DynamicObject| {
        // The items of a typed list do not repeat their kind.
        object.types.get_or_insert_with(|| kind.clone());
        shared_json::to_value(object).ok()
    };
    Ok(objects.items.into_iter().filter_map(with_kind).collect())
}

/// The objects that a reference names: by name, or by labels, or all.
pub(super) async fn find(api: &Api<DynamicObject>, reference: &Value) -> Result<Vec<Value>, kube::Error> {
    let name = text(reference, "/metadata/name");
    if !name.is_empty() {
        let found = api.get_opt(&name).await?;
        return Ok(found
            .and_then(|object| shared_json::to_value(object).ok())
            .into_iter()
            .collect());
    }
    let labels = reference.pointer("/metadata/labels").and_then(Value::as_object);
    // Where one of them is an expression, all objects are looked at.
    let labels: Option<Vec<String>> = labels
        .into_iter()
        .flatten()
        .map(|(key, value)| Some(format!("{key}={}", value.as_str()?)))
        .collect();
    list(api, Some(&labels.unwrap_or_default().join(","))).await
}

/// The command line that a person would have typed.
pub(super) fn command(verb: &str, file: Option<&str>, object: &Value) -> String {
    match (verb, file) {
        (_, Some(file)) => format!("kubectl {verb} -f {file}"),
        ("patch", None) => {
            let mut body = object.clone();
            if let Some(map) = body.as_object_mut() {
                map.remove("apiVersion");
                map.remove("kind");
            }
            if let Some(meta) = body.get_mut("metadata").and_then(Value::as_object_mut) {
                meta.remove("name");
            }
            if body["metadata"] == json!({})
                && let Some(map) = body.as_object_mut()
            {
                map.remove("metadata");
            }
            format!(
                "kubectl patch {} {} --type merge -p '{body}'",
                kind(object),
                text(object, "/metadata/name")
            )
        }
        (verb, None) => format!(
            "kubectl {verb} {} {}",
            kind(object),
            text(object, "/metadata/name")
        ),
    }
}

fn kind(object: &Value) -> String {
    text(object, "/kind").to_lowercase()
}
