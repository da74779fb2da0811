//! The registration of PersistentPodStates with the manager.

use std::sync::Arc;

use super::controller::{CONTROLLER, Controller};
use super::listed::ListedKinds;
use super::webhook;
use crate::api::definitions;
use crate::targets::Lookup;
use crate::workloads::{Crd, OWN, READ, Right, STATUS, Start, Workload};

/// The PersistentPodState.
pub const WORKLOAD: Workload = Workload {
    name: "persistentpodstate",
    controller: CONTROLLER,
    gate: None,
    crds: &[Crd {
        json: definitions::PERSISTENTPODSTATES,
        gate: None,
        needed_by: &[],
    }],
    rbac: &[
        Right::new("apps.kruise.io", "persistentpodstates", OWN),
        Right::new("apps.kruise.io", "persistentpodstates/finalizers", &["update"]),
        Right::new("apps.kruise.io", "persistentpodstates/status", STATUS),
        Right::new("apps", "statefulsets", READ),
    ],
    conversions: &[],
    webhooks: webhook::WEBHOOKS,
    workers_flag: "persistentpodstate-workers",
    flags: &[],
    metrics: &[],
    start,
};

fn start(start: &mut Start<'_>) {
    let lookup = Lookup::shared(start.client.clone(), &start.options.shared);
    let controller = Controller {
        client: start.client.clone(),
        lookup: lookup.clone(),
        own_namespace: start.options.own_namespace.clone(),
        states: start.runtime.cache(),
        pods: start.runtime.cache(),
        nodes: start.runtime.cluster_cache(),
        built_in: start.runtime.cache(),
        advanced: start.runtime.cache(),
    };
    let (queue, workers) = (start.queue(), start.workers());
    let listed = ListedKinds {
        client: start.client.clone(),
        lookup,
        own_namespace: start.options.own_namespace.clone(),
        namespace: start.options.namespace.clone(),
        states: controller.states.clone(),
        queue: Arc::clone(&queue),
    };
    start.runtime.watch(Box::pin(listed.run()));
    start.runtime.add(&Arc::new(controller), &queue, workers);
}
