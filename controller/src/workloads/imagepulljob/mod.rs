//! The ImagePullJob controller: an image on many nodes.
//!
//! The job writes a tag into the NodeImages of so many nodes at a time as its parallelism allows, and counts the answers of the daemons
//! there. `wake` says which jobs a change concerns, `select` which nodes a job wants, `plan` the changes of their lists: all are pure.
//! `secrets` says which Secrets are copied for the daemon, `held_secret` is one as its cache holds it, `act` carries things out.
//! `webhook` fills in and validates.

mod act;
mod controller;
mod copies;
mod held_secret;
mod plan;
mod secrets;
mod select;
mod wake;
mod webhook;

use std::sync::Arc;

use self::controller::Controller;
use super::{Crd, OWN, READ, Right, STATUS, Start, Takes, Workload};
use crate::api::definitions;
use crate::go_values::integer;

/// The gate of the kind. It needs the gate of the daemon, which switches it off.
const GATE: &str = "ImagePullJobGate";
/// The gates that have workloads make ImagePullJobs.
const PREDOWNLOADS: [&str; 2] = [
    "PreDownloadImageForDaemonSetUpdate",
    "PreDownloadImageForInPlaceUpdate",
];
/// The flag for how long a tag stays in a list after its end, beyond the time in the job.
const TTL: &str = "default-ttlseconds-for-always-nodeimage";

/// ImagePullJob.
pub const WORKLOAD: Workload = Workload {
    name: "imagepulljob",
    controller: controller::CONTROLLER,
    gate: Some(GATE),
    crds: &[Crd {
        json: definitions::IMAGEPULLJOBS,
        gate: Some(GATE),
        needed_by: &PREDOWNLOADS,
    }],
    rbac: &[
        Right::new("apps.kruise.io", "imagepulljobs", OWN).with(GATE),
        Right::new("apps.kruise.io", "imagepulljobs/finalizers", &["update"]).with(GATE),
        Right::new("apps.kruise.io", "imagepulljobs/status", STATUS).with(GATE),
        Right::new("apps.kruise.io", "nodeimages", OWN).with(GATE),
        Right::new("", "pods", READ).with(GATE),
        Right::new(
            "",
            "secrets",
            &["create", "delete", "get", "list", "update", "watch"],
        )
        .with(GATE),
    ],
    conversions: &[],
    webhooks: webhook::WEBHOOKS,
    workers_flag: "imagepulljob-workers",
    flags: &[(
        TTL,
        Takes::Number,
        "300",
        "for how many seconds a NodeImage keeps a tag after its end, beside what the job says",
    )],
    metrics: &[],
    start,
};

fn start(start: &mut Start<'_>) {
    let controller = Controller {
        client: start.client.clone(),
        clock: Arc::clone(&start.options.clock),
        expectations: Arc::default(),
        jobs: start.runtime.cache(),
        images: start.runtime.cluster_cache(),
        pods: start.runtime.cache(),
        secrets: start.runtime.cache(),
        secrets_namespace: start.options.secrets_namespace.clone(),
        kept_s: integer(start.setting(TTL)).unwrap_or_default(),
    };
    let (queue, workers) = (start.queue(), start.workers());
    start.runtime.add(&Arc::new(controller), &queue, workers);
}
