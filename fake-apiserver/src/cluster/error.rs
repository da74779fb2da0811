//! Why a cluster does not start.

use store::JournalError;

/// A failure to start a cluster.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// An object that every cluster has, or that the builder was given, was refused.
    #[error("create {kind} \"{name}\": {source}")]
    Create {
        /// Its kind.
        kind: String,
        /// Its name.
        name: String,
        /// The server's refusal.
        source: Box<kube::Error>,
    },
    /// There is no such simulated node.
    #[error("find the node \"{name}\": the simulated nodes are {known}")]
    UnknownNode {
        /// Its name.
        name: String,
        /// The names of those that there are.
        known: String,
    },
    /// There is a node of this name already.
    #[error("add the node \"{name}\": there is one already")]
    NodeExists {
        /// Its name.
        name: String,
    },
    /// The Lease of a node that is to be disconnected could not be written.
    #[error("write the lease of node \"{name}\": {source}")]
    Lease {
        /// The node's name.
        name: String,
        /// The server's refusal.
        source: Box<kube::Error>,
    },
    /// The data directory cannot be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A definition that was there before cannot be served any more.
    #[error("serve the custom resource \"{name}\": {why}")]
    Definition {
        /// The definition's name.
        name: String,
        /// The problem with it.
        why: String,
    },
    /// An object that the builder was given is not one.
    #[error("read an object to create: {0}")]
    Object(String),
}
