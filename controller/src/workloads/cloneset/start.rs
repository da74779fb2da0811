//! The manager's entry of CloneSets: the definition, the rights, the flags and the start.

use std::sync::Arc;

use super::controller::Controller;
use super::{CloneSetPlanner, Gates, Planner, webhook};
use crate::api::definitions;
use crate::pods::actor::Actor;
use crate::pods::revision_keeper::RevisionKeeper;
use crate::workloads::{Crd, OWN, Right, STATUS, Start, Takes, VERTICAL_SCALING, Workload};

/// The gate of ImagePullJobs. The gates for downloads of images switch it on.
const PULL_JOBS: &str = "ImagePullJobGate";
/// The flag for pods that a hook holds before their deletion.
const EXCLUDE: &str = "cloneset-scaling-exclude-preparing-delete";

/// CloneSet.
pub const WORKLOAD: Workload = Workload {
    name: "cloneset",
    controller: super::controller::CONTROLLER,
    gate: None,
    crds: &[Crd {
        json: definitions::CLONESETS,
        gate: None,
        needed_by: &[],
    }],
    rbac: &[
        Right::new("apps", "controllerrevisions", OWN),
        Right::new("apps.kruise.io", "clonesets", OWN),
        Right::new("apps.kruise.io", "clonesets/finalizers", &["update"]),
        Right::new("apps.kruise.io", "clonesets/status", STATUS),
        Right::new("apps.kruise.io", "imagepulljobs", OWN).with(PULL_JOBS),
        Right::new("", "persistentvolumeclaims", OWN),
        Right::new("", "pods/resize", STATUS).with(VERTICAL_SCALING),
    ],
    conversions: &[],
    webhooks: webhook::WEBHOOKS,
    workers_flag: "cloneset-workers",
    flags: &[(
        EXCLUDE,
        Takes::Truth,
        "false",
        "pods in PreparingDelete do not count when scaling",
    )],
    metrics: &[(
        "cloneset_scale_expectation_leakage",
        "counter",
        "Number of times a CloneSet's scale expectation was not met in time",
    )],
    start,
};

fn start(start: &mut Start<'_>) {
    let gates = Gates {
        exclude_preparing_delete: start.is_set(EXCLUDE),
        ..Gates::of(|name| start.options.gates.is_on(name))
    };
    let planner = start.options.planner.clone();
    let planner: Arc<dyn Planner> = planner.unwrap_or_else(|| Arc::new(CloneSetPlanner { gates }));
    let actor = Actor {
        leave: start.leave(),
        ..start.actor(&super::act::WORDS)
    };
    let controller = Controller {
        sets: start.runtime.cache(),
        pods: start.runtime.cache(),
        claims: start.runtime.cache(),
        revisions: RevisionKeeper::new(start.runtime.cache()),
        jobs: start.pull_jobs(gates.predownload),
        actor,
        planner,
        metrics: Arc::clone(&start.options.metrics),
    };
    let (queue, workers) = (start.queue(), start.workers());
    start.runtime.add(&Arc::new(controller), &queue, workers);
}
