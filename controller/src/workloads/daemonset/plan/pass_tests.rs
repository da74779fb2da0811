//! Rows: a set, the nodes with their pods in a few letters, and the actions of one pass.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use rstest::rstest;
use serde_json::{Value, json};

use super::*;
use crate::api::labels;
use crate::api::v1beta1::DaemonSet;
use crate::pods::test_pods::TestPod;
use crate::pods::{CachedNode, CachedPod, Revision};

const OLD: &str = "s-old";
const NEW: &str = "s-new";

fn revision(name: &str, image: &str) -> Revision {
    Revision {
        name: name.to_owned(),
        template: json!({ "metadata": { "labels": { "app": "x" } },
            "spec": { "containers": [{ "name": "main", "image": image }] } }),
        claims: None,
    }
}

fn revisions(older: &[&str]) -> Revisions {
    let update = revision(NEW, "v2");
    let mut all: Vec<Revision> = older.iter().map(|name| revision(name, "v1")).collect();
    all.push(update.clone());
    Revisions {
        update: update.clone(),
        current: update,
        all,
        collision_count: 0,
    }
}

fn set(spec: &Value, status: &Value) -> Arc<DaemonSet> {
    let mut object = json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "DaemonSet",
        "metadata": { "name": "s", "namespace": "default", "uid": "u", "generation": 7,
            "annotations": { "deprecated.daemonset.template.generation": "3" } },
        "spec": { "selector": { "matchLabels": { "app": "x" } }, "template": {},
            "updateStrategy": { "type": "RollingUpdate", "rollingUpdate": { "rollingUpdateType": "Standard" } } },
        "status": status,
    });
    crate::kit::json::merge(&mut object, json!({ "spec": spec }));
    Arc::new(serde_json::from_value(object).unwrap())
}

