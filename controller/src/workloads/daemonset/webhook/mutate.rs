//! The defaults of a DaemonSet.

use serde_json::{Map, Value, json};

use crate::api::v1beta1::DaemonSetSpec;
use crate::pods::template::spec::{self, Number};
use crate::workloads::daemonset::settings::{DEFAULT_BURST, DEFAULT_HISTORY_LIMIT};

/// Fields that Go decodes into numbers.
const NUMBERS: [Number; 2] = [
    ("/minReadySeconds", "DaemonSetSpec.spec"),
    ("/revisionHistoryLimit", "DaemonSetSpec.spec"),
];

/// Fills the defaults into `set`. The pod template gets none. When nothing is missing and there is no status the object is left as it
/// came, otherwise its spec is written as Go writes it.
///
/// # Errors
/// The decoder's text when the spec is none of a DaemonSet (status 400).
pub(super) fn mutate_daemon_set(set: &mut Value) -> Result<(), String> {
    let Some(spec) = set.get("spec") else {
        return Ok(());
    };
    let canonical = canonical_spec(spec)?;
    let mut defaulted = canonical.clone();
    if let Some(spec) = defaulted.as_object_mut() {
        default_spec(spec, is_v1alpha1(set));
    }
    // OpenKruise empties the status, which the server ignores; but then it has changed the object, and writes all of it.
    let has_status = set
        .get("status")
        .and_then(Value::as_object)
        .is_some_and(|status| !status.is_empty());
    if (defaulted != canonical || has_status)
        && let Some(set) = set.as_object_mut()
    {
        set.insert("spec".to_owned(), defaulted);
    }
    Ok(())
}

/// Whether the object is of the version that has fewer fields.
pub(super) fn is_v1alpha1(set: &Value) -> bool {
    set.get("apiVersion").and_then(Value::as_str) == Some("apps.kruise.io/v1alpha1")
}

fn default_spec(spec: &mut Map<String, Value>, is_v1alpha1: bool) {
    spec.entry("burstReplicas").or_insert(json!(DEFAULT_BURST));
    spec.entry("revisionHistoryLimit")
        .or_insert(json!(DEFAULT_HISTORY_LIMIT));
    let Some(update) = spec.get_mut("updateStrategy").and_then(Value::as_object_mut) else {
        return;
    };
    let kind = update.entry("type").or_insert_with(|| json!("RollingUpdate"));
    if kind.as_str() != Some("RollingUpdate") {
        return;
    }
    let rolling = update.entry("rollingUpdate").or_insert_with(|| json!({}));
    let Some(rolling) = rolling.as_object_mut() else {
        return;
    };
    let kind = rolling
        .entry("rollingUpdateType")
        .or_insert_with(|| json!("Standard"));
    if is_v1alpha1 && kind.as_str() == Some("Surging") {
        *kind = json!("Standard");
        rolling.entry("maxSurge").or_insert(json!(1));
        rolling.entry("maxUnavailable").or_insert(json!(0));
    }
    if !rolling.contains_key("maxSurge") && !rolling.contains_key("maxUnavailable") {
        rolling.insert("maxSurge".to_owned(), json!(0));
        rolling.insert("maxUnavailable".to_owned(), json!(1));
    }
}

/// The spec as Go writes it after reading it.
pub(super) fn canonical_spec(spec: &Value) -> Result<Value, String> {
    let mut fields = spec::canonical_spec::<DaemonSetSpec>(spec, &NUMBERS, &["updateStrategy"])?;
    let rolling = fields
        .get_mut("updateStrategy")
        .and_then(|update| update.get_mut("rollingUpdate"));
    if let Some(rolling) = rolling.and_then(Value::as_object_mut) {
        rolling.retain(|name, field| name != "rollingUpdateType" || *field != json!(""));
    }
    fields.retain(|name, field| name != "minReadySeconds" || *field != json!(0));
    Ok(Value::Object(fields))
}
