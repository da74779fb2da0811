//! The cells of the core group's kinds, but pods and volumes.

use std::collections::BTreeSet;

use shared_json::Value;

use super::fields::{Fields, first, or, plain};
use super::pod::or_unknown;
use super::selector::labels;
use super::workloads::containers;
use super::{NONE, UNKNOWN};

/// How many endpoints are listed.
const SHOWN_MAX: usize = 3;
pub(super) const NODE_ROLE_PREFIX: &str = "node-role.kubernetes.io/";

pub(super) fn cell(kind: &str, column: &str, object: Fields<'_>) -> Value {
    match (kind, column) {
        ("Namespace", "Status") => Value::from(object.text("status.phase")),
        ("Node", _) => node(column, object),
        ("ConfigMap", "Data") => Value::from(size(object, "data") + size(object, "binaryData")),
        ("Secret", "Type") => Value::from(object.text("type")),
        ("Secret", "Data") => Value::from(size(object, "data")),
        ("Service", _) => service(column, object),
        ("Endpoints", "Endpoints") => Value::from(endpoints(object)),
        ("ResourceQuota", "Request") => Value::from(quota(object, false)),
        ("ResourceQuota", "Limit") => Value::from(quota(object, true)),
        ("PodTemplate", "Containers") => Value::from(containers(object, "template", "name")),
        ("PodTemplate", "Images") => Value::from(containers(object, "template", "image")),
        ("PodTemplate", "Pod Labels") => Value::from(labels(object, "template.metadata.labels")),
        ("ComponentStatus", _) => component(column, object),
        _ => Value::from(""),
    }
}

fn size(object: Fields<'_>, path: &str) -> usize {
    object.map(path).map_or(0, shared_json::Map::len)
}

fn node(column: &str, node: Fields<'_>) -> Value {
    let address = |kind: &str| {
        let found = node
            .parts("status.addresses")
            .find(|address| address.text("type") == kind);
        or(
            found.map(|address| address.text("address")).unwrap_or_default(),
            NONE,
        )
    };
    match column {
        "Status" => {
            let ready = node
                .parts("status.conditions")
                .find(|c| c.text("type") == "Ready");
            let status = match ready.map(|c| c.text("status")) {
                Some("True") => "Ready",
                Some(_) => "NotReady",
                None => "Unknown",
            };
            let cordoned = if node.flag("spec.unschedulable") {
                ",SchedulingDisabled"
            } else {
                ""
            };
            Value::from(format!("{status}{cordoned}"))
        }
        "Roles" => {
            let roles: BTreeSet<&str> = node
                .map("metadata.labels")
                .into_iter()
                .flatten()
                .filter_map(|(key, value)| match key.as_str() {
                    "kubernetes.io/role" => value.as_str(),
                    key => key.strip_prefix(NODE_ROLE_PREFIX),
                })
                .filter(|role| !role.is_empty())
                .collect();
            or(&roles.into_iter().collect::<Vec<_>>().join(","), NONE)
        }
        "Version" => Value::from(node.text("status.nodeInfo.kubeletVersion")),
        "Internal-IP" => address("InternalIP"),
        "External-IP" => address("ExternalIP"),
        "OS-Image" => or_unknown(node.text("status.nodeInfo.osImage")),
        "Kernel-Version" => {
            let (kernel, machine) = (
                node.text("status.nodeInfo.kernelVersion"),
                node.text("status.nodeInfo.architecture"),
            );
            let kernel = if kernel.is_empty() { UNKNOWN } else { kernel };
            match (kernel, machine) {
                (kernel, "") => Value::from(kernel),
                (kernel, machine) => Value::from(format!("{kernel} ({machine})")),
            }
        }
        "Container-Runtime" => or_unknown(node.text("status.nodeInfo.containerRuntimeVersion")),
        _ => Value::from(""),
    }
}

fn service(column: &str, service: Fields<'_>) -> Value {
    match column {
        "Type" => Value::from(service.text("spec.type")),
        "Cluster-IP" => or(
            service
                .list("spec.clusterIPs")
                .first()
                .and_then(Value::as_str)
                .unwrap_or_default(),
            NONE,
        ),
        "External-IP" => Value::from(external_ip(service)),
        "Port(s)" => {
            let ports: Vec<String> = service
                .parts("spec.ports")
                .map(|port| {
                    match (
                        port.number("port"),
                        port.number("nodePort"),
                        port.text("protocol"),
                    ) {
                        (number, 0, protocol) => format!("{number}/{protocol}"),
                        (number, node, protocol) => format!("{number}:{node}/{protocol}"),
                    }
                })
                .collect();
            or(&ports.join(","), NONE)
        }
        "Selector" => Value::from(labels(service, "spec.selector")),
        _ => Value::from(""),
    }
}

