//! Random histories of CloneSets: what must never happen does not, after any commit; and they come to rest.
//!
//! `SEATRIAL_HISTORIES=1000 cargo test -p conformance --test it histories` plays a thousand; a failure names its seed, and
//! `SEATRIAL_HISTORY=<seed>` plays that one alone.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use client_kit::{Random, Seed};
use conformance::backend::{Backend, FakeCluster, FakeOptions};
use conformance::history::{Change, ChangeKind};
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

/// How many histories a plain test run plays.
const HISTORIES: u64 = 24;
/// What the user does in one history.
const STEPS: u64 = 8;
/// For so long after the user did something the controller may still act on what it knew before.
const BEHIND_MS: i64 = 50;
/// The labels that hold pods while they are `yes`.
const HELD_BEFORE_DELETE: &str = "hold/delete";
const HELD_BEFORE_UPDATE: &str = "hold/update";
/// After so long everything has come to rest.
const REST: Duration = Duration::from_secs(300);

/// What the set is asked to be.
#[derive(Debug, Clone)]
struct Wish {
    replicas: i64,
    partition: i64,
    max_unavailable: i64,
    max_surge: i64,
    paused: bool,
    image: u64,
    kind: &'static str,
    /// Whether pods are held before they are deleted, and before they are updated in place.
    hooks: (bool, bool),
}

impl Wish {
    fn random(random: &mut Random) -> Self {
        let max_surge = random.below(3);
        let kind = ["ReCreate", "InPlaceIfPossible"][usize::from(random.below(2) == 1)];
        Self {
            replicas: signed(random.between(1, 6)),
            partition: 0,
            max_unavailable: signed(random.between(u64::from(max_surge == 0), 2)),
            max_surge: signed(max_surge),
            paused: false,
            image: 1,
            kind,
            hooks: (false, false),
        }
    }

    fn spec(&self) -> Value {
        let hook = |on: bool, label: &str| {
            let labels = json!({ label: "yes" });
            if on {
                json!({"labelsHandler": labels})
            } else {
                Value::Null
            }
        };
        json!({
            "replicas": self.replicas,
            "lifecycle": {"preDelete": hook(self.hooks.0, HELD_BEFORE_DELETE), "inPlaceUpdate": hook(self.hooks.1, HELD_BEFORE_UPDATE)},
            "template": {"spec": {"containers": [{"name": "main", "image": format!("app:v{}", self.image)}]}},
            "updateStrategy": {
                "type": self.kind, "partition": self.partition, "paused": self.paused,
                "maxUnavailable": self.max_unavailable, "maxSurge": self.max_surge,
            },
        })
    }
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).expect("a small number")
}

/// What the user did: when, and the pods that it touched.
#[derive(Debug, Default)]
struct Deeds {
    at_ms: Vec<i64>,
    deleted: BTreeSet<String>,
    named: Vec<(i64, String)>,
}

struct Player {
    backend: Backend,
    sets: Api<DynamicObject>,
    pods: Api<DynamicObject>,
    deeds: Deeds,
}

impl Player {
    async fn start(seed: u64) -> Self {
        let options = FakeOptions {
            seed,
            ..FakeOptions::default()
        };
        let backend = Backend::Fake(FakeCluster::start(options).await.expect("a cluster"));
        let api = |group: &str, version: &str, kind: &str| {
            let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
            Api::namespaced_with(backend.client(), "default", &resource)
        };
        let (sets, pods) = (
            api("apps.kruise.io", "v1alpha1", "CloneSet"),
            api("", "v1", "Pod"),
        );
        Self {
            backend,
            sets,
            pods,
            deeds: Deeds::default(),
        }
    }

    fn now_ms(&self) -> i64 {
        self.backend.history().last().map_or(0, |change| change.at_ms)
    }

