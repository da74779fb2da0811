//! The parts of a plan.

use std::time::Duration;

use crate::api::v1alpha1::CloneSetStatus;
use crate::pods::{PodAction, Revisions};
use crate::workloads::cloneset::observe::Observed;

/// Plans the actions of a pass. The controller takes any; tests wrap the real one to see that a broken one is caught.
pub trait Planner: Send + Sync + 'static {
    /// The plan for the observed objects. Pure: the same input gives the same plan.
    fn plan(&self, observed: &Observed, revisions: &Revisions) -> Plan;

    /// The rest of a pass whose scaling was refused before it changed anything: pods are refreshed and updated as if there
    /// were nothing to scale (OpenKruise: the same).
    fn plan_unscaled(&self, observed: &Observed, revisions: &Revisions) -> Update;
}

/// Refreshing and updating pods.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Update {
    /// Done in this order, up to the first failure.
    pub actions: Vec<Action>,
    /// When to look again at the latest.
    pub requeue: Option<Duration>,
}

/// The actions of a pass, and the status that it writes.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Done first; a failure ends the pass without a condition.
    pub prepare: Vec<Action>,
    /// Done next, in this order; the first failure ends it and becomes a condition.
    pub sync: Vec<Action>,
    /// The phase of `sync`, which says the condition of its failure.
    pub phase: Phase,
    /// The status to write afterwards, also when `sync` failed.
    pub status: CloneSetStatus,
    /// Done last; failures are only logged.
    pub finish: Vec<Action>,
    /// When to look again at the latest, should nothing happen before.
    pub requeue: Option<Duration>,
}

/// Which condition a failure becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// `FailedScale`.
    Scale,
    /// `FailedUpdate`.
    Update,
}

/// One thing to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// An action that is possible for any owner of pods.
    Pod(PodAction),
    /// Create pods (and their claims) in batches of 1, 2, 4, …
    CreatePods {
        /// How many.
        count: i32,
        /// How many of them, the first ones, get the current revision; the others get the update revision.
        of_current: i32,
        /// Ids of claims that lost their pod, to use first.
        reuse_ids: Vec<String>,
        /// Ids that are taken.
        taken_ids: Vec<String>,
        /// Names of claims that exist.
        existing_claims: Vec<String>,
        /// Whether their revision's label is the hash alone.
        short_hash: bool,
    },
    /// Remove names from `spec.scaleStrategy.podsToDelete`.
    TrimPodsToDelete {
        /// The names that stay.
        keep: Vec<String>,
    },
}

impl Action {
    /// Whether more than an event comes of it.
    pub(crate) fn modifies(&self) -> bool {
        !matches!(self, Self::Pod(PodAction::Event { .. }))
    }
}

impl From<PodAction> for Action {
    fn from(action: PodAction) -> Self {
        Self::Pod(action)
    }
}
