//! The defaults of a StatefulSet.

use serde_json::{Map, Value, json};

use crate::api::v1beta1::StatefulSetSpec;
use crate::gates::FeatureGates;
use crate::pods::template::spec::{self, Number, default_templates};
use crate::workloads::statefulset::settings::DEFAULT_HISTORY_LIMIT;

/// Fields that Go decodes into numbers.
const NUMBERS: [Number; 4] = [
    ("/replicas", "StatefulSetSpec.spec"),
    ("/revisionHistoryLimit", "StatefulSetSpec.spec"),
    ("/updateStrategy/rollingUpdate/partition", ROLLING),
    ("/updateStrategy/rollingUpdate/minReadySeconds", ROLLING),
];
const ROLLING: &str = "RollingUpdateStatefulSetStrategy.spec";

/// Fills the defaults into `set`, for a creation (no `old`) or an update. The templates' defaults are filled in when the pod
/// template is new or has changed. When nothing is missing and there is no status the object is left as it came, otherwise its spec is written as Go
/// writes it.
///
/// # Errors
/// The decoder's text when the spec is none of a StatefulSet (status 400).
pub(super) fn mutate_stateful_set(
    set: &mut Value,
    old: Option<&Value>,
    gates: &FeatureGates,
) -> Result<(), String> {
    let Some(spec) = set.get("spec") else {
        return Ok(());
    };
    let is_stored_version = !is_v1alpha1(set);
    let canonical = canonical_spec(spec, is_stored_version)?;
    let template_changed = match old.and_then(|old| old.get("spec")) {
        Some(old) => {
            let old = canonical_spec(old, is_stored_version).ok();
            old.as_ref().and_then(|old| old.get("template")) != canonical.get("template")
        }
        None => true,
    };
    let mut defaulted = canonical.clone();
    if let Some(spec) = defaulted.as_object_mut() {
        default_spec(spec, template_changed, is_stored_version, gates);
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

fn default_spec(
    spec: &mut Map<String, Value>,
    template_changed: bool,
    is_stored_version: bool,
    gates: &FeatureGates,
) {
    let mut set = |field: &str, default: Value| {
        spec.entry(field).or_insert(default);
    };
    set("podManagementPolicy", json!("OrderedReady"));
    set("replicas", json!(1));
    set("revisionHistoryLimit", json!(DEFAULT_HISTORY_LIMIT));
    if is_stored_version {
        if gates.is_on("StatefulSetAutoDeletePVC") {
            set("persistentVolumeClaimRetentionPolicy", json!({}));
        }
        if gates.is_on("StatefulSetAutoResizePVCGate") {
            set("volumeClaimUpdateStrategy", json!({}));
        }
    }
    let mut fill = |field: &str, defaults: &[(&str, Value)]| {
        let Some(field) = spec.get_mut(field).and_then(Value::as_object_mut) else {
            return;
        };
        for (name, default) in defaults {
            field.entry(*name).or_insert_with(|| default.clone());
        }
    };
    if is_stored_version && gates.is_on("StatefulSetAutoDeletePVC") {
        let retain = json!("Retain");
        fill(
            "persistentVolumeClaimRetentionPolicy",
            &[("whenDeleted", retain.clone()), ("whenScaled", retain)],
        );
    }
    if is_stored_version && gates.is_on("StatefulSetAutoResizePVCGate") {
        fill("volumeClaimUpdateStrategy", &[("type", json!("OnDelete"))]);
    }
    if let Some(update) = spec.get_mut("updateStrategy").and_then(Value::as_object_mut) {
        let kind = update.entry("type").or_insert_with(|| json!("RollingUpdate"));
        if kind.as_str() == Some("RollingUpdate") {
            let rolling = update.entry("rollingUpdate").or_insert_with(|| json!({}));
            if let Some(rolling) = rolling.as_object_mut() {
                for (name, default) in [
                    ("partition", json!(0)),
                    ("maxUnavailable", json!(1)),
                    ("podUpdatePolicy", json!("ReCreate")),
                    ("minReadySeconds", json!(0)),
                ] {
                    rolling.entry(name).or_insert(default);
                }
            }
        }
    }
    if template_changed && !gates.is_on("TemplateNoDefaults") {
        default_templates(spec);
    }
}

/// The spec as Go writes it after reading it.
pub(super) fn canonical_spec(spec: &Value, is_stored_version: bool) -> Result<Value, String> {
    let structs: &[&str] = match is_stored_version {
        true => &["updateStrategy", "volumeClaimUpdateStrategy"],
        false => &["updateStrategy"],
    };
    let mut fields = spec::canonical_spec::<StatefulSetSpec>(spec, &NUMBERS, structs)?;
    fields.retain(|name, field| match name.as_str() {
        "reserveOrdinals" | "volumeClaimTemplates" => *field != json!([]),
        "serviceName" | "podManagementPolicy" => *field != json!(""),
        _ => true,
    });
    Ok(Value::Object(fields))
}