    async fn create(&mut self, wish: &Wish) {
        let mut spec = wish.spec();
        spec["selector"] = json!({"matchLabels": {"app": "a"}});
        spec["template"]["metadata"] =
            json!({"labels": {"app": "a", HELD_BEFORE_DELETE: "yes", HELD_BEFORE_UPDATE: "yes"}});
        let object = json!({
            "apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet", "metadata": {"name": "a"}, "spec": spec,
        });
        let object = serde_json::from_value(object).expect("an object");
        self.sets
            .create(&PostParams::default(), &object)
            .await
            .expect("a set");
    }

    async fn ask(&mut self, patch: Value) {
        self.deeds.at_ms.push(self.now_ms());
        let patch = Patch::Merge(json!({ "spec": patch }));
        self.sets
            .patch("a", &PatchParams::default(), &patch)
            .await
            .expect("a change");
    }

    /// The names of the pods that are there and stay.
    async fn names(&self) -> Vec<String> {
        let list = self
            .pods
            .list(&kube::api::ListParams::default())
            .await
            .expect("a list");
        let stays = list
            .items
            .into_iter()
            .filter(|pod| pod.metadata.deletion_timestamp.is_none());
        stays.filter_map(|pod| pod.metadata.name).collect()
    }

    /// Whoever the hooks are for lets the pods go that are held, and takes those back that were updated.
    async fn let_go(&mut self) {
        let list = self.pods.list(&kube::api::ListParams::default()).await;
        for pod in list.expect("a list").items {
            let labels = pod.metadata.labels.unwrap_or_default();
            let change = match labels.get(STATE).map(String::as_str) {
                Some("PreparingDelete") => (HELD_BEFORE_DELETE, "no"),
                Some("PreparingUpdate") => (HELD_BEFORE_UPDATE, "no"),
                Some("Updated") => (HELD_BEFORE_UPDATE, "yes"),
                _ => continue,
            };
            let patch = Patch::Merge(json!({"metadata": {"labels": {change.0: change.1}}}));
            let name = pod.metadata.name.unwrap_or_default();
            // It may be gone by now.
            let _gone = self.pods.patch(&name, &PatchParams::default(), &patch).await;
        }
    }

    async fn step(&mut self, wish: &mut Wish, random: &mut Random) {
        let names = self.names().await;
        let any = |random: &mut Random| {
            let at = random.below(names.len().max(1) as u64);
            names.get(usize::try_from(at).expect("small")).cloned()
        };
        match random.below(11) {
            8 => wish.hooks = (random.below(2) == 1, random.below(2) == 1),
            9 | 10 => return self.let_go().await,
            0 | 1 => wish.replicas = signed(random.between(1, 7)),
            2 | 3 => wish.image = random.between(1, 3),
            4 => wish.partition = signed(random.below(4)),
            5 => wish.paused = !wish.paused,
            6 => {
                let Some(name) = any(random) else { return };
                self.deeds.at_ms.push(self.now_ms());
                self.deeds.deleted.insert(name.clone());
                // It may be gone by now.
                let _gone = self.pods.delete(&name, &DeleteParams::default()).await;
                return;
            }
            _ => {
                let Some(name) = any(random).filter(|_| wish.replicas > 1) else {
                    return;
                };
                wish.replicas -= 1;
                self.deeds.named.push((self.now_ms(), name.clone()));
                self.ask(json!({"replicas": wish.replicas, "scaleStrategy": {"podsToDelete": [name]}}))
                    .await;
                return;
            }
        }
        self.ask(wish.spec()).await;
    }
}

/// Where a pod says in which state of its life it is.
const STATE: &str = "lifecycle.apps.kruise.io/state";

#[derive(Debug, Clone, PartialEq)]
struct Pod {
    /// Whether it is held before it is deleted.
    held: bool,
    /// Whether it is marked to be deleted.
    marked: bool,
    revision: String,
    image: String,
    images: i64,
    restarts: i64,
    /// Whether it is ready, and not held by a hook: a pod that is held may go at any time.
    available: bool,
    ends: bool,
}

