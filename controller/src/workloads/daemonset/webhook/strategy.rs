//! The errors of a DaemonSet's update strategy.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use pod_rules::errors::Errors;
use pod_rules::field_error::go_quote;
use pod_rules::path::Path;
use pod_rules::{FieldError, selectors};

use crate::api::v1beta1::{DaemonSetSpec, DaemonSetUpdateStrategy, RollingUpdateDaemonSetStrategy};
use crate::kit::go_syntax;
use crate::pods::template::rules;
use crate::workloads::daemonset::nodes::node_selector;

/// The errors of `updateStrategy`.
pub(super) fn update(spec: &DaemonSetSpec, is_v1alpha1: bool, errors: &mut Vec<FieldError>) {
    let none = DaemonSetUpdateStrategy::default();
    let strategy = spec.update_strategy.as_ref().unwrap_or(&none);
    let path = "spec.updateStrategy";
    match strategy.kind.as_deref().unwrap_or_default() {
        "OnDelete" => {}
        "RollingUpdate" => match &strategy.rolling_update {
            None => errors.push(FieldError::required(format!("{path}.rollingUpdate"), "")),
            Some(rolling) => rolling_update(rolling, is_v1alpha1, errors),
        },
        other => {
            errors.push(FieldError {
                shown: Some(shown(other, strategy, is_v1alpha1)),
                ..FieldError::not_supported(path, other, &["RollingUpdate", "OnDelete"])
            });
        }
    }
}

/// A strategy as Go prints it, but for the details that it points to: Go prints their address.
fn shown(kind: &str, strategy: &DaemonSetUpdateStrategy, is_v1alpha1: bool) -> String {
    let version = if is_v1alpha1 { "v1alpha1" } else { "v1beta1" };
    let details = match strategy.rolling_update {
        None => "nil",
        Some(_) => "...",
    };
    format!(
        "{version}.DaemonSetUpdateStrategy{{Type:{}, RollingUpdate:(*{version}.RollingUpdateDaemonSet)({details})}}",
        go_quote(kind)
    )
}

fn rolling_update(rolling: &RollingUpdateDaemonSetStrategy, is_v1alpha1: bool, errors: &mut Vec<FieldError>) {
    let path = |field: &str| format!("spec.updateStrategy.rollingUpdate.{field}");
    let fields = [
        ("maxUnavailable", &rolling.max_unavailable),
        ("maxSurge", &rolling.max_surge),
    ];
    let set = fields.map(|(_, value)| value.as_ref().filter(|value| counts(value)));
    for (value, (field, _)) in set.iter().zip(fields) {
        if let Some(value) = value {
            rules::positive_number(&path(field), value, errors);
            at_most_all(&path(field), value, errors);
        }
    }
    let [unavailable, surge] = set;
    match (unavailable, surge) {
        (Some(_), Some(surge)) => {
            let detail = "may not be set when maxUnavailable is non-zero";
            let shown = go_syntax::int_or_string(surge);
            errors.push(FieldError::invalid_shown(path("maxSurge"), shown, detail));
        }
        (None, None) => errors.push(FieldError::required(
            path("maxUnavailable"),
            "cannot be 0 when maxSurge is 0",
        )),
        _ => {}
    }
    kind(rolling, is_v1alpha1, surge.is_some(), errors);
    if let Some(partition) = &rolling.partition {
        // OpenKruise names this field so, and the type.
        let path = path("rollingUpdate.partition");
        rules::positive_number(&path, partition, errors);
        at_most_all(&path, partition, errors);
    }
    if let Some(selector) = &rolling.selector {
        // OpenKruise lets this pass, and then fails at every update.
        if node_selector(selector).is_err() {
            let value = shared_json::to_value(selector).unwrap_or_default();
            let mut found = Errors::default();
            selectors::selector(Some(&value), &Path::new(&path("selector")), &mut found);
            errors.extend(found.into_vec());
        }
    }
}

fn kind(
    rolling: &RollingUpdateDaemonSetStrategy,
    is_v1alpha1: bool,
    surges: bool,
    errors: &mut Vec<FieldError>,
) {
    let path = |field: &str| format!("spec.updateStrategy.rollingUpdate.{field}");
    match rolling.kind.as_deref().unwrap_or_default() {
        "Standard" => {}
        "Surging" if is_v1alpha1 => {}
        "InPlaceIfPossible" => {
            if surges {
                let detail = "must be 0 for InPlaceIfPossible type";
                errors.push(FieldError::required(path("maxSurge"), detail));
            }
        }
        other => {
            let supported: &[&str] = match is_v1alpha1 {
                true => &["Standard", "Surging", "InPlaceIfPossible"],
                false => &["Standard", "InPlaceIfPossible"],
            };
            errors.push(FieldError::not_supported(
                path("rollingUpdate.type"),
                other,
                supported,
            ));
        }
    }
}

/// Whether a number is more than nothing: neither zero nor a text that is no percentage.
fn counts(value: &IntOrString) -> bool {
    match value {
        IntOrString::Int(number) => *number != 0,
        IntOrString::String(text) => percent(text).is_some_and(|percent| percent != 0),
    }
}

fn percent(text: &str) -> Option<i64> {
    text.strip_suffix('%')?.parse().ok()
}

/// `must not be greater than 100%`.
fn at_most_all(path: &str, value: &IntOrString, errors: &mut Vec<FieldError>) {
    let IntOrString::String(text) = value else { return };
    if percent(text).is_some_and(|percent| percent > 100) {
        let shown = go_syntax::int_or_string(value);
        errors.push(FieldError::invalid_shown(
            path,
            shown,
            "must not be greater than 100%",
        ));
    }
}
