//! Volumes and claims of them: protected by a finalizer from birth.

use serde_json::{Map, Value, json};

use super::{Strategy, copy_field};
use crate::meta::ObjectMeta;

pub(super) struct ClaimStrategy;

impl Strategy for ClaimStrategy {
    fn returns_deleted_object(&self) -> bool {
        true
    }

    fn prepare_create(&self, object: &mut Value) {
        object["status"] = json!({"phase": "Pending"});
        object.add_finalizer("kubernetes.io/pvc-protection");
        if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
            settle_sources(spec);
        }
    }

    fn prepare_update(&self, object: &mut Value, old: &Value) {
        copy_field(object, old, "status");
    }
}

/// Of the two fields for a source the older takes claims and snapshots only; where they may agree they do.
fn settle_sources(spec: &mut Map<String, Value>) {
    let text = |source: &Value, field: &str| {
        let text = source.get(field).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    let known = |source: &Value| {
        matches!(
            (text(source, "kind").as_str(), text(source, "apiGroup").as_str()),
            ("PersistentVolumeClaim", "") | ("VolumeSnapshot", "snapshot.storage.k8s.io")
        )
    };
    if spec.get("dataSource").is_some_and(|source| !known(source)) {
        spec.remove("dataSource");
    }
    match (
        spec.get("dataSource").cloned(),
        spec.get("dataSourceRef").cloned(),
    ) {
        (Some(source), None) => {
            spec.insert("dataSourceRef".to_owned(), source);
        }
        (None, Some(source)) if text(&source, "namespace").is_empty() && known(&source) => {
            spec.insert("dataSource".to_owned(), source);
        }
        _ => {}
    }
}

pub(super) struct VolumeStrategy;

impl Strategy for VolumeStrategy {
    fn returns_deleted_object(&self) -> bool {
        true
    }

    fn prepare_create(&self, object: &mut Value) {
        // The moment of the creation is also that of the first phase.
        let now = object.meta_str("creationTimestamp").to_owned();
        object["status"] = json!({"phase": "Pending", "lastPhaseTransitionTime": now});
        object.add_finalizer("kubernetes.io/pv-protection");
    }

    fn prepare_status_update(&self, object: &mut Value, old: &Value) {
        copy_field(object, old, "spec");
        let phase = |object: &Value| object.pointer("/status/phase").cloned().unwrap_or_default();
        let since = |object: &Value| object.pointer("/status/lastPhaseTransitionTime").cloned();
        if phase(object) == phase(old) {
            if since(object).is_none()
                && let Some(since) = since(old)
            {
                object["status"]["lastPhaseTransitionTime"] = since;
            }
        } else if since(object) == since(old) {
            // The moment of the change is written by `stamp_phase`, which knows the time.
            if let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) {
                status.remove("lastPhaseTransitionTime");
            }
        }
    }
}

/// Writes into a volume's status when its phase came, where its writer does not say.
pub(crate) fn stamp_phase(object: &mut Value, now: &str) {
    if let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) {
        status
            .entry("lastPhaseTransitionTime")
            .or_insert_with(|| Value::from(now));
    }
}

/// Classes of attributes of volumes: protected by a finalizer from birth, as claims and volumes are.
pub(super) struct AttributesClassStrategy;

impl Strategy for AttributesClassStrategy {
    fn returns_deleted_object(&self) -> bool {
        true
    }

    fn prepare_create(&self, object: &mut Value) {
        object.add_finalizer("kubernetes.io/vac-protection");
    }
}
