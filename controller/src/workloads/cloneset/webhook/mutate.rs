//! What OpenKruise fills into a CloneSet.

use serde_json::{Map, Value, json};

use crate::api::v1alpha1::CloneSetSpec;
use crate::kit::json::omit_empty;
use crate::pods::template::defaults;
use crate::pods::template::{claim_template, pod_template};
use crate::workloads::cloneset::settings::{DEFAULT_HISTORY_LIMIT, DEFAULT_MAX_UNAVAILABLE};

/// Fields that Go decodes into numbers, for the decoder's words.
const NUMBERS: [&str; 4] = [
    "replicas",
    "revisionHistoryLimit",
    "minReadySeconds",
    "progressDeadlineSeconds",
];

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
        if let Some(template) = spec.get_mut("template") {
            defaults::pod_template(template);
        }
        let claims = spec.get_mut("volumeClaimTemplates").and_then(Value::as_array_mut);
        claims.into_iter().flatten().for_each(defaults::claim_template);
    }
}

/// The spec as Go writes it after reading it.
pub(crate) fn canonical_spec(spec: &Value) -> Result<Value, String> {
    for field in NUMBERS {
        if spec.get(field).is_some_and(Value::is_string) {
            let path = format!("CloneSetSpec.spec.{field}");
            return Err(format!(
                "json: cannot unmarshal string into Go struct field {path} of type int32"
            ));
        }
    }
    let mut spec = spec.clone();
    let Some(fields) = spec.as_object_mut() else {
        return Err("spec is not an object".to_owned());
    };
    fields.retain(|_, value| !value.is_null());
    let template = fields.get("template").cloned().unwrap_or_else(|| json!({}));
    fields.insert("template".to_owned(), pod_template(&template)?);
    if let Some(Value::Array(claims)) = fields.get_mut("volumeClaimTemplates") {
        for claim in claims {
            *claim = claim_template(claim)?;
        }
    }
    // Without a selector the type's decoder would refuse what the server's schema has to refuse in its own words.
    let selector = fields.get("selector").cloned();
    fields.entry("selector").or_insert_with(|| json!({}));
    let typed: CloneSetSpec = serde_json::from_value(spec).map_err(|error| error.to_string())?;
    let mut spec = serde_json::to_value(typed).map_err(|error| error.to_string())?;
    if let Some(fields) = spec.as_object_mut() {
        if selector.is_none() {
            fields.remove("selector");
        }
        for strategy in ["scaleStrategy", "updateStrategy"] {
            fields.entry(strategy).or_insert_with(|| json!({}));
        }
        for (name, field) in fields.iter_mut() {
            if name != "template" && name != "volumeClaimTemplates" {
                omit_empty(field);
            }
        }
        fields.retain(|name, field| !(name == "minReadySeconds" && *field == json!(0)));
        fields.retain(|name, field| !(name == "volumeClaimTemplates" && *field == json!([])));
    }
    Ok(spec)
}
