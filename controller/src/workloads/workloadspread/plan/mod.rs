//! The rules of a pass: `groups` divides the pods by version and subset, `cost` ranks them for deletion, `status` counts them,
//! `adaptive` finds subsets that have no room.

mod adaptive;
mod cost;
mod groups;
mod status;
#[cfg(test)]
mod test_world;

pub(super) use cost::{Cost, costs};
pub(super) use groups::{Groups, subset_of, version_of};
pub(super) use status::{Said, status};
