//! Rows of the actions of DaemonSets.

use std::sync::LazyLock;

use rstest::rstest;

use jiff::Timestamp;
use machinery::meta::string_map;
use shared_json::json;

use super::super::daemonset_pods::{GENERATION_ANNOTATION, GENERATION_LABEL, any_pod};
use super::*;
use crate::runtime::list;

fn node(name: &str, spec: Value) -> Arc<Value> {
    Arc::new(json!({"metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}}, "spec": spec}))
}

/// A pod in short: name, node (behind `~` if it is only meant for it), revision, and letters: `r` if it is ready, `f` if it has
/// failed, `s` if it has succeeded, `t` if it is going, `g` if it has the number of the set's template.
fn pod(short: &str) -> Arc<Value> {
    let parts: Vec<&str> = short.split(' ').collect();
    let is = |letter: char| parts.get(3).is_some_and(|state| state.contains(letter));
    let phase = match (is('f'), is('s')) {
        (true, _) => "Failed",
        (_, true) => "Succeeded",
        _ => "Running",
    };
    let mut pod = json!({
        "metadata": {"name": parts[0], "labels": {REVISION_LABEL: parts[2]}}, "spec": {"nodeName": parts[1]},
        "status": {
            "phase": phase, "conditions": [{"type": "Ready", "status": if is('r') { "True" } else { "False" }}],
        },
    });
    if let Some(node) = parts[1].strip_prefix('~') {
        let field = json!({"key": "metadata.name", "operator": "In", "values": [node]});
        pod["spec"] = json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchFields": [field]}],
        }}}});
    }
    if is('g') {
        pod["metadata"]["labels"][GENERATION_LABEL] = json!("2");
    }
    if is('t') {
        pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    }
    Arc::new(pod)
}

