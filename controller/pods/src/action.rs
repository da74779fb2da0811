//! The actions on an owner's pods, claims, revisions and jobs.

use client_kit::EventType;
use serde_json::Value;

use super::pod::{self, Pod};

/// A pod, by name and identity: an action never touches a successor of the same name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodRef {
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
}

impl PodRef {
    /// Names `pod`.
    #[must_use]
    pub fn of(pod: &Pod) -> Self {
        Self {
            name: pod::name(pod).to_owned(),
            uid: pod::uid(pod).to_owned(),
        }
    }
}

/// A patch as JSON text. A plan may hold one for each of ten thousand pods, and a [`Value`] takes several times as much memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchText(Box<str>);

impl PatchText {
    /// The patch.
    pub fn value(&self) -> Value {
        // The text was made of a value.
        serde_json::from_str(&self.0).unwrap_or_default()
    }
}

impl From<Value> for PatchText {
    fn from(patch: Value) -> Self {
        Self(patch.to_string().into())
    }
}

/// One thing to do.
#[derive(Debug, Clone, PartialEq)]
pub enum PodAction {
    /// Record an event about the owner.
    Event {
        /// How serious it is.
        kind: EventType,
        /// A word.
        reason: &'static str,
        /// A sentence.
        message: String,
    },
    /// Delete a pod, then its claims.
    DeletePod {
        /// Which.
        pod: PodRef,
        /// The claims to delete with it.
        claims: Vec<String>,
    },
    /// Ask for leave before a pod goes out of service; without it, fail as withheld.
    AskLeave {
        /// Which.
        pod: PodRef,
    },
    /// Apply a strategic merge patch to a pod's status.
    PatchPodStatus {
        /// Which.
        pod: PodRef,
        /// The patch, `{"status": …}`.
        patch: PatchText,
    },
    /// Apply a strategic merge patch to a pod.
    PatchPod {
        /// Which.
        pod: PodRef,
        /// The patch.
        patch: PatchText,
    },
    /// Apply a strategic merge patch to the resources of a pod's containers (the subresource `resize`).
    ResizePod {
        /// Which.
        pod: PodRef,
        /// The patch.
        patch: PatchText,
    },
    /// Apply a strategic merge patch to a pod's ephemeral containers (the subresource `ephemeralcontainers`).
    PatchEphemeral {
        /// Which.
        pod: PodRef,
        /// The patch.
        patch: PatchText,
    },
    /// Begin to update a pod in place: first take it out of service, then change it.
    UpdateInPlace {
        /// Which.
        pod: PodRef,
        /// The patch of its status, if it has a readiness gate.
        status_patch: Option<PatchText>,
        /// The patch of its containers' resources, if they change.
        resize: Option<PatchText>,
        /// The patch of the pod.
        patch: PatchText,
        /// The revision it leads to.
        revision: String,
        /// Mark it to be recreated when this fails for another reason than a conflict, and its containers get no more of the node.
        or_recreate: bool,
    },
    /// Mark a pod to be deleted, so that it is recreated with another revision.
    Recreate {
        /// Which.
        pod: PodRef,
        /// Whether it already has the mark.
        marked: bool,
        /// The revision its successor gets.
        revision: String,
    },
    /// Give a claim to a pod, so that it goes with it.
    GiveClaim {
        /// The claim's name.
        claim: String,
        /// The new owner.
        pod: PodRef,
    },
    /// Apply a strategic merge patch to a claim.
    PatchClaim {
        /// The claim's name.
        claim: String,
        /// The patch.
        patch: Value,
    },
    /// Delete a claim that no pod uses.
    DeleteClaim {
        /// The claim's name.
        claim: String,
    },
    /// Make a revision that has no owner the owner's.
    AdoptRevision {
        /// Its name.
        name: String,
    },
    /// Delete a revision that no pod runs.
    DeleteRevision {
        /// Its name.
        name: String,
    },
    /// Put the label `label: "true"` on a revision.
    MarkRevision {
        /// Its name.
        name: String,
        /// The label.
        label: &'static str,
    },
    /// Make an ImagePullJob; when that fails, an event tells, and the pass goes on.
    CreatePullJob {
        /// The job.
        object: Value,
        /// Its image.
        image: String,
    },
    /// Delete an ImagePullJob.
    DeletePullJob {
        /// Its name.
        name: String,
    },
    /// Nothing can be done: fail with this message.
    Fail(String),
}
