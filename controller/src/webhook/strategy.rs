//! What is wrong with a CloneSet's strategies.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::field::FieldError;
use crate::api::v1alpha1::{CloneSetSpec, CloneSetUpdateStrategy};
use crate::cloneset::settings::{DEFAULT_MAX_UNAVAILABLE, NumberError, Round, partition, scaled};

/// What is wrong with `scaleStrategy`.
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
    vec![FieldError::invalid(
        "spec.scaleStrategy.podsToDelete",
        format!("[]string{{{}}}", quoted.join(", ")),
        detail,
    )]
}

/// What is wrong with `updateStrategy`.
pub(super) fn update(spec: &CloneSetSpec) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let none = CloneSetUpdateStrategy::default();
    let strategy = spec.update_strategy.as_ref().unwrap_or(&none);
    let path = "spec.updateStrategy";
    let replicas = spec.replicas.unwrap_or(1);
    let kind = strategy.kind.as_deref().unwrap_or("ReCreate");
    if !matches!(kind, "ReCreate" | "InPlaceIfPossible" | "InPlaceOnly") {
        let detail = "must be 'ReCreate', InPlaceIfPossible or 'InPlaceOnly'";
        errors.push(FieldError::invalid(
            format!("{path}.type"),
            format!("{kind:?}"),
            detail,
        ));
    }
    if let Some(value) = &strategy.partition {
        errors.extend(self::partition_error(value, replicas));
    }
    errors.extend(priority(strategy));
    errors.extend(scatter(strategy));

    let default = IntOrString::String(DEFAULT_MAX_UNAVAILABLE.to_owned());
    let max_unavailable = strategy.max_unavailable.as_ref().unwrap_or(&default);
    let surge = strategy.max_surge.as_ref();
    let unavailable_number = number(
        &format!("{path}.maxUnavailable"),
        "maxUnavailable",
        max_unavailable,
        replicas,
    );
    let surge_number = surge.map_or(Ok(0), |value| {
        number(&format!("{path}.maxSurge"), "maxSurge", value, replicas)
    });
    match (unavailable_number, surge_number) {
        (Ok(unavailable), Ok(surge_number)) => {
            if kind == "InPlaceOnly" && surge_number > 0 {
                let value = surge.map(text).unwrap_or_default();
                let detail = "can not use maxSurge with strategy type InPlaceOnly";
                errors.push(FieldError::invalid(
                    format!("{path}.maxSurge"),
                    format!("{value:?}"),
                    detail,
                ));
            }
            if replicas > 0 && unavailable < 1 && surge_number < 1 {
                let detail = "maxUnavailable and maxSurge should not both be less than 1";
                errors.push(FieldError::invalid(
                    format!("{path}.maxUnavailable"),
                    go(max_unavailable),
                    detail,
                ));
            }
        }
        (unavailable, surge) => errors.extend([unavailable.err(), surge.err()].into_iter().flatten()),
    }
    errors
}

fn partition_error(value: &IntOrString, replicas: i32) -> Option<FieldError> {
    let path = "spec.updateStrategy.partition";
    if let Err(error) = partition(value, replicas) {
        let detail = format!("failed getValueFromIntOrPercent for partition: {error}");
        return Some(FieldError::invalid(path, format!("{:?}", text(value)), detail));
    }
    match value {
        IntOrString::Int(number) if *number < 0 => Some(FieldError::invalid(
            path,
            number,
            "must be greater than or equal to 0",
        )),
        _ => None,
    }
}

/// A number or percentage; texts without `%` are refused (OpenKruise 1.9).
fn number(path: &str, name: &str, value: &IntOrString, replicas: i32) -> Result<i32, FieldError> {
    let wrong = |error: NumberError| {
        let detail = format!("failed getValueFromIntOrPercent for {name}: {error}");
        FieldError::invalid(path, format!("{:?}", text(value)), detail)
    };
    let number = scaled(value, replicas, Round::Up).map_err(wrong)?;
    match value {
        IntOrString::String(text) if !text.ends_with('%') => Err(wrong(NumberError::NotAPercentage)),
        _ => Ok(number),
    }
}

fn text(value: &IntOrString) -> String {
    match value {
        IntOrString::Int(number) => number.to_string(),
        IntOrString::String(text) => text.clone(),
    }
}

/// As Go's `%#v` prints it.
fn go(value: &IntOrString) -> String {
    match value {
        IntOrString::Int(number) => format!("intstr.IntOrString{{Type:0, IntVal:{number}, StrVal:\"\"}}"),
        IntOrString::String(text) => format!("intstr.IntOrString{{Type:1, IntVal:0, StrVal:{text:?}}}"),
    }
}

fn priority(strategy: &CloneSetUpdateStrategy) -> Option<FieldError> {
    let priority = strategy.priority_strategy.as_ref()?;
    let weights = priority.weight_priority.as_deref().unwrap_or_default();
    let orders = priority.order_priority.as_deref().unwrap_or_default();
    let detail = if !weights.is_empty() && !orders.is_empty() {
        "only one of weightPriority and orderPriority can be used"
    } else if weights.iter().any(|term| !(0..=100).contains(&term.weight)) {
        "weight must be valid number in the range 1-100"
    } else if weights.iter().any(|term| {
        let selector = &term.match_selector;
        selector.match_labels.iter().flatten().count() + selector.match_expressions.iter().flatten().count()
            == 0
    }) {
        "selector can not be empty"
    } else if orders.iter().any(|term| term.ordered_key.is_empty()) {
        "order key can not be empty"
    } else {
        return None;
    };
    Some(FieldError::required(
        "spec.updateStrategy.priorityStrategy",
        detail,
    ))
}

fn scatter(strategy: &CloneSetUpdateStrategy) -> Option<FieldError> {
    let path = "spec.updateStrategy.scatterStrategy";
    let mut seen = BTreeSet::new();
    for term in strategy.scatter_strategy.as_deref().unwrap_or_default() {
        if term.key.is_empty() {
            return Some(FieldError::required(path, "key should not be empty"));
        }
        if !seen.insert((&term.key, &term.value)) {
            let detail = format!("duplicated key={} value={}", term.key, term.value);
            return Some(FieldError::required(path, detail));
        }
    }
    None
}