/// A pod of a node by a letter: `R` new and ready, `O` old and ready, `u` and `o` the same and not ready, `y` new and ready since
/// two seconds, `F` old and failed, `f` new and failed, `T` old and being deleted, `t` the same and new, `D` old and held before its deletion, `d` the same
/// and let go by the hook, `E` new and held, `P` old, pending and on its way to the node, `g` old, ready and not made to be updated
/// in place, `N` new by the number of its template alone.
fn pod(node: &str, index: char, letter: char, second: i64) -> Arc<CachedPod> {
    let pod = TestPod::new(&format!("s-{node}{index}"))
        .node(node)
        .created_at(second)
        .ready_at(0);
    let pod = match letter {
        'R' | 'u' | 'y' | 't' | 'E' | 'f' => pod.label(labels::REVISION_HASH, "new"),
        _ => pod.label(labels::REVISION_HASH, "old"),
    };
    let gone = json!("1970-01-01T00:00:00Z");
    let pod = match letter {
        'u' | 'o' => pod.not_ready(),
        'y' => pod.ready_at(998),
        'F' | 'f' => pod.phase("Failed"),
        'T' | 't' => pod.set("/metadata/deletionTimestamp", gone),
        'D' | 'E' => pod.state("PreparingDelete").label("hook", "true"),
        'd' => pod.state("PreparingDelete"),
        'P' => pod
            .phase("Pending")
            .set("/spec/nodeName", json!(""))
            .set("/spec/affinity", json!({ "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{ "matchFields": [{ "key": "metadata.name", "operator": "In", "values": [node] }] }] } } })),
        'g' => pod.set("/spec/readinessGates", json!([])),
        'N' => pod.label(labels::TEMPLATE_GENERATION, "3"),
        _ => pod,
    };
    Arc::new(CachedPod::from(pod.build()))
}

/// Nodes n1, n2, … and their pods, a word each; `-` is a node without pods. Before a colon: `S` and `E`, a taint that keeps pods
/// away or ends them; `C`, a node that is cordoned; `L`, one with the label `sel=yes`; `X`, one that is not there any more.
fn world(words: &str) -> (Vec<Arc<CachedNode>>, Vec<Arc<CachedPod>>) {
    let (mut nodes, mut pods) = (Vec::new(), Vec::new());
    for (number, word) in (1..).zip(words.split(' ')) {
        let name = format!("n{number}");
        let (marks, letters) = word.split_once(':').unwrap_or(("", word));
        let taints: Vec<Value> = marks
            .chars()
            .filter_map(|mark| match mark {
                'S' => Some(json!({ "key": "k", "effect": "NoSchedule" })),
                'E' => Some(json!({ "key": "k", "effect": "NoExecute" })),
                'C' => Some(json!({ "key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule" })),
                _ => None,
            })
            .collect();
        let labels = match marks.contains('L') {
            true => json!({ "sel": "yes" }),
            false => json!({}),
        };
        if !marks.contains('X') {
            let node =
                json!({ "metadata": { "name": name, "labels": labels }, "spec": { "taints": taints } });
            nodes.push(Arc::new(CachedNode::from(shared_json::Value::from(node))));
        }
        let letters = ('a'..).zip((1..).zip(letters.chars()));
        let letters = letters.filter(|(_, (_, letter))| *letter != '-');
        pods.extend(letters.map(|(index, (second, letter))| pod(&name, index, letter, second)));
    }
    (nodes, pods)
}

fn planned(spec: &Value, words: &str, held: &[(&str, u64)], older: &[&str]) -> Plan {
    let (nodes, pods) = world(words);
    let held = held
        .iter()
        .map(|(node, seconds)| ((*node).to_owned(), Duration::from_secs(*seconds)));
    let observed = Observed {
        set: set(spec, &json!({ "observedGeneration": 6 })),
        nodes,
        pods,
        revisions: Vec::new(),
        jobs: Vec::new(),
        held: held.collect(),
        now: Timestamp::from_second(1000).unwrap(),
    };
    plan(&observed, &revisions(older), gates())
}

/// The gates but that for early downloads.
fn gates() -> Gates {
    Gates::of(|gate| gate != "PreDownloadImageForDaemonSetUpdate")
}

/// `+n1` a pod is made for n1, `-n1a` the first pod of n1 is deleted, `~n1a` it is updated in place, `hold n1a` it is left to its
/// hook, `!n1` a pod of n1 has failed.
fn shown(action: &Action) -> String {
    let one = |action: &PodAction| match action {
        PodAction::DeletePod { pod, .. } => format!("-{}", &pod.name[2..]),
        PodAction::UpdateInPlace { pod, .. } => format!("~{}", &pod.name[2..]),
        PodAction::PatchPod { pod, .. } => format!("hold {}", &pod.name[2..]),
        PodAction::PatchPodStatus { pod, .. } => format!("status {}", &pod.name[2..]),
        PodAction::Event { message, .. } => {
            let node = message.split(" on node ").nth(1).unwrap();
            format!("!{}", node.split(',').next().unwrap())
        }
        PodAction::Fail(message) => format!("fail: {message}"),
        other => format!("{other:?}"),
    };
    match action {
        Action::Pod(action) => one(action),
        Action::Create { nodes } => {
            let nodes: Vec<String> = nodes.iter().map(|node| format!("+{node}")).collect();
            nodes.join(" ")
        }
        Action::Together(all) => all.iter().map(one).collect::<Vec<_>>().join(" "),
    }
}

fn actions(plan: &Plan) -> String {
    plan.actions.iter().map(shown).collect::<Vec<_>>().join(" ")
}

fn rolling(details: Value) -> Value {
    json!({ "updateStrategy": { "rollingUpdate": details } })
}

fn surging() -> Value {
    rolling(json!({ "maxSurge": 1, "maxUnavailable": 0 }))
}

fn progressive(partition: Value) -> Value {
    json!({ "scaleStrategy": { "partitionedScaling": true },
        "updateStrategy": { "rollingUpdate": { "partition": partition } } })
}

fn held_by_label() -> Value {
    json!({ "lifecycle": { "preDelete": { "labelsHandler": { "hook": "true" } } } })
}

fn check(spec: &Value, words: &str, expect: &str) {
    let plan = planned(spec, words, &[], &[OLD]);
    assert_eq!(actions(&plan), expect, "{spec} {words}");
}

#[rstest]
#[case::row_1(json!({}), "- - -", "+n1 +n2 +n3")]
#[case::row_2(rolling(json!({ "partition": 1 })), "- - -", "+n1 +n2 +n3")]
#[case::row_3(progressive(json!(1)), "- - -", "+n1 +n2")]
#[case::row_4_by_the_nodes_there_are(progressive(json!("50%")), "- - -", "+n1 +n2")]
#[case::row_5(progressive(json!("50%")), "R - -", "+n2")]
#[case::row_6(progressive(json!(5)), "- - -", "")]
#[case::progressive_and_all(progressive(json!(0)), "- - -", "+n1 +n2 +n3")]
#[case::progressive_on_delete(
    json!({ "scaleStrategy": { "partitionedScaling": true }, "updateStrategy": { "type": "OnDelete" } }), "- -", "+n1 +n2"
)]
#[case::progressive_counts_new_pods_alone(progressive(json!(1)), "O - -", "+n2 +n3")]
#[case::row_7(json!({ "burstReplicas": 1 }), "- - -", "+n1")]
#[case::row_8(json!({ "burstReplicas": "50%" }), "- - - - -", "+n1 +n2")]
#[case::row_9_one_at_least(json!({ "burstReplicas": "10%" }), "- - - - -", "+n1")]
#[case::burst_of_deletions(json!({ "burstReplicas": 1 }), "E:R E:R -", "+n3 -n1a")]
#[case::row_10(json!({}), "S:R R", "")]
#[case::row_10_without_a_pod(json!({}), "S:- R", "")]
#[case::row_11(json!({}), "E:R R", "-n1a")]
#[case::row_12(json!({}), "C:- R", "+n1")]
#[case::row_13(json!({}), "T R", "")]
#[case::row_14(surging(), "T R", "+n1")]
#[case::row_14_where_none_may_run(surging(), "S:T R", "")]
#[case::row_15(json!({}), "RR R", "-n1b")]
#[case::row_16(json!({}), "PR R", "-n1a")]
#[case::row_17(surging(), "ou R", "-n1a")]
#[case::row_18(
    json!({ "minReadySeconds": 5, "updateStrategy": { "rollingUpdate": { "maxSurge": 1, "maxUnavailable": 0 } } }), "Oy R", ""
)]
#[case::surge_old_goes_when_the_new_serves(surging(), "OR R", "-n1a")]
#[case::surge_keeps_the_oldest_of_each(surging(), "OOuu R", "-n1b -n1d")]
#[case::surge_of_one_kind(surging(), "RR R", "-n1b")]
#[case::surge_is_off_for_on_delete(
    json!({ "updateStrategy": { "type": "OnDelete", "rollingUpdate": { "maxSurge": 1 } } }), "T OR", "-n2b"
)]
#[case::row_19(json!({}), "F R", "!n1 -n1a")]
#[case::failed_beside_a_running_one(json!({}), "FR R", "!n1 -n1a")]
#[case::failed_with_surge(surging(), "F R", "!n1 +n1 -n1a")]
#[case::one_failed_pod_of_a_node_at_a_time(json!({}), "FF R", "!n1 -n1a")]
#[case::failed_where_none_may_stay(json!({}), "E:F R", "-n1a")]
#[case::on_its_way_to_a_node_that_is_gone(json!({}), "R X:P", "-n2a")]
#[case::on_a_node_that_is_gone(json!({}), "R X:R", "")]
#[case::on_its_way(rolling(json!({ "paused": true })), "P R", "")]
#[case::held_before_its_deletion(held_by_label(), "E:D R", "")]
#[case::let_go_by_the_hook(held_by_label(), "d R", "-n1a")]
#[case::the_hook_is_gone(json!({}), "D R", "-n1a")]
fn a_pod_for_each_node_that_fits(#[case] spec: Value, #[case] words: &str, #[case] expect: &str) {
    check(&spec, words, expect);
}