fn pod_of(object: &Value, before: Option<&Pod>) -> Pod {
    let text = |pointer: &str| {
        object
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let image = text("/spec/containers/0/image");
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    let ready = conditions
        .into_iter()
        .flatten()
        .any(|condition| condition["type"] == "Ready" && condition["status"] == "True");
    let changed = before.is_some_and(|before| before.image != image);
    let label = |key: &str| {
        let labels = object.pointer("/metadata/labels");
        labels.and_then(|labels| labels.get(key)?.as_str())
    };
    Pod {
        held: label(STATE) == Some("PreparingDelete"),
        marked: label("apps.kruise.io/specified-delete").is_some(),
        revision: text("/metadata/labels/controller-revision-hash"),
        images: before.map_or(0, |before| before.images) + i64::from(changed),
        image,
        restarts: object
            .pointer("/status/containerStatuses/0/restartCount")
            .and_then(Value::as_i64)
            .unwrap_or(0),
        available: ready && matches!(label(STATE), None | Some("Normal")),
        ends: !text("/metadata/deletionTimestamp").is_empty(),
    }
}

/// What is wrong with a history; nothing if all is well.
fn faults(history: &[Change], deeds: &Deeds) -> Vec<String> {
    let mut out = Vec::new();
    let mut set = json!({});
    let mut pods: BTreeMap<String, Pod> = BTreeMap::new();
    for change in history {
        let name = change.name();
        match change.resource.as_str() {
            "clonesets" => set = Value::clone(&change.object),
            "pods" => {
                let before = pods.get(&name).cloned();
                let after =
                    (change.kind != ChangeKind::Deleted).then(|| pod_of(&change.object, before.as_ref()));
                match &after {
                    Some(after) => pods.insert(name.clone(), after.clone()),
                    None => pods.remove(&name),
                };
                let recent = deeds
                    .at_ms
                    .iter()
                    .any(|at| (0..=BEHIND_MS).contains(&(change.at_ms - at)));
                if !recent {
                    let moment = Moment {
                        set: &set,
                        pods: &pods,
                        deeds,
                    };
                    let fault = moment.fault(&name, before.as_ref(), after.as_ref());
                    out.extend(fault.map(|fault| format!("at {} ms, {name}: {fault}", change.at_ms)));
                }
            }
            _ => {}
        }
    }
    out.extend(
        deeds
            .named
            .iter()
            .filter_map(|(at_ms, name)| overtaken(history, deeds, *at_ms, name)),
    );
    for (index, (_, name)) in deeds.named.iter().enumerate() {
        // A later list replaces the one with its name.
        let waits = pods.get(name).is_some_and(|pod| !pod.ends && !pod.held);
        if waits && index + 1 == deeds.named.len() {
            out.push(format!("{name} was to be deleted, and is there"));
        }
    }
    out
}

/// Whether a pod went for no reason of its own while one waited that was named to go: `name`, at `named_ms`.
fn overtaken(history: &[Change], deeds: &Deeds, named_ms: i64, name: &str) -> Option<String> {
    let mut pods: BTreeMap<String, Pod> = BTreeMap::new();
    for change in history.iter().filter(|change| change.resource == "pods") {
        let other = change.name();
        let before = pods.get(&other).cloned();
        let after = pod_of(&change.object, before.as_ref());
        let goes = |pod: &Pod| pod.ends || pod.held;
        let late = change.at_ms > named_ms + BEHIND_MS;
        let named_waits = pods.get(name).is_some_and(|pod| !goes(pod));
        let begins = before.as_ref().is_some_and(|before| !goes(before)) && goes(&after);
        let reason = after.marked
            || deeds.deleted.contains(&other)
            || deeds.named.iter().any(|(_, named)| *named == other);
        let replaced = deeds
            .named
            .iter()
            .any(|(at, _)| (named_ms + 1..=change.at_ms).contains(at));
        if late && (!named_waits || replaced) {
            return None;
        }
        if late && begins && !reason {
            return Some(format!(
                "at {} ms, {other} goes before {name}, which was named",
                change.at_ms
            ));
        }
        if change.kind == ChangeKind::Deleted {
            pods.remove(&other);
        } else {
            pods.insert(other, after);
        }
    }
    None
}

struct Moment<'a> {
    set: &'a Value,
    pods: &'a BTreeMap<String, Pod>,
    deeds: &'a Deeds,
}

