//! A Kubernetes cluster inside a test.
//!
//! An API server with real semantics, simulated nodes, built-in controllers and a clock that can be virtual, all in one
//! process and none of them knowing of the others but through the Kubernetes API.
//!
//! # The model
//!
//! * [`Server`] is a `tower::Service` from HTTP request to HTTP response. [`Server::client`] gives a `kube::Client` that
//!   calls it in process; what a client sees is the same over a socket.
//! * [`store`] keeps every version of every object under one revision; a watch is a position in its log.
//! * [`Cluster`] adds nodes ([`nodes`]), controllers ([`controllers`]), a clock and a seed.
//! * Time is tokio's. With a paused, single-threaded runtime it jumps to the next timer when nothing is runnable.
//! * A run is a function of its seed: names, uids, addresses and how long things take.
//!
//! # The way of a request
//!
//! `http::service` → `http::request` (what is asked) → `faults` (if a test asked) → `http::decode` → `rest` (the verb) → `admission` →
//! `types` (defaults, schema) → `strategy` → `store` → `encode`.

mod admission;
mod authn;
mod authz;
mod cluster;
pub mod controllers;
mod discovery;
mod encode;
pub mod faults;
mod http;
mod node_access;
pub mod nodes;
mod openapi;
pub mod pki;
mod resources;
mod rest;
pub mod serve;
mod server;
pub mod store;
mod strategy;
mod validation;

pub use admission::{Webhook, WebhookHandler, WebhookKind, WebhookRule};
pub use cluster::{Cluster, ClusterBuilder, ClusterError, ControllerSet, Trace, UnknownController};
pub use http::body::ResponseBody;
pub use machinery::status::ApiError;
pub use machinery::{patch, types};
pub use pod_rules::field_error::{self, FieldError};
pub(crate) use pod_rules::names;
pub use server::Server;
/// JSON as this crate takes and gives it: `serde_json`'s, whose values turn into it with `into`.
pub use shared_json;
