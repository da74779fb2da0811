//! The reconciler: from a spread to its pods' annotations and its status.

use std::collections::BTreeMap;
use std::sync::Arc;

use client_kit::{EventRecorder, EventType, Seed, SharedClock};
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use super::adopt;
use super::observe::{Finder, Observed};
use super::plan::{Cost, Groups, Said, costs, status, subset_of, version_of};
use super::wake::{clone_set_changed, pod_changed, replica_set_changed, workload_changed};
use crate::api::labels;
use crate::api::v1alpha1::{CloneSet, WorkloadSpread};
use crate::injection::spreads::room::limit;
use crate::injection::spreads::white_list::{KEY, WhiteList};
use crate::kit::settings::setting;
use crate::kit::{
    ActError, Change, Desk, Informer, Kind, Next, ObjectKey, Owner, Reconciler, Watches, Written,
};
use crate::pods::CachedPod;
use crate::pods::pod::{self, Pod};
use crate::targets::{Lookup, Scaled};

/// The controller's name in events, metrics and logs.
pub(super) const CONTROLLER: &str = "workloadspread-controller";

/// The reconciler.
pub(super) struct Controller {
    pub(super) client: Client,
    pub(super) clock: SharedClock,
    pub(super) recorder: EventRecorder,
    pub(super) own_namespace: String,
    pub(super) spreads: Informer<WorkloadSpread>,
    pub(super) pods: Informer<CachedPod>,
    pub(super) clone_sets: Informer<CloneSet>,
    pub(super) deployments: Informer<Scaled<Deployment>>,
    pub(super) replica_sets: Informer<Scaled<ReplicaSet>>,
    pub(super) jobs: Informer<Scaled<Job>>,
    pub(super) lookup: Lookup,
    pub(super) desk: Arc<Desk<WorkloadSpread>>,
    pub(super) list: OnceCell<WhiteList>,
}

impl Reconciler for Controller {
    type Key = ObjectKey;

    fn name(&self) -> &'static str {
        CONTROLLER
    }

    fn watches(&self, watches: &mut Watches<ObjectKey>) {
        watches.on(&self.spreads, |change, queue| {
            let (Change::Added(spread) | Change::Updated(_, spread) | Change::Deleted(spread)) = change;
            queue.add(ObjectKey::of(spread.as_ref()));
        });
        watches.on(&self.pods, pod_changed);
        let known = self.spreads.clone();
        watches.on(&self.clone_sets, move |change, queue| {
            clone_set_changed(&known, change, queue)
        });
        let known = self.spreads.clone();
        watches.on(&self.deployments, move |change, queue| {
            workload_changed(&known, change, queue)
        });
        let known = self.spreads.clone();
        watches.on(&self.replica_sets, move |change, queue| {
            replica_set_changed(&known, change, queue)
        });
        let known = self.spreads.clone();
        watches.on(&self.jobs, move |change, queue| {
            workload_changed(&known, change, queue)
        });
    }

    async fn pass(&self, key: &ObjectKey) -> Result<Next, ActError> {
        let Some(spread) = self.spreads.get(key) else {
            let is_there = |spread: &WorkloadSpread| self.spreads.get(&ObjectKey::of(spread)).is_some();
            self.desk.forget_missing(is_there);
            return Ok(Next::Event);
        };
        if spread.metadata.deletion_timestamp.is_some() {
            self.desk.forget(&spread.uid().unwrap_or_default());
            return Ok(Next::Event);
        }
        if spread.spec.target_ref.is_none() {
            return Ok(Next::Event);
        }
        let finder = Finder {
            pods: &self.pods,
            lookup: &self.lookup,
            list: self.white_list().await,
        };
        let observed = finder.find(&key.namespace, &spread).await?;
        let placed = self.place(key, &spread, &observed).await?;
        let groups = Groups::of(&spread, placed);
        for cost in costs(&spread, &groups, &observed.version, observed.replicas) {
            self.write_cost(key, &spread, &cost).await?;
        }
        self.write(key, &spread, &groups, observed.replicas).await
    }
}

impl Controller {
    /// The kinds that spreads take beside the known ones, read once.
    async fn white_list(&self) -> &WhiteList {
        let read = || async {
            let list = setting(&self.client, &self.own_namespace, KEY).await?;
            Ok::<_, ActError>(WhiteList::of(list.as_deref()))
        };
        static NONE: WhiteList = WhiteList::none();
        self.list.get_or_try_init(read).await.unwrap_or(&NONE)
    }

    /// Each pod with its subset. Pods that have none get one, if one suits them.
    async fn place(
        &self,
        key: &ObjectKey,
        spread: &WorkloadSpread,
        observed: &Observed,
    ) -> Result<Vec<(Arc<CachedPod>, Option<String>)>, ActError> {
        let placed = observed
            .pods
            .iter()
            .map(|pod| (Arc::clone(pod), subset_of(spread, pod)));
        let mut placed: Vec<(Arc<CachedPod>, Option<String>)> = placed.collect();
        if placed.iter().all(|(_, subset)| subset.is_some()) {
            return Ok(placed);
        }
        let mut rooms = rooms(spread, &placed, observed.replicas);
        for (pod, subset) in placed.iter_mut().filter(|(_, subset)| subset.is_none()) {
            let of_version = rooms
                .entry(version_of(pod).to_owned())
                .or_insert_with(|| all_rooms(spread, observed.replicas));
            let Some(at) = self.suiting(key, spread, pod, of_version).await? else {
                continue;
            };
            of_version[at] -= 1;
            let chosen = &spread.spec.subsets[at];
            self.patch(&key.namespace, pod, &adopt::patch(spread, chosen))
                .await?;
            *subset = Some(chosen.name.clone());
        }
        Ok(placed)
    }