impl Moment<'_> {
    fn number(&self, pointer: &str) -> i64 {
        self.set.pointer(pointer).and_then(Value::as_i64).unwrap_or(0)
    }

    fn count(&self, which: impl Fn(&Pod) -> bool) -> i64 {
        signed(self.pods.values().filter(|pod| !pod.ends && which(pod)).count() as u64)
    }

    fn fault(&self, name: &str, before: Option<&Pod>, after: Option<&Pod>) -> Option<String> {
        let replicas = self.number("/spec/replicas");
        let max_surge = self.number("/spec/updateStrategy/maxSurge");
        let max_unavailable = self.number("/spec/updateStrategy/maxUnavailable");
        let after = after?;
        if after.restarts > after.images {
            return Some(format!(
                "{} restarts for {} changes of the image",
                after.restarts, after.images
            ));
        }
        let update = self
            .set
            .pointer("/status/updateRevision")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let current = self
            .set
            .pointer("/status/currentRevision")
            .and_then(Value::as_str)
            .unwrap_or_default();
        match before {
            None => {
                let all = self.count(|_| true);
                if all > replicas + max_surge {
                    return Some(format!("created as number {all} of {replicas} and {max_surge}"));
                }
            }
            Some(before) => {
                let ours = !self.deeds.deleted.contains(name);
                let taken = before.available && !before.ends && (!after.available || after.ends) && ours;
                let ready = self.count(|pod| pod.available);
                if taken && ready < replicas - max_unavailable {
                    return Some(format!(
                        "taken away, which leaves {ready} of {replicas} ready, {max_unavailable} may be missing"
                    ));
                }
                let partition = self.number("/spec/updateStrategy/partition").min(replicas);
                let updated = self.count(|pod| pod.revision == update && !pod.held);
                if before.revision != after.revision
                    && after.revision == update
                    && update != current
                    && updated > replicas - partition
                {
                    return Some(format!(
                        "updated as number {updated} of {replicas}, {partition} to stay"
                    ));
                }
            }
        }
        None
    }
}

/// A pod that goes before one that was named is seen.
#[test]
fn an_overtaken_pod_is_seen() {
    let pod = |at_ms: i64, kind: ChangeKind, name: &str, labels: Value, ends: bool| Change {
        at_ms,
        resource: "pods".to_owned(),
        kind,
        object: std::sync::Arc::new(json!({"metadata": {
            "name": name, "labels": labels, "deletionTimestamp": ends.then_some("now"),
        }})),
    };
    use ChangeKind::{Added, Modified};
    let begin = |labels: Value| {
        vec![
            pod(1, Added, "p", json!({}), false),
            pod(2, Added, "q", json!({}), false),
            pod(200, Modified, "q", labels, true),
        ]
    };
    let deeds = Deeds {
        named: vec![(100, "p".to_owned())],
        ..Deeds::default()
    };
    assert!(overtaken(&begin(json!({})), &deeds, 100, "p").is_some());
    let marked = begin(json!({"apps.kruise.io/specified-delete": "true"}));
    assert_eq!(overtaken(&marked, &deeds, 100, "p"), None);
}

