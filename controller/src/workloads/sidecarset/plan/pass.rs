//! One pass over a set.

use client_kit::EventType;

use super::{candidates, condition, hot, revisions, status, upgrade};
use crate::api::v1beta1::SidecarSetStatus;
use crate::pods::{CachedPod, PatchText, PodAction, PodRef, Revisions};
use crate::workloads::sidecarset::observe::Observed;
use crate::workloads::sidecarset::sidecars::Sidecars;

/// One thing to do.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::workloads::sidecarset) enum Action {
    /// Act for the set.
    Set(PodAction),
    /// Act on a pod of this namespace.
    Pod {
        /// The namespace.
        namespace: String,
        /// The action.
        action: PodAction,
    },
    /// Empty containers of a pod of this namespace, and record an event about the pod.
    Empty {
        /// The namespace.
        namespace: String,
        /// The pod.
        pod: PodRef,
        /// The patch.
        patch: PatchText,
    },
}

impl Action {
    /// Whether the action changes the images of a pod.
    pub(in crate::workloads::sidecarset) fn changes_images(&self) -> bool {
        let patches = |action: &PodAction| matches!(action, PodAction::PatchPod { .. });
        match self {
            Self::Set(_) => false,
            Self::Pod { action, .. } => patches(action),
            Self::Empty { .. } => true,
        }
    }
}

/// The plan of a pass.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::workloads::sidecarset) struct Plan {
    /// The custom version with which the latest revision is to be labelled, if it is to be.
    pub(in crate::workloads::sidecarset) label: Option<String>,
    /// The revisions to delete.
    pub(in crate::workloads::sidecarset) history: Vec<String>,
    /// The status, which is written before anything is done to pods.
    pub(in crate::workloads::sidecarset) status: SidecarSetStatus,
    /// The actions; none before the writes of earlier passes can be seen.
    pub(in crate::workloads::sidecarset) actions: Vec<Action>,
}

/// Plans a pass.
pub(in crate::workloads::sidecarset) fn plan(observed: &Observed, revisions: &Revisions) -> Plan {
    let latest = &revisions.update.name;
    let status = status::plan(observed, revisions);
    Plan {
        label: revisions::label(observed, latest),
        history: revisions::beyond_limit(observed, latest),
        actions: actions(observed, latest, &status),
        status,
    }
}

fn actions(observed: &Observed, latest: &str, status: &SidecarSetStatus) -> Vec<Action> {
    let strategy = observed.set.spec.update_strategy.as_ref();
    let kind = strategy.and_then(|strategy| strategy.kind.as_deref());
    if kind == Some("NotUpdate") || strategy.is_some_and(|strategy| strategy.paused == Some(true)) {
        return Vec::new();
    }
    let emptied = empty(observed);
    if !emptied.is_empty() {
        return emptied;
    }
    if status.updated_pods >= status.matched_pods {
        return Vec::new();
    }
    let candidates = match candidates::find(observed) {
        Ok(candidates) => candidates,
        Err(error) => return vec![Action::Set(PodAction::Fail(error.to_string()))],
    };
    let set = Sidecars::of(&observed.set);
    let says = |pod: &CachedPod, upgradable| {
        let patch = condition::patch(pod, set.set_name(), upgradable, observed.now)?;
        let action = PodAction::PatchPodStatus {
            pod: PodRef::of(pod),
            patch: patch.into(),
        };
        Some(of(pod, action))
    };
    let mut actions = Vec::new();
    for pod in &candidates.not_upgradable {
        actions.extend(says(pod, false));
    }
    let count = candidates.not_upgradable.len();
    if count > 0 {
        actions.push(Action::Set(PodAction::Event {
            kind: EventType::Normal,
            reason: "NotUpgradablePods",
            message: format!(
                "SidecarSet in-place update detected {count} not upgradable pod(s) in this round, will skip them."
            ),
        }));
    }
    for pod in &candidates.chosen {
        let action = match upgrade::plan(observed, latest, pod) {
            Ok(patch) => PodAction::PatchPod {
                pod: PodRef::of(pod),
                patch: patch.into(),
            },
            Err(message) => PodAction::Fail(message),
        };
        actions.push(of(pod, action));
        actions.extend(says(pod, true));
    }
    actions
}

fn of(pod: &CachedPod, action: PodAction) -> Action {
    Action::Pod {
        namespace: pod.metadata.namespace.clone().unwrap_or_default(),
        action,
    }
}

/// Empties the containers whose others have taken over.
fn empty(observed: &Observed) -> Vec<Action> {
    let sidecars = Sidecars::of(&observed.set);
    if sidecars.hot().next().is_none() {
        return Vec::new();
    }
    let mut actions = Vec::new();
    for pod in &observed.pods {
        let pairs = hot::to_empty(&sidecars, pod);
        if !pairs.is_empty() {
            actions.push(Action::Empty {
                namespace: pod.metadata.namespace.clone().unwrap_or_default(),
                pod: PodRef::of(pod),
                patch: upgrade::empty(observed, pod, &pairs).into(),
            });
        }
    }
    actions
}