#[rstest]
#[case::row_20(rolling(json!({ "maxUnavailable": 1 })), "O O O O", "-n4a")]
#[case::row_21(rolling(json!({ "maxUnavailable": "30%" })), "O O O O O", "-n5a -n4a")]
#[case::row_22(rolling(json!({ "maxUnavailable": 2 })), "O o O O", "-n2a -n4a -n3a")]
#[case::row_23(rolling(json!({ "maxUnavailable": 1 })), "u O O O", "")]
#[case::row_24(rolling(json!({ "maxUnavailable": 2 })), "T O O O", "-n4a")]
#[case::row_25(rolling(json!({ "maxUnavailable": 4, "partition": 1 })), "O O O O", "-n4a -n3a -n2a")]
#[case::row_26(rolling(json!({ "maxUnavailable": 4, "partition": 1 })), "R O O O", "-n4a -n3a")]
#[case::row_27(rolling(json!({ "maxUnavailable": 4, "partition": "50%" })), "O O O O", "-n4a -n3a")]
#[case::row_28(rolling(json!({ "maxUnavailable": 4, "partition": "100%" })), "O O O O", "")]
#[case::row_29(rolling(json!({ "maxUnavailable": 4, "partition": "34%" })), "O O O", "-n3a -n2a")]
#[case::row_30(rolling(json!({ "maxUnavailable": 4, "selector": { "matchLabels": { "sel": "yes" } } })), "O L:O O O", "-n2a")]
#[case::row_31(
    rolling(json!({ "maxUnavailable": 4, "partition": 3, "selector": { "matchLabels": { "sel": "yes" } } })), "O L:O L:O O", "-n3a"
)]
#[case::row_32(rolling(json!({ "maxUnavailable": 4, "selector": {} })), "O O O O", "-n4a -n3a -n2a -n1a")]
#[case::selector_of_none(
    rolling(json!({ "maxUnavailable": 4, "selector": { "matchExpressions": [{ "key": "sel", "operator": "In" }] } })),
    "L:O O", ""
)]
#[case::selector_that_is_none(
    rolling(json!({ "selector": { "matchExpressions": [{ "key": "sel", "operator": "Like" }] } })), "O O",
    "fail: invalid spec.updateStrategy.rollingUpdate.selector: "
)]
#[case::default_of_one(json!({}), "O O", "-n2a")]
#[case::neither_may_be_zero(rolling(json!({ "maxUnavailable": 0, "maxSurge": 0 })), "O O", "-n2a")]
#[case::paused(rolling(json!({ "maxUnavailable": 2, "paused": true })), "O O", "")]
#[case::paused_makes_pods(rolling(json!({ "paused": true })), "O -", "+n2")]
#[case::on_delete(json!({ "updateStrategy": { "type": "OnDelete" } }), "O O", "")]
#[case::nothing_is_updated_where_a_pod_is_made(rolling(json!({ "maxUnavailable": 2 })), "O -", "+n2")]
#[case::new_by_the_number_of_the_template(rolling(json!({ "maxUnavailable": 2 })), "N O", "-n2a")]
#[case::where_a_pod_stays_but_none_would_run(rolling(json!({ "maxUnavailable": 1 })), "S:O R", "-n1a")]
#[case::on_a_node_that_is_gone(rolling(json!({ "maxUnavailable": 4 })), "R X:O", "")]
#[case::a_node_beyond_the_partition_does_not_count(rolling(json!({ "maxUnavailable": 1, "partition": 1 })), "o O O", "-n3a")]
#[case::burst(json!({ "burstReplicas": 1, "updateStrategy": { "rollingUpdate": { "maxUnavailable": 3 } } }), "O O O", "-n3a")]
fn pods_are_replaced(#[case] spec: Value, #[case] words: &str, #[case] expect: &str) {
    let got = actions(&planned(&spec, words, &[], &[OLD]));
    match expect.strip_prefix("fail: ") {
        Some(_) => assert!(got.starts_with(expect), "{got}"),
        None => assert_eq!(got, expect, "{spec} {words}"),
    }
}

