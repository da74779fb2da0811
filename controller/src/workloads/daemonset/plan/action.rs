//! The actions of a plan.

use crate::pods::PodAction;

/// One thing to do.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::workloads::daemonset) enum Action {
    /// An action that is possible for any owner of pods.
    Pod(PodAction),
    /// Create a pod for each of these nodes. A failure does not keep the pass from the actions after it.
    Create {
        /// The nodes.
        nodes: Vec<String>,
    },
    /// Do all of these at once. A pod that is gone by then is as good as deleted.
    Together(Vec<PodAction>),
}

impl From<PodAction> for Action {
    fn from(action: PodAction) -> Self {
        Self::Pod(action)
    }
}