fn external_ip(service: Fields<'_>) -> String {
    let own: Vec<&str> = service
        .list("spec.externalIPs")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    match service.text("spec.type") {
        "ClusterIP" | "NodePort" if own.is_empty() => NONE.to_owned(),
        "ClusterIP" | "NodePort" => own.join(","),
        "LoadBalancer" => {
            let balanced = load_balancers(service);
            let all: Vec<&str> = balanced.iter().map(String::as_str).chain(own).collect();
            if all.is_empty() {
                "<pending>".to_owned()
            } else {
                all.join(",")
            }
        }
        "ExternalName" => service.text("spec.externalName").to_owned(),
        _ => UNKNOWN.to_owned(),
    }
}

/// The addresses or names of load balancers, each once, in order.
pub(super) fn load_balancers(object: Fields<'_>) -> BTreeSet<String> {
    object
        .parts("status.loadBalancer.ingress")
        .map(|ingress| match ingress.text("ip") {
            "" => ingress.text("hostname"),
            ip => ip,
        })
        .filter(|address| !address.is_empty())
        .map(str::to_owned)
        .collect()
}

fn endpoints(object: Fields<'_>) -> String {
    let mut all = Vec::new();
    for subset in object.parts("subsets") {
        let addresses = || subset.parts("addresses").map(|address| address.text("ip"));
        if subset.list("ports").is_empty() {
            all.extend(addresses().map(str::to_owned));
        }
        for port in subset.parts("ports") {
            all.extend(addresses().map(|ip| {
                let number = port.number("port");
                if ip.contains(':') {
                    format!("[{ip}]:{number}")
                } else {
                    format!("{ip}:{number}")
                }
            }));
        }
    }
    if object.list("subsets").is_empty() {
        return NONE.to_owned();
    }
    first(&all, SHOWN_MAX, ",")
}

/// `cpu: 1/2, pods: 3/10`: used and allowed amounts, of limits or of all others.
fn quota(object: Fields<'_>, limits: bool) -> String {
    let used = object.map("status.used");
    let parts: Vec<String> = object
        .map("status.hard")
        .into_iter()
        .flatten()
        .filter(|(name, _)| name.starts_with("limits.") == limits)
        .map(|(name, hard)| {
            let used = used
                .and_then(|used| used.get(name))
                .and_then(plain)
                .unwrap_or_else(|| "0".to_owned());
            format!("{name}: {used}/{}", plain(hard).unwrap_or_default())
        })
        .collect();
    parts.join(", ")
}

fn component(column: &str, object: Fields<'_>) -> Value {
    let healthy = object
        .parts("conditions")
        .find(|condition| condition.text("type") == "Healthy");
    match (column, healthy) {
        ("Status", Some(condition)) if condition.text("status") == "True" => Value::from("Healthy"),
        ("Status", Some(_)) => Value::from("Unhealthy"),
        ("Status", None) => Value::from("Unknown"),
        ("Message", Some(condition)) => Value::from(condition.text("message")),
        ("Error", Some(condition)) => Value::from(condition.text("error")),
        _ => Value::from(""),
    }
}

/// The cells of an event, which is in the form of `v1`.
pub(super) fn event(column: &str, event: Fields<'_>) -> Value {
    let seen = |paths: &[&str]| {
        let path = paths.iter().find(|path| event.has(path));
        Value::from(path.map_or_else(|| UNKNOWN.to_owned(), |path| event.age(path)))
    };
    let either = |a: &str, b: &str| match event.text(a) {
        "" => event.text(b).to_owned(),
        text => text.to_owned(),
    };
    match column {
        "Last Seen" if event.has("series") => seen(&["series.lastObservedTime"]),
        "Last Seen" => seen(&["lastTimestamp", "firstTimestamp", "eventTime"]),
        "First Seen" => seen(&["firstTimestamp", "eventTime"]),
        "Type" => Value::from(event.text("type")),
        "Reason" => Value::from(event.text("reason")),
        "Message" => Value::from(event.text("message").trim()),
        "Object" => {
            let kind = event.text("involvedObject.kind").to_lowercase();
            Value::from(match event.text("involvedObject.name") {
                "" => kind,
                name => format!("{kind}/{name}"),
            })
        }
        "Subobject" => Value::from(event.text("involvedObject.fieldPath")),
        "Source" => {
            let component = either("source.component", "reportingComponent");
            let instance = either("source.host", "reportingInstance");
            Value::from(if instance.is_empty() {
                component
            } else {
                format!("{component}, {instance}")
            })
        }
        "Count" if event.has("series") => Value::from(event.number("series.count")),
        // An event that has happened once has no count in the newer API.
        "Count" if event.number("count") == 0 => Value::from(1),
        "Count" => Value::from(event.number("count")),
        _ => Value::from(""),
    }
}
