//! The PodUnavailableBudget controller: how many pods a budget has, and how many of them may go out of service.
//!
//! `observe` finds the pods and their number, `plan` makes the status of them and is pure, `controller` wakes and acts, `webhook`
//! validates. The webhook of pods takes pods out of budgets; `injection::budgets` has it.

mod controller;
mod observe;
mod plan;
mod wake;
mod webhook;

use std::sync::Arc;

use self::controller::Controller;
use super::{Crd, READ, Right, STATUS, Start, Workload};
use crate::api::definitions;
use crate::injection::budgets;
use crate::targets::Lookup;

/// The gates of the kind: one of them is enough.
const GATES: &str = "PodUnavailableBudgetDeleteGate|PodUnavailableBudgetUpdateGate";

/// PodUnavailableBudget.
pub const WORKLOAD: Workload = Workload {
    name: "podunavailablebudget",
    controller: controller::CONTROLLER,
    gate: Some(GATES),
    crds: &[Crd {
        json: definitions::PODUNAVAILABLEBUDGETS,
        gate: Some(GATES),
        needed_by: &[budgets::DELETE_GATE, budgets::UPDATE_GATE],
    }],
    rbac: &[
        Right::new("policy.kruise.io", "podunavailablebudgets", READ).with(GATES),
        Right::new(
            "policy.kruise.io",
            "podunavailablebudgets/finalizers",
            &["update"],
        )
        .with(GATES),
        Right::new("policy.kruise.io", "podunavailablebudgets/status", STATUS).with(GATES),
        Right::new("apps", "deployments", READ).with(GATES),
        Right::new("apps", "replicasets", READ).with(GATES),
        Right::new("apps", "statefulsets", READ).with(GATES),
        Right::new("*", "*/scale", READ).with(GATES),
    ],
    conversions: &[],
    webhooks: &[webhook::VALIDATING],
    workers_flag: "podunavailablebudget-workers",
    flags: &[],
    metrics: &[budgets::REFUSALS],
    start,
};

fn start(start: &mut Start<'_>) {
    let controller = Controller {
        client: start.client.clone(),
        clock: Arc::clone(&start.options.clock),
        recorder: start.recorder(),
        budgets: start.runtime.cache(),
        pods: start.runtime.cache(),
        deployments: start.runtime.cache(),
        stateful_sets: start.runtime.cache(),
        clone_sets: start.runtime.cache(),
        advanced_stateful_sets: start.runtime.cache(),
        lookup: Lookup::shared(start.client.clone(), &start.options.shared),
        desk: start.options.shared.of(),
    };
    let (queue, workers) = (start.queue(), start.workers());
    start.runtime.add(&Arc::new(controller), &queue, workers);
}
