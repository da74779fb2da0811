//! The spec of a set as Go writes it after reading it.

use serde_json::{Map, Value, json};

use crate::api::v1beta1::{SidecarContainer, SidecarSetSpec, TransferEnvVar};
use crate::kit::json::omit_empty;
use crate::pods::template::pod_template;

/// Lists and texts that Go leaves out when they are empty.
const EMPTY_IS_NOTHING: [&str; 6] = [
    "containers",
    "customVersion",
    "imagePullSecrets",
    "initContainers",
    "patchPodMetadata",
    "volumes",
];

/// Reads a spec into Go's form.
///
/// # Errors
/// The decoder's text when it is none of a set.
pub(super) fn read(spec: &Value) -> Result<SidecarSetSpec, String> {
    let mut spec = spec.clone();
    if let Some(fields) = spec.as_object_mut() {
        fields.retain(|_, field| !field.is_null());
    }
    let mut spec: SidecarSetSpec = serde_json::from_value(spec).map_err(|error| error.to_string())?;
    // Fields that Kubernetes defines go through its own types, as part of a pod.
    let raw = |list: &Option<Vec<SidecarContainer>>| -> Value {
        let list = list.iter().flatten();
        list.map(|container| Value::Object(container.container.clone()))
            .collect()
    };
    let pod = json!({ "spec": {
        "containers": raw(&spec.containers),
        "initContainers": raw(&spec.init_containers),
        "volumes": spec.volumes.clone().unwrap_or_else(|| json!([])),
    } });
    let pod = pod_template(&pod)?;
    let list = |field: &str| {
        let list = pod.pointer(&format!("/spec/{field}")).and_then(Value::as_array);
        list.cloned().unwrap_or_default()
    };
    for (own, read) in [
        (&mut spec.containers, list("containers")),
        (&mut spec.init_containers, list("initContainers")),
    ] {
        for (container, read) in own.iter_mut().flatten().zip(read) {
            container.container = read.as_object().cloned().unwrap_or_default();
            tidy(container);
        }
    }
    if spec.volumes.is_some() {
        spec.volumes = Some(Value::Array(list("volumes")));
    }
    for patch in spec.patch_pod_metadata.iter_mut().flatten() {
        none_if_empty(&mut patch.patch_policy);
    }
    Ok(spec)
}

/// The spec as Go's encoder writes it.
pub(super) fn written(spec: &SidecarSetSpec) -> Value {
    let Ok(Value::Object(mut fields)) = serde_json::to_value(spec) else {
        return Value::Null;
    };
    fields.retain(|name, field| {
        let is_empty = *field == json!([]) || *field == json!("");
        !(is_empty && EMPTY_IS_NOTHING.contains(&name.as_str()))
    });
    for name in ["updateStrategy", "injectionStrategy"] {
        omit_empty(fields.entry(name).or_insert_with(|| Value::Object(Map::new())));
    }
    Value::Object(fields)
}

fn none_if_empty(text: &mut Option<String>) {
    if text.as_deref() == Some("") {
        *text = None;
    }
}

/// Leaves out the fields that Go leaves out, and adds those that it always writes.
fn tidy(container: &mut SidecarContainer) {
    none_if_empty(&mut container.pod_inject_policy);
    let upgrade = container.upgrade_strategy.get_or_insert_default();
    none_if_empty(&mut upgrade.upgrade_type);
    none_if_empty(&mut upgrade.hot_upgrade_empty_image);
    let share = container.share_volume_policy.get_or_insert_default();
    none_if_empty(&mut share.kind);
    if let Some(share) = &mut container.share_volume_device_policy {
        none_if_empty(&mut share.kind);
    }
    let is_empty = |list: &Vec<TransferEnvVar>| list.is_empty();
    if container.transfer_envs.as_ref().is_some_and(is_empty) {
        container.transfer_envs = None;
    }
    for transfer in container.transfer_envs.iter_mut().flatten() {
        none_if_empty(&mut transfer.source_container_name);
        none_if_empty(&mut transfer.env_name);
        if transfer.env_names.as_ref().is_some_and(Vec::is_empty) {
            transfer.env_names = None;
        }
    }
    if let Some(policy) = &mut container.resources_policy {
        none_if_empty(&mut policy.target_containers_name_regex);
        let expressions = &mut policy.resources_expr;
        for expressions in [&mut expressions.limits, &mut expressions.requests]
            .into_iter()
            .flatten()
        {
            none_if_empty(&mut expressions.cpu);
            none_if_empty(&mut expressions.memory);
        }
    }
}
