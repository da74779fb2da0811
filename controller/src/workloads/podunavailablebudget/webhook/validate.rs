//! Errors in a budget. Texts are those of OpenKruise.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use pod_rules::errors::Errors;
use pod_rules::field_error::go_quote;
use pod_rules::path::Path;
use pod_rules::{FieldError, FieldErrorKind, selectors};

use crate::api::labels;
use crate::api::v1alpha1::{PodUnavailableBudget, PodUnavailableBudgetSpec, TargetReference};
use crate::injection::budgets::is_operation;
use crate::kit::go_syntax;

/// The text about a text that is no percentage.
const NO_PERCENTAGE: &str = "a valid percent string must be a numeric string followed by an ending '%' \
                             (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";

/// Everything that is wrong with a budget.
pub(super) fn validate(budget: &PodUnavailableBudget) -> Vec<FieldError> {
    let mut errors = annotations(budget);
    errors.extend(pods(&budget.spec));
    errors.extend(numbers(&budget.spec));
    errors
}

/// Everything that an update must not change.
pub(super) fn unchanged(new: &PodUnavailableBudget, old: &PodUnavailableBudget) -> Option<FieldError> {
    let same = new.spec.selector == old.spec.selector && new.spec.target_ref == old.spec.target_ref;
    let detail = "selector and targetRef cannot be modified";
    (!same).then(|| FieldError::required("spec.selector, targetRef", detail))
}

fn annotations(budget: &PodUnavailableBudget) -> Vec<FieldError> {
    let annotation = |key: &str| budget.metadata.annotations.as_ref()?.get(key);
    let invalid = |key: &str| {
        let detail = format!("annotation[{key}] is invalid");
        FieldError::new(FieldErrorKind::Internal, "metadata", None, detail)
    };
    let mut errors = Vec::new();
    let operations = annotation(labels::BUDGET_OPERATIONS).map(|text| text.split(','));
    for _ in operations
        .into_iter()
        .flatten()
        .filter(|name| !is_operation(name))
    {
        errors.push(invalid(labels::BUDGET_OPERATIONS));
    }
    let total = annotation(labels::BUDGET_TOTAL_REPLICAS);
    if total.is_some_and(|text| text.parse::<i32>().is_err()) {
        errors.push(invalid(labels::BUDGET_TOTAL_REPLICAS));
    }
    errors
}

/// Errors in the choice of pods.
fn pods(spec: &PodUnavailableBudgetSpec) -> Vec<FieldError> {
    let path = "spec.selector, targetRef";
    match (&spec.selector, &spec.target_ref) {
        (None, None) => {
            let detail = "no selector or targetRef defined in PodUnavailableBudget";
            vec![FieldError::required(path, detail)]
        }
        (Some(_), Some(_)) => {
            let detail = "selector and targetRef are mutually exclusive";
            vec![FieldError::required(path, detail)]
        }
        (None, Some(target)) => target_error(target).into_iter().collect(),
        (Some(selector), None) => selector_errors(selector),
    }
}

/// A reference in Go's syntax.
pub(super) fn shown(target: &TargetReference) -> String {
    format!(
        "v1alpha1.TargetReference{{APIVersion:{}, Kind:{}, Name:{}}}",
        go_quote(&target.api_version),
        go_quote(&target.kind),
        go_quote(&target.name)
    )
}

fn target_error(target: &TargetReference) -> Option<FieldError> {
    let invalid = |detail: String| FieldError::invalid_shown("spec.TargetReference", shown(target), detail);
    if [&target.api_version, &target.kind, &target.name]
        .into_iter()
        .any(String::is_empty)
    {
        return Some(invalid(
            "empty TargetReference is not valid for PodUnavailableBudget.".to_owned(),
        ));
    }
    let slashes = target.api_version.matches('/').count();
    (slashes > 1).then(|| invalid(format!("unexpected GroupVersion string: {}", target.api_version)))
}

fn selector_errors(selector: &LabelSelector) -> Vec<FieldError> {
    let path = "spec.selector";
    let value = shared_json::to_value(selector).unwrap_or_default();
    let mut found = Errors::default();
    selectors::selector(Some(&value), &Path::new("spec").field("selector"), &mut found);
    let mut errors = found.into_vec();
    let is_usable = errors.is_empty();
    let shown = || go_syntax::selector(selector);
    if selectors::is_empty(&value) {
        let detail = "empty selector is not valid for PodUnavailableBudget.";
        errors.push(FieldError::invalid_shown(path, shown(), detail));
    }
    if !is_usable {
        errors.push(FieldError::invalid_shown(path, shown(), ""));
    }
    errors
}

/// Errors in the numbers.
fn numbers(spec: &PodUnavailableBudgetSpec) -> Vec<FieldError> {
    let path = "spec.maxUnavailable, minAvailable";
    match (&spec.max_unavailable, &spec.min_available) {
        (None, None) => {
            let detail = "no maxUnavailable or minAvailable defined in PodUnavailableBudget";
            vec![FieldError::required(path, detail)]
        }
        (Some(_), Some(_)) => {
            let detail = "maxUnavailable and minAvailable are mutually exclusive";
            vec![FieldError::required(path, detail)]
        }
        (Some(number), None) => number_error("spec.maxUnavailable", number).into_iter().collect(),
        (None, Some(number)) => number_error("spec.minAvailable", number).into_iter().collect(),
    }
}

fn number_error(path: &str, number: &IntOrString) -> Option<FieldError> {
    let invalid = |detail: &str| {
        Some(FieldError::invalid_shown(
            path,
            go_syntax::int_or_string(number),
            detail,
        ))
    };
    let percent = match number {
        IntOrString::Int(number) if *number < 0 => {
            return invalid("must be greater than or equal to 0");
        }
        IntOrString::Int(_) => return None,
        IntOrString::String(text) => text.strip_suffix('%'),
    };
    let is_digits = |text: &&str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match percent.filter(is_digits) {
        None => invalid(NO_PERCENTAGE),
        // Digits that fit no number are more than a hundred, too.
        Some(digits) if digits.parse::<u32>().is_ok_and(|percent| percent <= 100) => None,
        Some(_) => invalid("must not be greater than 100%"),
    }
}
