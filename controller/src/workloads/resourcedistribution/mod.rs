//! The ResourceDistribution controller: copies of one Secret or ConfigMap in many namespaces.
//!
//! `targets` says which namespaces, `copy` makes a copy, `plan` plans the step in each namespace, `status` reports on them:
//! all of them are pure. `controller` observes and acts, `cached` is a copy as its cache holds it, and `webhook` validates.

mod cached;
mod controller;
mod copy;
mod plan;
mod status;
mod targets;
mod webhook;

use std::sync::Arc;

use self::controller::Controller;
use super::{Crd, OWN, READ, Right, STATUS, Start, Workload};
use crate::api::definitions;
use crate::kit::Desk;

/// The gate of the kind.
const GATE: &str = "ResourceDistributionGate";

/// ResourceDistribution.
pub const WORKLOAD: Workload = Workload {
    name: "resourcedistribution",
    controller: controller::CONTROLLER,
    gate: Some(GATE),
    crds: &[Crd {
        json: definitions::RESOURCEDISTRIBUTIONS,
        gate: Some(GATE),
        needed_by: &[GATE],
    }],
    rbac: &[
        Right::new("apps.kruise.io", "resourcedistributions", READ).with(GATE),
        Right::new("apps.kruise.io", "resourcedistributions/finalizers", &["update"]).with(GATE),
        Right::new("apps.kruise.io", "resourcedistributions/status", STATUS).with(GATE),
        Right::new("", "configmaps", OWN).with(GATE),
        Right::new("", "namespaces", READ).with(GATE),
        Right::new(
            "",
            "secrets",
            &["create", "delete", "get", "list", "update", "watch"],
        )
        .with(GATE),
    ],
    conversions: &[],
    webhooks: &[webhook::VALIDATING],
    workers_flag: "resourcedistribution-workers",
    flags: &[],
    metrics: &[],
    start,
};

fn start(start: &mut Start<'_>) {
    let controller = Controller {
        client: start.client.clone(),
        clock: Arc::clone(&start.options.clock),
        distributions: start.runtime.cluster_cache(),
        desk: Desk::default(),
        namespaces: start.runtime.cluster_cache(),
        secrets: start.runtime.cache(),
        config_maps: start.runtime.cache(),
    };
    let (queue, workers) = (start.queue(), start.workers());
    start.runtime.add(&Arc::new(controller), &queue, workers);
}
