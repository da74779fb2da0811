//! Leave for a pod to go out of service: controllers ask for it before they update a pod.

use futures::future::BoxFuture;
use kruise_kit::ActError;

use crate::PodRef;

/// Gives pods leave, or withholds it.
pub trait Leave: Send + Sync {
    /// Whether a pod of a namespace may go out of service now, to be updated.
    ///
    /// Fails with the errors of the requests.
    fn ask<'a>(&'a self, namespace: &'a str, pod: &'a PodRef) -> BoxFuture<'a, Result<bool, ActError>>;
}
