//! What client-go's informers and work queues give a controller, on tokio's time.
//!
//! kube-rs' own `Controller` polls its reconcilers in the order of a std hash map; here every order is that of the
//! events, so that a run can be repeated. Idle, nothing but the watches is pending.

mod informer;
mod queue;

pub(crate) use informer::{Change, Informer, ObjectKey};
pub use queue::RetryDelays;
pub(crate) use queue::WorkQueue;
