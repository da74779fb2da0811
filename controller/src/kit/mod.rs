//! The runtime of every controller: caches, queues, and the loop that has a [`Reconciler`] work on keys.
//!
//! kube-rs' own `Controller` polls its reconcilers in the order of a std hash map. Here every order is that of the events,
//! so that a run can be repeated. An idle runtime waits for its watches alone.
//!
//! **Architecture invariant:** nothing here names a kind of OpenKruise.

pub(crate) mod admission;
mod batches;
mod caches;
pub(crate) mod conversion;
mod desk;
mod error;
pub(crate) mod expectations;
pub(crate) mod go_syntax;
mod informer;
pub(crate) mod json;
pub(crate) mod numbers;
mod owner;
pub(crate) mod protection;
mod queue;
pub(crate) mod requests;
mod run;
pub(crate) mod selector;
pub(crate) mod settings;
mod shared;
pub(crate) mod views;
mod worker;

pub(crate) use batches::{OnFailure, in_batches};
pub use caches::WebhookCaches;
pub(crate) use desk::{Desk, Written};
pub(crate) use error::{ActError, Kind, settled};
pub use informer::ListOrder;
pub(crate) use informer::{Cached, Change, Informer, ObjectKey};
pub(crate) use owner::{Owner, controller_of, controller_of_kind};
pub use queue::RetryDelays;
pub(crate) use queue::WorkQueue;
pub(crate) use run::Runtime;
pub use shared::Shared;
pub(crate) use worker::{Next, Reconciler, Subject, Watches};
