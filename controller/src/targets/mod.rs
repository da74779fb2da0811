//! Workloads of any kind, built-in ones among them, to which other objects refer.
//!
//! `reference` compares references, `lookup` asks the API server for a workload and its replicas, `scaled` is a workload as caches
//! hold it.

mod lookup;
mod reference;
mod scaled;

pub(crate) use lookup::{Lookup, Target};
pub(crate) use reference::{group_of, is_named, is_same};
pub(crate) use scaled::{Scaled, Scales};
