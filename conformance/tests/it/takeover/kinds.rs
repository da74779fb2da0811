//! Advanced StatefulSets, Advanced DaemonSets and SidecarSets: our manager ends where the Go manager ended.

use std::collections::{BTreeMap, BTreeSet};

use conformance::recording::Recording;
use conformance::recording::environment::Environment;
use rstest::rstest;
use shared_json::{Value, json};

use super::{After, State, moments, number_of, of_kind, recording, simulate, state_at, step_end_ms, text};

/// The parts of a status that do not depend on when it was written.
const NOT_COMPARED: [&str; 2] = ["conditions", "observedGeneration"];

/// The index of the last change before a time.
fn last_before(recording: &Recording, end_ms: i64) -> usize {
    let before = recording
        .history
        .iter()
        .take_while(|change| change.at_ms < end_ms);
    before.count().saturating_sub(1)
}

/// How often the container at `index` of a list of statuses was restarted.
fn restarts(pod: &Value, container: &Value) -> u64 {
    let lists = ["/status/initContainerStatuses", "/status/containerStatuses"];
    let statuses = lists
        .iter()
        .filter_map(|list| pod.pointer(list)?.as_array())
        .flatten();
    let status = statuses
        .into_iter()
        .find(|status| status["name"] == container["name"]);
    status
        .and_then(|status| status["restartCount"].as_u64())
        .unwrap_or(0)
}

/// The containers of a pod, init containers first.
fn containers(pod: &Value) -> impl Iterator<Item = &Value> {
    ["/spec/initContainers", "/spec/containers"]
        .into_iter()
        .filter_map(|list| pod.pointer(list)?.as_array())
        .flatten()
}

/// The status of the set, less the parts that are not compared.
fn status(set: &Value) -> Value {
    let mut status = set["status"].clone();
    if let Some(map) = status.as_object_mut() {
        if let Some(revision) = map.remove("daemonSetHash") {
            map.insert("updateRevision".to_owned(), revision);
        }
        for own in NOT_COMPARED {
            map.remove(own);
        }
    }
    status
}

/// The errors of the end state: `before` is the state that our manager found, `wanted` the state in which the recorded step ended.
fn faults(set: &str, before: &State, wanted: &State, after: &After) -> Vec<String> {
    let mut out = Vec::new();
    let (kept, pods) = (of_kind(wanted, "pods"), of_kind(&after.state, "pods"));
    for (name, pod) in of_kind(before, "pods") {
        let uid = text(&pod, "/metadata/uid");
        if kept
            .get(&name)
            .is_none_or(|kept| text(kept, "/metadata/uid") != uid)
        {
            continue;
        }
        let now = pods.get(&name).filter(|now| {
            after
                .uids
                .get(uid)
                .is_some_and(|uid| text(now, "/metadata/uid") == uid)
        });
        let Some(now) = now else {
            out.push(format!("{name} was recreated without need"));
            continue;
        };
        for (old, new) in containers(&pod).zip(containers(now)) {
            let count = restarts(now, new).saturating_sub(restarts(&pod, old));
            let changes = u64::from(old["image"] != new["image"] || old["resources"] != new["resources"]);
            if count > changes {
                out.push(format!(
                    "{} of {name} was restarted {count} times for {changes} changes",
                    new["name"]
                ));
            }
        }
    }
    let names = |state: &State, recorded: &str| -> BTreeSet<String> {
        of_kind(state, recorded).into_keys().collect()
    };
    let same = |recorded: &str| {
        let (wanted, found) = (names(wanted, recorded), names(&after.state, recorded));
        // The pods of other kinds have names of chance.
        if recorded == "pods" && set != "statefulsets.kruise" {
            wanted.len() == found.len()
        } else {
            wanted == found
        }
    };
    for recorded in ["pods", "controllerrevisions"] {
        if !same(recorded) {
            let (wanted, found) = (names(wanted, recorded), names(&after.state, recorded));
            out.push(format!("{recorded} are {found:?}, not {wanted:?}"));
        }
    }
    for (name, recorded) in of_kind(wanted, set) {
        let found = of_kind(&after.state, set);
        let (wanted, found) = (
            status(&recorded),
            found.get(&name).map(status).unwrap_or_default(),
        );
        if wanted != found {
            out.push(format!("the status of {name} is {found}, not {wanted}"));
        }
    }
    out
}

/// Whether the specs of the sets are the same in both states.
fn same_specs(one: &State, other: &State, set: &str) -> bool {
    let specs = |state: &State| -> BTreeMap<String, Value> {
        let sets = of_kind(state, set).into_iter();
        sets.map(|(name, set)| (name, set["spec"].clone())).collect()
    };
    specs(one) == specs(other)
}

