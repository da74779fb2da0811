//! The ImageListPullJob controller: an ImagePullJob for each of several images, `observe → plan → act`.
//!
//! `plan` makes a status of the jobs that there are, and says which to make and to delete; it is pure. `controller` observes and
//! acts, `webhook` fills in and validates.

mod act;
mod controller;
mod plan;
mod webhook;

use std::sync::Arc;

use self::controller::Controller;
use super::{Crd, OWN, Right, STATUS, Start, Workload};
use crate::api::definitions;

/// The gate of the kind. It needs the gate of the daemon, which switches it off.
const GATE: &str = "ImagePullJobGate";
/// How many jobs are worked on at a time.
const WORKERS: usize = 3;

/// ImageListPullJob.
pub const WORKLOAD: Workload = Workload {
    name: "imagelistpulljob",
    controller: controller::CONTROLLER,
    gate: Some(GATE),
    crds: &[Crd {
        json: definitions::IMAGELISTPULLJOBS,
        gate: Some(GATE),
        needed_by: &[],
    }],
    rbac: &[
        Right::new("apps.kruise.io", "imagelistpulljobs", OWN).with(GATE),
        Right::new("apps.kruise.io", "imagelistpulljobs/finalizers", &["update"]).with(GATE),
        Right::new("apps.kruise.io", "imagelistpulljobs/status", STATUS).with(GATE),
        Right::new("apps.kruise.io", "imagepulljobs", OWN).with(GATE),
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
        client: start.client.clone(),
        clock: Arc::clone(&start.options.clock),
        recorder: start.recorder(),
        expectations: Arc::default(),
        lists: start.runtime.cache(),
        jobs: start.runtime.cache(),
    };
    let queue = start.queue();
    start.runtime.add(&Arc::new(controller), &queue, WORKERS);
}