static SURGE: LazyLock<Value> =
    LazyLock::new(|| json!({"updateStrategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}}));

/// A set's plan where the node `held` has lately had a pod that failed: `+` and a node that gets a pod, `-` and a pod to delete,
/// `!` and one that goes because it failed.
fn planned(set: &Value, nodes: &[Arc<Value>], pods: &[Arc<Value>]) -> Vec<String> {
    let plan = View::new(
        set,
        nodes,
        pods,
        "b",
        Timestamp::UNIX_EPOCH,
        &BTreeSet::from(["held".to_owned()]),
    )
    .plan();
    let created = plan.create.iter().map(|node| format!("+{node}"));
    let deleted = plan.delete.iter().map(|name| {
        let sign = if plan.failed.contains(name) { "!" } else { "-" };
        format!("{sign}{name}")
    });
    created.chain(deleted).collect()
}

#[rstest]
#[case(json!({}), json!({}), &[], &["+n1", "+n2"])]
#[case(json!({}), json!({}), &["a n1 b r"], &["+n2"])]
#[case(json!({}), json!({"unschedulable": true}), &[], &["+n1", "+n2"])]
#[case(json!({}), json!({"taints": [{"key": "k", "effect": "NoSchedule"}]}), &[], &["+n1"])]
#[case(json!({}), json!({"taints": [{"key": "k", "effect": "NoSchedule"}]}), &["a n1 b r", "c n2 b r"], &[])]
#[case(json!({}), json!({"taints": [{"key": "k", "effect": "NoExecute"}]}), &["a n1 b r", "c n2 b r"], &["-c"])]
#[case(json!({"template": {"spec": {"nodeSelector": {"kubernetes.io/hostname": "n2"}}}}), json!({}), &["a n1 b r"], &["+n2", "-a"])]
#[case(json!({}), json!({}), &["a n1 b f", "c n2 b r"], &["!a"])]
#[case(json!({}), json!({}), &["a n1 a r", "c n2 a r"], &["-a"])]
#[case(json!({}), json!({}), &["a n1 b", "c n2 a r"], &[])]
#[case(json!({}), json!({}), &["a n1 a t", "c n2 a r"], &[])]
#[case(json!({}), json!({}), &["a n1 a", "c n2 a"], &["-a", "-c"])]
#[case(json!({"updateStrategy": {"type": "OnDelete"}}), json!({}), &["a n1 a r", "c n2 a r"], &[])]
#[case(json!({"updateStrategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}}), json!({}), &["a n1 a r", "c n2 a r"], &["+n1"])]
#[case(
    json!({"updateStrategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}}),
    json!({}),
    &["a n1 a r", "b n1 b r", "c n2 a r"],
    &["-a"]
)]
#[case(json!({}), json!({}), &["a n1 b r", "c n2 b r", "x n9 b r"], &[])]
#[case(json!({}), json!({}), &["a n1 b r", "c n2 b r", "x ~n9 b"], &["-x"])]
#[case(json!({}), json!({}), &["a n1 b r", "c n2 b r", "x ~n9 b t"], &[])]
#[case(json!({}), json!({}), &["a ~n1 b", "b n1 b r", "c n2 b r"], &["-a"])]
#[case(json!({}), json!({}), &["a ~n1 b", "c n2 b r"], &[])]
#[case(json!({}), json!({}), &["a n1 b s", "c n2 b r"], &["!a"])]
#[case(json!({}), json!({}), &["a n1 b ft", "c n2 b r"], &["+n1"])]
#[case(json!({}), json!({}), &["a n1 b t", "c n2 b r"], &[])]
#[case(json!({}), json!({"taints": [{"key": "k", "effect": "NoExecute"}]}), &["a n1 b r", "c n2 b f"], &["-c"])]
#[case(json!({}), json!({"taints": [{"key": "k", "effect": "NoExecute"}]}), &["a n1 b r", "c n2 b t"], &[])]
#[case(json!({}), json!({"taints": [{"key": "k", "effect": "NoSchedule"}]}), &["a n1 b r", "c n2 b r", "d n2 b r"], &["-d"])]
#[case(json!({}), json!({"taints": [{"key": "k", "effect": "NoSchedule"}]}), &["a n1 b r", "c n2 b f"], &["!c"])]
#[case(
    SURGE.clone(), json!({}), &["a n1 b t", "c n2 b r"], &["+n1"]
)]
#[case(
    SURGE.clone(), json!({}), &["a n1 b f", "c n2 b r"], &["+n1", "!a"]
)]
#[case(
    json!({"updateStrategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}}),
    json!({"taints": [{"key": "k", "effect": "NoSchedule"}]}), &["a n1 b r", "c n2 b t"], &[]
)]
#[case(
    SURGE.clone(), json!({}), &["a n1 a r", "b n1 a r", "c n2 b r"], &["-b"]
)]
#[case(
    SURGE.clone(), json!({}), &["a n1 a", "b n1 b", "c n2 b r"], &["-a"]
)]
#[case(
    SURGE.clone(), json!({}), &["a n1 a r", "b n1 b r", "c n2 b r", "d n1 b r"], &["-d", "-a"]
)]
#[case(json!({"updateStrategy": {"rollingUpdate": {"maxUnavailable": 2}}}), json!({}), &["a n1 a r", "c n2 a r"], &["-a", "-c"])]
#[case(json!({"updateStrategy": {"rollingUpdate": {"maxUnavailable": "50%"}}}), json!({}), &["a n1 a r", "c n2 a r"], &["-a"])]
#[case(json!({}), json!({}), &["a n1 b r", "b n1 b r", "c n2 b r"], &["-b"])]
#[case(
    json!({"template": {"spec": {"tolerations": [{"operator": "Exists"}]}}}),
    json!({"taints": [{"key": "k", "effect": "NoExecute"}]}), &[], &["+n1", "+n2"]
)]
#[case(json!({}), json!({"taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}]}), &[], &["+n1", "+n2"])]
#[case(
    SURGE.clone(), json!({}), &["a n1 a", "c n2 a r"], &["+n1", "+n2"]
)]
#[case(
    SURGE.clone(), json!({}), &["a n1 a r", "b n1 b", "c n2 a r"], &[]
)]
#[case(
    json!({"updateStrategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}}),
    json!({"taints": [{"key": "k", "effect": "NoSchedule"}]}), &["a n1 a r", "b n1 b r", "c n2 a r"], &["-a"]
)]
// The number of the template says that a pod is of it as well as the hash does.
#[case(json!({}), json!({}), &["a n1 a rg", "c n2 a rg"], &[])]
#[case(json!({}), json!({}), &["a n1 a rg", "c n2 a r"], &["-c"])]
#[case(json!({}), json!({}), &["a n1 a g", "c n2 a r"], &[])]
#[case(SURGE.clone(), json!({}), &["a n1 a r", "b n1 a rg", "c n2 b r"], &["-a"])]
// What is on nodes that may keep it but would get none is replaced, too, and counts.
#[case(json!({}), json!({"taints": [{"key": "k", "effect": "NoSchedule"}]}), &["a n1 b r", "c n2 a r"], &["-c"])]
#[case(json!({}), json!({"taints": [{"key": "k", "effect": "NoSchedule"}]}), &["a n1 a r", "c n2 a r"], &["-a"])]
#[case(json!({}), json!({"taints": [{"key": "k", "effect": "NoSchedule"}]}), &["a n1 a r", "c n2 b"], &[])]
#[case(json!({}), json!({"taints": [{"key": "k", "effect": "NoSchedule"}]}), &["a n1 a r", "c n2 a"], &["-c"])]
#[case(json!({}), json!({"taints": [{"key": "k", "effect": "NoSchedule"}]}), &["a n1 a r", "c n2 b t"], &[])]
// So is what is on a node that is gone.
#[case(json!({}), json!({}), &["a n1 b r", "c n2 b r", "x n9 a r"], &["-x"])]
#[case(json!({}), json!({}), &["a n1 a r", "c n2 b r", "x n9 b"], &[])]
#[case(json!({}), json!({}), &["a n1 b r", "c n2 b r", "x n9 a"], &["-x"])]
// An old one whose place is taken by a new one is unavailable until the excess is seen to.
#[case(SURGE.clone(), json!({}), &["a n1 a r", "c n2 b r", "x n9 a r"], &[])]
#[case(SURGE.clone(), json!({}), &["a n1 a r", "c n2 b r", "x n9 b r"], &["+n1"])]
#[case(SURGE.clone(), json!({"taints": [{"key": "k", "effect": "NoSchedule"}]}), &["a n1 b r", "c n2 a"], &["-c"])]
#[case(SURGE.clone(), json!({"taints": [{"key": "k", "effect": "NoSchedule"}]}), &["a n1 b", "c n2 a r"], &[])]
#[case(json!({"updateStrategy": {"rollingUpdate": {"maxUnavailable": 0}}}), json!({}), &["a n1 a r", "c n2 a r"], &["-a"])]
// A pod for no node in particular is left alone.
#[case(json!({}), json!({}), &["a n1 b r", "c n2 b r", "x  b"], &[])]
// Of several that have failed on a node one goes at a time.
#[case(json!({}), json!({}), &["a n1 b f", "b n1 b f", "c n2 b r"], &["!a"])]
#[case(json!({}), json!({}), &["a n1 b s", "b n1 b s", "c n2 b r"], &["!a", "!b"])]
// The template's own node or affinity says where pods are wanted.
#[case(json!({"template": {"spec": {"nodeName": "n2"}}}), json!({}), &["a n1 b r"], &["+n2", "-a"])]
#[case(
    json!({"template": {"spec": {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "NotIn", "values": ["n1"]}]}],
    }}}}}}),
    json!({}), &["a n1 b r"], &["+n2", "-a"]
)]
fn plans(#[case] spec: Value, #[case] second: Value, #[case] pods: &[&str], #[case] expected: &[&str]) {
    let set = json!({"metadata": {"name": "d", "annotations": {GENERATION_ANNOTATION: "2"}}, "spec": spec});
    let nodes = [node("n1", json!({})), node("n2", second)];
    let pods: Vec<Arc<Value>> = pods.iter().map(|short| pod(short)).collect();
    assert_eq!(planned(&set, &nodes, &pods), expected);
}

