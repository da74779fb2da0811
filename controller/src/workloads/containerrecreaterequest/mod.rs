//! The ContainerRecreateRequest: containers of a pod that OpenKruise's daemon stops, and the kubelet starts anew.
//!
//! The daemon does the work (`daemon::restarts`); this is the manager's half. `webhook` fills in the fields that the daemon needs, and
//! refuses requests that cannot be done. `observe` is one moment of a request and its pod, `plan` the steps that follow (pure): the end
//! of a request that takes too long or has lost its pod, the statuses of its containers, the pod out of service, the removal of
//! requests that have ended. `controller` does them, `wake` says which requests a change of a pod concerns.

mod controller;
mod observe;
mod plan;
mod wake;
mod webhook;

use std::sync::Arc;

use self::controller::Controller;
use super::{Crd, OWN, Right, STATUS, Start, Workload};
use crate::api::definitions;

/// The gate of the controller and of the webhook.
const GATE: &str = "KruiseDaemon";

/// The ContainerRecreateRequest.
pub const WORKLOAD: Workload = Workload {
    name: "containerrecreaterequest",
    controller: controller::CONTROLLER,
    gate: Some(GATE),
    crds: &[Crd {
        json: definitions::CONTAINERRECREATEREQUESTS,
        gate: Some(GATE),
        needed_by: &["SidecarTerminator"],
    }],
    rbac: &[
        Right::new("apps.kruise.io", "containerrecreaterequests", OWN).with(GATE),
        Right::new(
            "apps.kruise.io",
            "containerrecreaterequests/finalizers",
            &["update"],
        )
        .with(GATE),
        Right::new("apps.kruise.io", "containerrecreaterequests/status", STATUS).with(GATE),
    ],
    conversions: &[],
    webhooks: webhook::WEBHOOKS,
    workers_flag: "crr-workers",
    flags: &[],
    metrics: &[],
    start,
};

fn start(start: &mut Start<'_>) {
    let controller = Controller {
        client: start.client.clone(),
        clock: Arc::clone(&start.options.clock),
        requests: start.runtime.cache(),
        pods: start.runtime.cache(),
        expectations: Arc::default(),
    };
    let (queue, workers) = (start.queue(), start.workers());
    start.runtime.add(&Arc::new(controller), &queue, workers);
}
