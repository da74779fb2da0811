//! API services: those that this server answers itself are available at once.

use machinery::meta::ObjectMeta;
use shared_json::{Value, json};

use super::{StatusKeeps, Strategy};

pub(super) struct ApiServiceStrategy;

impl Strategy for ApiServiceStrategy {
    fn allows_unconditional_update(&self) -> bool {
        false
    }

    fn status_keeps(&self) -> StatusKeeps {
        StatusKeeps::Metadata
    }

    fn prepare_create(&self, object: &mut Value) {
        object["status"] = json!({});
        if object.pointer("/spec/service").is_none_or(Value::is_null) {
            object["status"]["conditions"] = json!([{
                "type": "Available",
                "status": "True",
                "lastTransitionTime": object.meta_str("creationTimestamp"),
                "reason": "Local",
                "message": "Local APIServices are always available",
            }]);
        }
    }
}
