//! The user, which changes the set now and then.

use std::collections::BTreeMap;

use client_kit::Random;
use fake_apiserver::faults::{Effect, Fault, FaultHandle};
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use shared_json::{Value, json};

use super::deeds::Deeds;
use super::errand;
use super::pod::{MARK, STATE};
use super::wish::{HELD_BEFORE_DELETE, HELD_BEFORE_SERVICE, HELD_BEFORE_UPDATE, STORAGE_CLASS, Wish};
use crate::action::Kubectl;
use crate::backend::{Backend, FakeCluster, FakeOptions};
use crate::error::Error;
use crate::history::Change;

/// The set's name.
const SET: &str = "a";

pub(super) struct Player {
    backend: Backend,
    kubectl: Kubectl,
    sets: Api<DynamicObject>,
    pods: Api<DynamicObject>,
    pub(super) deeds: Deeds,
    /// The faults, and whether each breaks off watches.
    weather: Vec<(bool, FaultHandle)>,
}

fn refused(action: &str) -> impl Fn(kube::Error) -> Error {
    let action = action.to_owned();
    move |error| Error::refused(&action, None, &error)
}

impl Player {
    pub(super) async fn start(seed: u64, wish: &dyn Wish) -> Result<Self, Error> {
        let options = FakeOptions {
            seed,
            environment: wish.environment(),
            ..FakeOptions::default()
        };
        let backend = Backend::Fake(FakeCluster::start(options).await?);
        let api = |group: &str, version: &str, kind: &str, of_the_cluster: bool| {
            let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
            match of_the_cluster {
                true => Api::all_with(backend.client(), &resource),
                false => Api::namespaced_with(backend.client(), "default", &resource),
            }
        };
        let (group, version) = wish.api_version().split_once('/').unwrap_or_default();
        let sets = api(group, version, wish.kind(), wish.is_of_the_cluster());
        let pods = api("", "v1", "Pod", false);
        Ok(Self {
            kubectl: Kubectl::new(backend.client(), "default"),
            backend,
            sets,
            pods,
            deeds: Deeds::default(),
            weather: Vec::new(),
        })
    }

    /// Has these faults happen to the manager from now on.
    pub(super) fn weather(&mut self, faults: Vec<Fault>) {
        let added = faults.into_iter().filter_map(|fault| {
            let breaks_watches = matches!(fault.effect, Effect::EndWatch | Effect::ExpireWatch);
            Some((breaks_watches, self.backend.add_fault(fault)?))
        });
        self.weather = added.collect();
    }

    /// Nothing goes wrong any more. Gives how often something has.
    pub(super) fn fair_weather(&mut self) -> u32 {
        let (now, now_ms) = (tokio::time::Instant::now(), self.now_ms());
        let mut struck = 0;
        for (breaks_watches, fault) in self.weather.drain(..) {
            struck += fault.strikes();
            if breaks_watches {
                let ago = fault.struck_at().into_iter().map(|at| now.duration_since(at));
                let ago_ms = ago.map(|ago| i64::try_from(ago.as_millis()).unwrap_or(i64::MAX));
                self.deeds
                    .blinded_at_ms
                    .extend(ago_ms.map(|ago_ms| now_ms - ago_ms));
            }
            fault.lift();
        }
        struck
    }

    pub(super) fn history(&self) -> Vec<Change> {
        self.backend.history()
    }

    fn now_ms(&self) -> i64 {
        self.backend.clock().now().as_millisecond() - self.backend.began().as_millisecond()
    }

