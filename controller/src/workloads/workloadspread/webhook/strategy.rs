//! Errors in the strategy of a spread.

use pod_rules::FieldError;
use pod_rules::field_error::go_quote;

use crate::api::v1alpha1::WorkloadSpread;

/// The time in which all subsets but the last must have been tried, in seconds.
const TRIED_WITHIN_S: i64 = 295;

/// The longest time that a pod may wait for a node in one of so many subsets.
fn longest(subsets: usize) -> i64 {
    match i64::try_from(subsets).unwrap_or(i64::MAX) - 1 {
        0 => i64::from(i32::MAX),
        others => TRIED_WITHIN_S / others.max(1),
    }
}

/// Errors in the strategy.
pub(super) fn strategy(spread: &WorkloadSpread) -> Vec<FieldError> {
    let path = "spec.scheduleStrategy";
    let Some(strategy) = &spread.spec.schedule_strategy else {
        return Vec::new();
    };
    let kind = strategy.kind.as_deref().unwrap_or_default();
    let mut errors = Vec::new();
    if !matches!(kind, "" | "Adaptive" | "Fixed") {
        let detail = "ScheduleStrategy's type is not valid";
        errors.push(FieldError::invalid_shown(
            format!("{path}.type"),
            go_quote(kind),
            detail,
        ));
    }
    let Some(adaptive) = &strategy.adaptive else {
        return errors;
    };
    let seconds = adaptive.reschedule_critical_seconds;
    if kind != "Adaptive" {
        let shown = seconds.map_or_else(|| "null".to_owned(), |seconds| seconds.to_string());
        let detail = "the scheduleStrategy's type must be adaptive when using adaptive scheduleStrategy";
        errors.push(FieldError::invalid_shown(format!("{path}.type"), shown, detail));
    }
    let subsets = &spread.spec.subsets;
    let limited = subsets.last().and_then(|last| last.max_replicas.as_ref());
    if subsets.len() > 1 && limited.is_some() {
        let detail =
            "the last subset's maxReplicas must be not specified when using adaptive scheduleStrategy";
        let shown = seconds.map_or_else(|| "null".to_owned(), |seconds| seconds.to_string());
        errors.push(FieldError::invalid_shown(
            format!("{path}.adaptive"),
            shown,
            detail,
        ));
    }
    let most = longest(subsets.len());
    if let Some(seconds) = seconds.filter(|seconds| *seconds < 0 || i64::from(*seconds) > most) {
        let path = format!("{path}.adaptive.rescheduleCriticalSeconds");
        let detail =
            format!("rescheduleCriticalSeconds < 0 or rescheduleCriticalSeconds > {most} is not permitted");
        errors.push(FieldError::invalid(path, seconds, detail));
    }
    errors
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(1, 2_147_483_647)]
    #[case(2, 295)]
    #[case(3, 147)]
    #[case(4, 98)]
    #[case(0, 295)]
    fn limits(#[case] subsets: usize, #[case] want: i64) {
        assert_eq!(longest(subsets), want);
    }
}
