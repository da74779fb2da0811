//! Pods that get no nodes, stay, and stand for nothing while others stand in for them elsewhere.

use std::sync::Arc;

use jiff::Timestamp;

use super::adaptive::patience_ends;
use super::conditions::{self, is_unschedulable, set_schedulable};
use super::times::{Requeue, after, is_past};
use super::verdict::Verdict;
use crate::api::labels;
use crate::api::v1alpha1::{SubsetStatus, UnitedDeployment, UnitedDeploymentStatus};
use crate::pods::{CachedPod, PodRef, pod};
use crate::workloads::uniteddeployment::children::{Child, revision_of};
use crate::workloads::uniteddeployment::settings::{critical, left_out};

/// A pod whose label is to say whether it is reserved.
pub(in crate::workloads::uniteddeployment) type Labelled = (PodRef, bool);

/// The view of a pass on the pods of all subsets.
pub(super) struct Look<'a> {
    /// The UnitedDeployment.
    pub(super) set: &'a UnitedDeployment,
    /// The name of the update revision.
    pub(super) revision: &'a str,
    /// When an update that is going on must have reached each pod.
    pub(super) update_due: Option<Timestamp>,
    /// When.
    pub(super) now: Timestamp,
}

impl<'a> Look<'a> {
    /// The view with a status that knows since when there is an update.
    pub(super) fn new(
        set: &'a UnitedDeployment,
        status: &UnitedDeploymentStatus,
        revision: &'a str,
        now: Timestamp,
    ) -> Self {
        let condition = conditions::condition(status, conditions::UPDATED);
        let updating = condition.filter(|condition| condition.status == "False");
        let since = updating.and_then(|condition| condition.last_transition_time.as_ref());
        Self {
            set,
            revision,
            update_due: after(since.map(|time| time.0), critical(set)),
            now,
        }
    }

    /// Looks at the pods of a subset, of which `partition` keep the old revision; sets the subset's condition, and adds the pods
    /// whose label is not right.
    pub(super) fn at(
        &self,
        child: &Child,
        partition: i32,
        status: &mut SubsetStatus,
        labelled: &mut Vec<Labelled>,
        requeue: &mut Requeue,
    ) -> Verdict {
        let mut verdict = Verdict {
            was_unschedulable: is_unschedulable(status),
            ..Verdict::default()
        };
        let mut kept = partition;
        for pod in &child.pods {
            let before = reserved(pod);
            let is_reserved = match before {
                None if verdict.was_unschedulable => {
                    requeue.after(left_out(self.set));
                    true
                }
                Some(true) => !self.is_proven(pod, requeue),
                _ if revision_of(pod) == self.revision => self.waits(pod, requeue),
                _ if pod.metadata.deletion_timestamp.is_some() => false,
                _ if kept > 0 => {
                    kept -= 1;
                    false
                }
                _ => {
                    let is_late = is_past(self.update_due, self.now);
                    verdict.late += i32::from(is_late);
                    if !is_late {
                        requeue.past(self.update_due, self.now);
                    }
                    is_late
                }
            };
            verdict.reserved += i32::from(is_reserved);
            if before != Some(is_reserved) {
                labelled.push((PodRef::of(pod), is_reserved));
            }
        }
        verdict.is_unschedulable = verdict.reserved > 0;
        let message = match verdict.is_unschedulable {
            true => "reserved pods found",
            false => "no reserved pods",
        };
        let is_schedulable = !verdict.is_unschedulable;
        set_schedulable(
            status,
            is_schedulable,
            ("reschedule", message.to_owned()),
            self.now,
        );
        verdict
    }

    /// Whether a pod of the update revision waits too long for a node.
    fn waits(&self, pod: &CachedPod, requeue: &mut Requeue) -> bool {
        let ends = patience_ends(self.set, pod);
        let is_over = is_past(ends, self.now);
        if !is_over {
            requeue.past(ends, self.now);
        }
        is_over
    }

    /// Whether a reserved pod counts again: it has the update revision, and has been ready for long enough.
    fn is_proven(&self, pod: &Arc<CachedPod>, requeue: &mut Requeue) -> bool {
        let runs = pod::phase(pod) == "Running" && revision_of(pod) == self.revision;
        let Some(since) = pod::ready_since(pod).filter(|_| runs) else {
            requeue.after(left_out(self.set));
            return false;
        };
        let proven = after(Some(since), left_out(self.set));
        let is_proven = is_past(proven, self.now);
        if !is_proven {
            requeue.past(proven, self.now);
        }
        is_proven
    }
}

/// Whether a pod's label says that it is reserved; none if it has no such label.
fn reserved(pod: &CachedPod) -> Option<bool> {
    pod::label(pod, labels::RESERVED_POD).map(|text| text == "true")
}

#[cfg(test)]
#[path = "reserve_tests.rs"]
mod tests;