    pub(super) async fn create(&mut self, wish: &dyn Wish) -> Result<(), Error> {
        let class = json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": STORAGE_CLASS},
            "provisioner": "example.com/disks",
        });
        for object in [class, wish.object()].into_iter().chain(wish.after()) {
            let created = self.kubectl.create(&object).await;
            created.map_err(|error| Error::Refused {
                action: "create".to_owned(),
                origin: None,
                why: error.to_string(),
            })?;
        }
        Ok(())
    }

    /// Asks something of the set. One that has come to its end cannot be asked.
    pub(super) async fn ask(&mut self, patch: Value) -> Result<(), Error> {
        self.deeds.at_ms.push(self.now_ms());
        let patch = Patch::Merge(json!({ "spec": patch }));
        match self.sets.patch(SET, &PatchParams::default(), &patch).await {
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
            asked => asked.map(drop).map_err(refused("patch")),
        }
    }

    async fn list(&self) -> Result<Vec<DynamicObject>, Error> {
        let list = self.pods.list(&ListParams::default()).await;
        list.map(|list| list.items).map_err(refused("list"))
    }

    /// The names and the uids of the pods that are there and stay.
    async fn staying(&self) -> Result<Vec<(String, String)>, Error> {
        let pods = self.list().await?.into_iter();
        let pods = pods.filter(|pod| {
            pod.metadata.deletion_timestamp.is_none() && pod.data["status"]["phase"] != "Failed"
        });
        Ok(pods
            .filter_map(|pod| Some((pod.metadata.name?, pod.metadata.uid?)))
            .collect())
    }

    /// One of these pods.
    async fn any(&self, random: &mut Random) -> Result<Option<(String, String)>, Error> {
        let names = self.staying().await?;
        let at = random.below(u64::try_from(names.len()).unwrap_or(1).max(1));
        Ok(names.get(usize::try_from(at).unwrap_or(0)).cloned())
    }

    /// Plays the owner of the hooks: releases the held pods, and holds those again that were updated.
    async fn let_go(&mut self) -> Result<(), Error> {
        for pod in self.list().await? {
            let labels: BTreeMap<String, String> = pod.metadata.labels.unwrap_or_default();
            let change = match labels.get(STATE).map(String::as_str) {
                Some("PreparingNormal") => (HELD_BEFORE_SERVICE, "yes"),
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
        Ok(())
    }

    /// One deed, of the set or of a pod.
    pub(super) async fn step(&mut self, wish: &mut dyn Wish, random: &mut Random) -> Result<(), Error> {
        let deed = random.below(14);
        if deed < 8 {
            let pods = self.staying().await?;
            let pods: Vec<&str> = pods.iter().map(|(name, _)| name.as_str()).collect();
            if let Some(errands) = wish.errands(&pods, random) {
                let now_ms = self.now_ms();
                errand::carry_out(&self.kubectl, &errands).await;
                let done = errands.into_iter().map(|errand| (now_ms, errand));
                self.deeds.errands.extend(done);
                return Ok(());
            }
            wish.change(random);
            return self.ask(wish.spec()).await;
        }
        if deed < 10 {
            return self.let_go().await;
        }
        let Some((name, uid)) = self.any(random).await? else {
            return Ok(());
        };
        match deed {
            10 | 11 => match wish.without(&name) {
                Some(asked) => {
                    self.deeds.named.push((self.now_ms(), name.clone()));
                    self.ask(asked).await?;
                }
                None => self.delete(&name, &uid).await,
            },
            12 => {
                let patch = Patch::Merge(json!({"metadata": {"labels": {MARK: "true"}}}));
                // It may be gone by now, as below.
                let _gone = self.pods.patch(&name, &PatchParams::default(), &patch).await;
            }
            13 => {
                self.by_hand(&uid);
                let patch = Patch::Merge(json!({"status": {"phase": "Failed", "reason": "Evicted"}}));
                let _gone = self
                    .pods
                    .patch_status(&name, &PatchParams::default(), &patch)
                    .await;
            }
            _ => self.delete(&name, &uid).await,
        }
        Ok(())
    }

    async fn delete(&mut self, name: &str, uid: &str) {
        self.by_hand(uid);
        let _gone = self.pods.delete(name, &DeleteParams::default()).await;
    }

    fn by_hand(&mut self, uid: &str) {
        self.deeds.at_ms.push(self.now_ms());
        self.deeds.deleted.insert(uid.to_owned());
    }

    /// The differences between the set and its spec, after all that time.
    pub(super) async fn unlike(&self, wish: &dyn Wish) -> Result<Vec<String>, Error> {
        let set = self.sets.get_opt(SET).await.map_err(refused("get"))?;
        let pods: Vec<Value> = self.list().await?.into_iter().filter_map(whole).collect();
        Ok(match set.and_then(whole) {
            Some(set) => wish.unlike(&set, &pods),
            None if wish.may_end() => Vec::new(),
            None => vec![format!("at the end there is no {} {SET}", wish.kind())],
        })
    }
}

/// An object with its metadata.
fn whole(object: DynamicObject) -> Option<Value> {
    shared_json::to_value(object).ok()
}
