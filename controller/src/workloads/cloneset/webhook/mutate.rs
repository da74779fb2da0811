//! The defaults that OpenKruise fills into a CloneSet.

use serde_json::{Map, Value, json};

use crate::api::v1alpha1::CloneSetSpec;
use crate::pods::template::spec::{self, Number, default_templates};
use crate::workloads::cloneset::settings::{DEFAULT_HISTORY_LIMIT, DEFAULT_MAX_UNAVAILABLE};

/// Fields that Go decodes into numbers.
const NUMBERS: [Number; 4] = [
    ("/replicas", SPEC),
    ("/revisionHistoryLimit", SPEC),
    ("/minReadySeconds", SPEC),
    ("/progressDeadlineSeconds", SPEC),
];
const SPEC: &str = "CloneSetSpec.spec";

/// Fills the defaults into `set`, for a creation (no `old`) or an update. The template's defaults are filled in when it is
/// new or has changed. When nothing is missing the object is left as it came, otherwise its spec is written as Go writes
/// it.
///
/// # Errors
/// The decoder's text when the spec is none of a CloneSet (status 400).
pub(crate) fn mutate_cloneset(set: &mut Value, old: Option<&Value>) -> Result<(), String> {
    let Some(spec) = set.get("spec") else {
        return Ok(());
    };
    let canonical = canonical_spec(spec)?;
    let template_changed = match old.and_then(|old| old.get("spec")) {
        Some(old) => {
            canonical_spec(old)
                .ok()
                .as_ref()
                .and_then(|old| old.get("template"))
                != canonical.get("template")
        }
        None => true,
    };
    let mut defaulted = canonical.clone();
    if let Some(spec) = defaulted.as_object_mut() {
        default_spec(spec, template_changed);
    }
    if defaulted != canonical
        && let Some(set) = set.as_object_mut()
    {
        set.insert("spec".to_owned(), defaulted);
    }
    Ok(())
}

fn default_spec(spec: &mut Map<String, Value>, template_changed: bool) {
    let mut set = |field: &str, default: Value| {
        spec.entry(field).or_insert(default);
    };
    set("replicas", json!(1));
    set("revisionHistoryLimit", json!(DEFAULT_HISTORY_LIMIT));
    if let Some(update) = spec.get_mut("updateStrategy").and_then(Value::as_object_mut) {
        let mut set = |field: &str, default: Value| {
            update.entry(field).or_insert(default);
        };
        set("type", json!("ReCreate"));
        set("partition", json!(0));
        set("maxUnavailable", json!(DEFAULT_MAX_UNAVAILABLE));
        set("maxSurge", json!(0));
        let kind = update.get("type").and_then(Value::as_str).unwrap_or_default();
        if matches!(kind, "InPlaceIfPossible" | "InPlaceOnly") {
            update.entry("inPlaceUpdateStrategy").or_insert(json!({}));
        }
    }
    if template_changed {
        default_templates(spec);
    }
}

/// The spec as Go writes it after reading it.
pub(crate) fn canonical_spec(spec: &Value) -> Result<Value, String> {
    let structs = ["scaleStrategy", "updateStrategy"];
    let mut fields = spec::canonical_spec::<CloneSetSpec>(spec, &NUMBERS, &structs)?;
    fields.retain(|name, field| match name.as_str() {
        "minReadySeconds" => *field != json!(0),
        "volumeClaimTemplates" => *field != json!([]),
        _ => true,
    });
    Ok(Value::Object(fields))
}