/// Plays the history of a seed. Gives what was wrong with it.
fn play(seed: u64) -> Vec<String> {
    seeded_entropy::simulate(Seed(seed), || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build();
        runtime.expect("a runtime").block_on(async {
            let mut random = Seed(seed).fork("history").random();
            let mut wish = Wish::random(&mut random);
            let mut player = Player::start(seed).await;
            player.create(&wish).await;
            for _ in 0..STEPS {
                tokio::time::sleep(Duration::from_millis(random.between(200, 9000))).await;
                player.step(&mut wish, &mut random).await;
            }
            wish.paused = false;
            wish.partition = 0;
            wish.hooks = (false, false);
            player.ask(wish.spec()).await;
            tokio::time::sleep(REST).await;
            let history = player.backend.history();
            let mut out = faults(&history, &player.deeds);
            let set = player.sets.get_status("a").await.expect("the set");
            for counter in [
                "replicas",
                "readyReplicas",
                "updatedReplicas",
                "updatedReadyReplicas",
            ] {
                let number = set.data["status"][counter].as_i64().unwrap_or(0);
                if number != wish.replicas {
                    out.push(format!("at the end {counter} is {number}, not {}", wish.replicas));
                }
            }
            out
        })
    })
}

#[test]
fn nothing_that_must_not_happen_happens() {
    let read = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seeds: Vec<u64> = match read("SEATRIAL_HISTORY") {
        Some(seed) => vec![seed],
        None => (0..read("SEATRIAL_HISTORIES").unwrap_or(HISTORIES)).collect(),
    };
    let mut bad = Vec::new();
    for seed in seeds {
        let faults = play(seed);
        if let Some(first) = faults.first() {
            bad.push(format!("seed {seed}: {first} ({} in all)", faults.len()));
        }
    }
    assert!(
        bad.is_empty(),
        "SEATRIAL_HISTORY=<seed> replays one:\n{}",
        bad.join("\n")
    );
}

/// The checks see what they are there for.
#[test]
fn a_fault_is_seen() {
    let pod = |at_ms: i64, kind: ChangeKind, name: &str, revision: &str, ready: &str, restarts: i64| Change {
        at_ms,
        resource: "pods".to_owned(),
        kind,
        object: std::sync::Arc::new(json!({
            "metadata": {"name": name, "labels": {"controller-revision-hash": revision}},
            "spec": {"containers": [{"image": "x"}]},
            "status": {
                "conditions": [{"type": "Ready", "status": ready}],
                "containerStatuses": [{"restartCount": restarts}],
            },
        })),
    };
    let set = |partition: i64| Change {
        at_ms: 0,
        resource: "clonesets".to_owned(),
        kind: ChangeKind::Added,
        object: std::sync::Arc::new(json!({
            "metadata": {"name": "a"},
            "spec": {"replicas": 1, "updateStrategy": {"partition": partition, "maxUnavailable": 0, "maxSurge": 0}},
            "status": {"updateRevision": "new", "currentRevision": "old"},
        })),
    };
    use ChangeKind::{Added, Modified};
    let rows = [
        (vec![set(0), pod(1, Added, "p", "old", "True", 0)], None),
        (
            vec![
                set(0),
                pod(1, Added, "p", "old", "True", 0),
                pod(2, Added, "q", "old", "True", 0),
            ],
            Some("number 2 of 1"),
        ),
        (
            vec![
                set(0),
                pod(1, Added, "p", "old", "True", 0),
                pod(2, Modified, "p", "old", "False", 0),
            ],
            Some("leaves 0 of 1"),
        ),
        (
            vec![
                set(1),
                pod(1, Added, "p", "old", "True", 0),
                pod(2, Modified, "p", "new", "True", 0),
            ],
            Some("1 to stay"),
        ),
        (
            vec![
                set(0),
                pod(1, Added, "p", "old", "True", 0),
                pod(2, Modified, "p", "old", "True", 1),
            ],
            Some("1 restarts for 0"),
        ),
    ];
    for (history, expected) in rows {
        let found = faults(&history, &Deeds::default());
        match expected {
            None => assert!(found.is_empty(), "{found:?}"),
            Some(expected) => assert!(found.iter().any(|fault| fault.contains(expected)), "{found:?}"),
        }
    }
}
