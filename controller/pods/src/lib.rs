//! The engines that the kinds that run pods have in common: they know pods, and no kind.
//!
//! * `pod` reads a pod, `lean` is the part of it that is kept, `word` a word of its status, `cached` how a cache keeps it;
//!   `cached_node` is that of a node;
//! * `template` brings templates into Go's form, fills them in and judges them; `revision` names them, `claims_hash` the
//!   templates of claims;
//! * `inplace` is the update in place, `conditions` the patches of conditions that it takes, `lifecycle` the hooks;
//! * `refresh` moves every pod of an owner on: its update in place, its hooks, its labels;
//! * `sort` ranks pods, to delete them and to update them; `availability` says since when one is available, `counts` counts them;
//! * `adoption` says which pods become an owner's, `removal` ends one;
//! * `build` makes pods and claims from templates, `ids` picks their ids, `ordinals` has their ordinals, `revision_plan` says which
//!   revision a template is, `revision_keeper` has the revisions that there are;
//! * `action` lists the actions on pods, `actor` performs them, with their events; `members` tells which owner a change concerns, and
//!   asks the server about members that the watches do not show;
//! * `leave` is asked before a pod goes out of service for an update;
//! * `strategic` applies strategic merge patches to pods;
//! * `pull_jobs` makes jobs that pull images before pods need them;
//! * `readiness` puts new pods in service, `launch_priority` starts containers in an order.
//!
//! **Architecture invariant:** nothing here names a kind of OpenKruise. Everything but `actor`, `members`, `revision_keeper` and
//! the two controllers (`readiness`, `launch_priority`) is pure.

mod action;
pub mod actor;
pub mod adoption;
pub mod availability;
pub mod build;
mod cached;
mod cached_node;
pub mod claims_hash;
pub mod conditions;
pub mod counts;
pub mod ids;
pub mod inplace;
pub mod launch_priority;
mod lean;
pub mod leave;
pub mod lifecycle;
pub mod members;
pub mod ordinals;
pub mod pod;
pub mod pull_jobs;
pub mod readiness;
pub mod refresh;
pub mod removal;
pub mod revision;
pub mod revision_keeper;
pub mod revision_plan;
pub mod sort;
pub mod strategic;
pub mod template;
// Tests of the kinds use it, too.
#[doc(hidden)]
pub mod test_pods;
mod word;

pub use action::{PatchText, PodAction, PodRef};
pub use cached::CachedPod;
pub use cached_node::CachedNode;
pub use revision::{Revision, Revisions};
