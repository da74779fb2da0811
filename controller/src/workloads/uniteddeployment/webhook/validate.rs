//! The errors of a UnitedDeployment.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::Selector;
use pod_rules::errors::Errors;
use pod_rules::path::Path;
use pod_rules::{FieldError, selectors};
use serde_json::Value;

use super::mutate::without_nulls;
use super::{forbid, subsets, template};
use crate::api::v1alpha1::{UnitedDeployment, UnitedDeploymentSpec};
use crate::kit::go_syntax;
use crate::pods::template::rules::non_negative;
use crate::workloads::uniteddeployment::settings::is_reserving;

/// Everything that is wrong with `new`, for a creation (no `old`) or an update; nothing means that it is allowed. Texts and their
/// order are those of OpenKruise. A selector that is missing is left to the server's schema.
///
/// # Errors
/// The decoder's text when the object is no UnitedDeployment.
pub(super) fn validate_set(new: &Value, old: Option<&Value>) -> Result<Vec<FieldError>, String> {
    let set = decoded(new)?;
    let spec = &set.spec;
    let mut errors = Vec::new();
    non_negative("spec.replicas", spec.replicas, &mut errors);
    let selector = selector(&spec.selector, &mut errors);
    errors.extend(strategy(&set));
    if let Some(selector) = selector {
        template::check(&spec.template, &selector, &mut errors);
    }
    errors.extend(subsets::numbers(spec));
    errors.extend(subsets::subsets(spec));
    errors.extend(partitions(spec));
    // OpenKruise lets this pass, and its manager then crashes in each pass.
    non_negative(
        "spec.revisionHistoryLimit",
        spec.revision_history_limit,
        &mut errors,
    );
    if let Some(old) = old {
        errors.extend(forbid::update(&set, &decoded(old)?));
    }
    Ok(errors)
}

fn decoded(object: &Value) -> Result<UnitedDeployment, String> {
    let mut object = object.clone();
    // A status does not matter here.
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
        spec.retain(|_, field| !field.is_null());
        for part in ["topology", "updateStrategy"] {
            if let Some(part) = spec.get_mut(part) {
                *part = without_nulls(part);
            }
        }
        spec.entry("selector").or_insert_with(|| serde_json::json!({}));
    }
    serde_json::from_value(object).map_err(|error| error.to_string())
}

/// Checks the selector. None where Go can make none of it: then nothing is compared with it.
fn selector(selector: &LabelSelector, errors: &mut Vec<FieldError>) -> Option<Selector> {
    let path = "spec.selector";
    let value = shared_json::to_value(selector).unwrap_or_default();
    let mut found = Errors::default();
    selectors::selector(Some(&value), &Path::new(path), &mut found);
    errors.extend(found.into_vec());
    let shown = || go_syntax::selector(selector);
    if selectors::is_empty(&value) {
        let detail = "empty selector is invalid for statefulset";
        errors.push(FieldError::invalid_shown(path, shown(), detail));
    }
    let usable = selectors::is_usable(&value)
        .then(|| Selector::try_from(selector.clone()).ok())
        .flatten();
    if usable.is_none() {
        errors.push(FieldError::invalid_shown(path, shown(), ""));
    }
    usable
}

/// Pods that have names of their own cannot be stood in for.
fn strategy(set: &UnitedDeployment) -> Option<FieldError> {
    let template = &set.spec.template;
    let is_stateful =
        template.stateful_set_template.is_some() || template.advanced_stateful_set_template.is_some();
    (is_stateful && is_reserving(set)).then(|| {
        let shown = "v1alpha1.UnitedDeploymentScheduleStrategy{Type:\"Adaptive\", \
                     Adaptive:(*v1alpha1.AdaptiveUnitedDeploymentStrategy)(...)}";
        let detail =
            "only stateless workloads (Deployment and CloneSet) are supported by reserved rescheduling";
        FieldError::invalid_shown("spec.topology.scheduleStrategy", shown, detail)
    })
}

fn partitions(spec: &UnitedDeploymentSpec) -> Vec<FieldError> {
    let Some(manual) = &spec.update_strategy.manual_update else {
        return Vec::new();
    };
    let pairs: Vec<String> = manual
        .partitions
        .iter()
        .map(|(subset, number)| format!("{subset:?}:{number}"))
        .collect();
    let shown = format!("map[string]int32{{{}}}", pairs.join(", "));
    let subsets = &spec.topology.subsets;
    let unknown = manual
        .partitions
        .keys()
        .filter(|name| !subsets.iter().any(|subset| subset.name == **name));
    unknown
        .map(|name| {
            let detail = format!("subset {name} does not exist");
            FieldError::invalid_shown("spec.updateStrategy.partitions", &shown, detail)
        })
        .collect()
}
