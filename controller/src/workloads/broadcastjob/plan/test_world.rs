//! Jobs, nodes and pods for tests, in a few letters.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::outcome::Outcome;
use super::{Done, Plan, Work, plan};
use crate::api::v1beta1::BroadcastJob;
use crate::pods::test_pods::TestPod;
use crate::pods::{CachedNode, CachedPod, PodAction};
use crate::workloads::broadcastjob::observe::Observed;

/// The second at which passes are made.
pub(super) const NOW: i64 = 1000;

/// A job that began at second 990, with these changes of its spec and its status.
pub(super) fn job(spec: &Value, status: &Value) -> Arc<BroadcastJob> {
    let mut object = json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "BroadcastJob",
        "metadata": { "name": "j", "namespace": "default", "uid": "u" },
        "spec": {
            "parallelism": 2_147_483_647,
            "completionPolicy": { "type": "Always" },
            "failurePolicy": { "type": "FailFast" },
            "template": { "spec": { "restartPolicy": "Never" } },
        },
        "status": { "startTime": "1970-01-01T00:16:30Z", "phase": "running", "active": 0, "succeeded": 0, "failed": 0, "desired": 0 },
    });
    crate::kit::json::merge(&mut object, json!({ "spec": spec, "status": status }));
    Arc::new(serde_json::from_value(object).unwrap())
}

/// A pod of a node by a letter: `R` runs, `S` ended well, `F` failed, `T` is on its way out, `1` to `9` runs and was started anew so
/// often, `B` is a pod of two containers of which each was so twice.
fn pod(node: &str, index: char, letter: char) -> Arc<CachedPod> {
    let pod = TestPod::new(&format!("j-{node}{index}")).node(node);
    let pod = match letter {
        'S' => pod.phase("Succeeded"),
        'F' => pod.phase("Failed"),
        'T' => pod.set("/metadata/deletionTimestamp", json!("1970-01-01T00:00:00Z")),
        'B' => {
            let status = |name: &str| json!({ "name": name, "restartCount": 2 });
            let statuses = json!([status("main"), status("side")]);
            pod.set("/spec/restartPolicy", json!("OnFailure"))
                .set("/status/containerStatuses", statuses)
        }
        digit => {
            let pod = pod.restarts(
                digit
                    .to_digit(10)
                    .map_or(0, |count| i32::try_from(count).unwrap()),
            );
            pod.set("/spec/restartPolicy", json!("OnFailure"))
        }
    };
    Arc::new(CachedPod::from(pod.build()))
}

/// Nodes n1, n2, … and their pods, a word each; `-` is a node without pods. Before a colon: `S`, `E` and `P`, a taint that keeps pods
/// away, ends them, or would rather have none; `C`, a node that is cordoned; `L`, one with the label `sel=yes`; `O`, one that had it
/// when its pod was made.
pub(super) fn observed(spec: &Value, status: &Value, words: &str) -> Observed {
    let (mut nodes, mut pods) = (Vec::new(), Vec::new());
    for (number, word) in (1..).zip(words.split_whitespace()) {
        let name = format!("n{number}");
        let (marks, letters) = word.split_once(':').unwrap_or(("", word));
        let effect = |mark: char| match mark {
            'S' => Some("NoSchedule"),
            'E' => Some("NoExecute"),
            'P' => Some("PreferNoSchedule"),
            _ => None,
        };
        let taints: Vec<Value> = marks
            .chars()
            .filter_map(effect)
            .map(|effect| json!({ "key": "k", "effect": effect }))
            .collect();
        let labels = match marks.contains('L') {
            true => json!({ "sel": "yes" }),
            false => json!({}),
        };
        let node = json!({ "metadata": { "name": name, "labels": labels },
            "spec": { "taints": taints, "unschedulable": marks.contains('C') },
            "status": { "allocatable": { "cpu": "1", "pods": "110" } } });
        nodes.push(Arc::new(CachedNode::from(shared_json::Value::from(node))));
        let letters = ('a'..).zip(letters.chars()).filter(|(_, letter)| *letter != '-');
        for (index, letter) in letters {
            let made = pod(&name, index, letter);
            pods.push(match marks.contains('O') || marks.contains('L') {
                true => selected(&made),
                false => made,
            });
        }
    }
    Observed {
        job: job(spec, status),
        nodes,
        pods,
        now: Timestamp::from_second(NOW).unwrap(),
    }
}

/// The pod with the node selector of a template that asks for the label.
fn selected(pod: &CachedPod) -> Arc<CachedPod> {
    let mut pod: crate::pods::pod::Pod = (**pod).clone();
    pod.spec.node_selector = shared_json::json!({ "sel": "yes" });
    Arc::new(CachedPod::from(pod))
}

/// The work of a pass.
pub(super) fn work(spec: &Value, status: &Value, words: &str) -> Work {
    match plan(&observed(spec, status, words)) {
        Plan::Work(work) => *work,
        other => panic!("{other:?}"),
    }
}

/// The outcome once all of it was done.
pub(super) fn outcome(work: &Work) -> Outcome {
    let done = Done {
        deleted: work.delete.len(),
        tried: work.create.len(),
    };
    work.outcome(
        &job(&json!({}), &json!({})),
        done,
        Timestamp::from_second(NOW).unwrap(),
    )
}

/// `+n1` a pod is made for n1, `-n1a` the first pod of n1 is deleted, `!Paused` an event before that and at the end, with its message.
pub(super) fn shown(work: &Work) -> String {
    let event = |action: &PodAction| match action {
        PodAction::Event { reason, message, .. } => format!("!{reason}: {message}"),
        other => format!("{other:?}"),
    };
    let mut parts: Vec<String> = work.events.iter().map(event).collect();
    parts.extend(work.delete.iter().map(|pod| format!("-{}", &pod.name[2..])));
    parts.extend(work.create.iter().map(|node| format!("+{node}")));
    parts.extend(work.failure.iter().map(|failure| format!("failure: {failure}")));
    parts.extend(outcome(work).event.iter().map(event));
    parts.join(" ")
}

/// Phase, and the counts of desired, active, succeeded and failed pods.
pub(super) fn status(work: &Work) -> String {
    let status = outcome(work).status;
    format!(
        "{} {} {} {} {}",
        status.phase, status.desired, status.active, status.succeeded, status.failed
    )
}
