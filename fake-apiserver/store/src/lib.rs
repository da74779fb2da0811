//! The multi-version store.
//!
//! One global [`Revision`] counts commits. Each commit is one [`Event`] in the log of its table (a table is one
//! resource, such as `apps/deployments`). A list is a snapshot at a revision; a watch is a position in the log. A position that
//! has been compacted away answers [`Compacted`], which the API turns into `410 Gone`.
//!
//! **Invariant:** the store knows no HTTP, no schema and no policy. It keeps JSON objects under keys, writes
//! `metadata.resourceVersion` and nothing else, and never reads a clock.

pub use machinery::keys::{Compacted, GroupResource, ObjectKey, Revision};

mod batches;
mod bell;
mod common;
mod event;
mod index;
mod journal;
mod packing;
mod scope;
mod size;
mod store_impl;
mod table;
mod watcher;

pub use batches::BATCH_BYTES;
pub use event::watch_frame;
pub use event::{Event, EventKind, Stored};
pub use journal::{Journal, JournalError};
pub use scope::Scope;
pub use store_impl::{Change, CommitError, CommitObserver, Snapshot, Store};
pub use watcher::Watcher;
