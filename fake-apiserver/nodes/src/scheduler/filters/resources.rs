//! Resources: the requested amounts must be free.

use super::super::cluster::NodeInfo;
use super::super::devices::is_by_devices;
use super::{Cycle, Refusal};

/// How many pods a node takes that does not say.
const PODS_MAX: i128 = 110;
const WHOLE: i128 = 1_000_000_000;

pub(super) fn filter(cycle: &Cycle<'_>, node: &NodeInfo) -> Option<Refusal> {
    let (mut reasons, mut resolvable) = (Vec::new(), true);
    let room = node.allocatable.get("pods").map_or(PODS_MAX, |room| room / WHOLE);
    if i128::try_from(node.pods.len()).unwrap_or(i128::MAX) >= room {
        reasons.push("Too many pods".to_owned());
    }
    for (name, amount) in &cycle.pod.requests {
        if *amount == 0 {
            continue;
        }
        let has = node.allocatable.get(name).copied().unwrap_or_default();
        let used = node.requested.get(name).copied().unwrap_or_default();
        if used + amount > has && !is_by_devices(name, &node.allocatable, cycle.cluster) {
            reasons.push(format!("Insufficient {name}"));
            // More than there is at all: nobody's leaving helps.
            resolvable &= *amount <= has;
        }
    }
    (!reasons.is_empty()).then_some(Refusal {
        reasons,
        by: None,
        resolvable,
        is_error: false,
    })
}
