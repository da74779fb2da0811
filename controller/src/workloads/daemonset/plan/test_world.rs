//! Sets, nodes and pods for tests, in a few letters.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Action, Plan, plan};
use crate::api::labels;
use crate::api::v1beta1::DaemonSet;
use crate::pods::test_pods::TestPod;
use crate::pods::{CachedNode, CachedPod, PodAction, Revision, Revisions};
use crate::workloads::daemonset::gates::Gates;
use crate::workloads::daemonset::observe::Observed;

pub(super) const OLD: &str = "s-old";
pub(super) const NEW: &str = "s-new";

pub(super) fn revision(name: &str, image: &str) -> Revision {
    Revision {
        name: name.to_owned(),
        template: json!({ "metadata": { "labels": { "app": "x" } },
            "spec": { "containers": [{ "name": "main", "image": image }] } }),
        claims: None,
    }
}

pub(super) fn revisions(older: &[&str]) -> Revisions {
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

pub(super) fn set(spec: &Value, status: &Value) -> Arc<DaemonSet> {
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
/// in place, `i` old and taken out of service for an update in place, `N` new by the number of its template alone.
pub(super) fn pod(node: &str, index: char, letter: char, second: i64) -> Arc<CachedPod> {
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
        'i' => pod.not_ready().condition(labels::IN_PLACE_READY, "False"),
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
pub(super) fn world(words: &str) -> (Vec<Arc<CachedNode>>, Vec<Arc<CachedPod>>) {
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

pub(super) fn planned(spec: &Value, words: &str, held: &[(&str, u64)], older: &[&str]) -> Plan {
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
pub(super) fn gates() -> Gates {
    Gates::of(|gate| gate != "PreDownloadImageForDaemonSetUpdate")
}

/// `+n1` a pod is made for n1, `-n1a` the first pod of n1 is deleted, `~n1a` it is updated in place, `hold n1a` it is left to its
/// hook or gets a label, `!n1` a pod of n1 has failed.
pub(super) fn shown(action: &Action) -> String {
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
        Action::Pod(PodAction::DeleteRevision { name }) => format!("forget {name}"),
        Action::Pod(action) => one(action),
        Action::Create { nodes } => {
            let nodes: Vec<String> = nodes.iter().map(|node| format!("+{node}")).collect();
            nodes.join(" ")
        }
        Action::Together(all) => all.iter().map(one).collect::<Vec<_>>().join(" "),
    }
}

pub(super) fn actions(plan: &Plan) -> String {
    plan.actions.iter().map(shown).collect::<Vec<_>>().join(" ")
}

pub(super) fn rolling(details: Value) -> Value {
    json!({ "updateStrategy": { "rollingUpdate": details } })
}

pub(super) fn surging() -> Value {
    rolling(json!({ "maxSurge": 1, "maxUnavailable": 0 }))
}

pub(super) fn progressive(partition: Value) -> Value {
    json!({ "scaleStrategy": { "partitionedScaling": true },
        "updateStrategy": { "rollingUpdate": { "partition": partition } } })
}

pub(super) fn held_by_label() -> Value {
    json!({ "lifecycle": { "preDelete": { "labelsHandler": { "hook": "true" } } } })
}

pub(super) fn check(spec: &Value, words: &str, expect: &str) {
    let plan = planned(spec, words, &[], &[OLD]);
    assert_eq!(actions(&plan), expect, "{spec} {words}");
}