/// The set's template and how many of its pods are misplaced, the node, and the pods with their owners.
#[rstest]
#[case::to_run(json!({}), 0, json!({}), &[], true)]
#[case::pods_elsewhere_do_not_count(json!({}), 0, json!({}), &["a n2 b r"], true)]
#[case::meant_for_it_does_not_count(json!({}), 0, json!({}), &["a ~n b"], true)]
#[case::runs_already(json!({}), 0, json!({}), &["a n b r"], false)]
#[case::one_that_goes_counts(json!({}), 0, json!({}), &["a n b t"], false)]
#[case::one_that_failed_counts(json!({}), 0, json!({}), &["a n b f"], false)]
#[case::counted_where_it_should_not_be(json!({}), 1, json!({}), &["a n b r"], true)]
#[case::others_counted_where_they_should_not_be(json!({}), 1, json!({}), &["a n2 b r"], true)]
#[case::not_for_it(json!({"nodeSelector": {"l": "x"}}), 0, json!({}), &[], false)]
#[case::not_for_it_but_counted(json!({"nodeSelector": {"l": "x"}}), 1, json!({}), &[], false)]
#[case::no_longer_for_it(json!({"nodeSelector": {"l": "x"}}), 0, json!({}), &["a n b r"], true)]
#[case::no_longer_meant_for_it(json!({"nodeSelector": {"l": "x"}}), 0, json!({}), &["a ~n b"], false)]
#[case::no_longer_for_it_but_elsewhere(json!({"nodeSelector": {"l": "x"}}), 0, json!({}), &["a n2 b r"], false)]
#[case::may_not_come(json!({}), 0, json!({"taints": [{"key": "k", "effect": "NoSchedule"}]}), &[], false)]
#[case::may_not_come_but_stay(json!({}), 0, json!({"taints": [{"key": "k", "effect": "NoSchedule"}]}), &["a n b r"], false)]
#[case::may_not_come_and_is_counted(json!({}), 1, json!({"taints": [{"key": "k", "effect": "NoSchedule"}]}), &["a n b r"], true)]
#[case::may_not_stay(json!({}), 0, json!({"taints": [{"key": "k", "effect": "NoExecute"}]}), &["a n b r"], true)]
#[case::may_not_stay_and_does_not(json!({}), 0, json!({"taints": [{"key": "k", "effect": "NoExecute"}]}), &[], false)]
#[case::rather_not(json!({}), 0, json!({"taints": [{"key": "k", "effect": "PreferNoSchedule"}]}), &[], true)]
#[case::tolerates(
    json!({"tolerations": [{"key": "k", "operator": "Exists"}]}), 0,
    json!({"taints": [{"key": "k", "effect": "NoExecute"}]}), &["a n b r"], false
)]
#[case::tolerates_what_daemons_do(
    json!({}), 0, json!({"taints": [{"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}]}), &["a n b r"], false
)]
#[case::new_and_not_ready(
    json!({}), 0, json!({"taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]}), &[], false
)]
#[case::cordoned(json!({}), 0, json!({"unschedulable": true}), &[], true)]
#[case::no_network(
    json!({}), 0, json!({"taints": [{"key": "node.kubernetes.io/network-unavailable", "effect": "NoSchedule"}]}), &[], false
)]
#[case::needs_no_network(
    json!({"hostNetwork": true}), 0,
    json!({"taints": [{"key": "node.kubernetes.io/network-unavailable", "effect": "NoSchedule"}]}), &[], true
)]
fn which_nodes_concern_a_set(
    #[case] template: Value,
    #[case] misscheduled: i64,
    #[case] spec: Value,
    #[case] pods: &[&str],
    #[case] expected: bool,
) {
    let set = json!({
        "metadata": {"name": "d"}, "spec": {"template": {"spec": template}}, "status": {"numberMisscheduled": misscheduled},
    });
    let pods: Vec<Arc<Value>> = pods.iter().map(|short| pod(short)).collect();
    assert_eq!(concerns(&set, &node("n", spec), &pods), expected);
}

