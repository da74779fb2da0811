//! The form that Go structs give a pod template.

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, PodTemplateSpec};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::quantity::{QuantityError, canonical_quantity};

/// Maps of quantities.
const QUANTITY_MAPS: [&str; 5] = ["limits", "requests", "overhead", "capacity", "allocatedResources"];
/// Single quantities.
const QUANTITIES: [&str; 2] = ["sizeLimit", "divisor"];
/// Fields that Go leaves out when they are false: the `bool`s that are not pointers.
const FALSE_IS_NOTHING: [&str; 7] = [
    "hostNetwork",
    "hostPID",
    "hostIPC",
    "stdin",
    "stdinOnce",
    "tty",
    "readOnly",
];
/// Fields that Go leaves out when they are zero.
const ZERO_IS_NOTHING: [&str; 7] = [
    "hostPort",
    "initialDelaySeconds",
    "timeoutSeconds",
    "periodSeconds",
    "successThreshold",
    "failureThreshold",
    "partition",
];
/// Texts that are pointers in Go, or that Go always writes: empty ones stay.
const EMPTY_TEXT_STAYS: [&str; 14] = [
    "name",
    "mountPath",
    "path",
    "key",
    "fieldPath",
    "resource",
    "conditionType",
    "topologyKey",
    "whenUnsatisfiable",
    "operator",
    "storageClassName",
    "runtimeClassName",
    "claimName",
    "service",
];
/// Fields whose objects have a name that Go leaves out when it is empty: references, ports and metadata.
const NAME_IS_OPTIONAL: [&str; 14] = [
    "metadata",
    "ports",
    "imagePullSecrets",
    "configMap",
    "configMapRef",
    "configMapKeyRef",
    "secret",
    "secretRef",
    "secretKeyRef",
    "nodePublishSecretRef",
    "nodeStageSecretRef",
    "controllerPublishSecretRef",
    "controllerExpandSecretRef",
    "nodeExpandSecretRef",
];
/// Lists that Go writes also when they are empty.
const EMPTY_LIST_STAYS: [&str; 2] = ["containers", "nodeSelectorTerms"];
/// Maps, which Go leaves out when they are empty; other empty objects are pointers to structs and stay.
const MAPS: [&str; 8] = [
    "labels",
    "annotations",
    "nodeSelector",
    "limits",
    "requests",
    "overhead",
    "matchLabels",
    "volumeAttributes",
];

/// Brings a PodTemplateSpec into the form in which a Go program writes it: unknown fields and empty optional ones are
/// gone, those that Go always writes are there (`metadata.creationTimestamp: null`, `resources: {}`), quantities are
/// canonical. Idempotent.
///
/// # Errors
/// The decoder's text when `template` is no pod template.
pub fn pod_template(template: &Value) -> Result<Value, String> {
    let mut value = through::<PodTemplateSpec>(template)?;
    let Some(map) = value.as_object_mut() else {
        return Ok(value);
    };
    object_meta(map.entry("metadata").or_insert_with(|| json!({})));
    let spec = map.entry("spec").or_insert_with(|| json!({ "containers": null }));
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        for container in spec
            .get_mut(list)
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            if let Some(container) = container.as_object_mut() {
                container.entry("resources").or_insert_with(|| json!({}));
                container.entry("name").or_insert_with(|| json!(""));
            }
        }
    }
    for volume in spec
        .get_mut("volumes")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        if let Some(claim) = volume
            .pointer_mut("/ephemeral/volumeClaimTemplate")
            .and_then(Value::as_object_mut)
        {
            object_meta(claim.entry("metadata").or_insert_with(|| json!({})));
            claim_spec(claim);
        }
    }
    Ok(value)
}

/// The same for a PersistentVolumeClaim in `volumeClaimTemplates`.
///
/// # Errors
/// The decoder's text when it is none.
pub fn claim_template(template: &Value) -> Result<Value, String> {
    let mut value = through::<PersistentVolumeClaim>(template)?;
    if let Some(map) = value.as_object_mut() {
        // The type's own name and version are written by the typed encoder only when they came in.
        for field in ["apiVersion", "kind"] {
            if template.get(field).is_none() {
                map.remove(field);
            }
        }
        object_meta(map.entry("metadata").or_insert_with(|| json!({})));
        claim_spec(map);
        map.entry("status").or_insert_with(|| json!({}));
    }
    Ok(value)
}

fn object_meta(meta: &mut Value) {
    if let Some(meta) = meta.as_object_mut() {
        meta.entry("creationTimestamp").or_insert(Value::Null);
    }
}

fn claim_spec(claim: &mut Map<String, Value>) {
    let spec = claim.entry("spec").or_insert_with(|| json!({}));
    if let Some(spec) = spec.as_object_mut() {
        spec.entry("resources").or_insert_with(|| json!({}));
    }
}

/// Decodes into `T`, encodes again, and leaves out the fields that Go leaves out.
fn through<T: DeserializeOwned + Serialize>(value: &Value) -> Result<Value, String> {
    let mut value = value.clone();
    quantities(&mut value).map_err(|error| error.to_string())?;
    let typed: T = serde_json::from_value(value).map_err(|error| error.to_string())?;
    let mut value = serde_json::to_value(typed).map_err(|error| error.to_string())?;
    omit_empty(&mut value, "");
    Ok(value)
}

