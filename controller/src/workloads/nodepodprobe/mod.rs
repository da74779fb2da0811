//! The NodePodProbe controller: keeps an object for the probes of each node, and turns their results into marks of pods.
//!
//! `observe` is one moment of a node, its probes, pods and markers. `plan` is pure: it says whether the object is made or deleted, which
//! pods are not probed any more, and the conditions, labels and annotations of pods; `marks` has those of one pod. `controller` writes,
//! `wake` says which changes matter.

mod controller;
mod marks;
mod observe;
mod plan;
mod wake;

use std::sync::Arc;

use self::controller::Controller;
use super::{Crd, OWN, Right, STATUS, Start, Workload};
use crate::api::definitions;
use crate::injection::probes::GATE;

/// The NodePodProbe. Without the gate `KruiseDaemon` its gate is off, too.
pub const WORKLOAD: Workload = Workload {
    name: "nodepodprobe",
    controller: controller::CONTROLLER,
    gate: Some(GATE),
    crds: &[Crd {
        json: definitions::NODEPODPROBES,
        gate: Some(GATE),
        needed_by: &[GATE],
    }],
    rbac: &[
        Right::new("apps.kruise.io", "nodepodprobes", OWN).with(GATE),
        Right::new("apps.kruise.io", "nodepodprobes/finalizers", &["update"]).with(GATE),
        Right::new("apps.kruise.io", "nodepodprobes/status", STATUS).with(GATE),
    ],
    conversions: &[],
    webhooks: &[],
    workers_flag: "nodepodprobe-workers",
    flags: &[],
    metrics: &[],
    start,
};

fn start(start: &mut Start<'_>) {
    let controller = Controller {
        client: start.client.clone(),
        probes: start.runtime.cluster_cache(),
        nodes: start.runtime.cluster_cache(),
        pods: start.runtime.cache(),
        markers: start.runtime.cache(),
    };
    let (queue, workers) = (start.queue(), start.workers());
    start.runtime.add(&Arc::new(controller), &queue, workers);
}
