//! The Kubernetes API as an API server, its nodes and its controllers share it, each function pure.
//!
//! [`types`] describes kinds: schemas, defaults, canonical form, Go's decoder. [`patch`] holds the four patch engines and managed fields,
//! [`cel`] expressions, [`selector`] label selectors, [`protobuf`] (by [`wire`]) the binary form, [`go_json`] JSON as Go reads it.
//! [`meta`] reads and writes `metadata`, [`keys`] names tables and objects, [`status`] is a refusal. [`placement`] and [`quota`] are rules
//! that several of the server, the scheduler, kubelets and controllers apply alike.
//!
//! **Invariant:** nothing here does I/O, reads a clock, waits or knows a server.

pub mod cel;
pub mod finalizers;
pub mod go_json;
pub mod keys;
pub mod meta;
pub mod patch;
pub mod pattern;
pub mod placement;
pub mod protobuf;
pub mod quota;
pub mod selector;
pub mod status;
pub mod types;
pub mod user;
pub mod wire;
