//! CloneSets.

use std::collections::{BTreeMap, BTreeSet};

use conformance::recording::environment::Environment;
use rstest::rstest;
use shared_json::{Value, json};

use super::{REVISION, given_up, label, moments, of_kind, recording, simulate, state_at, text};

/// The errors in the end state; `before` are the objects that our manager found, `gone` the pods that the real one gave up then.
fn faults(
    set: &Value,
    before: &[&Value],
    after: &BTreeMap<String, Value>,
    gone: &BTreeSet<String>,
) -> Vec<String> {
    let mut out = Vec::new();
    let replicas = set["spec"]["replicas"].as_u64().unwrap_or(1);
    let strategy = &set["spec"]["updateStrategy"];
    let named = |name: &str| {
        let list = set
            .pointer("/spec/scaleStrategy/podsToDelete")
            .and_then(Value::as_array);
        list.into_iter().flatten().any(|other| other == name)
    };
    let update = text(set, "/status/updateRevision");
    let mut spare = u64::try_from(before.len()).unwrap_or(0);
    for pod in before {
        let name = text(pod, "/metadata/name");
        let marked = label(pod, "apps.kruise.io/specified-delete").is_some() || named(name);
        match after.get(name) {
            None if marked => spare -= 1,
            None if spare > replicas => spare -= 1,
            None if gone.contains(name) => {}
            // Which of the old pods goes first is another question.
            None if strategy["type"] == "ReCreate" && label(pod, REVISION) != Some(update) => {}
            None => out.push(format!("{name} was recreated without need")),
            Some(now) => {
                let image = |pod: &Value| text(pod, "/spec/containers/0/image").to_owned();
                let count = |pod: &Value| {
                    let count = pod.pointer("/status/containerStatuses/0/restartCount");
                    count.and_then(Value::as_u64).unwrap_or(0)
                };
                let restarts = count(now).saturating_sub(count(pod));
                let changes = u64::from(image(pod) != image(now));
                if restarts > changes {
                    out.push(format!(
                        "{name} was restarted {restarts} times for {changes} changes"
                    ));
                }
            }
        }
    }
    let partition = strategy["partition"].as_u64().unwrap_or(0).min(replicas);
    let settled = set["spec"]["lifecycle"].is_null() && strategy["paused"] != true;
    let counters = [("replicas", replicas), ("readyReplicas", replicas)];
    for (counter, wanted) in counters.into_iter().filter(|_| settled) {
        if set["status"][counter].as_u64() != Some(wanted) {
            out.push(format!(
                "{counter} ended as {}, not {wanted}",
                set["status"][counter]
            ));
        }
    }
    let updated = set["status"]["updatedReplicas"].as_u64().unwrap_or(0);
    if settled && updated < replicas - partition {
        out.push(format!(
            "{updated} pods of {replicas} were updated, {partition} were to stay"
        ));
    }
    out
}

#[rstest]
#[case::in_place("1.0.1/s1-cs-demo")]
#[case::in_place_later("1.5.0/s1-cs-demo")]
#[case::demo("1.0.1/s2-demo-clone")]
#[case::grace("1.5.0/cs-inplace-mu1-grace")]
#[case::rollback("1.5.0/cs-rollback-mid-update")]
#[case::recreate("1.5.0/cs-recreate-mu1")]
#[case::surge("1.5.0/cs-recreate-surge1")]
#[case::surge_and_partition("1.5.0/cs-recreate-surge2-mu1-partition1")]
#[case::hooks("1.5.0/cs-lifecycle-inplace-hook")]
#[case::deletion_hook("1.5.0/cs-lifecycle-predelete-label")]
#[case::scale_out("1.5.0/cs-min-ready-scale-mu1")]
fn goes_on_where_it_stopped(#[case] name: &str) {
    let recording = recording(name);
    let environment = Environment::of(&recording);
    let (mut played, mut bad) = (0, Vec::new());
    for at in moments(&recording, "clonesets") {
        let state = state_at(&recording.history[..=at]);
        // The manager had not yet seen a new set, or the user is done.
        if of_kind(&state, "clonesets").len() != 1 || of_kind(&state, "controllerrevisions").is_empty() {
            continue;
        }
        played += 1;
        let after = simulate(&recording, &environment, "clonesets", at, &state).state;
        let set = of_kind(&after, "clonesets")
            .into_values()
            .next()
            .expect("the set");
        let pods = of_kind(&state, "pods");
        let before: Vec<&Value> = pods.values().collect();
        let faults = faults(&set, &before, &of_kind(&after, "pods"), &given_up(&recording, at));
        let at_ms = recording.history[at].at_ms;
        bad.extend(faults.into_iter().map(|fault| format!("at {at_ms} ms: {fault}")));
    }
    assert!(played >= 5, "only {played} moments");
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

/// The checks see the errors that they are there for.
#[test]
fn a_needless_recreation_is_seen() {
    let set = json!({
        "spec": {"replicas": 1, "updateStrategy": {"type": "InPlaceIfPossible"}},
        "status": {"updateRevision": "new", "replicas": 1, "readyReplicas": 1, "updatedReplicas": 1},
    });
    let pod = |restarts: u64| {
        json!({
            "metadata": {"name": "p", "labels": {REVISION: "new"}},
            "spec": {"containers": [{"image": "x"}]},
            "status": {"containerStatuses": [{"restartCount": restarts}]},
        })
    };
    let found = pod(0);
    let check = |after: Option<Value>| {
        let after = after.into_iter().map(|pod| ("p".to_owned(), pod)).collect();
        faults(&set, &[&found], &after, &BTreeSet::new()).len()
    };
    assert_eq!([check(Some(pod(0))), check(Some(pod(1))), check(None)], [0, 1, 1]);
}
