//! Whether a pod may go out of service, and taking it out of its budget.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt as _;
use pod_rules::field_error::go_quote;

use super::operation::Operation;
use super::state::is_available;
use crate::api::labels;
use crate::api::v1alpha1::{PodUnavailableBudget, PodUnavailableBudgetStatus};
use crate::pods::CachedPod;
use crate::pods::pod;

/// How many pods a budget keeps in its records (OpenKruise: the same).
const RECORDED_MAX: usize = 2000;

/// The verdict on the wish to take a pod out of service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It may go, and costs nothing.
    Free,
    /// It may go if there is budget for it.
    Costs,
}

/// Whether the operation costs nothing, whatever the budget says.
pub(super) fn is_free(pod: &CachedPod) -> bool {
    pod::annotation(pod, labels::BUDGET_NO_PROTECT) == Some("true") || !is_available(pod)
}

/// Judges an operation on a pod that [`is_free`] does not let go.
pub(super) fn judge(
    budget: &PodUnavailableBudget,
    pod: &str,
    operation: Operation,
    tells_resizes: bool,
) -> Verdict {
    let none = PodUnavailableBudgetStatus::default();
    let status = budget.status.as_ref().unwrap_or(&none);
    let is_recorded = status.disrupted_pods.contains_key(pod) || status.unavailable_pods.contains_key(pod);
    if status.desired_available == 0 || !operation.is_guarded(budget, tells_resizes) || is_recorded {
        return Verdict::Free;
    }
    Verdict::Costs
}

