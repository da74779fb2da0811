//! The defaults of a SidecarSet, and its hashes.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::{Value, json};

use super::{canonical, convert};
use crate::api::v1beta1::{SidecarContainer, SidecarSetSpec};
use crate::injection::sidecars::hash;
use crate::pods::template::defaults;
use crate::workloads::sidecarset::settings::DEFAULT_HISTORY_LIMIT;

/// Fills the defaults and the hashes into a set. Its spec is written as Go writes it.
///
/// # Errors
/// The decoder's text when the spec is none of a set.
pub(super) fn mutate_sidecar_set(set: &mut Value) -> Result<(), String> {
    let is_v1alpha1 = convert::is_v1alpha1(set);
    convert::to_v1beta1(set);
    fill_in(set)?;
    if is_v1alpha1 {
        convert::to_v1alpha1(set);
    }
    Ok(())
}

fn fill_in(set: &mut Value) -> Result<(), String> {
    let Some(spec) = set.get("spec") else {
        return Ok(());
    };
    let mut spec = canonical::read(spec)?;
    default_spec(&mut spec);
    let Some(fields) = set.as_object_mut() else {
        return Ok(());
    };
    fields.insert("spec".to_owned(), canonical::written(&spec));
    let metadata = fields.entry("metadata").or_insert_with(|| json!({}));
    let Some(metadata) = metadata.as_object_mut() else {
        return Ok(());
    };
    let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
    if annotations.is_null() {
        *annotations = json!({});
    }
    if let Some(annotations) = annotations.as_object_mut() {
        for (key, with_images) in hash::KEYS {
            annotations.insert(key.to_owned(), json!(hash::of_spec(&spec, with_images)));
        }
    }
    Ok(())
}

fn default_spec(spec: &mut SidecarSetSpec) {
    let update = spec.update_strategy.get_or_insert_default();
    if update.kind.as_deref().unwrap_or_default().is_empty() {
        update.kind = Some("RollingUpdate".to_owned());
    }
    update.max_unavailable.get_or_insert(IntOrString::Int(1));
    update.partition.get_or_insert(IntOrString::Int(0));
    spec.revision_history_limit.get_or_insert(DEFAULT_HISTORY_LIMIT);
    for patch in spec.patch_pod_metadata.iter_mut().flatten() {
        patch.patch_policy.get_or_insert_with(|| "Retain".to_owned());
    }
    let injection = spec.injection_strategy.get_or_insert_default();
    if let Some(revision) = &mut injection.revision
        && revision.policy.as_deref().unwrap_or_default().is_empty()
    {
        revision.policy = Some("Always".to_owned());
    }
    for init in spec.init_containers.iter_mut().flatten() {
        default_container(init, "AfterAppContainer");
    }
    for container in spec.containers.iter_mut().flatten() {
        default_container(container, "BeforeAppContainer");
    }
    if let Some(volumes) = &mut spec.volumes {
        defaults::volumes(volumes);
    }
}

fn default_container(container: &mut SidecarContainer, place: &str) {
    container
        .pod_inject_policy
        .get_or_insert_with(|| place.to_owned());
    let upgrade = container.upgrade_strategy.get_or_insert_default();
    upgrade
        .upgrade_type
        .get_or_insert_with(|| "ColdUpgrade".to_owned());
    let share = container.share_volume_policy.get_or_insert_default();
    share.kind.get_or_insert_with(|| "disabled".to_owned());
    for transfer in container.transfer_envs.iter_mut().flatten() {
        let from = transfer.source_container_name_from.as_mut();
        if let Some(field) = from.and_then(|from| from.field_ref.as_mut()) {
            field.api_version.get_or_insert_with(|| "v1".to_owned());
        }
    }
    defaults::lone_container(&mut container.container);
}