    /// The subset that suits a pod on its node; none if it has no node.
    async fn suiting(
        &self,
        key: &ObjectKey,
        spread: &WorkloadSpread,
        pod: &CachedPod,
        rooms: &[i64],
    ) -> Result<Option<usize>, ActError> {
        if pod::node(pod).is_empty() {
            return Ok(None);
        }
        let nodes: Api<Node> = Api::all(self.client.clone());
        let Some(node) = nodes.get_opt(pod::node(pod)).await? else {
            return Ok(None);
        };
        // The cache has only a part of each pod.
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Pod"));
        let pods: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), &key.namespace, &resource);
        let Some(whole) = pods.get_opt(pod::name(pod)).await? else {
            return Ok(None);
        };
        let [whole, node] =
            [serde_json::to_value(whole), serde_json::to_value(node)].map(Result::unwrap_or_default);
        Ok(adopt::best(spread, &whole, &node, rooms))
    }

    async fn patch(&self, namespace: &str, pod: &CachedPod, patch: &Value) -> Result<(), ActError> {
        let mut patch = patch.clone();
        patch["metadata"]["uid"] = json!(pod::uid(pod));
        let api: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        api.patch(pod::name(pod), &PatchParams::default(), &Patch::Strategic(&patch))
            .await?;
        Ok(())
    }

    async fn write_cost(
        &self,
        key: &ObjectKey,
        spread: &WorkloadSpread,
        cost: &Cost,
    ) -> Result<(), ActError> {
        let Cost { pod, cost, subset } = cost;
        let annotations = json!({ labels::DELETION_COST: cost.to_string() });
        let patch = json!({ "metadata": { "uid": pod.uid, "annotations": annotations } });
        let api: Api<Pod> = Api::namespaced(self.client.clone(), &key.namespace);
        let written = api
            .patch(&pod.name, &PatchParams::default(), &Patch::Strategic(&patch))
            .await;
        let Err(error) = written.map_err(ActError::from) else {
            return Ok(());
        };
        let (namespace, name) = (&key.namespace, &key.name);
        let message = format!(
            "WorkloadSpread {namespace}/{name} failed to patch deletion-cost annotation to %!d(string={cost}) for Pod \
             {namespace}/{} in subset {subset}",
            pod.name
        );
        self.tell(spread, EventType::Warning, "PatchPodDeletionCostFailed", message);
        Err(error)
    }

    fn tell(&self, spread: &WorkloadSpread, kind: EventType, reason: &str, message: String) {
        self.recorder
            .event(&Owner::of(spread).subject(), kind, reason, message);
    }

    /// Writes the status, reports events, and deletes pods that get no node.
    async fn write(
        &self,
        key: &ObjectKey,
        spread: &WorkloadSpread,
        groups: &Groups,
        replicas: i32,
    ) -> Result<Next, ActError> {
        let api = Api::namespaced(self.client.clone(), &key.namespace);
        let now = self.clock.now();
        let decide = |mut current: WorkloadSpread| {
            let said = status(&current, groups, replicas, now);
            let changes = current.status.as_ref() != Some(&said.status);
            current.status = Some(said.status.clone());
            std::future::ready(Ok::<_, ActError>((changes.then_some(current), said)))
        };
        let seed = Seed(0).fork(&spread.uid().unwrap_or_default());
        let Written::Decided(said) = self.desk.write(&api, spread, seed, decide).await? else {
            return Ok(Next::Event);
        };
        let Said {
            events,
            failed,
            requeue,
            ..
        } = said;
        for (kind, reason, message) in events {
            self.tell(spread, kind, reason, message);
        }
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &key.namespace);
        for (pod, subset) in failed {
            let name = pod::name(&pod);
            let deleted = pods
                .delete(name, &DeleteParams::default())
                .await
                .map_err(ActError::from);
            let Err(error) = deleted else { continue };
            if error.kind == Kind::NotFound {
                continue;
            }
            let (namespace, spread_name) = (&key.namespace, &key.name);
            let message = format!(
                "Failed to delete unschedulabe Pod {namespace}/{name} in Subset {subset} of WorkloadSpread \
                 {namespace}/{spread_name}"
            );
            self.tell(spread, EventType::Warning, "DeletePodFailed", message);
            return Err(error);
        }
        Ok(requeue.into())
    }
}

/// How many pods each subset takes in a version that has none.
fn all_rooms(spread: &WorkloadSpread, replicas: i32) -> Vec<i64> {
    let subsets = spread.spec.subsets.iter();
    let rooms = subsets.map(|subset| limit(subset, replicas).unwrap_or(Some(0)).unwrap_or(i32::MAX));
    rooms.map(i64::from).collect()
}

/// How many more pods each subset takes, by version.
fn rooms(
    spread: &WorkloadSpread,
    placed: &[(Arc<CachedPod>, Option<String>)],
    replicas: i32,
) -> BTreeMap<String, Vec<i64>> {
    let mut rooms: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    for (pod, subset) in placed {
        let of_version = rooms
            .entry(version_of(pod).to_owned())
            .or_insert_with(|| all_rooms(spread, replicas));
        let at = spread
            .spec
            .subsets
            .iter()
            .position(|known| Some(&known.name) == subset.as_ref());
        if let Some(room) = at.and_then(|at| of_version.get_mut(at)) {
            *room -= 1;
        }
    }
    rooms
}
