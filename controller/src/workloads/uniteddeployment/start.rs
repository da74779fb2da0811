//! The registration of UnitedDeployments with the manager.

use std::sync::Arc;

use super::controller::{CONTROLLER, Controller};
use super::finder::Finder;
use super::webhook;
use crate::api::definitions;
use crate::pods::actor::Words;
use crate::pods::revision_keeper::RevisionKeeper;
use crate::workloads::{Crd, OWN, READ, Right, STATUS, Start, Workload};

/// The UnitedDeployment.
pub const WORKLOAD: Workload = Workload {
    name: "uniteddeployment",
    controller: CONTROLLER,
    gate: None,
    crds: &[Crd {
        json: definitions::UNITEDDEPLOYMENTS,
        gate: None,
        needed_by: &[],
    }],
    rbac: &[
        Right::new("apps.kruise.io", "uniteddeployments", OWN),
        Right::new("apps.kruise.io", "uniteddeployments/finalizers", &["update"]),
        Right::new("apps.kruise.io", "uniteddeployments/status", STATUS),
        Right::new("apps.kruise.io", "clonesets", OWN),
        Right::new("apps.kruise.io", "statefulsets", OWN),
        Right::new("apps", "controllerrevisions", OWN),
        Right::new("apps", "deployments", OWN),
        Right::new("apps", "replicasets", READ),
        Right::new("apps", "statefulsets", OWN),
    ],
    conversions: &[],
    webhooks: webhook::WEBHOOKS,
    workers_flag: "uniteddeployment-workers",
    flags: &[],
    metrics: &[],
    start,
};

fn start(start: &mut Start<'_>) {
    let finder = Finder {
        stateful_sets: start.runtime.cache(),
        advanced: start.runtime.cache(),
        clone_sets: start.runtime.cache(),
        deployments: start.runtime.cache(),
        replica_sets: start.runtime.cache(),
        pods: start.runtime.cache(),
    };
    let controller = Controller {
        sets: start.runtime.cache(),
        finder: Arc::new(finder),
        revisions: RevisionKeeper::new(start.runtime.cache()),
        actor: start.actor(&Words::NONE),
    };
    let (queue, workers) = (start.queue(), start.workers());
    start.runtime.add(&Arc::new(controller), &queue, workers);
}
