//! CustomResourceDefinitions: names filled in, accepted and established.

use serde_json::{Value, json};

use super::Strategy;
use crate::field_error::FieldError;
use crate::meta::{ObjectMeta, at};

pub(super) struct DefinitionStrategy;

fn fill_names(object: &mut Value) {
    let kind = at(object, "spec.names.kind")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    let Some(names) = object.pointer_mut("/spec/names").and_then(Value::as_object_mut) else {
        return;
    };
    if names
        .get("singular")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .is_empty()
    {
        names.insert("singular".to_owned(), Value::from(kind.to_lowercase()));
    }
    if !kind.is_empty()
        && names
            .get("listKind")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .is_empty()
    {
        names.insert("listKind".to_owned(), Value::from(format!("{kind}List")));
    }
}

fn fill_conversion(object: &mut Value) {
    if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
        spec.entry("conversion")
            .or_insert_with(|| json!({"strategy": "None"}));
    }
}

impl Strategy for DefinitionStrategy {
    fn has_generation(&self) -> bool {
        true
    }

    fn prepare_create(&self, object: &mut Value) {
        fill_names(object);
        fill_conversion(object);
        let versions = object
            .pointer("/spec/versions")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        let stored: Vec<Value> = versions
            .iter()
            .filter(|version| version.get("storage").and_then(Value::as_bool) == Some(true))
            .filter_map(|version| version.get("name").cloned())
            .take(1)
            .collect();
        object["status"] = json!({
            "acceptedNames": {"kind": "", "plural": ""},
            "conditions": null,
            "storedVersions": stored,
        });
    }

    fn prepare_update(&self, object: &mut Value, old: &Value) {
        fill_names(object);
        fill_conversion(object);
        super::copy_field(object, old, "status");
        // What is stored from now on counts as stored.
        let versions = at(object, "spec.versions").and_then(Value::as_array);
        let storage = versions
            .into_iter()
            .flatten()
            .find(|version| version.get("storage").and_then(Value::as_bool) == Some(true));
        let name = storage.and_then(|version| version.get("name")).cloned();
        if let (Some(name), Some(stored)) = (
            name,
            object
                .pointer_mut("/status/storedVersions")
                .and_then(Value::as_array_mut),
        ) && !stored.contains(&name)
        {
            stored.push(name);
        }
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        let text = |path: &str| at(object, path).and_then(Value::as_str).unwrap_or_default();
        let mut errors = Vec::new();
        let expected = format!("{}.{}", text("spec.names.plural"), text("spec.group"));
        if object.name() != expected {
            errors.push(FieldError::invalid(
                "metadata.name",
                Value::from(object.name()),
                "must be spec.names.plural+\".\"+spec.group",
            ));
        }
        errors.extend(super::crd_check::check(object));
        errors
    }

    fn validate_update(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        let established = old
            .pointer("/status/conditions")
            .and_then(Value::as_array)
            .is_some_and(|list| {
                list.iter()
                    .any(|condition| condition["type"] == "Established" && condition["status"] == "True")
            });
        let mut errors = super::crd_check::check(object);
        if established {
            let fields = ["spec.group", "spec.scope", "spec.names.kind", "spec.names.plural"];
            errors.extend(super::immutable::check(&fields, object, old));
        }
        errors
    }
}

/// The status that the API server itself gives a definition a moment after it was written.
pub(crate) fn established(definition: &Value, now: &str) -> Value {
    let mut out = definition.clone();
    let condition = |kind: &str, reason: &str, message: &str| json!({"type": kind, "status": "True", "lastTransitionTime": now, "reason": reason, "message": message});
    let names = at(definition, "spec.names").cloned().unwrap_or_default();
    out["status"]["acceptedNames"] = names;
    out["status"]["conditions"] = json!([
        condition("NamesAccepted", "NoConflicts", "no conflicts found"),
        condition(
            "Established",
            "InitialNamesAccepted",
            "the initial names have been accepted"
        ),
    ]);
    out
}
