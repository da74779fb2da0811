//! The registration of SidecarSets with the manager.

use std::sync::Arc;

use super::controller::{CONTROLLER, Controller};
use super::webhook;
use crate::api::definitions;
use crate::kit::Desk;
use crate::pods::actor::Words;
use crate::pods::revision_keeper::RevisionKeeper;
use crate::workloads::{Crd, OWN, READ, Right, STATUS, Start, Workload};

/// SidecarSet.
pub const WORKLOAD: Workload = Workload {
    name: "sidecarset",
    controller: CONTROLLER,
    gate: None,
    crds: &[Crd {
        json: definitions::SIDECARSETS,
        gate: None,
        needed_by: &[],
    }],
    rbac: &[
        Right::new("apps", "controllerrevisions", OWN),
        Right::new("apps.kruise.io", "sidecarsets", OWN),
        Right::new("apps.kruise.io", "sidecarsets/finalizers", &["update"]),
        Right::new("apps.kruise.io", "sidecarsets/status", STATUS),
        Right::new("", "configmaps", READ),
        Right::new("", "namespaces", READ),
    ],
    conversions: &[webhook::CONVERSION],
    webhooks: webhook::WEBHOOKS,
    workers_flag: "sidecarset-workers",
    flags: &[],
    metrics: &[],
    start,
};

fn start(start: &mut Start<'_>) {
    static NO_WORDS: Words = Words::NONE;
    let actor = start.actor(&NO_WORDS);
    let controller = Controller {
        sets: start.runtime.cluster_cache(),
        desk: Desk::default(),
        pods: start.runtime.cache(),
        namespaces: start.runtime.cluster_cache(),
        revisions: RevisionKeeper::new(start.runtime.cache()),
        actor,
        namespace: start.options.own_namespace.clone(),
    };
    let (queue, workers) = (start.queue(), start.workers());
    start.runtime.add(&Arc::new(controller), &queue, workers);
}
