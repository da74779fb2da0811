//! Nodes: a kubelet registers itself with its status.

use shared_json::Value;

use super::Strategy;

pub(super) struct NodeStrategy;

impl Strategy for NodeStrategy {
    fn normalize(&self, object: &mut Value) {
        if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
            super::one_and_list(spec, "podCIDR", "podCIDRs", |one| Value::from(one));
        }
    }

    fn prepare_create(&self, object: &mut Value) {
        if let Some(object) = object.as_object_mut() {
            object
                .entry("spec")
                .or_insert_with(|| Value::Object(shared_json::Map::new()));
        }
    }
}
