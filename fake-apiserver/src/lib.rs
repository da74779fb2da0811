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
mod cel;
mod cluster;
pub mod controllers;
mod discovery;
mod encode;
pub mod faults;
mod finalizers;
mod go_json;
mod http;
mod keys;
mod meta;
mod node_access;
pub mod nodes;
mod openapi;
pub mod patch;
mod pattern;
pub mod pki;
mod placement;
mod protobuf;
mod quota;
mod resources;
mod rest;
mod selector;
pub mod serve;
mod server;
mod status;
pub mod store;
mod strategy;
pub mod types;
mod user;
mod validation;
mod wire;
mod zones;

pub use admission::{Webhook, WebhookHandler, WebhookKind, WebhookRule};
pub use cluster::{Cluster, ClusterBuilder, ClusterError, ControllerSet, Trace, UnknownController};
pub use http::body::ResponseBody;
pub use pod_rules::field_error::{self, FieldError};
pub(crate) use pod_rules::names;
pub use server::Server;
/// JSON as this crate takes and gives it: `serde_json`'s, whose values turn into it with `into`.
pub use shared_json;
pub use status::ApiError;
