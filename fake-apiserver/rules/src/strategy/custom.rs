//! Custom resources.

use machinery::meta::ObjectMeta;
use shared_json::Value;

use super::{StatusKeeps, Strategy, copy_field};

pub(super) struct CustomStrategy;

impl Strategy for CustomStrategy {
    fn has_generation(&self) -> bool {
        true
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }

    fn prepare_create(&self, object: &mut Value) {
        if let Some(object) = object.as_object_mut() {
            object.remove("status");
        }
    }

    fn status_keeps(&self) -> StatusKeeps {
        StatusKeeps::Metadata
    }

    fn prepare_status_update(&self, object: &mut Value, old: &Value) {
        // The real strategy keeps the old object whole and takes over the status and managed fields alone.
        let status = object.get("status").cloned();
        let managed = object
            .metadata()
            .and_then(|meta| meta.get("managedFields"))
            .cloned();
        let resource_version = object
            .metadata()
            .and_then(|meta| meta.get("resourceVersion"))
            .cloned();
        *object = old.clone();
        let mut part = Value::Object(shared_json::Map::new());
        if let (Some(status), Some(map)) = (status, part.as_object_mut()) {
            map.insert("status".to_owned(), status);
        }
        copy_field(object, &part, "status");
        if let Some(managed) = managed {
            object.set_meta("managedFields", managed);
        }
        if let Some(resource_version) = resource_version {
            object.set_meta("resourceVersion", resource_version);
        }
    }
}
