//! The API server: a `tower::Service` from HTTP request to HTTP response, over a store.
//!
//! # The way of a request
//!
//! `http::service` → `message::request` (the target) → `faults` (if a test asked) → `message::decode` → `rest` (the verb) →
//! `admission` → types (defaults, schema) → rules → store → `encode`.
//!
//! A group that another server answers leaves this way before the verb: `aggregation` passes the request on.
//!
//! **Invariant:** it knows no kubelet, no scheduler and no controller: they are clients. It reaches a node by a trait
//! ([`node_access::NodeAccess`]).

mod admission;
mod aggregation;
mod authn;
mod authz;
mod commit_errors;
mod components;
mod context;
mod conversion;
mod discovery;
mod encode;
mod expiry;
pub mod faults;
mod health;
mod history;
mod http;
mod impersonation_mode;
mod incoming;
mod local_webhook;
mod message;
mod openapi;
mod pages;
mod passed_upgrade;
mod request_counts;
mod resources;
mod rest;
mod server;
mod tokens;
mod webhook_client;
mod websocket_token;

pub use aggregation::Extension;
pub use authn::Peer;
pub use components::Component;
pub use local_webhook::{Webhook, WebhookHandler, WebhookKind, WebhookRule};
pub use message::body::ResponseBody;
pub use pages::{Page, PageRequest};
pub use server::{EVENT_LIFE, Server};
