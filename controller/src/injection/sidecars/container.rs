//! Makes the container that is injected: with mounts, devices and variables of the pod's own containers.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::merge::name;
use super::resources;
use super::selection::Labels;
use crate::api::labels;
use crate::api::v1beta1::{PodField, ShareVolumePolicy, SidecarContainer, TransferEnvVar};

/// The pod, as far as injected containers depend on it.
pub(super) struct Around<'a> {
    /// The pod's own containers.
    pub(super) containers: &'a [Value],
    /// The containers whose resources count: init containers that keep running, then containers, and none that a set injects.
    pub(super) resource_targets: Vec<&'a Value>,
    /// The pod's labels.
    pub(super) labels: &'a Labels,
    /// The pod's annotations, with those that the sets give it.
    pub(super) annotations: &'a Labels,
}

/// The items of a list of a container.
fn items<'a>(container: &'a Value, field: &str) -> &'a [Value] {
    let list = container.get(field).and_then(Value::as_array);
    list.map(Vec::as_slice).unwrap_or_default()
}

fn own_items<'a>(container: &'a SidecarContainer, field: &str) -> &'a [Value] {
    let list = container.container.get(field).and_then(Value::as_array);
    list.map(Vec::as_slice).unwrap_or_default()
}

fn text<'a>(item: &'a Value, field: &str) -> &'a str {
    item.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// The volumes that a container itself mounts or uses as devices, by name.
pub(super) fn volumes(container: &SidecarContainer) -> impl Iterator<Item = &str> {
    let mounts = own_items(container, "volumeMounts").iter();
    mounts.chain(own_items(container, "volumeDevices")).map(name)
}

/// The container as it is injected.
///
/// # Errors
/// The text of resources that cannot be calculated.
pub(super) fn made<'a>(sidecar: &'a SidecarContainer, around: &Around<'a>) -> Result<Value, String> {
    let mut fields = sidecar.container.clone();
    if let Some(policy) = &sidecar.resources_policy {
        let resources = resources::by(policy, &around.resource_targets)?;
        fields.insert("resources".to_owned(), resources);
    }
    let shared_mounts = shared(sidecar.share_volume_policy.as_ref(), "volumeMounts", around);
    let shared_devices = shared(
        sidecar.share_volume_device_policy.as_ref(),
        "volumeDevices",
        around,
    );
    let own_devices = own_items(sidecar, "volumeDevices");
    let mut paths: BTreeSet<&str> = own_devices
        .iter()
        .map(|device| text(device, "devicePath"))
        .collect();
    let mut mounts = own_items(sidecar, "volumeMounts").to_vec();
    paths.extend(
        own_items(sidecar, "volumeMounts")
            .iter()
            .map(|mount| text(mount, "mountPath")),
    );
    for (_, mount) in &shared_mounts {
        if paths.insert(text(mount, "mountPath")) {
            mounts.push((*mount).clone());
        }
    }
    let mut devices = own_devices.to_vec();
    for (_, device) in &shared_devices {
        if paths.insert(text(device, "devicePath")) {
            devices.push((*device).clone());
        }
    }
    put(&mut fields, "volumeMounts", mounts);
    put(&mut fields, "volumeDevices", devices);
    let env = variables(sidecar, around, &shared_mounts);
    put(&mut fields, "env", env);
    Ok(Value::Object(fields))
}

fn put(fields: &mut Map<String, Value>, field: &str, list: Vec<Value>) {
    if list.is_empty() {
        fields.remove(field);
    } else {
        fields.insert(field.to_owned(), Value::Array(list));
    }
}

/// Whether a container of the pod was injected.
fn is_injected(container: &Value) -> bool {
    let is_mark = |env: &Value| name(env) == labels::IS_INJECTED_ENV && text(env, "value") == "true";
    items(container, "env").iter().any(is_mark)
}

