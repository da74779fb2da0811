//! Events: created by an update too, never with a status.

use shared_json::Value;

use super::Strategy;

pub(super) struct EventStrategy;

impl Strategy for EventStrategy {
    fn allows_create_on_update(&self) -> bool {
        true
    }

    fn has_dependents(&self) -> bool {
        false
    }

    fn prepare_create(&self, _object: &mut Value) {}

    fn prepare_update(&self, _object: &mut Value, _old: &Value) {}
}
