//! The PodProbeMarker controller: has OpenKruise's daemon probe pods, node by node.
//!
//! `observe` is one moment of a marker, the pods that it selects and the probes of their nodes. `plan` makes the probes of each node of it
//! and the marks of pods on virtual nodes, `controller` writes them, `wake` says which changes matter. `plan` is pure. `webhook`
//! validates. The NodePodProbe controller turns results into conditions, labels and annotations. The webhook of pods tells pods of
//! virtual nodes their probes; `injection::probes` has it.

mod controller;
mod handler;
mod observe;
mod plan;
mod wake;
mod webhook;

use std::sync::Arc;

use self::controller::Controller;
use super::{Crd, OWN, Right, STATUS, Start, Workload};
use crate::api::definitions;
use crate::injection::probes::{GATE, SERVERLESS_GATE};

/// The PodProbeMarker.
pub const WORKLOAD: Workload = Workload {
    name: "podprobemarker",
    controller: controller::CONTROLLER,
    gate: Some(GATE),
    crds: &[Crd {
        json: definitions::PODPROBEMARKERS,
        gate: Some(GATE),
        needed_by: &[GATE],
    }],
    rbac: &[
        Right::new("apps.kruise.io", "podprobemarkers", OWN).with(GATE),
        Right::new("apps.kruise.io", "podprobemarkers/finalizers", &["update"]).with(GATE),
        Right::new("apps.kruise.io", "podprobemarkers/status", STATUS).with(GATE),
        Right::new("apps.kruise.io", "nodepodprobes", OWN).with(GATE),
    ],
    conversions: &[],
    webhooks: webhook::WEBHOOKS,
    workers_flag: "podprobemarker-workers",
    flags: &[],
    metrics: &[],
    start,
};

fn start(start: &mut Start<'_>) {
    let controller = Controller {
        client: start.client.clone(),
        serverless: start.options.gates.is_on(SERVERLESS_GATE),
        markers: start.runtime.cache(),
        probes: start.runtime.cluster_cache(),
        pods: start.runtime.cache(),
        nodes: start.runtime.cluster_cache(),
    };
    let (queue, workers) = (start.queue(), start.workers());
    start.runtime.add(&Arc::new(controller), &queue, workers);
}
