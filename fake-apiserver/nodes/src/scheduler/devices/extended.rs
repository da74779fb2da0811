//! Extended resources that a class of devices stands for: a pod's requests for them, as the claim that the scheduler makes.

use std::collections::BTreeSet;

use machinery::meta::{ObjectMeta as _, at, string_map};
use machinery::placement::{Amounts, amounts};
use shared_json::{Value, json};

use super::super::cluster::{Cluster, NodeInfo, PodInfo, list, text};

/// Before the name of a class, it is an extended resource, whatever else the class says.
const OF_CLASS: &str = "deviceclass.resource.kubernetes.io/";
/// Says of a claim that it is one for extended resources.
const ANNOTATION: &str = "resource.kubernetes.io/extended-resource-claim";
/// The name of the claim before it is made.
const UNMADE: &str = "<extended-resources>";
const WHOLE: i128 = 1_000_000_000;

/// Whether a resource is none of Kubernetes' own.
fn is_extended(name: &str) -> bool {
    name.contains('/') && !name.contains("kubernetes.io/") && !name.starts_with("requests.")
}

/// The class that stands for a resource: of several the newest, of equally new ones the first by name.
pub(in super::super) fn class_of<'a>(resource: &str, cluster: &'a Cluster) -> Option<&'a Value> {
    if let Some(class) = resource.strip_prefix(OF_CLASS) {
        return cluster.device_classes.get(class);
    }
    if !is_extended(resource) {
        return None;
    }
    let classes = cluster.device_classes.values().rev();
    classes
        .filter(|class| text(class, "spec.extendedResourceName") == resource)
        .max_by_key(|class| text(class, "metadata.creationTimestamp"))
}

/// Whether a class stands for a resource.
pub(in super::super) fn stands_for(class: &Value, resource: &str) -> bool {
    text(class, "spec.extendedResourceName") == resource
        || resource.strip_prefix(OF_CLASS) == Some(class.name())
}

/// Whether to look for devices where a node with these resources has none of the requested resource.
pub(in super::super) fn is_by_devices(resource: &str, allocatable: &Amounts, cluster: &Cluster) -> bool {
    allocatable.get(resource).is_none_or(|amount| *amount <= 0) && class_of(resource, cluster).is_some()
}

/// A pod's extended resources that classes stand for.
pub(super) enum Extended<'a> {
    /// The pod asks for these, in order.
    Asked(&'a Value, Vec<&'a str>),
    /// A claim is left from an earlier try.
    Left(&'a Value),
}

impl<'a> Extended<'a> {
    pub(super) fn of(pod: &'a PodInfo, cluster: &'a Cluster) -> Option<Self> {
        let asked = pod.requests.iter().filter(|(_, amount)| **amount != 0);
        let asked: Vec<&str> = asked
            .map(|(name, _)| name.as_str())
            .filter(|name| class_of(name, cluster).is_some())
            .collect();
        if asked.is_empty() {
            return None;
        }
        let left = cluster
            .device_claims
            .values()
            .find(|claim| is_for(claim, &pod.object));
        Some(left.map_or(Self::Asked(&pod.object, asked), Self::Left))
    }
}

/// Whether a claim was made for the extended resources of a pod.
fn is_for(claim: &Value, pod: &Value) -> bool {
    string_map(claim, "annotations")
        .get(ANNOTATION)
        .is_some_and(|value| value == "true")
        && list(claim, "metadata.ownerReferences").iter().any(|owner| {
            text(owner, "name") == pod.name()
                && text(owner, "uid") == pod.uid()
                && at(owner, "controller").and_then(Value::as_bool) == Some(true)
        })
}

/// The claim for a pod on a node, and which of its requests each container's resources are.
#[derive(Debug, Clone)]
pub(in super::super) struct Special {
    pub claim: Value,
    pub mappings: Vec<Value>,
}

