//! Volumes and claims of them: protected by a finalizer from birth.

use machinery::meta::ObjectMeta;
use shared_json::{Value, json};

use super::{Strategy, copy_field};

pub(super) struct ClaimStrategy;

impl Strategy for ClaimStrategy {
    fn returns_deleted_object(&self) -> bool {
        true
    }

    fn prepare_create(&self, object: &mut Value) {
        object["status"] = json!({"phase": "Pending"});
        object.add_finalizer("kubernetes.io/pvc-protection");
        settle_sources(object, None);
    }

    fn prepare_update(&self, object: &mut Value, old: &Value) {
        copy_field(object, old, "status");
        settle_sources(object, Some(old));
    }
}

/// Of the two fields for a source the older takes claims and snapshots only; where they may agree they do.
fn settle_sources(claim: &mut Value, old: Option<&Value>) {
    let had = |field: &str| {
        old.and_then(|old| old.get("spec"))
            .is_some_and(|spec| spec.get(field).is_some())
    };
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
    let Some(spec) = claim.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    // Sources of other namespaces come with a feature that is off.
    let elsewhere = |source: &Value| !text(source, "namespace").is_empty();
    if !had("dataSourceRef") && spec.get("dataSourceRef").is_some_and(elsewhere) {
        spec.remove("dataSourceRef");
    }
    if !had("dataSource")
        && !spec.contains_key("dataSourceRef")
        && spec.get("dataSource").is_some_and(|source| !known(source))
    {
        spec.remove("dataSource");
    }
    match (
        spec.get("dataSource").cloned(),
        spec.get("dataSourceRef").cloned(),
    ) {
        (Some(source), None) => {
            spec.insert("dataSourceRef".to_owned(), source);
        }
        (None, Some(mut source)) if !elsewhere(&source) => {
            source.as_object_mut().map(|source| source.remove("namespace"));
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
pub fn stamp_phase(object: &mut Value, now: &str) {
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
