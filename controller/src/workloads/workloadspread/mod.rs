//! The WorkloadSpread controller: which subset each pod of a workload is in, and how many pods each subset takes.
//!
//! `observe` finds the workload and its pods, `adopt` gives pods that exist a subset, `plan` makes deletion costs and the status and is
//! pure, `controller` acts, `wake` says which changes matter, `webhook` validates. The webhook of pods gives new pods their subsets;
//! `injection::spreads` has it.

mod adopt;
mod controller;
mod observe;
mod plan;
mod wake;
mod webhook;

use std::sync::Arc;

use tokio::sync::OnceCell;

use self::controller::Controller;
use super::{Crd, READ, Right, STATUS, Start, Workload};
use crate::api::definitions;
use crate::injection::spreads::GATE;
use crate::targets::Lookup;

/// WorkloadSpread.
pub const WORKLOAD: Workload = Workload {
    name: "workloadspread",
    controller: controller::CONTROLLER,
    gate: Some(GATE),
    crds: &[Crd {
        json: definitions::WORKLOADSPREADS,
        gate: Some(GATE),
        needed_by: &[GATE],
    }],
    rbac: &[
        Right::new("apps.kruise.io", "workloadspreads", READ).with(GATE),
        Right::new("apps.kruise.io", "workloadspreads/finalizers", &["update"]).with(GATE),
        Right::new("apps.kruise.io", "workloadspreads/status", STATUS).with(GATE),
        Right::new("apps", "deployments", READ).with(GATE),
        Right::new("apps", "replicasets", READ).with(GATE),
        Right::new("apps", "statefulsets", READ).with(GATE),
        Right::new("batch", "jobs", READ).with(GATE),
        Right::new("*", "*/scale", READ).with(GATE),
    ],
    conversions: &[],
    webhooks: &[webhook::VALIDATING],
    workers_flag: "workloadspread-workers",
    flags: &[],
    metrics: &[],
    start,
};

fn start(start: &mut Start<'_>) {
    let controller = Controller {
        client: start.client.clone(),
        clock: Arc::clone(&start.options.clock),
        recorder: start.recorder(),
        own_namespace: start.options.own_namespace.clone(),
        spreads: start.runtime.cache(),
        pods: start.runtime.cache(),
        clone_sets: start.runtime.cache(),
        deployments: start.runtime.cache(),
        replica_sets: start.runtime.cache(),
        jobs: start.runtime.cache(),
        lookup: Lookup::shared(start.client.clone(), &start.options.shared),
        desk: start.options.shared.of(),
        list: OnceCell::new(),
    };
    let (queue, workers) = (start.queue(), start.workers());
    start.runtime.add(&Arc::new(controller), &queue, workers);
}
