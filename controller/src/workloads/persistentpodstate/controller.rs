//! The reconciler: from a key to a pass.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{DeleteParams, PostParams, Preconditions};
use kube::{Api, Client, Resource as _, ResourceExt as _};

use super::auto::{self, Step};
use super::observe::Observed;
use super::plan::plan;
use super::targets::{CachedSet, Group, Target};
use super::wake::{pod_changed, set_changed};
use crate::api::v1alpha1::{PersistentPodState, TargetReference};
use crate::api::v1beta1::StatefulSet;
use crate::injection::pod_states::white_list::{KEY, WhiteList};
use crate::kit::settings::setting;
use crate::kit::{
    ActError, Change, Informer, Next, ObjectKey, Reconciler, Subject, Watches, requests, settled,
};
use crate::pods::{CachedNode, CachedPod};
use crate::targets::{self, Lookup};

/// The controller's name in metrics and logs.
pub(super) const CONTROLLER: &str = "persistentpodstate-controller";

/// The object that a pass is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    /// A PersistentPodState.
    State(ObjectKey),
    /// A workload, by namespace and reference, whose annotations may ask for one.
    Workload(String, TargetReference),
}

impl Subject for Key {
    fn namespace(&self) -> &str {
        match self {
            Self::State(key) => &key.namespace,
            Self::Workload(namespace, _) => namespace,
        }
    }

    fn name(&self) -> &str {
        match self {
            Self::State(key) => &key.name,
            Self::Workload(_, workload) => &workload.name,
        }
    }
}

/// The caches of the reconciler.
pub(super) struct Controller {
    pub(super) client: Client,
    pub(super) lookup: Lookup,
    pub(super) own_namespace: String,
    pub(super) states: Informer<PersistentPodState>,
    pub(super) pods: Informer<CachedPod>,
    pub(super) nodes: Informer<CachedNode>,
    pub(super) built_in: Informer<CachedSet>,
    pub(super) advanced: Informer<StatefulSet>,
}

impl Reconciler for Controller {
    type Key = Key;

    fn name(&self) -> &'static str {
        CONTROLLER
    }

    fn watches(&self, watches: &mut Watches<Key>) {
        watches.wait_for(&self.nodes);
        watches.on(&self.states, |change, queue| {
            let (Change::Added(state) | Change::Updated(_, state) | Change::Deleted(state)) = change;
            queue.add(Key::State(ObjectKey::of(state.as_ref())));
        });
        let states = self.states.clone();
        watches.on(&self.built_in, move |change, queue| {
            set_changed(&states, change, queue);
        });
        let states = self.states.clone();
        watches.on(&self.advanced, move |change, queue| {
            set_changed(&states, change, queue);
        });
        let states = self.states.clone();
        watches.on(&self.pods, move |change, queue| {
            pod_changed(&states, change, queue)
        });
    }

    async fn pass(&self, key: &Key) -> Result<Next, ActError> {
        match key {
            Key::State(key) => self.record(key).await?,
            Key::Workload(namespace, workload) => self.generate(namespace, workload).await?,
        }
        Ok(Next::Event)
    }
}

impl Controller {
    /// Writes where the pods are.
    async fn record(&self, key: &ObjectKey) -> Result<(), ActError> {
        let Some(state) = self.states.get(key) else {
            return Ok(());
        };
        let observed = self.observe(state).await?;
        let status = plan(&observed);
        let state = &observed.state;
        if state.status.as_ref() != Some(&status) {
            let api: Api<PersistentPodState> = Api::namespaced(self.client.clone(), &key.namespace);
            requests::write_status(&api, state, |latest| latest.status = Some(status.clone())).await?;
        }
        Ok(())
    }

    /// Makes, changes or deletes the PersistentPodState that a workload asks for.
    async fn generate(&self, namespace: &str, workload: &TargetReference) -> Result<(), ActError> {
        let Some(metadata) = self.metadata(namespace, workload).await? else {
            return Ok(());
        };
        let known = self.states.get(&ObjectKey::new(namespace, &workload.name));
        let api: Api<PersistentPodState> = Api::namespaced(self.client.clone(), namespace);
        let params = PostParams::default();
        let done = match auto::step(workload, &metadata, known.as_deref()) {
            Step::Nothing => return Ok(()),
            Step::Create(state) => api.create(&params, &state).await.map(drop),
            Step::Replace(state) => api.replace(&workload.name, &params, &state).await.map(drop),
            Step::Delete => {
                let preconditions = Preconditions {
                    uid: known.and_then(|known| known.uid()),
                    resource_version: None,
                };
                let params = DeleteParams {
                    preconditions: Some(preconditions),
                    ..DeleteParams::default()
                };
                api.delete(&workload.name, &params).await.map(drop)
            }
        };
        settled(done)
    }

    /// The metadata of a workload, if there is one whose pods are recorded.
    async fn metadata(
        &self,
        namespace: &str,
        workload: &TargetReference,
    ) -> Result<Option<ObjectMeta>, ActError> {
        let key = ObjectKey::new(namespace, &workload.name);
        Ok(match Group::of(workload) {
            Some(Group::BuiltIn) => self.built_in.get(&key).map(|set| set.meta().clone()),
            Some(Group::Advanced) => self.advanced.get(&key).map(|set| set.meta().clone()),
            None => {
                let found = self.listed(namespace, workload).await?;
                found.map(|found| found.metadata().clone())
            }
        })
    }

    /// A workload of a listed kind, if there is one.
    async fn listed(
        &self,
        namespace: &str,
        workload: &TargetReference,
    ) -> Result<Option<targets::Target>, ActError> {
        let list = setting(&self.client, &self.own_namespace, KEY).await?;
        let list = WhiteList::of(list.as_deref()).map_err(|error| ActError::planned(&error.to_string()))?;
        if !list.permits(&workload.api_version, &workload.kind) {
            return Ok(None);
        }
        self.lookup.get(namespace, workload).await
    }

    async fn target(&self, namespace: &str, workload: &TargetReference) -> Result<Option<Target>, ActError> {
        let key = ObjectKey::new(namespace, &workload.name);
        Ok(match Group::of(workload) {
            Some(Group::BuiltIn) => self.built_in.get(&key).and_then(|set| Target::of_built_in(&set)),
            Some(Group::Advanced) => self.advanced.get(&key).and_then(|set| Target::of_advanced(&set)),
            None => match self.listed(namespace, workload).await? {
                Some(found) => {
                    let replicas = self.lookup.replicas(namespace, &found).await?;
                    Target::of_listed(&found, replicas)
                }
                None => None,
            },
        })
    }

    async fn observe(&self, state: Arc<PersistentPodState>) -> Result<Observed, ActError> {
        let namespace = state.namespace().unwrap_or_default();
        let target = self.target(&namespace, &state.spec.target_ref).await?;
        let pods = target.as_ref().map(|target| self.pods.owned_by(&target.uid));
        let nodes = self.nodes.all().into_iter();
        Ok(Observed {
            nodes: nodes.map(|node| (node.name().to_owned(), node)).collect(),
            pods: pods.unwrap_or_default(),
            target,
            state,
        })
    }
}
