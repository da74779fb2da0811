//! The counts of a job's pods, and the places on nodes that it fills.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::policy;
use crate::api::v1beta1::BroadcastJob;
use crate::pods::pod::RestartPolicy;
use crate::pods::{CachedPod, pod};
use crate::workloads::broadcastjob::nodes::{Form, keeps};
use crate::workloads::broadcastjob::observe::Observed;

/// A job's pods by their state, and its nodes by their needs.
pub(super) struct View<'a> {
    /// The pods that neither ended nor failed.
    pub(super) active: Vec<&'a Arc<CachedPod>>,
    /// How many ended well.
    pub(super) succeeded: i32,
    /// How many failed.
    pub(super) failed: i32,
    /// The pods beside another on their node: their names, and the node's.
    pub(super) doubles: Vec<(&'a str, &'a str)>,
    /// How many nodes are to have had a pod.
    pub(super) desired: i32,
    /// The nodes that need one.
    pub(super) empty: Vec<&'a str>,
    /// The pods that do not fit their node any more.
    pub(super) misplaced: Vec<&'a Arc<CachedPod>>,
    /// Whether all pods of the nodes that are to have one ended, or are on their way out.
    pub(super) all_ended: bool,
}

/// How a pod counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Counted {
    Active,
    Succeeded,
    Failed,
    Not,
}

impl<'a> View<'a> {
    pub(super) fn of(observed: &'a Observed) -> Self {
        let job = &observed.job;
        let mut view = Self {
            active: Vec::new(),
            succeeded: 0,
            failed: 0,
            doubles: Vec::new(),
            desired: 0,
            empty: Vec::new(),
            misplaced: Vec::new(),
            all_ended: true,
        };
        let mut by_node: BTreeMap<&str, &Arc<CachedPod>> = BTreeMap::new();
        for pod in &observed.pods {
            match counted(job, pod) {
                Counted::Active => view.active.push(pod),
                Counted::Succeeded => view.succeeded += 1,
                Counted::Failed => view.failed += 1,
                Counted::Not => {}
            }
            let node = pod::node_or_target(pod);
            if by_node.insert(node, pod).is_some() {
                view.doubles.push((pod::name(pod), node));
            }
        }
        view.look_at_nodes(observed, &by_node);
        view
    }

    fn look_at_nodes(&mut self, observed: &'a Observed, by_node: &BTreeMap<&str, &'a Arc<CachedPod>>) {
        let form = Form::of(&observed.job);
        for node in &observed.nodes {
            match by_node.get(node.name()) {
                Some(pod) if keeps(pod, node) => {
                    self.desired += 1;
                    self.all_ended &= has_ended(pod);
                }
                Some(pod) if is_terminating(pod) => {}
                Some(pod) => self.misplaced.push(pod),
                None if form.fits(node) => {
                    self.desired += 1;
                    self.all_ended = false;
                    self.empty.push(node.name());
                }
                None => {}
            }
        }
    }

    /// How many pods are active.
    pub(super) fn active_count(&self) -> i32 {
        i32::try_from(self.active.len()).unwrap_or(i32::MAX)
    }

    /// How many of them fit their nodes. OpenKruise takes each pod off that does not fit, also one that has ended.
    pub(super) fn staying_count(&self) -> i32 {
        let is_misplaced = |pod: &Arc<CachedPod>| self.misplaced.iter().any(|other| Arc::ptr_eq(pod, other));
        let staying = self.active.iter().filter(|pod| !is_misplaced(pod)).count();
        i32::try_from(staying).unwrap_or(i32::MAX)
    }
}

fn counted(job: &BroadcastJob, pod: &CachedPod) -> Counted {
    match pod::phase(pod) {
        "Succeeded" => Counted::Succeeded,
        "Failed" => Counted::Failed,
        _ if is_terminating(pod) => Counted::Not,
        _ if pod.spec.restart_policy == RestartPolicy::OnFailure
            && pod::all_restarts(pod) > policy::restart_limit(job) =>
        {
            Counted::Failed
        }
        _ => Counted::Active,
    }
}

fn is_terminating(pod: &CachedPod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
}

/// Whether a pod ended, or is on its way out.
fn has_ended(pod: &CachedPod) -> bool {
    matches!(pod::phase(pod), "Succeeded" | "Failed") || is_terminating(pod)
}
