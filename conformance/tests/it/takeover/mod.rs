//! Our manager goes on where a Go manager stopped.
//!
//! A recording is cut at many moments: the objects in the cluster then are put into an empty one, and our manager takes over,
//! in the middle of updates in place, grace periods, recreations and scale-outs alike. Whatever the moment, no finished work
//! is done again, and the set reaches its spec.

mod clonesets;
mod kinds;

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
use shared_json::{Value, json};
use tokio::task::JoinSet;

use crate::support::fixtures;

/// How many moments of each recording are tried, evenly spread over it.
const MOMENTS: usize = 24;
/// After so long everything has come to rest.
const REST: Duration = Duration::from_secs(200);
const REVISION: &str = "controller-revision-hash";

/// A kind that is put: its name in recordings, its group, its kind, and whether it is in a namespace.
struct Kind {
    recorded: &'static str,
    group: &'static str,
    kind: &'static str,
    namespaced: bool,
}

const fn kind(recorded: &'static str, group: &'static str, kind: &'static str) -> Kind {
    Kind {
        recorded,
        group,
        kind,
        namespaced: true,
    }
}

/// In the order in which they are put: owners come before the objects that they own.
const KINDS: [Kind; 7] = [
    Kind {
        namespaced: false,
        ..kind("sidecarsets", "apps.kruise.io", "SidecarSet")
    },
    kind("clonesets", "apps.kruise.io", "CloneSet"),
    kind("statefulsets.kruise", "apps.kruise.io", "StatefulSet"),
    kind("daemonsets.kruise", "apps.kruise.io", "DaemonSet"),
    kind("controllerrevisions", "apps", "ControllerRevision"),
    kind("persistentvolumeclaims", "", "PersistentVolumeClaim"),
    kind("pods", "", "Pod"),
];

/// The number of a kind in [`KINDS`].
fn number_of(recorded: &str) -> Option<usize> {
    KINDS.iter().position(|kind| kind.recorded == recorded)
}

/// The objects in the cluster, by kind and name.
type State = BTreeMap<(usize, String), Value>;

/// The objects that are there after these changes, but for those that are being deleted.
fn state_at(history: &[Change]) -> State {
    let mut state = State::new();
    for change in history {
        let Some(kind) = number_of(&change.resource) else {
            continue;
        };
        let key = (kind, change.name());
        if change.kind == ChangeKind::Deleted {
            state.remove(&key);
        } else {
            state.insert(key, Value::clone(&change.object));
        }
    }
    // An object that terminates will be gone in a moment, and cannot be created.
    state.retain(|_, object| object.pointer("/metadata/deletionTimestamp").is_none());
    state
}

/// The objects of one kind, by name.
fn of_kind(state: &State, recorded: &str) -> BTreeMap<String, Value> {
    let wanted = number_of(recorded);
    let found = state.iter().filter(|((kind, _), _)| Some(*kind) == wanted);
    found
        .map(|((_, name), object)| (name.clone(), object.clone()))
        .collect()
}

fn api(cluster: &Cluster, kind: usize, version: &str, namespace: &str) -> Api<DynamicObject> {
    let kind = &KINDS[kind];
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(kind.group, version, kind.kind));
    if kind.namespaced {
        Api::namespaced_with(cluster.client(), namespace, &resource)
    } else {
        Api::all_with(cluster.client(), &resource)
    }
}

/// The version of an object.
fn version(object: &Value) -> String {
    let version = text(object, "/apiVersion");
    version.rsplit('/').next().unwrap_or(version).to_owned()
}

/// Puts the objects into the cluster, and returns their new uids by the old ones. Those by which they name their owner are
/// changed alike.
async fn put(cluster: &Cluster, namespace: &str, state: &State) -> BTreeMap<String, String> {
    let mut uids: BTreeMap<String, String> = BTreeMap::new();
    for ((kind, name), object) in state {
        let mut object = object.clone();
        let api = api(cluster, *kind, &version(&object), namespace);
        let old = text(&object, "/metadata/uid").to_owned();
        let status = object.as_object_mut().and_then(|map| map.remove("status"));
        let metadata = object["metadata"].as_object_mut().expect("metadata");
        for own in ["uid", "resourceVersion", "creationTimestamp", "generation"] {
            metadata.remove(own);
        }
        let owners = metadata.get_mut("ownerReferences").and_then(Value::as_array_mut);
        for owner in owners.into_iter().flatten() {
            let new = owner["uid"].as_str().and_then(|uid| uids.get(uid)).cloned();
            owner["uid"] = json!(new.expect("an owner that is there"));
        }
        drop_token(&mut object);
        let object: DynamicObject = shared_json::from_value(object).expect("an object");
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
            // The generations begin anew.
            if let Some(observed) = status.get_mut("observedGeneration") {
                *observed = json!(created.metadata.generation);
            }
            created.data["status"] = status.into();
            if KINDS[*kind].group.is_empty() {
                // The kubelet may have written meanwhile.
                created.metadata.resource_version = None;
            }
            api.replace_status(name, &PostParams::default(), &created)
                .await
                .unwrap_or_else(|error| panic!("the status of {name}: {error}"));
        }
    }
    uids
}

