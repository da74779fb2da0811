//! Which nodes a pod may run on: by its node selector and required affinity, and by the taints that it tolerates. [`daemon`] has
//! the rules of pods that are made for one node each.

mod affinity;
pub mod daemon;
mod taints;

pub use affinity::{REQUIRED as REQUIRED_AFFINITY, node_matches, term_matches};
pub use taints::{tolerates, tolerates_all};
