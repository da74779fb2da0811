//! Whether a pod fits a node that runs nothing else.
//!
//! OpenKruise asks this of the pods of jobs that run once on each node: the pods that are there come and go, and do not decide.

use shared_json::{Array, Value, json};

use super::requests::{Count, amounts, requests};
use super::{node_matches, tolerates, tolerates_all};
use crate::fields::{Fields as _, path};

/// The taint of a node that takes no new pods.
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";
/// One whole.
const WHOLE: i128 = 1_000_000_000;

/// Whether `pod` could run on `node` if it were empty: by its name, labels, taints and allocatable resources. A pod that names a node
/// fits no other.
///
/// ```
/// use pod_rules::nodes::empty;
/// use shared_json::json;
///
/// let pod = json!({"spec": {"containers": [{"resources": {"requests": {"cpu": "2"}}}]}});
/// let node = |cpu: &str| json!({"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": cpu}}});
/// assert!(empty::fits(&pod, &node("2")));
/// assert!(!empty::fits(&pod, &node("1")));
/// ```
pub fn fits(pod: &Value, node: &Value) -> bool {
    let named = pod.map("spec").text("nodeName");
    (named.is_empty() || named == node.map("metadata").text("name"))
        && node_matches(pod, node)
        && tolerates_taints(pod, node)
        && has_room(pod, node)
}

fn tolerates_taints(pod: &Value, node: &Value) -> bool {
    let taints = path(node, "/spec/taints")
        .and_then(Value::as_array)
        .map(Array::as_slice)
        .unwrap_or_default();
    let cordon = json!({"key": UNSCHEDULABLE, "effect": "NoSchedule"});
    let mut tolerations = pod.map("spec").list("tolerations").iter();
    tolerates_all(pod, taints, &["NoSchedule", "NoExecute"])
        && (!node.map("spec").is_true("unschedulable")
            || tolerations.any(|toleration| tolerates(toleration, &cordon)))
}

/// Whether the node has all that the pod asks for. A node that does not say how many pods it takes has room for one.
fn has_room(pod: &Value, node: &Value) -> bool {
    let has = amounts(path(node, "/status/allocatable"));
    let takes_one = has.get("pods").is_none_or(|pods| *pods >= WHOLE);
    let asked = requests(pod, Count::Asked);
    takes_one
        && asked
            .iter()
            .all(|(name, amount)| *amount <= has.get(name).copied().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// The spec of a pod, and a node's spec and allocatable resources.
    #[rstest]
    #[case::plain(json!({}), json!({}), json!({}), true)]
    #[case::the_node(json!({"nodeName": "n"}), json!({}), json!({}), true)]
    #[case::another_node(json!({"nodeName": "m"}), json!({}), json!({}), false)]
    #[case::selected(json!({"nodeSelector": {"l": "1"}}), json!({}), json!({}), true)]
    #[case::not_selected(json!({"nodeSelector": {"l": "2"}}), json!({}), json!({}), false)]
    #[case::tainted(json!({}), json!({"taints": [{"key": "k", "effect": "NoSchedule"}]}), json!({}), false)]
    #[case::ended(json!({}), json!({"taints": [{"key": "k", "effect": "NoExecute"}]}), json!({}), false)]
    #[case::preferred(json!({}), json!({"taints": [{"key": "k", "effect": "PreferNoSchedule"}]}), json!({}), true)]
    #[case::tolerated(
        json!({"tolerations": [{"operator": "Exists"}]}), json!({"taints": [{"key": "k", "effect": "NoExecute"}]}), json!({}), true
    )]
    #[case::cordoned(json!({}), json!({"unschedulable": true}), json!({}), false)]
    #[case::cordon_is_tolerated(
        json!({"tolerations": [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"}]}),
        json!({"unschedulable": true}), json!({}), true
    )]
    #[case::room_for_none(json!({}), json!({}), json!({"pods": "0"}), false)]
    #[case::room_for_one(json!({}), json!({}), json!({"pods": "1"}), true)]
    #[case::enough(asks("memory", "1Gi"), json!({}), json!({"memory": "1Gi"}), true)]
    #[case::too_little(asks("memory", "1Gi"), json!({}), json!({"memory": "1Mi"}), false)]
    #[case::a_device_that_it_lacks(asks("example.com/gpu", "1"), json!({}), json!({"cpu": "1"}), false)]
    #[case::none_of_a_device(asks("example.com/gpu", "0"), json!({}), json!({"cpu": "1"}), true)]
    fn nodes(#[case] pod: Value, #[case] node: Value, #[case] allocatable: Value, #[case] expected: bool) {
        let pod = json!({"spec": pod});
        let node = json!({"metadata": {"name": "n", "labels": {"l": "1"}}, "spec": node, "status": {"allocatable": allocatable}});
        assert_eq!(fits(&pod, &node), expected);
    }

    fn asks(name: &str, amount: &str) -> Value {
        json!({"containers": [{"resources": {"requests": {name: amount}}}]})
    }
}