/// Removes the volume of the service account's token, which names objects of another cluster.
fn drop_token(object: &mut Value) {
    let keep = |entry: &Value| !text(entry, "/name").starts_with("kube-api-access-");
    if let Some(volumes) = object.pointer_mut("/spec/volumes").and_then(Value::as_array_mut) {
        volumes.retain(keep);
    }
    for list in ["/spec/initContainers", "/spec/containers"] {
        let containers = object.pointer_mut(list).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            if let Some(mounts) = container.get_mut("volumeMounts").and_then(Value::as_array_mut) {
                mounts.retain(keep);
            }
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

/// The cluster after our manager has been at work in it.
struct After {
    /// The new uids of the objects that were put, by their old ones.
    uids: BTreeMap<String, String>,
    /// All objects of the kinds of [`KINDS`].
    state: State,
}

/// Puts the objects into an empty cluster, has our manager work there until all is at rest, and looks.
async fn take_over(at: Timestamp, namespace: &str, environment: &Environment, state: &State) -> After {
    let images = ImageRegistry::default();
    for (reference, digest) in &environment.images {
        images.set(reference, Image::preloaded(reference).with_digest(digest));
    }
    let mut builder = Cluster::builder().seed(1).nodes(0).start_time(at);
    for name in ["kruise-system", namespace]
        .into_iter()
        .filter(|name| *name != "default")
    {
        builder =
            builder.object(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}));
    }
    for definition in controller::crds(&FeatureGates::default()) {
        builder = builder.object(definition);
    }
    let cluster = builder.start().await.expect("a cluster");
    let uids = put(&cluster, namespace, state).await;
    // The nodes come up when everything is there: what they write must not be overwritten.
    let mut nodes = JoinSet::new();
    nodes.spawn(Scheduler::new(cluster.client(), cluster.clock()).run());
    for number in 1..=environment.nodes().unwrap_or(2).max(2) {
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
    let mut found = State::new();
    for (kind, of) in KINDS.iter().enumerate() {
        let versions = state.iter().filter(|((other, _), _)| *other == kind);
        let version = match of.kind {
            // The earlier version has the revision's name under another name, and no webhook converts here.
            "DaemonSet" => Some("v1beta1".to_owned()),
            _ if of.group == "apps.kruise.io" => versions.map(|(_, object)| version(object)).next(),
            _ => Some("v1".to_owned()),
        };
        let Some(version) = version else { continue };
        let objects = api(&cluster, kind, &version, namespace);
        let objects = objects.list(&ListParams::default()).await;
        for object in objects.expect("a list").items {
            let name = object.metadata.name.clone().unwrap_or_default();
            found.insert((kind, name), shared_json::to_value(object).expect("JSON"));
        }
    }
    After { uids, state: found }
}

/// The recording `name` of `fixtures/recordings`.
fn recording(name: &str) -> Recording {
    let root = fixtures().join("recordings");
    Recording::read(&root, &root.join(Path::new(name))).expect("a recording")
}

/// The moments of a recording that are tried: places in its history, at changes of pods and of the set.
fn moments(recording: &Recording, set: &str) -> Vec<usize> {
    let moments: Vec<usize> = (0..recording.history.len())
        .filter(|at| {
            let resource = recording.history[*at].resource.as_str();
            resource == "pods" || resource == set
        })
        .collect();
    let step = moments.len().div_ceil(MOMENTS).max(1);
    moments.into_iter().step_by(step).collect()
}

/// The time of the start of the recorder: the set's creation, less the time on the recorder's own clock then.
fn began(recording: &Recording, set: &str) -> Timestamp {
    let set = recording.history.iter().find(|change| change.resource == set);
    let set = set.expect("a set");
    let created: Timestamp = text(&set.object, "/metadata/creationTimestamp")
        .parse()
        .expect("a time");
    created - Duration::from_millis(u64::try_from(set.at_ms).unwrap_or(0))
}

/// [`take_over`] at one moment of a recording, in virtual time.
fn simulate(recording: &Recording, environment: &Environment, set: &str, at: usize, state: &State) -> After {
    let at_ms = u64::try_from(recording.history[at].at_ms).unwrap_or(0);
    let time = began(recording, set) + Duration::from_millis(at_ms);
    seeded_entropy::simulate(Seed(1), || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build();
        runtime
            .expect("a runtime")
            .block_on(take_over(time, &recording.namespace, environment, state))
    })
}

/// When the step ends in which something happened.
fn step_end_ms(recording: &Recording, at: usize) -> i64 {
    let now_ms = recording.history[at].at_ms;
    let step = (0..recording.steps.len()).find(|step| recording.end_ms(*step) > now_ms);
    step.map_or(i64::MAX, |step| recording.end_ms(step))
}

/// The names of the pods that the real manager gave up between a moment and the next thing that was done.
fn given_up(recording: &Recording, at: usize) -> BTreeSet<String> {
    let end_ms = step_end_ms(recording, at);
    let later = recording.history[at..].iter();
    later
        .take_while(|change| change.at_ms < end_ms)
        .filter(|change| {
            change.resource == "pods" && change.object.pointer("/metadata/deletionTimestamp").is_some()
        })
        .map(Change::name)
        .collect()
}
