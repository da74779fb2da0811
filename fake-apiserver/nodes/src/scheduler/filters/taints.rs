//! Taints and tolerations.

use machinery::placement::tolerates_all;

use super::super::cluster::NodeInfo;
use super::{Cycle, Refusal};

pub(super) fn filter(cycle: &Cycle<'_>, node: &NodeInfo) -> Option<Refusal> {
    (!tolerates_all(&cycle.pod.object, &node.taints, &["NoSchedule", "NoExecute"]))
        .then(|| Refusal::hopeless("node(s) had untolerated taint(s)"))
}
