//! Workloads and other resources whose generation counts changes of the spec.

use serde_json::Value;

use super::Strategy;
use crate::meta::ObjectMeta;

pub(super) struct WorkloadStrategy;

fn kind(object: &Value) -> &str {
    object.get("kind").and_then(Value::as_str).unwrap_or_default()
}

impl Strategy for WorkloadStrategy {
    fn has_generation(&self) -> bool {
        true
    }

    fn prepare_create(&self, object: &mut Value) {
        if object.get("status").is_some() {
            object["status"] = Value::Object(serde_json::Map::new());
        }
        if kind(object) == "DaemonSet" {
            object["metadata"]["annotations"]["deprecated.daemonset.template.generation"] = Value::from("1");
        }
    }
}

/// Disruption budgets: like workloads, but a change must name the version that it is based on.
pub(super) struct BudgetStrategy;

impl Strategy for BudgetStrategy {
    fn has_generation(&self) -> bool {
        true
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }
}

/// Templates of pods that stand alone.
pub(super) struct PodTemplateStrategy;

impl Strategy for PodTemplateStrategy {
    fn has_generation(&self) -> bool {
        true
    }

    fn allows_create_on_update(&self) -> bool {
        true
    }

    fn returns_deleted_object(&self) -> bool {
        true
    }

    fn prepare_create(&self, object: &mut Value) {
        object.set_meta("generation", 1);
    }
}
