//! The kinds of OpenKruise, a room each.
//!
//! Whoever adds a kind adds a folder with a constant `WORKLOAD` in it, and a line to [`ALL`]. The manager, the
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

/// Every kind that this manager has.
pub const ALL: &[&Workload] = &[
    &advancedcronjob::WORKLOAD,
    &broadcastjob::WORKLOAD,
    &cloneset::WORKLOAD,
    &containerrecreaterequest::WORKLOAD,
    &daemonset::WORKLOAD,
    &ephemeraljob::WORKLOAD,
    &imagelistpulljob::WORKLOAD,
    &imagepulljob::WORKLOAD,
    &nodeimage::WORKLOAD,
    &nodepodprobe::WORKLOAD,
    &persistentpodstate::WORKLOAD,
    &podprobemarker::WORKLOAD,
    &podunavailablebudget::WORKLOAD,
    &resourcedistribution::WORKLOAD,
    &sidecarset::WORKLOAD,
    &sidecarterminator::WORKLOAD,
    &statefulset::WORKLOAD,
    &uniteddeployment::WORKLOAD,
    &workloadspread::WORKLOAD,
];
