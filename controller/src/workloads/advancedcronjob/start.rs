//! The registration of AdvancedCronJobs with the manager.

use std::sync::Arc;

use super::controller::{CONTROLLER, Controller};
use super::webhook;
use crate::api::definitions;
use crate::kit::{RetryDelays, WorkQueue};
use crate::workloads::{Crd, OWN, Right, STATUS, Start, Workload};

/// The gate of jobs that pull images.
const PULL_JOBS: &str = "ImagePullJobGate";

/// The AdvancedCronJob.
pub const WORKLOAD: Workload = Workload {
    name: "advancedcronjob",
    controller: CONTROLLER,
    gate: None,
    crds: &[Crd {
        json: definitions::ADVANCEDCRONJOBS,
        gate: None,
        needed_by: &[],
    }],
    rbac: &[
        Right::new("apps.kruise.io", "advancedcronjobs", OWN),
        Right::new("apps.kruise.io", "advancedcronjobs/finalizers", &["update"]),
        Right::new("apps.kruise.io", "advancedcronjobs/status", STATUS),
        Right::new("apps.kruise.io", "broadcastjobs", OWN),
        Right::new("apps.kruise.io", "imagelistpulljobs", OWN).with(PULL_JOBS),
        Right::new("batch", "jobs", OWN),
    ],
    conversions: &[super::conversion::CONVERSION],
    webhooks: webhook::WEBHOOKS,
    workers_flag: "advancedcronjob-workers",
    flags: &[],
    metrics: &[],
    start,
};

fn start(start: &mut Start<'_>) {
    let pulls = start.options.gates.is_on(PULL_JOBS);
    let controller = Controller {
        client: start.client.clone(),
        clock: Arc::clone(&start.options.clock),
        crons: start.runtime.cache(),
        jobs: start.runtime.cache(),
        broadcasts: start.runtime.cache(),
        image_lists: pulls.then(|| start.runtime.cache()),
    };
    // As in OpenKruise the flags for delays after failures are not for this controller.
    let queue = WorkQueue::with_rest(start.options.rest).with_retry(RetryDelays::default());
    let workers = start.workers();
    start
        .runtime
        .add(&Arc::new(controller), &Arc::new(queue), workers);
}