/// Writes quantities, which may also come as numbers, in their canonical form.
fn quantities(value: &mut Value) -> Result<(), QuantityError> {
    match value {
        Value::Object(map) => {
            for (key, field) in map {
                if QUANTITIES.contains(&key.as_str()) {
                    quantity(field)?;
                } else if let (true, Value::Object(inner)) =
                    (QUANTITY_MAPS.contains(&key.as_str()), &mut *field)
                {
                    inner.values_mut().try_for_each(quantity)?;
                } else {
                    quantities(field)?;
                }
            }
            Ok(())
        }
        Value::Array(list) => list.iter_mut().try_for_each(quantities),
        _ => Ok(()),
    }
}

fn quantity(value: &mut Value) -> Result<(), QuantityError> {
    let text = match &*value {
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.clone(),
        _ => return Ok(()),
    };
    *value = Value::String(canonical_quantity(&text)?);
    Ok(())
}

/// Takes out the fields that Go leaves out. `holder` is the field in which the value stands.
fn omit_empty(value: &mut Value, holder: &str) {
    match value {
        Value::Object(map) => {
            for (key, field) in map.iter_mut() {
                // What is inside a map is data, not fields.
                if !MAPS.contains(&key.as_str()) {
                    omit_empty(field, key);
                }
            }
            let is_unnamed = |key: &str, field: &Value| {
                key == "name" && *field == json!("") && NAME_IS_OPTIONAL.contains(&holder)
            };
            map.retain(|key, field| !is_nothing(key, field) && !is_unnamed(key, field));
        }
        Value::Array(list) => list.iter_mut().for_each(|item| omit_empty(item, holder)),
        _ => {}
    }
}

fn is_nothing(key: &str, field: &Value) -> bool {
    match field {
        Value::Null => true,
        Value::Bool(false) => FALSE_IS_NOTHING.contains(&key),
        Value::Number(number) => number.as_i64() == Some(0) && ZERO_IS_NOTHING.contains(&key),
        Value::String(text) => text.is_empty() && !EMPTY_TEXT_STAYS.contains(&key),
        Value::Array(list) => list.is_empty() && !EMPTY_LIST_STAYS.contains(&key),
        Value::Object(map) => map.is_empty() && MAPS.contains(&key),
        Value::Bool(true) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::what_go_always_writes(
        json!({ "spec": { "containers": [{ "name": "a" }] } }),
        json!({ "metadata": { "creationTimestamp": null }, "spec": { "containers": [{ "name": "a", "resources": {} }] } })
    )]
    #[case::what_it_leaves_out(
        json!({ "metadata": { "labels": {}, "annotations": { "a": "" } }, "spec": { "hostNetwork": false,
            "containers": [{ "name": "a", "env": [{ "name": "E", "value": "" }], "command": [], "tty": false,
                "ports": [{ "containerPort": 0, "hostPort": 0 }], "bogus": 1 }],
            "securityContext": {}, "automountServiceAccountToken": false, "terminationGracePeriodSeconds": 0,
            "volumes": [{ "name": "v", "emptyDir": {} }] } }),
        json!({ "metadata": { "creationTimestamp": null, "annotations": { "a": "" } }, "spec": {
            "containers": [{ "name": "a", "env": [{ "name": "E" }], "ports": [{ "containerPort": 0 }], "resources": {} }],
            "securityContext": {}, "automountServiceAccountToken": false, "terminationGracePeriodSeconds": 0,
            "volumes": [{ "name": "v", "emptyDir": {} }] } })
    )]
    #[case::quantities(
        json!({ "spec": { "containers": [{ "name": "a", "resources": { "limits": { "cpu": 1, "memory": "1024Mi" }, "requests": { "cpu": 0.5 } } }] } }),
        json!({ "metadata": { "creationTimestamp": null }, "spec": { "containers": [{ "name": "a",
            "resources": { "limits": { "cpu": "1", "memory": "1Gi" }, "requests": { "cpu": "500m" } } }] } })
    )]
    // Recorded with OpenKruise 1.9.0 on a simulated server.
    #[case(
        json!({ "spec": { "imagePullSecrets": [{ "name": "" }, { "name": "s" }], "containers": [{ "name": "a",
            "ports": [{ "name": "", "containerPort": 1 }], "envFrom": [{ "secretRef": { "name": "" } }] }] } }),
        json!({ "metadata": { "creationTimestamp": null }, "spec": { "imagePullSecrets": [{}, { "name": "s" }],
            "containers": [{ "name": "a", "ports": [{ "containerPort": 1 }], "envFrom": [{ "secretRef": {} }], "resources": {} }] } })
    )]
    fn as_go_writes_it(#[case] template: Value, #[case] want: Value) {
        let got = pod_template(&template).unwrap();
        assert_eq!(got, want);
        assert_eq!(pod_template(&got).unwrap(), want, "idempotent");
    }

    #[test]
    fn claims() {
        let claim = json!({ "metadata": { "name": "d" }, "spec": { "accessModes": ["ReadWriteOnce"] } });
        let want = json!({ "metadata": { "creationTimestamp": null, "name": "d" },
            "spec": { "accessModes": ["ReadWriteOnce"], "resources": {} }, "status": {} });
        assert_eq!(claim_template(&claim).unwrap(), want);
        assert_eq!(claim_template(&want).unwrap(), want);
    }

    #[rstest]
    #[case(json!({ "spec": { "containers": "none" } }))]
    #[case(json!([]))]
    #[case(json!({ "spec": { "containers": [{ "name": "a", "resources": { "limits": { "cpu": "abc" } } }] } }))]
    fn what_is_no_template_is_an_error(#[case] template: Value) {
        assert!(pod_template(&template).is_err());
    }
}
