//! Defaults of kinds in named groups besides apps, batch and autoscaling.

use super::builtin::{object, set, text, unset};
use shared_json::{Array, Map, Value, json};

pub(super) fn fill(name: &str, map: &mut Map) {
    match name {
        "rbac.v1.Subject" => {
            if matches!(text(map, "kind"), "User" | "Group") {
                set(map, &["apiGroup"], &json!("rbac.authorization.k8s.io"));
            }
        }
        "networking.v1.NetworkPolicySpec"
            if map
                .get("policyTypes")
                .and_then(Value::as_array)
                .is_none_or(Array::is_empty) =>
        {
            let egress = map
                .get("egress")
                .and_then(Value::as_array)
                .is_some_and(|rules| !rules.is_empty());
            let types = if egress {
                json!(["Ingress", "Egress"])
            } else {
                json!(["Ingress"])
            };
            map.insert("policyTypes".to_owned(), types);
        }
        "resource.v1.ExactDeviceRequest" | "resource.v1.DeviceSubRequest"
            if text(map, "allocationMode") == "ExactCount" =>
        {
            set(map, &["count"], &json!(1));
        }
        "apiextensions.v1.CustomResourceDefinition" => stored_versions(map),
        "apiextensions.v1.CustomResourceDefinitionSpec" => {
            if let Some(names) = object(map, "names") {
                custom_resource_names(names);
            }
        }
        _ => {}
    }
}

/// Sets `storedVersions` to the storage version, unless the status has some.
fn stored_versions(map: &mut Map) {
    let versions = map.get("spec").and_then(|spec| spec.get("versions"));
    let storage = versions
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .find(|version| version.get("storage").and_then(Value::as_bool) == Some(true));
    let Some(name) = storage.and_then(|version| version.get("name")).cloned() else {
        return;
    };
    if let Some(status) = object(map, "status")
        && status
            .get("storedVersions")
            .is_none_or(|stored| stored.as_array().is_none_or(Array::is_empty))
    {
        status.insert("storedVersions".to_owned(), Value::from(vec![name]));
    }
}

/// `singular` is the kind in small letters, `listKind` the kind and `List`.
fn custom_resource_names(names: &mut Map) {
    let kind = text(names, "kind").to_owned();
    if kind.is_empty() {
        return;
    }
    if unset(names, "singular") {
        names.insert("singular".to_owned(), kind.to_lowercase().into());
    }
    if unset(names, "listKind") {
        names.insert("listKind".to_owned(), format!("{kind}List").into());
    }
}