impl Special {
    /// None if the node needs no devices for the pod.
    pub(super) fn of(pod: &Value, asked: &[&str], node: &NodeInfo, cluster: &Cluster) -> Option<Self> {
        let by_devices: Vec<(&str, &str)> = asked
            .iter()
            .filter(|name| is_by_devices(name, &node.allocatable, cluster))
            .filter_map(|name| Some((*name, class_of(name, cluster)?.name())))
            .collect();
        if by_devices.is_empty() {
            return None;
        }
        let (requests, mappings) = requests(pod, &by_devices);
        let claim = json!({
            "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
            "metadata": {
                "name": UNMADE, "generateName": format!("{}-extended-resources-", pod.name()), "namespace": pod.namespace(),
                "annotations": {ANNOTATION: "true"},
                "ownerReferences": [
                    {"apiVersion": "v1", "kind": "Pod", "name": pod.name(), "uid": pod.uid(), "controller": true},
                ],
            },
            "spec": {"devices": {"requests": requests}},
        });
        Some(Self { claim, mappings })
    }

    /// The pod's status for it once the claim has its name.
    pub(in super::super) fn status(&self, name: &str) -> Value {
        json!({"extendedResourceClaimStatus": {"requestMappings": self.mappings, "resourceClaimName": name}})
    }
}

/// A request of devices for a container.
#[derive(Clone)]
struct Wanted<'a> {
    name: String,
    class: &'a str,
    count: i128,
}

/// The request for a resource of a container, and the requests that it uses: those that it may share first.
fn of_container<'a>(
    place: usize,
    container: &Value,
    (resource, class): (&str, &'a str),
    shared: &[Option<Wanted<'a>>],
) -> (Option<Wanted<'a>>, Vec<Value>) {
    let mut mappings = Vec::new();
    let asked = amounts(at(container, "resources.requests"));
    let amount = asked.get(resource).copied().unwrap_or_default();
    if amount == 0 || amount % WHOLE != 0 {
        return (None, mappings);
    }
    let amount = amount / WHOLE;
    let mapping = |request: &str| json!({"containerName": text(container, "name"), "resourceName": resource, "requestName": request});
    let mut count = 0;
    for request in shared.iter().flatten() {
        count += request.count;
        mappings.push(mapping(&request.name));
        if count >= amount {
            return (None, mappings);
        }
    }
    let number = asked.keys().position(|name| name == resource).unwrap_or_default();
    let name = format!("container-{place}-request-{number}");
    mappings.push(mapping(&name));
    let wanted = Wanted {
        name,
        class,
        count: amount - count,
    };
    (Some(wanted), mappings)
}

/// The requests for some resources, each with its class, and the requests that each container uses. Containers and sidecars have
/// requests of their own; init containers use those of containers that run after them, and share one more for the largest need.
fn requests(pod: &Value, resources: &[(&str, &str)]) -> (Vec<Value>, Vec<Value>) {
    let init = list(pod, "spec.initContainers");
    let containers: Vec<&Value> = init.iter().chain(list(pod, "spec.containers")).collect();
    let ends = |place: usize| place < init.len() && text(containers[place], "restartPolicy") != "Always";
    let (short, long): (Vec<usize>, Vec<usize>) = (0..containers.len()).partition(|place| ends(*place));
    let (mut wanted, mut mappings) = (Vec::new(), Vec::new());
    for resource in resources {
        let mut lasting: Vec<Option<Wanted<'_>>> = containers.iter().map(|_| None).collect();
        for place in &long {
            let (request, used) = of_container(*place, containers[*place], *resource, &[]);
            lasting[*place] = request;
            mappings.extend(used);
        }
        let mut most: Option<Wanted<'_>> = None;
        let mut names = BTreeSet::new();
        let mut passing = Vec::new();
        for place in &short {
            let (request, used) = of_container(*place, containers[*place], *resource, &lasting[*place..]);
            passing.extend(used);
            if let Some(request) = request {
                names.insert(request.name.clone());
                if most.as_ref().is_none_or(|most| most.count < request.count) {
                    most = Some(request);
                }
            }
        }
        if let Some(most) = &most {
            for mapping in &mut passing {
                if names.contains(text(mapping, "requestName")) {
                    mapping["requestName"] = json!(most.name);
                }
            }
        }
        mappings.extend(passing);
        wanted.extend(most.into_iter().chain(lasting.into_iter().flatten()));
    }
    wanted.sort_by(|one, other| one.name.cmp(&other.name));
    let requests = wanted.into_iter().map(|request| {
        let count = i64::try_from(request.count).unwrap_or(i64::MAX);
        json!({"name": request.name, "exactly": {
            "deviceClassName": request.class, "allocationMode": "ExactCount", "count": count,
        }})
    });
    (requests.collect(), mappings)
}
