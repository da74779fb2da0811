//! Why a cluster does not start.

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
    /// An object that the builder was given is not one.
    #[error("read an object to create: {0}")]
    Object(String),
}
