//! The registration of EphemeralJobs with the manager.

use std::sync::Arc;

use super::controller::{CONTROLLER, Controller};
use super::webhook;
use crate::api::definitions;
use crate::pods::actor::Words;
use crate::workloads::{Crd, Right, STATUS, Start, Workload};

/// How many jobs are worked on at a time. There is no flag for that.
const WORKERS: usize = 10;

/// The EphemeralJob.
pub const WORKLOAD: Workload = Workload {
    name: "ephemeraljob",
    controller: CONTROLLER,
    gate: None,
    crds: &[Crd {
        json: definitions::EPHEMERALJOBS,
        gate: None,
        needed_by: &[],
    }],
    rbac: &[
        Right::new(
            "apps.kruise.io",
            "ephemeraljobs",
            &["delete", "get", "list", "patch", "update", "watch"],
        ),
        Right::new("apps.kruise.io", "ephemeraljobs/status", STATUS),
        Right::new("", "pods/ephemeralcontainers", STATUS),
    ],
    conversions: &[],
    webhooks: webhook::WEBHOOKS,
    workers_flag: "",
    flags: &[],
    metrics: &[],
    start,
};

fn start(start: &mut Start<'_>) {
    let controller = Controller {
        jobs: start.runtime.cache(),
        pods: start.runtime.cache(),
        actor: start.actor(&Words::NONE),
    };
    let queue = start.queue();
    start.runtime.add(&Arc::new(controller), &queue, WORKERS);
}
