//! The runtime of every controller: caches, queues, and the loop that has a [`Reconciler`] work on keys.
//!
//! kube-rs' own `Controller` polls its reconcilers in the order of a std hash map. Here every order is that of the events,
//! so that a run can be repeated. An idle runtime waits for its watches alone.
//!
//! **Architecture invariant:** nothing here names a kind of OpenKruise, but for gates and metrics that are named after one.

pub mod admission;
mod batches;
mod caches;
pub mod conversion;
mod desk;
mod error;
pub mod expectations;
pub mod gates;
pub mod go_syntax;
pub mod go_values;
mod informer;
pub mod json;
pub mod metrics;
pub mod numbers;
mod owner;
pub mod protection;
mod queue;
pub mod requests;
mod run;
pub mod selector;
pub mod settings;
mod shared;
pub mod views;
mod worker;

pub use batches::{OnFailure, in_batches, together};
pub use caches::WebhookCaches;
pub use desk::{Desk, Written};
pub use error::{ActError, Kind, settled};
pub use informer::ListOrder;
pub use informer::{Cached, Change, Informer, ObjectKey};
pub use owner::{Owner, controller_of, controller_of_kind};
pub use queue::RetryDelays;
pub use queue::WorkQueue;
pub use run::Runtime;
pub use shared::Shared;
pub use worker::{Next, Reconciler, Subject, Watches};
