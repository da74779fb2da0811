//! Subsets that have no room: pods that get no node in time are deleted, and their subset is left out for a while.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::api::v1alpha1::{WorkloadSpread, WorkloadSpreadSubsetCondition, WorkloadSpreadSubsetStatus};
use crate::pods::{CachedPod, pod};

/// The only condition.
const SCHEDULABLE: &str = "Schedulable";
/// How long a subset is left out (OpenKruise: 5 minutes).
const LEFT_OUT: SignedDuration = SignedDuration::from_secs(300);

/// The findings about a subset.
#[derive(Default)]
pub(super) struct Found {
    /// The condition, if the spread is adaptive.
    pub(super) condition: Option<WorkloadSpreadSubsetCondition>,
    /// Pods that got no node in time.
    pub(super) failed: Vec<Arc<CachedPod>>,
    /// Whether the subset is used again.
    pub(super) recovers: bool,
    /// When to look again.
    pub(super) requeue: Option<Duration>,
}

/// How long a pod may wait for a node; none if the spread is not adaptive.
fn patience(spread: &WorkloadSpread) -> Option<SignedDuration> {
    let strategy = spread.spec.schedule_strategy.as_ref()?;
    let seconds = strategy.adaptive.as_ref()?.reschedule_critical_seconds?;
    let is_adaptive = strategy.kind.as_deref() == Some("Adaptive") && seconds > 0;
    is_adaptive.then(|| SignedDuration::from_secs(i64::from(seconds)))
}

/// Looks at a subset. The last one always takes pods.
pub(super) fn look(
    spread: &WorkloadSpread,
    is_last: bool,
    old: Option<&WorkloadSpreadSubsetStatus>,
    pods: &[Arc<CachedPod>],
    now: Timestamp,
) -> Found {
    let Some(patience) = patience(spread) else {
        return Found::default();
    };
    let mut found = Found::default();
    let waits = pods.iter().filter(|pod| !is_last && pod::is_unschedulable(pod));
    for pod in waits {
        let created = pod
            .metadata
            .creation_timestamp
            .as_ref()
            .map_or(now, |time| time.0);
        let left = until(created, patience, now);
        match left {
            None => found.failed.push(Arc::clone(pod)),
            left => found.requeue = sooner(found.requeue, left),
        }
    }
    let old = old.and_then(|old| {
        old.conditions
            .iter()
            .find(|condition| condition.kind == SCHEDULABLE)
    });
    let mut schedulable = is_last || found.failed.is_empty();
    if let Some(old) = old
        && old.status == "False"
        && schedulable
        && !is_last
    {
        let since = old.last_transition_time.as_ref().map_or(now, |time| time.0);
        match until(since, LEFT_OUT, now) {
            None => found.recovers = true,
            left => {
                schedulable = false;
                found.requeue = sooner(found.requeue, left);
            }
        }
    }
    let status = if schedulable { "True" } else { "False" };
    let unchanged = old.filter(|old| old.status == status);
    found.condition = Some(
        unchanged
            .cloned()
            .unwrap_or_else(|| WorkloadSpreadSubsetCondition {
                kind: SCHEDULABLE.to_owned(),
                status: status.to_owned(),
                last_transition_time: Some(Time(now)),
                ..WorkloadSpreadSubsetCondition::default()
            }),
    );
    found
}

/// How long it is until a span after a moment is over; none if it is.
pub(super) fn until(from: Timestamp, span: SignedDuration, now: Timestamp) -> Option<Duration> {
    let left = from
        .saturating_add(span)
        .unwrap_or(Timestamp::MAX)
        .duration_since(now);
    // At its very end it is not over yet.
    (!left.is_negative()).then(|| left.unsigned_abs().max(Duration::from_millis(1)))
}

/// The shorter of two delays.
pub(super) fn sooner(one: Option<Duration>, other: Option<Duration>) -> Option<Duration> {
    crate::pods::refresh::shortest(one, other)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::super::test_world::{adaptive, spread};
    use super::*;
    use crate::pods::test_pods::TestPod;

    fn waiting(created: i64) -> Arc<CachedPod> {
        let mut conditions =
            json!([{ "type": "PodScheduled", "status": "False", "reason": "Unschedulable" }]);
        let pod = TestPod::new("p").phase("Pending").node("").created_at(created);
        Arc::new(CachedPod::from(
            pod.set("/status/conditions", conditions.take()).build(),
        ))
    }

    fn old(status: &str, since: i64) -> Option<WorkloadSpreadSubsetStatus> {
        let time = Timestamp::from_second(since).unwrap().to_string();
        let condition = json!([{ "type": "Schedulable", "status": status, "lastTransitionTime": time }]);
        let conditions = if status.is_empty() { Value::Null } else { condition };
        let status = json!({ "name": "a", "replicas": 0, "missingReplicas": 0 });
        let mut status: WorkloadSpreadSubsetStatus = serde_json::from_value(status).unwrap();
        status.conditions = serde_json::from_value(conditions).unwrap_or_default();
        Some(status)
    }

    /// The old condition and its time, when the waiting pod was created, whether the subset is the last, the time, and the result:
    /// the condition, its time, how many pods are deleted, whether the subset recovers, and when to look again. Pods may wait for 10 s.
    #[rstest]
    #[case::new("", 0, None, false, 100, ("True", 100, 0, false, None))]
    #[case::waits("", 0, Some(95), false, 100, ("True", 100, 0, false, Some(5)))]
    #[case::at_the_very_end("", 0, Some(90), false, 100, ("True", 100, 0, false, Some(0)))]
    #[case::too_long("", 0, Some(89), false, 100, ("False", 100, 1, false, None))]
    #[case::still("False", 50, Some(89), false, 100, ("False", 50, 1, false, None))]
    #[case::left_out("False", 50, None, false, 100, ("False", 50, 0, false, Some(250)))]
    #[case::recovers("False", 50, None, false, 351, ("True", 351, 0, true, None))]
    #[case::the_last("", 0, Some(10), true, 100, ("True", 100, 0, false, None))]
    #[case::stays("True", 50, None, false, 100, ("True", 50, 0, false, None))]
    fn subsets(
        #[case] status: &str,
        #[case] since: i64,
        #[case] created: Option<i64>,
        #[case] is_last: bool,
        #[case] now: i64,
        #[case] want: (&str, i64, usize, bool, Option<u64>),
    ) {
        let spread = adaptive(spread("CloneSet", "a 1, b -"), 10);
        let pods: Vec<Arc<CachedPod>> = created.map(waiting).into_iter().collect();
        let now = Timestamp::from_second(now).unwrap();
        let found = look(&spread, is_last, old(status, since).as_ref(), &pods, now);
        let condition = found.condition.unwrap();
        let since = condition.last_transition_time.unwrap().0.as_second();
        let requeue = found.requeue.map(|delay| delay.as_secs());
        assert_eq!(
            (
                condition.status.as_str(),
                since,
                found.failed.len(),
                found.recovers,
                requeue
            ),
            want
        );
    }

    #[rstest]
    #[case(0)]
    #[case(-1)]
    fn without_a_time_nothing_is_looked_at(#[case] seconds: i32) {
        let spread = adaptive(spread("CloneSet", "a 1, b -"), seconds);
        let found = look(
            &spread,
            false,
            old("False", 0).as_ref(),
            &[waiting(0)],
            Timestamp::UNIX_EPOCH,
        );
        assert!(found.condition.is_none() && found.failed.is_empty());
    }
}
