//! NetworkPolicies: which connections of pods they allow.

use std::collections::BTreeMap;
use std::net::IpAddr;

use machinery::meta::{ObjectMeta as _, list, string_map, text};
use machinery::selector::matches_selector;
use shared_json::{Map, Value};

use crate::faults::End;
use crate::machine::Protocol;

/// The policies of all namespaces.
#[derive(Debug, Default)]
pub(crate) struct Policies {
    /// The specs, by namespace and name.
    specs: BTreeMap<(String, String), Value>,
    /// The labels of namespaces.
    namespaces: BTreeMap<String, Map>,
}

/// The direction that a policy is asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Ingress,
    Egress,
}

impl Policies {
    pub(crate) fn set(&mut self, object: &Value) {
        let key = (object.namespace().to_owned(), object.name().to_owned());
        let spec = object.get("spec").cloned().unwrap_or_default();
        self.specs.insert(key, spec);
    }

    pub(crate) fn remove(&mut self, object: &Value) {
        let key = (object.namespace().to_owned(), object.name().to_owned());
        self.specs.remove(&key);
    }

    pub(crate) fn set_namespace(&mut self, object: &Value) {
        let labels = string_map(object, "labels").clone();
        self.namespaces.insert(object.name().to_owned(), labels);
    }

    pub(crate) fn remove_namespace(&mut self, object: &Value) {
        self.namespaces.remove(object.name());
    }

    pub(crate) fn has_namespace(&self, name: &str) -> bool {
        self.namespaces.contains_key(name)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.specs.is_empty()
    }

    /// Whether a connection may be made, or a datagram sent, to this port of the called end.
    pub(crate) fn allow(&self, from: &End, to: &End, port: (Protocol, u16)) -> bool {
        if self.is_empty() || from.address == to.address {
            return true;
        }
        // A node always reaches its own pods.
        let is_own_node = from.pod.is_none() && from.node.is_some() && from.node == to.node;
        (is_own_node || self.allows(Direction::Ingress, to, from, (to, port)))
            && self.allows(Direction::Egress, from, to, (to, port))
    }

    /// Whether the policies of one end allow the other one.
    fn allows(&self, direction: Direction, own: &End, other: &End, called: (&End, (Protocol, u16))) -> bool {
        let Some(pod) = &own.pod else { return true };
        let labels = string_map(pod, "labels");
        let mut isolated = false;
        for ((namespace, _), spec) in &self.specs {
            let applies = namespace == pod.namespace()
                && directions(spec).contains(&direction)
                && matches_selector(spec.get("podSelector").or(Some(&Value::from(Map::new()))), labels);
            if !applies {
                continue;
            }
            isolated = true;
            let (field, peers) = match direction {
                Direction::Ingress => ("ingress", "from"),
                Direction::Egress => ("egress", "to"),
            };
            let fits = |rule: &Value| {
                let (peers, ports) = (list(rule, peers), list(rule, "ports"));
                (peers.is_empty() || peers.iter().any(|peer| self.is_peer(peer, namespace, other)))
                    && (ports.is_empty() || ports.iter().any(|port| is_port(port, called)))
            };
            if list(spec, field).iter().any(fits) {
                return true;
            }
        }
        !isolated
    }

    fn is_peer(&self, peer: &Value, namespace: &str, end: &End) -> bool {
        if let Some(block) = peer.get("ipBlock") {
            let is_except = |cidr: &Value| cidr.as_str().is_some_and(|cidr| contains(cidr, end.address));
            return contains(text(block, "cidr"), end.address)
                && !list(block, "except").iter().any(is_except);
        }
        let Some(pod) = &end.pod else { return false };
        let of_namespace = match peer.get("namespaceSelector") {
            None => pod.namespace() == namespace,
            selector => self
                .namespaces
                .get(pod.namespace())
                .is_some_and(|labels| matches_selector(selector, labels)),
        };
        let of_pod = match peer.get("podSelector") {
            None => true,
            selector => matches_selector(selector, string_map(pod, "labels")),
        };
        of_namespace && of_pod
    }
}

/// The directions that a policy isolates.
fn directions(spec: &Value) -> Vec<Direction> {
    let named = list(spec, "policyTypes").iter().filter_map(Value::as_str);
    let named: Vec<Direction> = named
        .filter_map(|name| match name {
            "Ingress" => Some(Direction::Ingress),
            "Egress" => Some(Direction::Egress),
            _ => None,
        })
        .collect();
    match (named.is_empty(), spec.get("egress").is_some()) {
        (false, _) => named,
        (true, true) => vec![Direction::Ingress, Direction::Egress],
        (true, false) => vec![Direction::Ingress],
    }
}

/// Whether a rule's port is the called one. A name is one of the called pod's ports.
fn is_port(rule: &Value, (called, (protocol, port)): (&End, (Protocol, u16))) -> bool {
    let protocol_of = |entry| match text(entry, "protocol") {
        "" => "TCP",
        protocol => protocol,
    };
    if protocol_of(rule) != protocol.name() {
        return false;
    }
    let port = u64::from(port);
    let first = match rule.get("port") {
        None => return true,
        Some(Value::String(name)) => {
            let pod = called.pod.as_deref();
            let containers = pod.map(|pod| list(pod, "spec.containers")).unwrap_or_default();
            let mut ports = containers.iter().flat_map(|container| list(container, "ports"));
            let named = ports
                .find(|entry| text(entry, "name") == name.as_str() && protocol_of(entry) == protocol.name());
            return named.and_then(|entry| entry.get("containerPort")?.as_u64()) == Some(port);
        }
        Some(number) => number.as_u64().unwrap_or_default(),
    };
    let last = rule.get("endPort").and_then(Value::as_u64).unwrap_or(first);
    (first..=last).contains(&port)
}

/// Whether a block of addresses, such as `10.0.0.0/8`, has an address.
fn contains(cidr: &str, address: IpAddr) -> bool {
    let Some((base, length)) = cidr.split_once('/') else {
        return false;
    };
    let (Ok(base), Ok(length)) = (base.parse::<IpAddr>(), length.parse::<u32>()) else {
        return false;
    };
    let (base, address, size) = match (base, address) {
        (IpAddr::V4(base), IpAddr::V4(address)) => {
            (u128::from(base.to_bits()), u128::from(address.to_bits()), 32_u32)
        }
        (IpAddr::V6(base), IpAddr::V6(address)) => (base.to_bits(), address.to_bits(), 128),
        _ => return false,
    };
    let Some(free) = size.checked_sub(length) else {
        return false;
    };
    // All bits are free in a block of length 0.
    (base ^ address).checked_shr(free).unwrap_or_default() == 0
}

#[cfg(test)]
#[path = "policy_tests.rs"]
mod tests;
