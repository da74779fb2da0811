//! Which nodes a pod may run on: by its node selector and required affinity, and by the taints that it tolerates. [`requests`] has
//! the amounts that pods ask of a node, [`daemon`] the rules of pods that are made for one node each, and [`empty`] those of a node that
//! runs nothing else.

mod affinity;
pub mod daemon;
pub mod empty;
pub mod requests;
mod taints;

pub use affinity::{REQUIRED as REQUIRED_AFFINITY, node_matches, term_matches};
pub use taints::{tolerates, tolerates_all};
