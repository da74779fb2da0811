//! The errors of a set's selectors and strategies.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use pod_rules::errors::Errors;
use pod_rules::field_error::go_quote;
use pod_rules::path::Path;
use pod_rules::{FieldError, selectors};

use crate::api::v1beta1::{SidecarSetInjectRevision, SidecarSetSpec, SidecarSetUpdateStrategy};
use crate::kit::go_syntax;
use crate::pods::template::rules;

/// The errors of a selector.
pub(super) fn selector(selector: &LabelSelector, path: &str, errors: &mut Vec<FieldError>) {
    let value = shared_json::to_value(selector).unwrap_or_default();
    let mut found = Errors::default();
    selectors::selector(Some(&value), &Path::new(path), &mut found);
    errors.extend(found.into_vec());
    let shown = || go_syntax::selector(selector);
    if selectors::is_empty(&value) {
        let detail = "empty selector is not valid for sidecarset.";
        errors.push(FieldError::invalid_shown(path, shown(), detail));
    }
    if !selectors::is_usable(&value) {
        errors.push(FieldError::invalid_shown(format!("{path}.selector"), shown(), ""));
    }
}

/// The errors of `injectionStrategy.revision`, apart from whether there is such a revision.
pub(super) fn revision(revision: &SidecarSetInjectRevision, errors: &mut Vec<FieldError>) {
    let policy = revision.policy.as_deref().unwrap_or_default();
    if !matches!(policy, "" | "Always" | "Partial") {
        let detail = format!("Invalid policy {policy}, supported: [Always, Partial]");
        errors.push(FieldError::invalid("revision.policy", policy, detail));
    }
}

/// The error of a revision that is not named.
pub(super) fn unnamed(revision: &SidecarSetInjectRevision) -> FieldError {
    let policy = go_quote(revision.policy.as_deref().unwrap_or_default());
    let shown = format!(
        "v1beta1.SidecarSetInjectRevision{{CustomVersion:(*string)(nil), RevisionName:(*string)(nil), Policy:{policy}}}"
    );
    let detail = "revisionName and customVersion cannot be empty simultaneously";
    FieldError::invalid_shown("revision", shown, detail)
}

/// The errors of `updateStrategy`.
pub(super) fn update(spec: &SidecarSetSpec, errors: &mut Vec<FieldError>) {
    let Some(strategy) = &spec.update_strategy else {
        return;
    };
    if strategy.kind.as_deref() != Some("RollingUpdate") {
        return;
    }
    let keeps_some = !matches!(&strategy.partition, None | Some(IntOrString::Int(0)));
    if keeps_some && strategy.selector.is_some() {
        let detail = "Partition and Selector cannot be used together";
        errors.push(FieldError::invalid("updateStrategy", shown(strategy), detail));
    }
    let path = "spec.updateStrategy";
    if let Some(selector) = &strategy.selector {
        self::selector(selector, &format!("{path}.selector"), errors);
    }
    for (field, value) in [
        ("partition", &strategy.partition),
        ("maxUnavailable", &strategy.max_unavailable),
    ] {
        if let Some(value) = value {
            rules::positive_number(&format!("{path}.{field}"), value, errors);
        }
    }
    let priority = strategy.priority_strategy.as_ref();
    errors.extend(rules::priority(priority, &format!("{path}.priorityStrategy")));
    let scatter = strategy.scatter_strategy.as_deref().unwrap_or_default();
    errors.extend(rules::scatter(scatter, &format!("{path}.scatterStrategy")));
}

/// A strategy as Go's `%+v` prints it, but for the priorities, of which Go prints the address.
fn shown(strategy: &SidecarSetUpdateStrategy) -> String {
    let number = |value: &Option<IntOrString>| match value {
        None => "<nil>".to_owned(),
        Some(IntOrString::Int(number)) => number.to_string(),
        Some(IntOrString::String(text)) => text.clone(),
    };
    let scatter: Vec<String> = strategy
        .scatter_strategy
        .iter()
        .flatten()
        .map(|term| format!("{{Key:{} Value:{}}}", term.key, term.value))
        .collect();
    format!(
        "&{{Type:{} Paused:{} Selector:{} Partition:{} MaxUnavailable:{} PriorityStrategy:{} ScatterStrategy:[{}]}}",
        strategy.kind.as_deref().unwrap_or_default(),
        strategy.paused == Some(true),
        strategy
            .selector
            .as_ref()
            .map_or_else(|| "nil".to_owned(), printed),
        number(&strategy.partition),
        number(&strategy.max_unavailable),
        strategy.priority_strategy.as_ref().map_or("<nil>", |_| "…"),
        scatter.join(" "),
    )
}

/// A selector as its own `String` method prints it.
fn printed(selector: &LabelSelector) -> String {
    let labels: String = selector
        .match_labels
        .iter()
        .flatten()
        .map(|(key, value)| format!("{key}: {value},"))
        .collect();
    let expressions: String = selector
        .match_expressions
        .iter()
        .flatten()
        .map(|expression| {
            let values = expression.values.clone().unwrap_or_default().join(" ");
            let (key, operator) = (&expression.key, &expression.operator);
            format!("LabelSelectorRequirement{{Key:{key},Operator:{operator},Values:[{values}],}},")
        })
        .collect();
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{labels}}},MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )
}
