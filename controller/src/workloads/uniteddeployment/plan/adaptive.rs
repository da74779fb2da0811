//! Subsets whose pods get no nodes: their pods move on to other subsets, and they get no further ones for a while.

use jiff::Timestamp;

use super::conditions::{is_unschedulable, schedulable, set_schedulable};
use super::times::{Requeue, after, is_past};
use super::verdict::Verdict;
use crate::api::v1alpha1::{SubsetStatus, UnitedDeployment};
use crate::pods::pod::{self, Pod};
use crate::workloads::uniteddeployment::children::Child;
use crate::workloads::uniteddeployment::settings::{critical, left_out};

/// When a pod that waits for a node has waited too long. None for one that does not wait.
pub(super) fn patience_ends(set: &UnitedDeployment, pod: &Pod) -> Option<Timestamp> {
    let created = pod.metadata.creation_timestamp.as_ref().map(|time| time.0);
    after(created.filter(|_| pod::is_unschedulable(pod)), critical(set))
}

/// Looks at the pods of a subset, and sets its condition.
pub(super) fn look(
    set: &UnitedDeployment,
    child: &Child,
    status: &mut SubsetStatus,
    now: Timestamp,
    requeue: &mut Requeue,
) -> Verdict {
    let was_unschedulable = is_unschedulable(status);
    let mut verdict = Verdict {
        was_unschedulable,
        ..Verdict::default()
    };
    if was_unschedulable {
        let since = schedulable(status).and_then(|condition| condition.last_transition_time.as_ref());
        let recovers = after(since.map(|time| time.0), left_out(set));
        if recovers.is_some_and(|recovers| now < recovers) {
            verdict.is_unschedulable = true;
            requeue.past(recovers, now);
        } else {
            let seconds = left_out(set).as_secs_f64();
            let message = format!("unschedulable subset recovered after {seconds:.6} seconds");
            set_schedulable(status, true, ("recover", message), now);
        }
    }
    if child.ready >= child.replicas {
        return verdict;
    }
    let ends: Vec<_> = child
        .pods
        .iter()
        .filter_map(|pod| patience_ends(set, pod))
        .collect();
    for end in ends.iter().filter(|end| !is_past(Some(**end), now)) {
        requeue.past(Some(*end), now);
    }
    if ends.iter().any(|end| is_past(Some(*end), now)) {
        verdict.is_unschedulable = true;
        let message = "timeout pending pods found".to_owned();
        set_schedulable(status, false, ("reschedule", message), now);
        requeue.after(left_out(set));
    }
    verdict
}

#[cfg(test)]
#[path = "adaptive_tests.rs"]
pub(super) mod tests;
