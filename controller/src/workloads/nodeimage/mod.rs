//! The NodeImage controller: an object for each node that lists the images to pull there.
//!
//! ImagePullJobs write the list, OpenKruise's daemon on the node pulls, and this controller keeps the objects in step with the
//! nodes: `wake` says which changes concern one, `plan` plans the steps (`clean` takes tags away, `repair` fails tags that a daemon does
//! not answer for), `controller` acts. `webhook` fills in and validates.

mod clean;
mod controller;
mod observe;
mod plan;
mod repair;
mod wake;
mod webhook;

use std::sync::Arc;
use std::time::Duration;

use self::controller::Controller;
use super::{Crd, OWN, READ, Right, STATUS, Start, Takes, Workload};
use crate::api::definitions;
use crate::go_values::duration;

/// The gate of the kind.
const GATE: &str = "KruiseDaemon";
/// The gate of the jobs that write the lists.
const PULL_JOBS: &str = "ImagePullJobGate";
/// The flag for how long a node is ready before it gets its object.
const CREATION_DELAY: &str = "nodeimage-creation-delay";

/// NodeImage.
pub const WORKLOAD: Workload = Workload {
    name: "nodeimage",
    controller: controller::CONTROLLER,
    gate: Some(GATE),
    crds: &[Crd {
        json: definitions::NODEIMAGES,
        gate: Some(GATE),
        needed_by: &[],
    }],
    rbac: &[
        Right::new("apps.kruise.io", "imagepulljobs", READ).with(PULL_JOBS),
        Right::new("apps.kruise.io", "nodeimages", OWN).with(GATE),
        Right::new("apps.kruise.io", "nodeimages/finalizers", &["update"]).with(GATE),
        Right::new("apps.kruise.io", "nodeimages/status", STATUS).with(GATE),
        Right::new("", "nodes", READ).with(GATE),
        Right::new("", "secrets", READ).with(GATE),
    ],
    conversions: &[],
    webhooks: webhook::WEBHOOKS,
    workers_flag: "nodeimage-workers",
    flags: &[(
        CREATION_DELAY,
        Takes::Duration,
        "30s",
        "how long a node is ready before it gets a NodeImage",
    )],
    metrics: &[],
    start,
};

fn start(start: &mut Start<'_>) {
    let delay_ns = duration(start.setting(CREATION_DELAY)).unwrap_or_default();
    let pulls = start.options.gates.is_on(PULL_JOBS);
    let controller = Controller {
        client: start.client.clone(),
        clock: Arc::clone(&start.options.clock),
        recorder: start.recorder(),
        images: start.runtime.cluster_cache(),
        nodes: start.runtime.cluster_cache(),
        jobs: pulls.then(|| start.runtime.cache()),
        creation_delay: Duration::from_nanos(u64::try_from(delay_ns).unwrap_or_default()),
    };
    let (queue, workers) = (start.queue(), start.workers());
    start.runtime.add(&Arc::new(controller), &queue, workers);
}
