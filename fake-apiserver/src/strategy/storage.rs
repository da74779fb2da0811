//! Volumes and claims of them: protected by a finalizer from birth.

use serde_json::{Value, json};

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
    }

    fn prepare_update(&self, object: &mut Value, old: &Value) {
        copy_field(object, old, "status");
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
}
