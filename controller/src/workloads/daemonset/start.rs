//! The registration of DaemonSets with the manager.

use std::sync::{Arc, Mutex};

use super::controller::{CONTROLLER, Controller, failures};
use super::gates::Gates;
use super::webhook;
use crate::api::definitions;
use crate::pods::revision_keeper::RevisionKeeper;
use crate::workloads::{Crd, OWN, Right, STATUS, Start, Takes, VERTICAL_SCALING, Workload};

/// The gate of ImagePullJobs. The gates for downloads of images switch it on.
const PULL_JOBS: &str = "ImagePullJobGate";
/// The flag for pods that the scheduler binds.
const BY_SCHEDULER: &str = "assign-pods-by-scheduler";

/// The Advanced DaemonSet.
pub const WORKLOAD: Workload = Workload {
    name: "daemonset",
    controller: CONTROLLER,
    gate: None,
    crds: &[Crd {
        json: definitions::DAEMONSETS,
        gate: None,
        needed_by: &[],
    }],
    rbac: &[
        Right::new("apps", "controllerrevisions", OWN),
        Right::new("apps.kruise.io", "daemonsets", OWN),
        Right::new("apps.kruise.io", "daemonsets/finalizers", &["update"]),
        Right::new("apps.kruise.io", "daemonsets/status", STATUS),
        Right::new("apps.kruise.io", "imagepulljobs", OWN).with(PULL_JOBS),
        Right::new("", "pods/resize", STATUS).with(VERTICAL_SCALING),
    ],
    conversions: &[super::conversion::CONVERSION],
    webhooks: webhook::WEBHOOKS,
    workers_flag: "daemonset-workers",
    flags: &[(
        BY_SCHEDULER,
        Takes::Truth,
        "true",
        "the scheduler binds the pods of DaemonSets to their nodes",
    )],
    metrics: &[],
    start,
};

fn start(start: &mut Start<'_>) {
    let gates = Gates::of(|name| start.options.gates.is_on(name));
    let actor = start.actor(&super::act::WORDS);
    let controller = Controller {
        sets: start.runtime.cache(),
        pods: start.runtime.cache(),
        nodes: start.runtime.cluster_cache(),
        revisions: RevisionKeeper::new(start.runtime.cache()),
        jobs: start.pull_jobs(gates.predownload),
        failures: Mutex::new(failures()),
        actor,
        gates,
        by_scheduler: start.is_set(BY_SCHEDULER),
    };
    let (queue, workers) = (start.queue(), start.workers());
    start.runtime.add(&Arc::new(controller), &queue, workers);
}
