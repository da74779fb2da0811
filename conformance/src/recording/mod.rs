//! Recordings: what real OpenKruise did on a real Kubernetes, as data.
//!
//! A recording is a folder with `steps.json`, the manifests that it applies, and `trace.jsonl`. [`load`] reads it,
//! [`environment`] finds out what its cluster was like (names that were handed out, images), [`pace`] how fast its nodes were, [`effect`]
//! when a step took effect, [`pairing`] tells which pod of a run is which of the recording, and [`roles`] which one a step means, [`divergences`] is the list of
//! differences that are known and forgiven. Playing one is `crate::run`'s business.

pub mod divergences;
pub mod effect;
pub mod environment;
pub mod load;
pub mod node_speed;
pub mod pairing;
pub mod roles;

pub use load::{Action, Recording, Step};
