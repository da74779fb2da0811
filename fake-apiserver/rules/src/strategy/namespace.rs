//! Namespaces: they end in two steps, by the finalizer `kubernetes` in their spec.

use machinery::finalizers::NAMESPACE as FINALIZER;
use machinery::meta::ObjectMeta;
use shared_json::{Value, json};

use super::{Strategy, copy_field};

pub(super) struct NamespaceStrategy;

impl Strategy for NamespaceStrategy {
    fn returns_deleted_object(&self) -> bool {
        true
    }

    fn prepare_create(&self, object: &mut Value) {
        object["status"] = json!({"phase": "Active"});
        let mut finalizers = object
            .pointer("/spec/finalizers")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        if !finalizers.iter().any(|finalizer| finalizer == FINALIZER) {
            finalizers.push(Value::from(FINALIZER));
        }
        object["spec"] = json!({"finalizers": finalizers});
        let name = object.name().to_owned();
        let meta = object.metadata_mut();
        let labels = meta.entry("labels").or_insert_with(|| json!({}));
        if let Some(labels) = labels.as_object_mut() {
            labels.insert("kubernetes.io/metadata.name".to_owned(), Value::from(name));
        }
    }

    fn prepare_update(&self, object: &mut Value, old: &Value) {
        copy_field(object, old, "spec");
        copy_field(object, old, "status");
        let name = object.name().to_owned();
        let labels = object.metadata_mut().entry("labels").or_insert_with(|| json!({}));
        if let Some(labels) = labels.as_object_mut() {
            labels.insert("kubernetes.io/metadata.name".to_owned(), Value::from(name));
        }
    }
}
