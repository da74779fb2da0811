//! The kinds of OpenKruise, a room each.
//!
//! Whoever adds a kind adds a folder with a constant `WORKLOAD` in it, and its name to the list of [`ALL`]. The manager, the
//! installation, the webhooks, the flags and the metrics read that list; nothing else names a kind, but for
//! [`Options::planner`], by which tests put a broken CloneSet controller into a manager.
//!
//! **Architecture invariant:** a room never uses another room.

mod advancedcronjob;
mod broadcastjob;
pub mod cloneset;
mod containerrecreaterequest;
mod crds;
mod daemonset;
mod ephemeraljob;
mod imagelistpulljob;
mod imagepulljob;
mod nodeimage;
mod nodepodprobe;
mod options;
mod persistentpodstate;
mod podprobemarker;
mod podunavailablebudget;
mod resourcedistribution;
mod sidecarset;
mod sidecarterminator;
mod statefulset;
mod uniteddeployment;
mod workload;
mod workloadspread;

use crate::kit::conversion::Conversion;

pub use crds::crds;
pub use options::Options;
pub use workload::{Crd, Flag, Right, Settings, Takes, Workload};
pub(crate) use workload::{OWN, READ, STATUS, Start, VERTICAL_SCALING};

/// The kinds with which pods would go when their definitions are deleted, and their names in the refusal to do so. Every version of
/// OpenKruise serves them in `v1alpha1`.
pub(crate) const LOST_WITH_DEFINITIONS: [(&str, &str); 3] = [
    ("CloneSet", "clonesets"),
    ("StatefulSet", "advanced statefulsets"),
    ("DaemonSet", "advanced daemonsets"),
];

/// Writes [`ALL`], and the lists of parts of it that OpenKruise's daemon reads, too: a program that reads such a list alone has no
/// controller and no webhook in it.
macro_rules! kinds {
    ($($kind:ident),* $(,)?) => {
        /// Every kind that this manager has.
        pub const ALL: &[&Workload] = &[$(&$kind::WORKLOAD),*];
        /// The definitions of each kind.
        pub(crate) const DEFINITIONS: &[&[Crd]] = &[$($kind::WORKLOAD.crds),*];
        /// The conversions of each kind.
        pub(crate) const CONVERSIONS: &[&[Conversion]] = &[$($kind::WORKLOAD.conversions),*];
    };
}

kinds![
    advancedcronjob,
    broadcastjob,
    cloneset,
    containerrecreaterequest,
    daemonset,
    ephemeraljob,
    imagelistpulljob,
    imagepulljob,
    nodeimage,
    nodepodprobe,
    persistentpodstate,
    podprobemarker,
    podunavailablebudget,
    resourcedistribution,
    sidecarset,
    sidecarterminator,
    statefulset,
    uniteddeployment,
    workloadspread,
];