#[rstest]
#[case::asts_in_place("statefulsets.kruise", "1.9.0/asts-inplace-ordered-grace")]
#[case::asts_in_place_and_recreate("statefulsets.kruise", "1.9.0/asts-inplace-and-fallback")]
#[case::asts_paused("statefulsets.kruise", "1.9.0/asts-paused")]
#[case::asts_priority("statefulsets.kruise", "1.9.0/asts-unordered-priority")]
#[case::asts_parallel("statefulsets.kruise", "1.9.0/asts-parallel-mu-100pct")]
#[case::asts_reserved("statefulsets.kruise", "1.9.0/asts-reserve-ordinals")]
#[case::asts_demo("statefulsets.kruise", "1.5.0/s3-demo-asts")]
#[case::ads_in_place("daemonsets.kruise", "1.9.0/ads-inplace")]
#[case::ads_partition("daemonsets.kruise", "1.9.0/ads-partition")]
#[case::ads_surge("daemonsets.kruise", "1.9.0/ads-max-surge-1")]
#[case::ads_standard("daemonsets.kruise", "1.5.0/ads-create-standard-update")]
#[case::ss_max_unavailable("sidecarsets", "1.9.0/ss-upgrade-mu1")]
#[case::ss_partition("sidecarsets", "1.9.0/ss-upgrade-partition")]
#[case::ss_hot_upgrade("sidecarsets", "1.9.0/ss-hot-upgrade")]
#[case::ss_selector("sidecarsets", "1.9.0/ss-upgrade-selector")]
fn ends_where_the_go_manager_ended(#[case] set: &str, #[case] name: &str) {
    let recording = recording(name);
    let environment = Environment::of(&recording);
    let (mut played, mut bad) = (0, Vec::new());
    for at in moments(&recording, set) {
        let state = state_at(&recording.history[..=at]);
        let end = last_before(&recording, step_end_ms(&recording, at));
        let wanted = state_at(&recording.history[..=end]);
        // The user has not done all of the step yet, or deletes the set in it.
        let sets = of_kind(&state, set);
        let seen = sets.values().all(|set| set.get("status").is_some());
        if sets.is_empty() || !seen || !same_specs(&state, &wanted, set) {
            continue;
        }
        // No webhook would give new pods their sidecars.
        let pods = |state: &State| of_kind(state, "pods").len();
        if set == "sidecarsets" && pods(&state) != pods(&wanted) {
            continue;
        }
        played += 1;
        let after = simulate(&recording, &environment, set, at, &state);
        let at_ms = recording.history[at].at_ms;
        let faults = faults(set, &state, &wanted, &after);
        bad.extend(faults.into_iter().map(|fault| format!("at {at_ms} ms: {fault}")));
    }
    assert!(played >= 5, "only {played} moments");
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

/// The checks see the errors that they are there for.
#[rstest]
#[case::none(&[], 0)]
#[case::recreated(&[("pods", "sample-0", "/metadata/uid", json!("another"))], 1)]
#[case::restarted(&[("pods", "sample-0", "/status/containerStatuses/0/restartCount", json!(1))], 1)]
#[case::counter(&[("statefulsets.kruise", "sample", "/status/readyReplicas", json!(0))], 1)]
#[case::another_revision(&[("controllerrevisions", "sample-2", "", json!({}))], 1)]
#[case::another_pod(&[("pods", "sample-1", "", json!({}))], 1)]
fn errors_are_seen(#[case] changes: &[(&str, &str, &str, Value)], #[case] count: usize) {
    let pod = json!({
        "metadata": {"uid": "uid"},
        "spec": {"containers": [{"name": "main", "image": "x"}]},
        "status": {"containerStatuses": [{"name": "main", "restartCount": 0}]},
    });
    let key = |recorded: &str, name: &str| (number_of(recorded).expect("a kind"), name.to_owned());
    let before = State::from([
        (key("pods", "sample-0"), pod),
        (key("controllerrevisions", "sample-1"), json!({})),
        (
            key("statefulsets.kruise", "sample"),
            json!({"status": {"readyReplicas": 1}}),
        ),
    ]);
    let mut state = before.clone();
    for (recorded, name, pointer, value) in changes {
        let object = state.entry(key(recorded, name)).or_default();
        *object.pointer_mut(pointer).expect("a field") = value.clone();
    }
    let after = After {
        uids: BTreeMap::from([("uid".to_owned(), "uid".to_owned())]),
        state,
    };
    let found = faults("statefulsets.kruise", &before, &before, &after);
    assert_eq!(found.len(), count, "{found:?}");
}