#[rstest]
#[case::row_33(json!({}), "O O O D", "")]
#[case::row_33_with_room(rolling(json!({ "maxUnavailable": 2 })), "O O O D", "-n3a")]
#[case::a_new_one_that_is_held(rolling(json!({ "maxUnavailable": 1 })), "E O", "")]
#[case::a_new_one_that_is_held_beside_an_old_one(
    rolling(json!({ "maxSurge": 1, "maxUnavailable": 0 })), "OE O", ""
)]
fn held_pods_take_room(#[case] spec: Value, #[case] words: &str, #[case] expect: &str) {
    let mut spec = spec;
    crate::kit::json::merge(&mut spec, held_by_label());
    check(&spec, words, expect);
}

#[rstest]
#[case::row_34(surging(), "O O O", "+n3")]
#[case::row_35(rolling(json!({ "maxSurge": "50%", "maxUnavailable": 0 })), "O O O", "+n3 +n2")]
#[case::row_36(surging(), "o O O", "+n1 +n3")]
#[case::row_37(surging(), "OR", "-n1a")]
#[case::row_38(surging(), "Ou O", "")]
#[case::the_next_one(surging(), "R O O", "+n3")]
#[case::partition(rolling(json!({ "maxSurge": 3, "maxUnavailable": 0, "partition": 2 })), "O O O", "+n3")]
#[case::selector(
    rolling(json!({ "maxSurge": 3, "maxUnavailable": 0, "selector": { "matchLabels": { "sel": "yes" } } })), "L:O O O", "+n1"
)]
#[case::paused(rolling(json!({ "maxSurge": 3, "maxUnavailable": 0, "paused": true })), "O O O", "")]
fn new_pods_come_beside_old_ones(#[case] spec: Value, #[case] words: &str, #[case] expect: &str) {
    check(&spec, words, expect);
}

