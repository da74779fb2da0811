//! The SidecarTerminator: ends the sidecars of a pod whose other containers are done, so that its job completes.
//!
//! `groups` says how each container of a pod is ended, `plan` has the steps for a pod. Both are pure. `controller` does them: on a node
//! with OpenKruise's daemon by a ContainerRecreateRequest, on a virtual node by another image.

mod controller;
mod groups;
mod plan;

use std::sync::Arc;

use self::controller::Controller;
use super::{OWN, Right, Start, Workload};

/// The gate of the controller.
const GATE: &str = "SidecarTerminator";

/// The SidecarTerminator.
pub const WORKLOAD: Workload = Workload {
    name: "sidecarterminator",
    controller: controller::CONTROLLER,
    gate: Some(GATE),
    crds: &[],
    rbac: &[Right::new("apps.kruise.io", "containerrecreaterequests", OWN).with(GATE)],
    conversions: &[],
    webhooks: &[],
    workers_flag: "sidecarterminator-workers",
    flags: &[],
    metrics: &[],
    start,
};

fn start(start: &mut Start<'_>) {
    let controller = Controller {
        client: start.client.clone(),
        recorder: start.recorder(),
        clock: Arc::clone(&start.options.clock),
        pods: start.runtime.cache(),
        nodes: start.runtime.cluster_cache(),
        requests: start.runtime.cache(),
    };
    let (queue, workers) = (start.queue(), start.workers());
    start.runtime.add(&Arc::new(controller), &queue, workers);
}
