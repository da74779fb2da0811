//! A Kubernetes cluster inside a test.
//!
//! An API server with real semantics, simulated nodes, built-in controllers and a clock that can be virtual, all in one
//! process and none of them knowing of the others but through the Kubernetes API.
//!
//! # The model
//!
//! * [`Server`] is a `tower::Service` from HTTP request to HTTP response. [`Server::client`] gives a `kube::Client` that
//!   calls it in process; a client over a socket sees the same.
//! * [`store`] keeps every version of every object under one revision; a watch is a position in its log.
//! * [`Cluster`] adds nodes ([`nodes`]), controllers ([`controllers`]), a clock and a seed.
//! * Time is tokio's. With a paused, single-threaded runtime it jumps to the next timer when nothing is runnable.
//! * A run is a function of its seed: names, uids, addresses and how long things take.
//!
//! # The crates
//!
//! This one puts the others together and re-exports their public API: `server` answers requests (its front page has their way),
//! `store` keeps versions, `rules` validates, `machinery` has types and patches; `nodes` and `controllers` are clients.

#[cfg(feature = "cli")]
pub mod cli;
mod cluster;
mod metrics_api;
mod sample_api;
pub mod serve;

pub use cluster::{Cluster, ClusterBuilder, ClusterError, ControllerSet, Trace, UnknownController};
pub use machinery::status::ApiError;
pub use machinery::{patch, types};
pub use pod_rules::field_error::{self, FieldError};
pub use server::{
    Extension, ResponseBody, Server, Webhook, WebhookHandler, WebhookKind, WebhookRule, faults,
};
/// JSON as this crate takes and gives it: `serde_json`'s, whose values turn into it with `into`.
pub use shared_json;
pub use {controllers, network, nodes, pki, store};