#[rstest]
#[case::row_39(json!({ "maxUnavailable": 1 }), "O O", "~n2a")]
#[case::row_39_the_next(json!({ "maxUnavailable": 1 }), "O R", "~n1a")]
#[case::row_39_not_before_the_first_serves(json!({ "maxUnavailable": 1 }), "O u", "")]
#[case::row_40(json!({ "maxUnavailable": 1 }), "R g", "-n2a")]
#[case::both(json!({ "maxUnavailable": 2 }), "g O", "~n2a -n1a")]
#[case::all_at_once(json!({ "maxUnavailable": "100%" }), "O O", "~n2a ~n1a")]
fn pods_are_updated_in_place(#[case] details: Value, #[case] words: &str, #[case] expect: &str) {
    let mut details = details;
    details["rollingUpdateType"] = json!("InPlaceIfPossible");
    check(&rolling(details), words, expect);
}

#[test]
fn an_unknown_old_revision_is_replaced() {
    let spec = rolling(json!({ "rollingUpdateType": "InPlaceIfPossible" }));
    assert_eq!(actions(&planned(&spec, "O", &[], &[])), "-n1a");
}

#[test]
fn a_burst_limits_updates_in_place() {
    let spec = json!({ "burstReplicas": 1,
        "updateStrategy": { "rollingUpdate": { "rollingUpdateType": "InPlaceIfPossible", "maxUnavailable": 2 } } });
    check(&spec, "O O", "~n2a");
}

/// The state of a pod and its label name the hash alone.
#[test]
fn an_update_in_place_names_the_hash() {
    let spec = rolling(json!({ "rollingUpdateType": "InPlaceIfPossible" }));
    let plan = planned(&spec, "O", &[], &[OLD]);
    let Some(Action::Together(all)) = plan.actions.first() else {
        panic!("{plan:?}");
    };
    let [PodAction::UpdateInPlace { patch, revision, .. }] = all.as_slice() else {
        panic!("{all:?}");
    };
    let metadata = &patch["metadata"];
    assert_eq!(revision, NEW);
    assert_eq!(metadata["labels"], json!({ labels::REVISION_HASH: "new" }));
    let state = metadata["annotations"][labels::IN_PLACE_STATE].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(state).unwrap()["revision"], "new");
}

