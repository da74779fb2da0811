//! Our manager goes on where a Go manager (1.0.1 or 1.5.0) stopped.
//!
//! A recording is cut at many moments: the objects in the cluster then are put into an empty one, and our manager takes over,
//! in the middle of updates in place, grace periods, recreations and scale-outs alike. Whatever the moment, no finished work
//! is done again, and the set reaches its spec.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use client_kit::Seed;
use conformance::history::{Change, ChangeKind};
use conformance::recording::Recording;
use conformance::recording::environment::Environment;
use controller::process::gates::FeatureGates;
use controller::{Manager, Options};
use fake_apiserver::Cluster;
use fake_apiserver::nodes::{Image, ImageRegistry, Kubelet, NodeSpec, Scheduler, Timing};
use jiff::Timestamp;
use kube::api::{Api, DynamicObject, ListParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use rstest::rstest;
use shared_json::{Value, json};
use tokio::task::JoinSet;

use crate::support::fixtures;

/// How many moments of each recording are tried, evenly spread over it.
const MOMENTS: usize = 24;
/// After so long everything has come to rest.
const REST: Duration = Duration::from_secs(200);
const REVISION: &str = "controller-revision-hash";
const KINDS: [(&str, &str, &str, &str); 4] = [
    ("clonesets", "apps.kruise.io", "v1alpha1", "CloneSet"),
    ("controllerrevisions", "apps", "v1", "ControllerRevision"),
    ("persistentvolumeclaims", "", "v1", "PersistentVolumeClaim"),
    ("pods", "", "v1", "Pod"),
];

/// The objects in the cluster, by kind and name.
type State = BTreeMap<(usize, String), Value>;

fn state_at(history: &[Change]) -> State {
    let mut state = State::new();
    for change in history {
        let Some(kind) = KINDS.iter().position(|kind| kind.0 == change.resource) else {
            continue;
        };
        let key = (kind, change.name());
        if change.kind == ChangeKind::Deleted {
            state.remove(&key);
        } else {
            state.insert(key, Value::clone(&change.object));
        }
    }
    // What terminates will be gone in a moment, and cannot be created.
    state.retain(|_, object| object.pointer("/metadata/deletionTimestamp").is_none());
    state
}

fn api(cluster: &Cluster, kind: usize) -> Api<DynamicObject> {
    let (_, group, version, kind) = KINDS[kind];
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    Api::namespaced_with(cluster.client(), "default", &resource)
}

/// Puts the objects into the cluster. Their uids are new, and so are those by which they name their owner.
async fn put(cluster: &Cluster, state: &State) {
    let mut uids: BTreeMap<String, String> = BTreeMap::new();
    for ((kind, name), object) in state {
        let mut object = object.clone();
        let old = object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        let status = object.as_object_mut().and_then(|map| map.remove("status"));
        let metadata = object["metadata"].as_object_mut().expect("metadata");
        for own in ["uid", "resourceVersion", "creationTimestamp", "generation"] {
            metadata.remove(own);
        }
        metadata.insert("namespace".to_owned(), json!("default"));
        let owners = metadata.get_mut("ownerReferences").and_then(Value::as_array_mut);
        for owner in owners.into_iter().flatten() {
            let new = owner["uid"].as_str().and_then(|uid| uids.get(uid)).cloned();
            owner["uid"] = json!(new.expect("an owner that is there"));
        }
        drop_token(&mut object);
        let object: DynamicObject = shared_json::from_value(object).expect("an object");
        let api = api(cluster, *kind);
        let mut created = api
            .create(&PostParams::default(), &object)
            .await
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        uids.insert(old, created.metadata.uid.clone().unwrap_or_default());
        if let Some(mut status) = status {
            // The addresses were those of another network.
            for own in ["podIP", "podIPs", "hostIP", "hostIPs"] {
                status.as_object_mut().and_then(|status| status.remove(own));
            }
            created.data["status"] = status.into();
            if KINDS[*kind].1.is_empty() {
                // The kubelet may have written meanwhile.
                created.metadata.resource_version = None;
            }
            api.replace_status(name, &PostParams::default(), &created)
                .await
                .unwrap_or_else(|error| panic!("the status of {name}: {error}"));
        }
    }
}

/// The volume of the service account's token, which names objects of another cluster.
fn drop_token(object: &mut Value) {
    let keep = |entry: &Value| !text(entry, "/name").starts_with("kube-api-access-");
    if let Some(volumes) = object.pointer_mut("/spec/volumes").and_then(Value::as_array_mut) {
        volumes.retain(keep);
    }
    let containers = object
        .pointer_mut("/spec/containers")
        .and_then(Value::as_array_mut);
    for container in containers.into_iter().flatten() {
        if let Some(mounts) = container.get_mut("volumeMounts").and_then(Value::as_array_mut) {
            mounts.retain(keep);
        }
    }
}

fn text<'v>(object: &'v Value, pointer: &str) -> &'v str {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn label<'v>(object: &'v Value, key: &str) -> Option<&'v str> {
    object.pointer("/metadata/labels")?.get(key)?.as_str()
}

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

async fn take_over(
    at: Timestamp,
    environment: &Environment,
    state: &State,
    gone: &BTreeSet<String>,
) -> Vec<String> {
    let images = ImageRegistry::default();
    for (reference, digest) in &environment.images {
        images.set(reference, Image::preloaded(reference).with_digest(digest));
    }
    let mut builder = Cluster::builder().seed(1).nodes(0).start_time(at);
    for definition in controller::crds(&FeatureGates::default()) {
        builder = builder.object(definition);
    }
    let cluster = builder.start().await.expect("a cluster");
    put(&cluster, state).await;
    // The nodes come up when everything is there: what they write must not be overwritten.
    let mut nodes = JoinSet::new();
    nodes.spawn(Scheduler::new(cluster.client(), cluster.clock()).run());
    for number in 1..=2 {
        let kubelet = Kubelet::new(
            cluster.client(),
            NodeSpec::numbered(number),
            cluster.clock(),
            Seed(1),
            images.clone(),
            Timing::default(),
        );
        nodes.spawn(async move { kubelet.run().await.expect("a node") });
    }
    tokio::time::sleep(Duration::from_secs(3)).await;
    let options = Options {
        clock: cluster.clock(),
        rest: Duration::from_millis(10),
        ..Options::default()
    };
    let manager = Manager::new(cluster.client(), options);
    let manager = tokio::spawn(manager.run(std::future::pending::<()>()));
    tokio::time::sleep(REST).await;
    manager.abort();
    let sets = api(&cluster, 0).list(&ListParams::default()).await.expect("sets");
    let set = shared_json::to_value(sets.items.first().expect("the set")).expect("JSON");
    let pods = api(&cluster, 3).list(&ListParams::default()).await.expect("pods");
    let after = pods.items.into_iter().map(|pod| {
        let name = pod.metadata.name.clone().unwrap_or_default();
        (name, shared_json::to_value(pod).expect("JSON"))
    });
    let before: Vec<&Value> = state
        .iter()
        .filter(|((kind, _), _)| *kind == 3)
        .map(|(_, pod)| pod)
        .collect();
    faults(&set, &before, &after.collect(), gone)
}

/// The pods that the real manager gave up between a moment and the next thing that was done.
fn given_up(recording: &Recording, at: usize) -> BTreeSet<String> {
    let now_ms = recording.history[at].at_ms;
    let step = (0..recording.steps.len()).find(|step| recording.end_ms(*step) > now_ms);
    let end_ms = step.map_or(i64::MAX, |step| recording.end_ms(step));
    let later = recording.history[at..].iter();
    later
        .take_while(|change| change.at_ms < end_ms)
        .filter(|change| {
            change.resource == "pods" && change.object.pointer("/metadata/deletionTimestamp").is_some()
        })
        .map(Change::name)
        .collect()
}

/// The start of the recorder: the set's creation, less the time on the recorder's own clock then.
fn began(recording: &Recording) -> Timestamp {
    let set = recording
        .history
        .iter()
        .find(|change| change.resource == "clonesets");
    let set = set.expect("a set");
    let created = text(&set.object, "/metadata/creationTimestamp");
    let created: Timestamp = created.parse().expect("a time");
    created - Duration::from_millis(u64::try_from(set.at_ms).unwrap_or(0))
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
    let root = fixtures().join("recordings");
    let recording = Recording::read(&root, &root.join(Path::new(name))).expect("a recording");
    let environment = Environment::of(&recording);
    let begins = began(&recording);
    let moments: Vec<usize> = (0..recording.history.len())
        .filter(|at| matches!(recording.history[*at].resource.as_str(), "pods" | "clonesets"))
        .collect();
    let step = moments.len().div_ceil(MOMENTS).max(1);
    let (mut played, mut bad) = (0, Vec::new());
    for at in moments.into_iter().step_by(step) {
        let state = state_at(&recording.history[..=at]);
        let found = |kind: usize| state.keys().filter(|(of, _)| *of == kind).count();
        // The manager had not yet seen a new set, or the user is done.
        if found(0) != 1 || found(1) == 0 {
            continue;
        }
        played += 1;
        let time = begins + Duration::from_millis(u64::try_from(recording.history[at].at_ms).unwrap_or(0));
        let gone = given_up(&recording, at);
        let faults = seeded_entropy::simulate(Seed(1), || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .start_paused(true)
                .build();
            runtime
                .expect("a runtime")
                .block_on(take_over(time, &environment, &state, &gone))
        });
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
