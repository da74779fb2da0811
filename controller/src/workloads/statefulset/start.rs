//! The registration of StatefulSets with the manager.

use std::sync::Arc;

use super::controller::{CONTROLLER, Controller};
use super::conversion::CONVERSION;
use super::gates::Gates;
use super::webhook;
use crate::api::definitions;
use crate::pods::revision_keeper::RevisionKeeper;
use crate::workloads::{Crd, OWN, Right, STATUS, Start, VERTICAL_SCALING, Workload};

/// The gate of ImagePullJobs. The gates for downloads of images switch it on.
const PULL_JOBS: &str = "ImagePullJobGate";

/// The gate of claims that grow, and of the look at their class of storage.
const RESIZE: &str = "StatefulSetAutoResizePVCGate";

/// The Advanced StatefulSet.
pub const WORKLOAD: Workload = Workload {
    name: "statefulset",
    controller: CONTROLLER,
    gate: None,
    crds: &[Crd {
        json: definitions::STATEFULSETS,
        gate: None,
        needed_by: &[],
    }],
    rbac: &[
        Right::new("apps", "controllerrevisions", OWN),
        Right::new("apps.kruise.io", "statefulsets", OWN),
        Right::new("apps.kruise.io", "statefulsets/finalizers", &["update"]),
        Right::new("apps.kruise.io", "statefulsets/status", STATUS),
        Right::new("apps.kruise.io", "imagepulljobs", OWN).with(PULL_JOBS),
        Right::new("", "persistentvolumeclaims", OWN),
        Right::new("", "pods/resize", STATUS).with(VERTICAL_SCALING),
        Right::new("storage.k8s.io", "storageclasses", &["get", "list"]).with(RESIZE),
    ],
    conversions: &[CONVERSION],
    webhooks: webhook::WEBHOOKS,
    workers_flag: "statefulset-workers",
    flags: &[],
    metrics: &[],
    start,
};

fn start(start: &mut Start<'_>) {
    let gates = Gates::of(|name| start.options.gates.is_on(name));
    let actor = start.actor(&super::act::WORDS);
    let controller = Controller {
        sets: start.runtime.cache(),
        pods: start.runtime.cache(),
        claims: start.runtime.cache(),
        revisions: RevisionKeeper::new(start.runtime.cache()),
        jobs: start.pull_jobs(gates.predownload),
        actor,
        gates,
    };
    let (queue, workers) = (start.queue(), start.workers());
    start.runtime.add(&Arc::new(controller), &queue, workers);
}
