//! Errors in the numbers of subsets.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use pod_rules::FieldError;

use super::subsets::PATH;
use crate::api::v1alpha1::WorkloadSpread;
use crate::kit::go_syntax;

/// A percentage without a fraction.
fn percentage(text: &str) -> Option<i64> {
    let digits = text.strip_suffix('%')?;
    let is_digits = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_digits.then(|| digits.parse().unwrap_or(i64::MAX))
}

/// The first error in the numbers.
pub(super) fn limits(spread: &WorkloadSpread) -> Option<FieldError> {
    let subsets = &spread.spec.subsets;
    let is_stateful = spread
        .spec
        .target_ref
        .as_ref()
        .is_some_and(|target| target.kind == "StatefulSet");
    let mut first: Option<&IntOrString> = None;
    let mut sum: i64 = 0;
    let numbers = subsets.iter().enumerate();
    for (at, number) in numbers.filter_map(|(at, subset)| Some((at, subset.max_replicas.as_ref()?))) {
        let invalid = |detail: &str| {
            let path = format!("{PATH}[{at}].maxReplicas");
            Some(FieldError::invalid_shown(
                path,
                go_syntax::int_or_string(number),
                detail,
            ))
        };
        let is_text = |number: &IntOrString| matches!(number, IntOrString::String(_));
        if first.is_some_and(|first| is_text(first) != is_text(number)) {
            return invalid("the maxReplicas type of all subsets must be the same");
        }
        first = first.or(Some(number));
        match number {
            IntOrString::String(_) if is_stateful => {
                return invalid("the maxReplicas type must be Int for StatefulSet");
            }
            IntOrString::Int(number) if *number < 0 => return invalid("maxReplicas is not valid for subset"),
            IntOrString::Int(_) => {}
            IntOrString::String(text) => {
                // The real webhook takes a number without its sign, and the manager panics of it.
                let Some(percent) = percentage(text) else {
                    return invalid("maxReplicas is not valid for subset");
                };
                sum = sum.saturating_add(percent);
                if sum > 100 {
                    return invalid("the sum of all subset's maxReplicas exceeds 100% is no permitted");
                }
            }
        }
    }
    let is_percent = matches!(first, Some(IntOrString::String(_)));
    let last = subsets.last().and_then(|subset| subset.max_replicas.as_ref());
    if !is_percent || sum >= 100 || last.is_none() {
        return None;
    }
    let shown = subsets.first().and_then(|subset| subset.max_replicas.as_ref());
    let shown = shown.map_or_else(|| "\"\"".to_owned(), go_syntax::int_or_string);
    let detail = "maxReplicas sum of all subsets must equal 100% when type is specified as percent";
    Some(FieldError::invalid_shown(
        format!("{PATH}[0].maxReplicas"),
        shown,
        detail,
    ))
}
