//! The usage of objects, by the names of quotas.

use std::collections::BTreeMap;

use shared_json::{Array, Value};

use super::amounts::{self, Amounts};
use crate::meta::{at, string_map};
use crate::types::Quantity;

/// The resources that pods must set if a quota limits them.
pub const SAID: [&str; 6] = [
    "cpu",
    "limits.cpu",
    "limits.memory",
    "memory",
    "requests.cpu",
    "requests.memory",
];
const BY_CLASS: &str = ".storageclass.storage.k8s.io/";
const DEVICES_BY_CLASS: &str = ".deviceclass.resource.k8s.io/devices";
/// The same devices, by the resource that a class stands for without saying so.
const DEVICES_OF_CLASS: &str = "requests.deviceclass.resource.kubernetes.io/";
/// The most devices of a claim: the count of a request for all.
const DEVICES_MAX: i64 = 32;
/// Kinds that quotas also know by their plural alone.
const COUNTED_BY_PLURAL: [&str; 4] = [
    "configmaps",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
];
const VOLUME_CLASS: &str = "volume.beta.kubernetes.io/storage-class";

/// Whether objects of a kind count towards a quota's limit of this name.
pub fn is_of_kind(name: &str, group: &str, plural: &str) -> bool {
    let counted = match group {
        "" => name.strip_prefix("count/") == Some(plural),
        group => name
            .strip_prefix("count/")
            .and_then(|name| name.strip_suffix(group)?.strip_suffix('.'))
            .is_some_and(|name| name == plural),
    };
    counted
        || match (group, plural) {
            ("", "pods") => is_of_pods(name),
            ("", "services") => matches!(name, "services" | "services.loadbalancers" | "services.nodeports"),
            ("", "persistentvolumeclaims") => {
                let of_class = name.split_once(BY_CLASS).map(|(_, name)| name);
                matches!(
                    of_class.unwrap_or(name),
                    "persistentvolumeclaims" | "requests.storage"
                )
            }
            ("resource.k8s.io", "resourceclaims") => name.ends_with(DEVICES_BY_CLASS),
            ("", plural) => COUNTED_BY_PLURAL.contains(&plural) && name == plural,
            _ => false,
        }
}

/// Whether it is pods that use it.
pub fn is_of_pods(name: &str) -> bool {
    SAID.contains(&name)
        || matches!(name, "pods" | "count/pods" | "ephemeral-storage")
        || name.ends_with(".ephemeral-storage")
        || name.starts_with("requests.") && name.contains('/')
        || name.trim_start_matches("requests.").starts_with("hugepages-")
}

/// The usage of an object, by the names of quotas.
pub fn usage(group: &str, plural: &str, object: &Value) -> Amounts {
    let one = Quantity::count(1);
    let counted = match group {
        "" => format!("count/{plural}"),
        group => format!("count/{plural}.{group}"),
    };
    let mut out = Amounts::from([(counted, one)]);
    if group == "resource.k8s.io" && plural == "resourceclaims" {
        of_resource_claim(object, &mut out);
    }
    if !group.is_empty() {
        return out;
    }
    match plural {
        "pods" => of_pod(object, &mut out),
        "services" => of_service(object, &mut out),
        "persistentvolumeclaims" => of_claim(object, &mut out),
        plural if COUNTED_BY_PLURAL.contains(&plural) => {
            out.insert(plural.to_owned(), one);
        }
        _ => {}
    }
    out
}

fn of_pod(pod: &Value, out: &mut Amounts) {
    if matches!(
        at(pod, "status.phase").and_then(Value::as_str),
        Some("Failed" | "Succeeded")
    ) {
        return;
    }
    out.insert("pods".to_owned(), Quantity::count(1));
    for (name, amount) in amounts::of_pod(pod, "requests") {
        out.insert(format!("requests.{name}"), amount);
        if !name.contains('/') {
            out.insert(name, amount);
        }
    }
    for (name, amount) in amounts::of_pod(pod, "limits") {
        if matches!(name.as_str(), "cpu" | "memory" | "ephemeral-storage") {
            out.insert(format!("limits.{name}"), amount);
        }
    }
}

fn of_claim(claim: &Value, out: &mut Amounts) {
    let one = Quantity::count(1);
    let asked = |path: &str| at(claim, path).map(Quantity::of);
    let storage = asked("spec.resources.requests.storage").map(|asked_for| {
        // What it has already been given counts, if that is more.
        match asked("status.allocatedResources.storage") {
            Some(given) if given.nanos() > asked_for.nanos() => given.rounded_up(),
            _ => asked_for.rounded_up(),
        }
    });
    let class = string_map(claim, "annotations")
        .get(VOLUME_CLASS)
        .or_else(|| at(claim, "spec.storageClassName"))
        .and_then(Value::as_str)
        .filter(|class| !class.is_empty());
    let by_class = class.map(|class| format!("{class}{BY_CLASS}"));
    for prefix in std::iter::once(String::new()).chain(by_class) {
        out.insert(format!("{prefix}persistentvolumeclaims"), one);
        out.extend(storage.map(|storage| (format!("{prefix}requests.storage"), storage)));
    }
}

/// How many devices of each class it may get; of alternatives the one that gets most.
fn of_resource_claim(claim: &Value, out: &mut Amounts) {
    let text = |of: &Value, field: &str| {
        let text = of.get(field).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    let devices = |request: &Value| match text(request, "allocationMode").as_str() {
        "ExactCount" => request.get("count").and_then(Value::as_i64).unwrap_or(0),
        "All" => DEVICES_MAX,
        _ => 0,
    };
    let mut by_class: BTreeMap<String, i64> = BTreeMap::new();
    let requests = at(claim, "spec.devices.requests").and_then(Value::as_array);
    for request in requests.into_iter().flatten() {
        let mut most: BTreeMap<String, i64> = BTreeMap::new();
        let alternatives = request.get("firstAvailable").and_then(Value::as_array);
        let exact = request.get("exactly").filter(|_| alternatives.is_none());
        for wanted in alternatives.into_iter().flatten().chain(exact) {
            let number = most.entry(text(wanted, "deviceClassName")).or_default();
            *number = devices(wanted).max(*number);
        }
        for (class, number) in most {
            *by_class.entry(class).or_default() += number;
        }
    }
    for (class, number) in by_class {
        out.insert(format!("{class}{DEVICES_BY_CLASS}"), Quantity::count(number));
        out.insert(format!("{DEVICES_OF_CLASS}{class}"), Quantity::count(number));
    }
}

fn of_service(service: &Value, out: &mut Amounts) {
    let ports = at(service, "spec.ports")
        .and_then(Value::as_array)
        .map_or(&[][..], Array::as_slice);
    let count = |number: usize| Quantity::count(i64::try_from(number).unwrap_or(i64::MAX));
    let kind = at(service, "spec.type")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let is_balanced = kind == "LoadBalancer";
    let unallocated = at(service, "spec.allocateLoadBalancerNodePorts") == Some(&Value::Bool(false));
    let node_ports = match kind {
        "LoadBalancer" if unallocated => ports.iter().filter(|port| port.get("nodePort").is_some()).count(),
        "LoadBalancer" | "NodePort" => ports.len(),
        _ => 0,
    };
    out.insert("services".to_owned(), count(1));
    out.insert(
        "services.loadbalancers".to_owned(),
        count(usize::from(is_balanced)),
    );
    out.insert("services.nodeports".to_owned(), count(node_ports));
}
