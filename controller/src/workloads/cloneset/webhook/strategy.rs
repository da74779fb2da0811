//! Errors in a CloneSet's strategies.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::api::v1alpha1::{CloneSetSpec, CloneSetUpdateStrategy};
use crate::kit::go_syntax;
use crate::pods::template::rules;
use crate::workloads::cloneset::settings::DEFAULT_MAX_UNAVAILABLE;
use pod_rules::FieldError;

/// Errors in `scaleStrategy`.
pub(super) fn scale(spec: &CloneSetSpec) -> Vec<FieldError> {
    let names = spec
        .scale_strategy
        .as_ref()
        .and_then(|strategy| strategy.pods_to_delete.as_deref())
        .unwrap_or_default();
    let mut seen = BTreeSet::new();
    let duplicates: BTreeSet<&String> = names.iter().filter(|name| !seen.insert(*name)).collect();
    if duplicates.is_empty() {
        return Vec::new();
    }
    let quoted: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
    let listed: Vec<&str> = duplicates.into_iter().map(String::as_str).collect();
    let detail = format!("duplicated items [{}]", listed.join(" "));
    vec![FieldError::invalid_shown(
        "spec.scaleStrategy.podsToDelete",
        format!("[]string{{{}}}", quoted.join(", ")),
        detail,
    )]
}

/// Errors in `updateStrategy`, in the order of OpenKruise 1.9.
pub(super) fn update(spec: &CloneSetSpec) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let none = CloneSetUpdateStrategy::default();
    let strategy = spec.update_strategy.as_ref().unwrap_or(&none);
    let path = "spec.updateStrategy";
    let replicas = spec.replicas.unwrap_or(1);
    let kind = strategy.kind.as_deref().unwrap_or("ReCreate");
    if !matches!(kind, "ReCreate" | "InPlaceIfPossible" | "InPlaceOnly") {
        let detail = "must be 'ReCreate', InPlaceIfPossible or 'InPlaceOnly'";
        errors.push(FieldError::invalid(format!("{path}.type"), kind, detail));
    }
    let number = |name: &str, value: &IntOrString, errors: &mut Vec<FieldError>| {
        percentage(value, replicas).unwrap_or_else(|error| {
            let detail = format!("failed GetScaledValueFromIntOrPercent for {name}: {error}");
            errors.push(FieldError::invalid(format!("{path}.{name}"), text(value), detail));
            0
        })
    };
    let partition = strategy.partition.as_ref();
    let partition = partition.map_or(0, |value| number("partition", value, &mut errors));
    if partition < 0 {
        errors.push(FieldError::invalid(
            format!("{path}.partition"),
            partition,
            "must be greater than or equal to 0",
        ));
    }
    let priorities = strategy.priority_strategy.as_ref();
    errors.extend(rules::priority(
        priorities,
        "spec.updateStrategy.priorityStrategy",
    ));
    let scatter = strategy.scatter_strategy.as_deref().unwrap_or_default();
    errors.extend(rules::scatter(scatter, "spec.updateStrategy.scatterStrategy"));

    let default = IntOrString::String(DEFAULT_MAX_UNAVAILABLE.to_owned());
    let max_unavailable = strategy.max_unavailable.as_ref().unwrap_or(&default);
    let unavailable = number("maxUnavailable", max_unavailable, &mut errors);
    let surge = strategy.max_surge.as_ref();
    let surge_number = surge.map_or(0, |value| number("maxSurge", value, &mut errors));
    if kind == "InPlaceOnly" && surge_number > 0 {
        let value = surge.map(text).unwrap_or_default();
        let detail = "can not use maxSurge with strategy type InPlaceOnly";
        errors.push(FieldError::invalid(format!("{path}.maxSurge"), value, detail));
    }
    if replicas > 0 && unavailable < 1 && surge_number < 1 {
        let detail = "maxUnavailable and maxSurge should not both be less than 1";
        errors.push(FieldError::invalid_shown(
            format!("{path}.maxUnavailable"),
            go_syntax::int_or_string(max_unavailable),
            detail,
        ));
    }
    errors
}

/// A number, or a percentage of `replicas`, which may have a fraction and rounds up.
fn percentage(value: &IntOrString, replicas: i32) -> Result<i32, String> {
    let text = match value {
        IntOrString::Int(number) => return Ok(*number),
        IntOrString::String(text) => text,
    };
    let Some(digits) = text.strip_suffix('%') else {
        return Err("invalid type: string is not a percentage".to_owned());
    };
    let percent: f64 = digits
        .parse()
        .map_err(|_| format!("strconv.ParseFloat: parsing {digits:?}: invalid syntax"))?;
    #[expect(clippy::cast_possible_truncation, reason = "float to int casts saturate")]
    let number = (percent * f64::from(replicas) / 100.0).ceil() as i32;
    Ok(number)
}

fn text(value: &IntOrString) -> String {
    match value {
        IntOrString::Int(number) => number.to_string(),
        IntOrString::String(text) => text.clone(),
    }
}
