//! Workloads and other resources whose generation counts changes of the spec.

use serde_json::Value;

use super::Strategy;
use crate::field_error::FieldError;

pub(super) struct WorkloadStrategy;

impl Strategy for WorkloadStrategy {
    fn has_generation(&self) -> bool {
        true
    }

    fn validate_update(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
        if !matches!(
            kind,
            "Deployment" | "ReplicaSet" | "DaemonSet" | "StatefulSet" | "Job"
        ) {
            return Vec::new();
        }
        let (new, old) = (object.pointer("/spec/selector"), old.pointer("/spec/selector"));
        if new == old {
            return Vec::new();
        }
        vec![FieldError::invalid(
            "spec.selector",
            new.cloned().unwrap_or_default(),
            "field is immutable",
        )]
    }
}