#[rstest]
#[case::by_label(json!({ "labelsHandler": { "app": "x" } }), "E:R R", "hold n1a")]
#[case::not_this_one(json!({ "labelsHandler": { "app": "y" } }), "E:R R", "-n1a")]
#[case::replaced(json!({ "labelsHandler": { "app": "x" } }), "O O", "hold n2a")]
fn a_hook_holds_pods_before_their_deletion(#[case] hook: Value, #[case] words: &str, #[case] expect: &str) {
    check(&json!({ "lifecycle": { "preDelete": hook } }), words, expect);
}

/// The nodes whose failed pods stay and for how long, and when the set is looked at again.
#[rstest]
#[case::row_18(
    json!({ "minReadySeconds": 5, "updateStrategy": { "rollingUpdate": { "maxSurge": 1 } } }), "Oy R", &[], Some(3001)
)]
#[case::row_19_at_once_again(json!({}), "f R", &[("n1", 1)], Some(1000))]
#[case::the_shortest(json!({}), "f f", &[("n1", 4), ("n2", 2)], Some(2000))]
#[case::not_yet_available(json!({ "minReadySeconds": 60 }), "y R", &[], Some(60_000))]
#[case::nothing_changes_by_itself(json!({}), "u R", &[], None)]
fn looks_again(
    #[case] spec: Value,
    #[case] words: &str,
    #[case] held: &[(&str, u64)],
    #[case] expect_ms: Option<u128>,
) {
    let plan = planned(&spec, words, held, &[OLD]);
    assert_eq!(actions(&plan), "");
    assert_eq!(plan.requeue.map(|wait| wait.as_millis()), expect_ms);
}

/// Desired, current, ready, available, updated and misscheduled, and the generation that has been seen to its end.
#[rstest]
#[case::all_well(json!({}), "R R", [2, 2, 2, 2, 2, 0], 7)]
#[case::a_pod_is_made(json!({}), "R -", [2, 1, 1, 1, 1, 0], 6)]
#[case::old_and_not_ready(rolling(json!({ "paused": true })), "O u", [2, 2, 1, 1, 1, 0], 7)]
#[case::row_10(json!({}), "S:R R", [1, 1, 1, 1, 1, 1], 7)]
#[case::not_yet_available(json!({ "minReadySeconds": 60 }), "y R", [2, 2, 2, 1, 2, 0], 7)]
#[case::the_first_pod_counts_be_it_on_its_way_out(json!({}), "TR R", [2, 2, 2, 2, 1, 0], 7)]
#[case::new_by_the_number_of_the_template(json!({}), "N R", [2, 2, 2, 2, 2, 0], 7)]
#[case::on_a_node_that_is_gone(json!({}), "R X:R", [1, 1, 1, 1, 1, 0], 7)]
fn counts(#[case] spec: Value, #[case] words: &str, #[case] expect: [i32; 6], #[case] generation: i64) {
    let status = planned(&spec, words, &[], &[OLD]).status;
    let got = [
        status.desired_number_scheduled,
        status.current_number_scheduled,
        status.number_ready,
        status.number_available,
        status.updated_number_scheduled,
        status.number_misscheduled,
    ];
    assert_eq!((got, status.observed_generation), (expect, generation));
    assert_eq!(status.number_unavailable, got[0] - got[3]);
    assert_eq!(status.update_revision, "new");
}

/// Old revisions, oldest first; `s-old` has a pod.
#[rstest]
#[case::row_41(1, &["s-r1", "s-old"], &["s-r1"])]
#[case::row_42(1, &["s-old", "s-r2"], &["s-r2"])]
#[case::within_the_limit(2, &["s-r1", "s-old"], &[])]
#[case::none_is_kept(0, &["s-r1", "s-old", "s-r2"], &["s-r1", "s-r2"])]
#[case::lowest_first(2, &["s-r1", "s-r2", "s-r3"], &["s-r1"])]
fn old_revisions_go(#[case] limit: i32, #[case] older: &[&str], #[case] expect: &[&str]) {
    let spec = json!({ "revisionHistoryLimit": limit, "updateStrategy": { "type": "OnDelete" } });
    assert_eq!(planned(&spec, "O R", &[], older).history, expect);
}

