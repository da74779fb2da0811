//! The calls of CRI: a request, its method and its answer.

use prost::Message;

/// A request of CRI.
pub trait Call: Message + Default + 'static {
    /// Its method: `/runtime.v1.RuntimeService/Version`.
    const METHOD: &'static str;
    /// The message of its answer.
    type Answer: Message + Default + 'static;
}
