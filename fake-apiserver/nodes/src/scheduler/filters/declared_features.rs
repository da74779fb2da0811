//! Features that pods need and nodes declare.

use machinery::meta::at;
use shared_json::Value;

use super::super::cluster::{NodeInfo, list};
use super::{Cycle, Refusal};

/// Whether a pod needs a feature.
type Needs = fn(&Value) -> bool;

const FEATURES: [(&str, Needs); 2] = [
    ("RestartAllContainersOnContainerExits", restarts_all),
    ("UserNamespacesHostNetworkSupport", maps_users_of_its_host),
];

fn restarts_all(pod: &Value) -> bool {
    let containers = ["spec.initContainers", "spec.containers"].into_iter();
    let mut rules = containers
        .flat_map(|path| list(pod, path))
        .flat_map(|container| list(container, "restartPolicyRules"));
    rules.any(|rule| rule["action"] == "RestartAllContainers")
}

fn maps_users_of_its_host(pod: &Value) -> bool {
    let says = |path: &str| at(pod, path).and_then(Value::as_bool);
    says("spec.hostNetwork") == Some(true) && says("spec.hostUsers") == Some(false)
}

/// The features that a pod needs of its node.
pub(in super::super) fn needed(pod: &Value) -> impl Iterator<Item = &'static str> {
    let needed = FEATURES.into_iter().filter(|(_, needs)| needs(pod));
    needed.map(|(name, _)| name)
}

pub(super) fn concerns(cycle: &Cycle<'_>) -> bool {
    needed(&cycle.pod.object).next().is_some()
}

pub(super) fn filter(cycle: &Cycle<'_>, node: &NodeInfo) -> Option<Refusal> {
    let declared = list(&node.object, "status.declaredFeatures");
    (!needed(&cycle.pod.object).all(|name| declared.iter().any(|one| one == name)))
        .then(|| Refusal::hopeless("node(s) didn't match Pod's required features"))
}
