//! PodResizeValidator and NodeDeclaredFeatureValidator: a pod on a node gets other resources only if the node can do that, and is
//! large enough.

use machinery::meta::{ObjectMeta, at, string_map};
use machinery::quota::amounts::{add, containers, of_pod, read};
use machinery::status::ApiError;
use shared_json::{Value, json};
use store::{GroupResource, ObjectKey};

use super::{Attributes, Operation};
use crate::server::ServerState;

const OS: &str = "kubernetes.io/os";
const THOUSANDTH: i128 = 1_000_000;
const WHOLE: i128 = 1_000_000_000;

/// Whether a write gives a pod other resources.
pub(super) fn is_concerned(attributes: &Attributes) -> bool {
    attributes.operation == Operation::Update
        && attributes.resource.group.is_empty()
        && attributes.resource.plural == "pods"
        && attributes.subresource == "resize"
}

pub(super) fn validate(server: &ServerState, attributes: &Attributes) -> Result<(), ApiError> {
    let (true, Some(pod), Some(old)) = (is_concerned(attributes), &attributes.object, &attributes.old) else {
        return Ok(());
    };
    let name = at(pod, "spec.nodeName")
        .and_then(Value::as_str)
        .unwrap_or_default();
    if name.is_empty() || pod.generation() == old.generation() {
        return Ok(());
    }
    let refuse =
        |why: &str| ApiError::forbidden(&attributes.resource.group_resource(), &attributes.name, why);
    let table = GroupResource::new("", "nodes");
    let Some(node) = server.store.get(&table, &ObjectKey::new("", name)) else {
        return Err(refuse(&format!("node \"{name}\" not found")));
    };
    let missing = missing_features(pod, old, &node.value);
    if !missing.is_empty() {
        let missing = missing.join(", ");
        return Err(refuse(&format!(
            "pod update requires features {missing} which are not available on node \"{name}\""
        )));
    }
    match unable(pod, &node.value) {
        Some((why, cause)) => Err(ApiError {
            details: Some(machinery::status::details(
                "",
                "pods",
                &attributes.name,
                &[json!({"reason": cause})],
            )),
            ..refuse(&why)
        }),
        None => Ok(()),
    }
}

/// The features that the change needs and the node does not declare.
fn missing_features(pod: &Value, old: &Value, node: &Value) -> Vec<&'static str> {
    let is_sidecar = |container: &Value| container["restartPolicy"] == "Always";
    let resized = containers(old, "initContainers")
        .zip(containers(pod, "initContainers"))
        .any(|(was, is)| !is_sidecar(was) && was.get("resources") != is.get("resources"));
    let whole = at(old, "spec.resources") != at(pod, "spec.resources");
    let declared = at(node, "status.declaredFeatures").and_then(Value::as_array);
    [
        ("InPlacePodLevelResourcesVerticalScaling", whole),
        ("InPlacePodVerticalScalingInitContainers", resized),
    ]
    .into_iter()
    .filter(|(name, needed)| {
        *needed && !declared.is_some_and(|declared| declared.iter().any(|one| one == name))
    })
    .map(|(name, _)| name)
    .collect()
}

/// Why a node cannot give a pod the requested resources now, and the reason of the condition.
fn unable(pod: &Value, node: &Value) -> Option<(String, &'static str)> {
    let system = string_map(node, "labels").get(OS).and_then(Value::as_str);
    if let Some(system) = system.filter(|system| *system != "linux") {
        let why = format!(
            "pod resize is only supported on linux nodes, node \"{}\" is \"{system}\"",
            node.name()
        );
        return Some((why, "UnsupportedPlatform"));
    }
    let mut asked = of_pod(pod, "requests");
    add(&mut asked, &read(at(pod, "spec.overhead")));
    let there = read(at(node, "status.allocatable"));
    let mut short = Vec::new();
    for (resource, unit) in [("cpu", THOUSANDTH), ("memory", WHOLE)] {
        let [asked, there] =
            [&asked, &there].map(|amounts| amounts.get(resource).map_or(0, |one| one.nanos()));
        if asked > there {
            let [asked, there] = [asked, there].map(|nanos| (nanos + unit - 1).div_euclid(unit));
            short.push(format!("{resource}, requested: {asked}, allocatable: {there}"));
        }
    }
    (!short.is_empty()).then(|| {
        let why = format!(
            "node didn't have enough allocatable resources: {}",
            short.join("; ")
        );
        (why, "NodeCapacity")
    })
}
