//! The actions of a plan.

use serde_json::Value;

use crate::pods::PodAction;

/// A revision of the pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::workloads::statefulset) enum Which {
    /// The current one.
    Current,
    /// The one that is rolled out.
    Update,
}

/// One thing to do.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::workloads::statefulset) enum Action {
    /// An action that is possible for any owner of pods.
    Pod(PodAction),
    /// Create the pod with an ordinal, and those of its claims that are not there.
    Create {
        /// The ordinal.
        ordinal: i32,
        /// The revision of the pod.
        revision: Which,
    },
    /// Create those claims of a pod that are not there.
    CreateClaims {
        /// The pod's ordinal.
        ordinal: i32,
    },
    /// Have a claim ask for more storage.
    GrowClaim {
        /// The claim's name.
        claim: String,
        /// The pod whose claim it is.
        pod: String,
        /// The claim's class of storage, which must allow that.
        class: String,
        /// The resources that the claim asks for, as its template has them.
        resources: Value,
    },
    /// Put the labels of its name and its ordinal on a pod, and say so.
    Identify {
        /// The patch.
        patch: PodAction,
        /// The pod's name.
        name: String,
    },
    /// Do the actions of each entry in batches that double.
    Batches(Vec<Vec<PodAction>>),
}

impl From<PodAction> for Action {
    fn from(action: PodAction) -> Self {
        Self::Pod(action)
    }
}
