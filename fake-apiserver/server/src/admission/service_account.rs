//! ServiceAccount: every pod runs as one, and carries its token in a projected volume.

use std::sync::LazyLock;

use machinery::meta::string_map;
use machinery::status::ApiError;
use shared_json::{Array, Value, json};
use store::{GroupResource, ObjectKey};

use super::Attributes;
use crate::server::ServerState;

/// How the names of tokens' volumes begin.
const VOLUME: &str = "kube-api-access-";
const MOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// The sources of a token's volume. All pods share one copy in memory.
static PROJECTED: LazyLock<Value> = LazyLock::new(|| {
    json!({
        "defaultMode": 420,
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [{
                "path": "namespace",
                "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"},
            }]}},
        ],
    })
});

pub(super) fn mutate(server: &ServerState, attributes: &mut Attributes) -> Result<(), ApiError> {
    let pods = attributes.resource.group_resource();
    let (namespace, name) = (attributes.namespace.clone(), attributes.shown_name().to_owned());
    let Some(pod) = attributes.object.as_mut() else {
        return Ok(());
    };
    if string_map(pod, "annotations").contains_key("kubernetes.io/config.mirror") {
        return mirrors_nothing(pod, &pods, &name);
    }
    let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut) else {
        return Ok(());
    };
    let account = match spec.get("serviceAccountName").and_then(Value::as_str) {
        Some(account) if !account.is_empty() => account.to_owned(),
        _ => "default".to_owned(),
    };
    spec.insert("serviceAccountName".to_owned(), Value::from(account.clone()));
    spec.insert("serviceAccount".to_owned(), Value::from(account.clone()));
    let accounts = GroupResource::new("", "serviceaccounts");
    let Some(stored) = server.store.get(&accounts, &ObjectKey::new(&namespace, &account)) else {
        let why = format!(
            "error looking up service account {namespace}/{account}: serviceaccount \"{account}\" not found"
        );
        return Err(ApiError::forbidden(&pods, &name, &why));
    };
    if let Some(secrets) = stored
        .value
        .get("imagePullSecrets")
        .filter(|secrets| secrets.as_array().is_some_and(|list| !list.is_empty()))
    {
        let empty = spec
            .get("imagePullSecrets")
            .and_then(Value::as_array)
            .is_none_or(Array::is_empty);
        if empty {
            spec.insert("imagePullSecrets".to_owned(), secrets.clone());
        }
    }
    let automount = spec
        .get("automountServiceAccountToken")
        .or_else(|| stored.value.get("automountServiceAccountToken"))
        .and_then(Value::as_bool)
        .unwrap_or(true);
    if automount {
        let known = spec.get("volumes").and_then(Value::as_array);
        let known = known.into_iter().flatten().find_map(|volume| {
            let name = volume.get("name").and_then(Value::as_str)?;
            name.starts_with(VOLUME).then(|| name.to_owned())
        });
        match known {
            Some(volume) => mount_token(spec, &volume, false),
            None => mount_token(spec, &format!("{VOLUME}{}", server.names.suffix(VOLUME)), true),
        }
    }
    Ok(())
}

/// A mirror pod may name no object that the server would have to give to it.
fn mirrors_nothing(pod: &Value, pods: &GroupResource, name: &str) -> Result<(), ApiError> {
    let spec = pod.get("spec").unwrap_or(&Value::Null);
    let account = spec.get("serviceAccountName").and_then(Value::as_str);
    let why = if account.is_some_and(|account| !account.is_empty()) {
        "a mirror pod may not reference service accounts"
    } else if has_any(
        spec,
        &[
            "imagePullSecrets",
            "secret",
            "secretName",
            "secretRef",
            "secretKeyRef",
        ],
    ) {
        "a mirror pod may not reference secrets"
    } else if has_any(spec, &["serviceAccountToken"]) {
        "a mirror pod may not use ServiceAccountToken volume projections"
    } else {
        return Ok(());
    };
    Err(ApiError::forbidden(pods, name, why))
}

/// Whether one of these fields is anywhere in a value.
fn has_any(value: &Value, fields: &[&str]) -> bool {
    match value {
        Value::Array(items) => items.iter().any(|item| has_any(item, fields)),
        Value::Object(map) => map.iter().any(|(field, value)| {
            !value.is_null() && fields.contains(&field.as_str()) || has_any(value, fields)
        }),
        _ => false,
    }
}

/// Adds the volume, if it is `new`, and a mount to each container that has none at the same place.
fn mount_token(spec: &mut shared_json::Map, volume: &str, new: bool) {
    let mut needed = false;
    for list in ["initContainers", "containers"] {
        let Some(containers) = spec.get_mut(list).and_then(Value::as_array_mut) else {
            continue;
        };
        for container in containers.iter_mut().filter_map(Value::as_object_mut) {
            let mounts = container.entry("volumeMounts").or_insert_with(|| json!([]));
            let Some(mounts) = mounts.as_array_mut() else {
                continue;
            };
            if mounts
                .iter()
                .any(|mount| mount.get("mountPath").and_then(Value::as_str) == Some(MOUNT_PATH))
            {
                continue;
            }
            mounts.push(json!({"name": volume, "readOnly": true, "mountPath": MOUNT_PATH}));
            needed = true;
        }
    }
    if !needed || !new {
        return;
    }
    let volumes = spec.entry("volumes").or_insert_with(|| json!([]));
    let Some(volumes) = volumes.as_array_mut() else {
        return;
    };
    volumes.push(json!({
        "name": volume,
        "projected": *PROJECTED,
    }));
}
