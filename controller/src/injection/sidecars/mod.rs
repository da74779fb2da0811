//! Fills the containers, volumes and annotations of SidecarSets into a pod.
//!
//! * `read` finds the sets of a new pod, `selection` says which sets select it, `history` which revision of a set it gets;
//! * `inject` changes the pod: `container` makes each container, `resources` its resources (with `calculator`), `hot` the pair
//!   that is upgraded hot, `merge` puts the lists together, `metadata` patches annotations;
//! * `annotations` is the pod's record of its sets, `hash` the hashes of a set.
//!
//! Everything but `read` is pure. The controller of SidecarSets uses these modules, too.

pub(crate) mod annotations;
pub(crate) mod calculator;
mod container;
pub(crate) mod hash;
pub(crate) mod history;
pub(crate) mod hot;
mod inject;
mod merge;
pub(crate) mod metadata;
mod read;
mod resources;
pub(crate) mod selection;

pub(crate) use read::find as find_revision;
pub(super) use read::mutate;

#[cfg(test)]
mod inject_tests;
#[cfg(test)]
mod read_tests;
