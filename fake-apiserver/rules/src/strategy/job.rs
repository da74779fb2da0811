//! Jobs: each selects its pods by its own uid, unless `manualSelector` is set.

use machinery::meta::ObjectMeta;
use shared_json::{Value, json};

use super::Strategy;

const CONTROLLER_UID: &str = "batch.kubernetes.io/controller-uid";

pub(super) struct JobStrategy;

impl Strategy for JobStrategy {
    fn has_generation(&self) -> bool {
        true
    }

    fn orphans_by_default(&self) -> bool {
        true
    }

    fn prepare_create(&self, object: &mut Value) {
        object["status"] = json!({});
        if object.pointer("/spec/manualSelector").and_then(Value::as_bool) == Some(true) {
            return;
        }
        let (name, uid) = (object.name().to_owned(), object.uid().to_owned());
        let labels = [
            ("controller-uid", &uid),
            (CONTROLLER_UID, &uid),
            ("job-name", &name),
            ("batch.kubernetes.io/job-name", &name),
        ];
        let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else {
            return;
        };
        let Some(template) = spec.get_mut("template").filter(|template| template.is_object()) else {
            return;
        };
        let before = template
            .pointer("/metadata/labels")
            .cloned()
            .unwrap_or_else(|| json!({}));
        for (key, value) in labels {
            let present = template
                .pointer(&format!("/metadata/labels/{}", key.replace('/', "~1")))
                .is_some();
            if !present {
                template["metadata"]["labels"][key] = Value::from(value.clone());
            }
        }
        let selector = spec.entry("selector").or_insert(Value::Null);
        if selector.is_null() || selector.is_object() {
            let labels = &mut selector["matchLabels"][CONTROLLER_UID];
            if labels.is_null() {
                *labels = Value::from(uid);
            }
        }
        let template_labels = object
            .pointer("/spec/template/metadata/labels")
            .cloned()
            .unwrap_or_default();
        let own_labels = object.metadata().and_then(|meta| meta.get("labels"));
        // Labels that were defaulted to the template's are the same map there, and so get what the template gets.
        if own_labels
            .is_some_and(|own| *own == before && before.as_object().is_some_and(|map| !map.is_empty()))
        {
            object["metadata"]["labels"] = template_labels;
        }
    }
}