/// The items of a list of the pod's own containers, with their containers, if the policy shares them.
fn shared<'a>(
    policy: Option<&ShareVolumePolicy>,
    field: &str,
    around: &Around<'a>,
) -> Vec<(&'a Value, &'a Value)> {
    if !policy.is_some_and(ShareVolumePolicy::is_enabled) {
        return Vec::new();
    }
    let own = around
        .containers
        .iter()
        .filter(|container| !is_injected(container));
    own.flat_map(|container| items(container, field).iter().map(move |item| (container, item)))
        .collect()
}

/// The variables of a container: its own, the mark of injected ones, those of other containers, and those that paths of shared mounts
/// name. The first of a name stays.
fn variables<'a>(
    sidecar: &'a SidecarContainer,
    around: &Around<'a>,
    shared_mounts: &[(&'a Value, &'a Value)],
) -> Vec<Value> {
    let own = own_items(sidecar, "env");
    let mut env = own.to_vec();
    let mut names: BTreeSet<&str> = own.iter().map(name).collect();
    if names.insert(labels::IS_INJECTED_ENV) {
        env.push(json!({ "name": labels::IS_INJECTED_ENV, "value": "true" }));
    }
    let mut add = |variable: &'a Value| {
        if names.insert(name(variable)) {
            env.push(variable.clone());
        }
    };
    for transfer in sidecar.transfer_envs.iter().flatten() {
        transferred(transfer, around).into_iter().for_each(&mut add);
    }
    for (container, mount) in shared_mounts {
        for wanted in references(text(mount, "subPathExpr")) {
            let variables = items(container, "env").iter();
            variables
                .filter(|variable| name(variable) == wanted)
                .for_each(&mut add);
        }
    }
    env
}

/// The variables of another container that a container gets, by name.
fn transferred<'a>(transfer: &TransferEnvVar, around: &Around<'a>) -> Vec<&'a Value> {
    let from = transfer.source_container_name_from.as_ref();
    let source = match from.and_then(|from| from.field_ref.as_ref()) {
        Some(field) => match field_text(field, around) {
            Some(source) => source,
            None => return Vec::new(),
        },
        None => transfer.source_container_name.clone().unwrap_or_default(),
    };
    let mut names: BTreeSet<&str> = transfer.env_names.iter().flatten().map(String::as_str).collect();
    names.extend(transfer.env_name.as_deref().filter(|name| !name.is_empty()));
    let Some(container) = around
        .containers
        .iter()
        .find(|container| name(container) == source)
    else {
        return Vec::new();
    };
    let variables = items(container, "env");
    names
        .into_iter()
        .filter_map(|wanted| variables.iter().find(|variable| name(variable) == wanted))
        .collect()
}

/// The text of a label or an annotation of the pod.
fn field_text(field: &PodField, around: &Around<'_>) -> Option<String> {
    let path = field.field_path.as_str();
    let key = |prefix: &str| path.strip_prefix(prefix)?.strip_suffix("']");
    let (map, key) = match key("metadata.labels['") {
        Some(key) => (around.labels, key),
        None => (around.annotations, key("metadata.annotations['")?),
    };
    Some(map.get(key).cloned().unwrap_or_default())
}

/// The variables that a path names as `$(NAME)`.
fn references(path: &str) -> Vec<&str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    let starts = path.match_indices("$(");
    starts
        .filter_map(|(at, mark)| path.get(at + mark.len()..)?.split_once(')'))
        .map(|(name, _)| name)
        .filter(|name| name.chars().all(is_part) && !name.starts_with(|c: char| c.is_ascii_digit()))
        .filter(|name| !name.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("", &[])]
    #[case("logs/$(POD)/x", &["POD"])]
    #[case("$(A)$(B.c)-$(1)", &["A", "B.c"])]
    #[case("$(A", &[])]
    #[case("$(A B)", &[])]
    fn paths_name_variables(#[case] path: &str, #[case] want: &[&str]) {
        assert_eq!(references(path), want);
    }
}
