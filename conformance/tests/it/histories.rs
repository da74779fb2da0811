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
        }
    }

    fn spec(&self) -> Value {
        json!({
            "replicas": self.replicas,
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
        spec["template"]["metadata"] = json!({"labels": {"app": "a"}});
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

    async fn step(&mut self, wish: &mut Wish, random: &mut Random) {
        let names = self.names().await;
        let any = |random: &mut Random| {
            let at = random.below(names.len().max(1) as u64);
            names.get(usize::try_from(at).expect("small")).cloned()
        };
        match random.below(8) {
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

#[derive(Debug, Clone, PartialEq)]
struct Pod {
    revision: String,
    image: String,
    images: i64,
    restarts: i64,
    ready: bool,
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
    Pod {
        revision: text("/metadata/labels/controller-revision-hash"),
        images: before.map_or(0, |before| before.images) + i64::from(changed),
        image,
        restarts: object
            .pointer("/status/containerStatuses/0/restartCount")
            .and_then(Value::as_i64)
            .unwrap_or(0),
        ready,
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
    for (at_ms, name) in &deeds.named {
        let victim = |change: &&Change| {
            change.resource == "events"
                && change.at_ms >= *at_ms
                && change.object["reason"] == "SuccessfulDelete"
        };
        let first = history
            .iter()
            .find(victim)
            .map(|change| change.object["message"].to_string());
        // The next deletion may be for another reason if the pod was on its way already.
        if first.is_none()
            && history
                .iter()
                .any(|change| change.resource == "pods" && change.name() == *name)
        {
            out.push(format!("{name} was to be deleted, and nothing was"));
        }
    }
    out
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
                let taken = before.ready && !before.ends && (!after.ready || after.ends) && ours;
                let ready = self.count(|pod| pod.ready);
                if taken && ready < replicas - max_unavailable {
                    return Some(format!(
                        "taken away, which leaves {ready} of {replicas} ready, {max_unavailable} may be missing"
                    ));
                }
                let partition = self.number("/spec/updateStrategy/partition").min(replicas);
                let updated = self.count(|pod| pod.revision == update);
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
