//! The registration of BroadcastJobs with the manager.

use std::sync::Arc;

use super::controller::{CONTROLLER, Controller};
use super::webhook;
use crate::api::definitions;
use crate::workloads::{Crd, OWN, Right, STATUS, Start, Takes, Workload};

/// The flag for pods that the scheduler binds.
const BY_SCHEDULER: &str = "assign-bcj-pods-by-scheduler";

/// The BroadcastJob.
pub const WORKLOAD: Workload = Workload {
    name: "broadcastjob",
    controller: CONTROLLER,
    gate: None,
    crds: &[Crd {
        json: definitions::BROADCASTJOBS,
        gate: None,
        needed_by: &[],
    }],
    rbac: &[
        Right::new("apps.kruise.io", "broadcastjobs", OWN),
        Right::new("apps.kruise.io", "broadcastjobs/finalizers", &["update"]),
        Right::new("apps.kruise.io", "broadcastjobs/status", STATUS),
    ],
    conversions: &[],
    webhooks: webhook::WEBHOOKS,
    workers_flag: "broadcastjob-workers",
    flags: &[(
        BY_SCHEDULER,
        Takes::Truth,
        "true",
        "the scheduler binds the pods of BroadcastJobs to their nodes",
    )],
    metrics: &[],
    start,
};

fn start(start: &mut Start<'_>) {
    let controller = Controller {
        jobs: start.runtime.cache(),
        pods: start.runtime.cache(),
        nodes: start.runtime.cluster_cache(),
        actor: start.actor(&super::act::WORDS),
        by_scheduler: start.is_set(BY_SCHEDULER),
    };
    let (queue, workers) = (start.queue(), start.workers());
    start.runtime.add(&Arc::new(controller), &queue, workers);
}
