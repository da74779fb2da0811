//! The image service of a node as the daemon sees it.

use std::collections::BTreeMap;

use client_kit::Credential;
use futures::future::BoxFuture;

/// An image to pull.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullRequest {
    /// The image: `nginx:1.25`, `nginx@sha256:…`.
    pub image: String,
    /// The credential for its registry, if there is one.
    pub credential: Option<Credential>,
    /// Labels of the sandbox for which it is pulled.
    pub labels: BTreeMap<String, String>,
    /// Annotations of that sandbox.
    pub annotations: BTreeMap<String, String>,
}

/// The daemon's requests to a node's image service (`ImageStatus` and `PullImage` of CRI). Errors are the service's texts.
pub trait ImageService: Send + Sync + 'static {
    /// The id of an image (`sha256:…`); nothing where the node does not have it.
    fn status<'a>(&'a self, image: &'a str) -> BoxFuture<'a, Result<Option<String>, String>>;

    /// Gets an image onto the node. A future that is dropped gives up.
    fn pull<'a>(&'a self, request: &'a PullRequest) -> BoxFuture<'a, Result<(), String>>;
}
