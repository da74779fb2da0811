//! Host ports.

use shared_json::Value;

use super::super::cluster::{HostPort, NodeInfo, host_ports};
use super::{Cycle, Refusal};

/// Whether two ports are the same.
pub(in super::super) fn clash(one: &HostPort, other: &HostPort) -> bool {
    let any = "0.0.0.0";
    one.0 == other.0 && one.2 == other.2 && (one.1 == other.1 || one.1 == any || other.1 == any)
}

/// Whether two pods want the same port of a node.
pub(crate) fn ports_clash(one: &Value, other: &Value) -> bool {
    let wanted = host_ports(one);
    !wanted.is_empty()
        && host_ports(other)
            .iter()
            .any(|port| wanted.iter().any(|wanted| clash(wanted, port)))
}

pub(super) fn concerns(cycle: &Cycle<'_>) -> bool {
    !cycle.pod.ports.is_empty()
}

pub(super) fn filter(cycle: &Cycle<'_>, node: &NodeInfo) -> Option<Refusal> {
    let wanted = &cycle.pod.ports;
    let taken = node.pods.values().flat_map(|pod| &pod.ports);
    taken
        .into_iter()
        .any(|port| wanted.iter().any(|wanted| clash(wanted, port)))
        .then(|| Refusal::resolvable("node(s) didn't have free ports for the requested pod ports"))
}