/// The status of a pass that waits for its caches belongs to the generation that was seen before.
#[test]
fn a_pass_that_waits_writes_the_numbers_alone() {
    let (nodes, pods) = world("R -");
    let observed = Observed {
        set: set(&json!({}), &json!({ "observedGeneration": 6 })),
        nodes,
        pods,
        revisions: Vec::new(),
        jobs: Vec::new(),
        held: BTreeMap::new(),
        now: Timestamp::from_second(1000).unwrap(),
    };
    let plan = status_alone(&observed, &revisions(&[]), gates());
    assert_eq!(plan.actions, []);
    let status = plan.status;
    assert_eq!((status.observed_generation, status.number_ready), (6, 1));
}

/// The status's desired and updated number and its hash, and the jobs that are made (`container image`), `ignored` or `deleted`.
#[rstest]
#[case::of_a_new_revision(json!({ "partition": 1 }), [3, 3], "old", &["main v2"])]
#[case::on_its_way(json!({ "partition": 1 }), [3, 1], "new", &["main v2"])]
#[case::done(json!({ "partition": 1 }), [3, 3], "new", &["deleted"])]
#[case::all_at_once(json!({ "maxUnavailable": "100%" }), [3, 0], "old", &["ignored"])]
#[case::one_by_one(json!({ "maxUnavailable": 1 }), [3, 0], "old", &["main v2"])]
#[case::the_first_of_all(json!({ "maxUnavailable": 1 }), [0, 0], "", &["ignored"])]
#[case::the_first_of_all_with_a_partition(json!({ "partition": 1 }), [0, 0], "", &["main v2"])]
fn images_are_pulled_early(
    #[case] details: Value,
    #[case] counts: [i32; 2],
    #[case] hash: &str,
    #[case] expect: &[&str],
) {
    let (nodes, pods) = world("O O O");
    let status = json!({ "desiredNumberScheduled": counts[0], "updatedNumberScheduled": counts[1], "updateRevision": hash });
    let job = json!({ "metadata": { "name": "job" }, "spec": { "image": "v2" } });
    let observed = Observed {
        set: set(&rolling(details), &status),
        nodes,
        pods,
        revisions: Vec::new(),
        jobs: vec![Arc::new(serde_json::from_value(job).unwrap())],
        held: BTreeMap::new(),
        now: Timestamp::from_second(1000).unwrap(),
    };
    let plan = plan(&observed, &revisions(&[OLD]), Gates::of(|_| true));
    let early = plan.actions.iter().filter_map(|action| match action {
        Action::Pod(PodAction::CreatePullJob { object, image }) => {
            let name = object["metadata"]["name"].as_str().unwrap();
            Some(format!("{} {image}", name.strip_prefix("s-new-").unwrap()))
        }
        Action::Pod(PodAction::MarkRevision { label, .. }) if *label == labels::PREDOWNLOAD_IGNORED => {
            Some("ignored".to_owned())
        }
        Action::Pod(PodAction::DeletePullJob { .. }) => Some("deleted".to_owned()),
        _ => None,
    });
    assert_eq!(early.collect::<Vec<_>>(), expect);
}

#[test]
fn a_set_without_updates_pulls_nothing_early() {
    let (nodes, pods) = world("O");
    let spec = json!({ "updateStrategy": { "type": "OnDelete", "rollingUpdate": null } });
    let observed = Observed {
        set: set(&spec, &json!({})),
        nodes,
        pods,
        revisions: Vec::new(),
        jobs: Vec::new(),
        held: BTreeMap::new(),
        now: Timestamp::from_second(1000).unwrap(),
    };
    let plan = plan(&observed, &revisions(&[OLD]), Gates::of(|_| true));
    let [Action::Pod(PodAction::MarkRevision { label, .. })] = plan.actions.as_slice() else {
        panic!("{plan:?}");
    };
    assert_eq!(*label, labels::PREDOWNLOAD_IGNORED);
}
