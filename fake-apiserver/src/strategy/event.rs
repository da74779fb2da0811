//! Events: created by an update too, never with a status.

use serde_json::Value;

use super::Strategy;
use crate::field_error::FieldError;
use crate::meta::ObjectMeta;

pub(super) struct EventStrategy;

impl Strategy for EventStrategy {
    fn allows_create_on_update(&self) -> bool {
        true
    }

    fn prepare_create(&self, _object: &mut Value) {}

    fn prepare_update(&self, _object: &mut Value, _old: &Value) {}

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        let about = object.get("involvedObject").or_else(|| object.get("regarding"));
        let about = about
            .and_then(|about| about.get("namespace"))
            .and_then(Value::as_str)
            .unwrap_or_default();
        let mut errors = Vec::new();
        // What is of no namespace is reported in the default one.
        let wanted = if about.is_empty() { "default" } else { about };
        if object.namespace() != wanted {
            let detail = "does not match event.namespace";
            errors.push(FieldError::invalid("involvedObject.namespace", about, detail));
        }
        if object.get("eventTime").is_some_and(|time| !time.is_null()) {
            let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
            let controller = [text("reportingController"), text("reportingComponent")].concat();
            if controller.is_empty() {
                errors.push(FieldError::required("reportingController", ""));
            }
            let missing = ["reportingInstance", "action", "reason"]
                .into_iter()
                .filter(|field| text(field).is_empty());
            errors.extend(missing.map(|field| FieldError::required(field, "")));
        }
        errors
    }
}