/// The status of a budget after a pod has been taken out of it.
///
/// # Errors
/// The text of the refusal.
pub(super) fn take(
    budget: &PodUnavailableBudget,
    pod: &str,
    operation: Operation,
    now: Timestamp,
) -> Result<PodUnavailableBudgetStatus, String> {
    let refused = |why: &str| {
        let name = go_quote(&budget.name_any());
        format!("podunavailablebudget.policy.kruise.io {name} is forbidden: {why}")
    };
    let mut status = budget.status.clone().unwrap_or_default();
    if status.unavailable_allowed <= 0 {
        return Err(refused("pub unavailable allowed is negative"));
    }
    if status.disrupted_pods.len() + status.unavailable_pods.len() > RECORDED_MAX {
        return Err(refused(
            "DisruptedPods and UnavailablePods map too big - too many unavailable not confirmed by PUB controller",
        ));
    }
    status.unavailable_allowed -= 1;
    let records = match operation {
        Operation::Update => &mut status.unavailable_pods,
        Operation::Delete | Operation::Evict | Operation::Resize => &mut status.disrupted_pods,
    };
    records.insert(pod.to_owned(), Time(now));
    Ok(status)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::pods::test_pods::TestPod;

    fn budget(allowed: i32, desired: i32, recorded: &str, operations: &str) -> PodUnavailableBudget {
        let records: serde_json::Map<String, serde_json::Value> = recorded
            .split_whitespace()
            .map(|name| (name.to_owned(), json!("2026-01-01T00:00:00Z")))
            .collect();
        serde_json::from_value(json!({
            "apiVersion": "policy.kruise.io/v1alpha1", "kind": "PodUnavailableBudget",
            "metadata": { "name": "pub", "namespace": "default", "annotations": { labels::BUDGET_OPERATIONS: operations } },
            "spec": {},
            "status": { "unavailableAllowed": allowed, "desiredAvailable": desired, "disruptedPods": records },
        }))
        .unwrap()
    }

    /// Rows 20 to 36 of the decisions: the allowed and desired numbers, the recorded pods, the guarded operations, the pod, the operation.
    #[rstest]
    #[case::row_20(
        1,
        3,
        "",
        "",
        TestPod::new("p"),
        Operation::Delete,
        Ok("allowed 0, disrupted p, unavailable ")
    )]
    #[case::row_21(0, 3, "q", "", TestPod::new("p"), Operation::Delete,
        Err(r#"podunavailablebudget.policy.kruise.io "pub" is forbidden: pub unavailable allowed is negative"#))]
    #[case::row_22(0, 3, "p", "", TestPod::new("p"), Operation::Evict, Ok("free"))]
    #[case::row_23(0, 3, "", "", TestPod::new("p").not_ready(), Operation::Delete, Ok("free"))]
    #[case::row_24(0, 3, "", "", TestPod::new("p").label("unavailable-pod.kruise.io/x", "y"), Operation::Delete, Ok("free"))]
    #[case::row_25(0, 3, "", "", TestPod::new("p").annotation(labels::BUDGET_NO_PROTECT, "true"), Operation::Delete, Ok("free"))]
    #[case::row_25_in_capitals(0, 3, "", "", TestPod::new("p").annotation(labels::BUDGET_NO_PROTECT, "True"), Operation::Delete,
        Err(r#"podunavailablebudget.policy.kruise.io "pub" is forbidden: pub unavailable allowed is negative"#))]
    #[case::row_26(0, 3, "", "EVICT", TestPod::new("p"), Operation::Delete, Ok("free"))]
    #[case::row_26_evicted(0, 3, "", "EVICT", TestPod::new("p"), Operation::Evict,
        Err(r#"podunavailablebudget.policy.kruise.io "pub" is forbidden: pub unavailable allowed is negative"#))]
    #[case::row_27(0, 0, "", "", TestPod::new("p"), Operation::Delete, Ok("free"))]
    #[case::row_31(
        1,
        3,
        "",
        "",
        TestPod::new("p"),
        Operation::Update,
        Ok("allowed 0, disrupted , unavailable p")
    )]
    #[case::row_35(1, 3, "", "", TestPod::new("p"), Operation::Resize, Ok("free"))]
    #[case::listed_resize(
        1,
        3,
        "",
        "RESIZE",
        TestPod::new("p"),
        Operation::Resize,
        Ok("allowed 0, disrupted p, unavailable ")
    )]
    fn decisions(
        #[case] allowed: i32,
        #[case] desired: i32,
        #[case] recorded: &str,
        #[case] operations: &str,
        #[case] pod: TestPod,
        #[case] operation: Operation,
        #[case] want: Result<&str, &str>,
    ) {
        let budget = budget(allowed, desired, recorded, operations);
        let pod = CachedPod::from(pod.build());
        let got = if is_free(&pod) || judge(&budget, "p", operation, true) == Verdict::Free {
            Ok("free".to_owned())
        } else {
            take(&budget, "p", operation, Timestamp::UNIX_EPOCH).map(|status| {
                let names = |records: &std::collections::BTreeMap<String, Time>| {
                    records.keys().cloned().collect::<Vec<_>>().join(" ")
                };
                format!(
                    "allowed {}, disrupted {}, unavailable {}",
                    status.unavailable_allowed,
                    names(&status.disrupted_pods),
                    names(&status.unavailable_pods)
                )
            })
        };
        assert_eq!(got, want.map(str::to_owned).map_err(str::to_owned));
    }

    /// Row 36: without the gate, guarding against updates means resizes, too.
    #[test]
    fn resizes_that_are_not_told_apart_cost() {
        let budget = budget(1, 3, "", "");
        assert_eq!(judge(&budget, "p", Operation::Resize, false), Verdict::Costs);
        let status = take(&budget, "p", Operation::Resize, Timestamp::UNIX_EPOCH).unwrap();
        assert!(status.disrupted_pods.contains_key("p"));
    }

    #[test]
    fn records_have_a_limit() {
        let names: Vec<String> = (0..2001).map(|number| format!("q{number}")).collect();
        let refused = take(
            &budget(1, 3, &names.join(" "), ""),
            "p",
            Operation::Delete,
            Timestamp::UNIX_EPOCH,
        );
        assert!(
            refused
                .unwrap_err()
                .ends_with("too many unavailable not confirmed by PUB controller")
        );
        assert!(
            take(
                &budget(1, 3, &names[1..].join(" "), ""),
                "p",
                Operation::Delete,
                Timestamp::UNIX_EPOCH
            )
            .is_ok()
        );
    }
}