#[rstest]
#[case::failed("a held b f", &[])]
#[case::succeeded("a held b s", &["!a"])]
#[case::runs("a held b r", &[])]
#[case::goes("a held b ft", &["+held"])]
fn failed_pods_that_stay(#[case] short: &str, #[case] expected: &[&str]) {
    let set = json!({"metadata": {"name": "d"}, "spec": {}});
    assert_eq!(planned(&set, &[node("held", json!({}))], &[pod(short)]), expected);
}

/// Neither another node nor another generation has anything to do with a failure.
#[rstest]
#[case("n", 1, true)]
#[case("m", 1, false)]
#[case("n", 2, false)]
fn failures_are_those_of_a_node_and_a_generation(
    #[case] node: &str,
    #[case] generation: i64,
    #[case] waits: bool,
) {
    let set = |generation: i64| json!({"metadata": {"name": "d", "uid": "u"}, "status": {"observedGeneration": generation}});
    let mut known = DaemonSets::default().failures;
    known.note(failure_key(&set(1), "n"), Timestamp::UNIX_EPOCH);
    let delay = known.delay(&failure_key(&set(generation), node), Timestamp::UNIX_EPOCH);
    assert_eq!(delay.is_some(), waits);
}

/// The tolerations of a template, and the number of its pods' tolerations without a time limit.
#[rstest]
#[case::none(json!([]), false, 6)]
#[case::of_the_host(json!([]), true, 7)]
#[case::there_already(json!([{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}]), false, 6)]
#[case::for_a_time(
    json!([{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}]), false, 6
)]
#[case::of_another_effect(json!([{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoSchedule"}]), false, 7)]
#[case::everything(json!([{"operator": "Exists"}]), false, 7)]
fn tolerations(#[case] own: Value, #[case] host: bool, #[case] expected: usize) {
    let set = json!({"metadata": {"name": "d"}, "spec": {"template": {"spec": {"tolerations": own, "hostNetwork": host}}}});
    let pod = any_pod(&set);
    let all = list(&pod, "spec.tolerations");
    assert_eq!(all.len(), expected);
    assert!(
        all.iter()
            .all(|toleration| toleration.get("tolerationSeconds").is_none())
    );
}

/// The template generation in a set's annotation, and its pods' label.
#[rstest]
#[case::a_number("7", Some("7"))]
#[case::with_zeros("007", Some("7"))]
#[case::no_number("x", None)]
fn numbers_of_templates(#[case] annotation: &str, #[case] expected: Option<&str>) {
    let set = json!({"metadata": {"name": "d", "annotations": {GENERATION_ANNOTATION: annotation}}, "spec": {"template": {}}});
    let pod = new_pod(&set, "n", "b");
    let label = string_map(&pod, "labels")
        .get(GENERATION_LABEL)
        .and_then(Value::as_str);
    assert_eq!(label, expected);
}
