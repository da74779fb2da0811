//! The reconciler: from a key to a pass.

use std::sync::Arc;

use kube::{Api, Client, Resource, ResourceExt as _};

use super::observe::Observed;
use super::plan::plan;
use super::targets::{CachedSet, Group, Target};
use crate::api::v1alpha1::PersistentPodState;
use crate::api::v1beta1::StatefulSet;
use crate::kit::{
    ActError, Change, Informer, Next, ObjectKey, Reconciler, Watches, WorkQueue, controller_of, requests,
};
use crate::pods::{CachedNode, CachedPod, pod};

/// The controller's name in metrics and logs.
pub(super) const CONTROLLER: &str = "persistentpodstate-controller";

/// The caches of the reconciler.
pub(super) struct Controller {
    pub(super) client: Client,
    pub(super) states: Informer<PersistentPodState>,
    pub(super) pods: Informer<CachedPod>,
    pub(super) nodes: Informer<CachedNode>,
    pub(super) built_in: Informer<CachedSet>,
    pub(super) advanced: Informer<StatefulSet>,
}

impl Reconciler for Controller {
    type Key = ObjectKey;

    fn name(&self) -> &'static str {
        CONTROLLER
    }

    fn watches(&self, watches: &mut Watches<ObjectKey>) {
        watches.wait_for(&self.nodes);
        watches.on(&self.states, |change, queue| {
            let (Change::Added(state) | Change::Updated(_, state) | Change::Deleted(state)) = change;
            queue.add(ObjectKey::of(state.as_ref()));
        });
        let states = self.states.clone();
        watches.on(&self.built_in, move |change, queue| {
            set_changed(&states, Group::BuiltIn, change, queue);
        });
        let states = self.states.clone();
        watches.on(&self.advanced, move |change, queue| {
            set_changed(&states, Group::Advanced, change, queue);
        });
        let states = self.states.clone();
        watches.on(&self.pods, move |change, queue| {
            pod_changed(&states, change, queue)
        });
    }

    async fn pass(&self, key: &ObjectKey) -> Result<Next, ActError> {
        let Some(state) = self.states.get(key) else {
            return Ok(Next::Event);
        };
        let observed = self.observe(state);
        let status = plan(&observed);
        let state = &observed.state;
        if state.status.as_ref() != Some(&status) {
            let api: Api<PersistentPodState> = Api::namespaced(self.client.clone(), &key.namespace);
            requests::write_status(&api, state, |latest| latest.status = Some(status.clone())).await?;
        }
        Ok(Next::Event)
    }
}

impl Controller {
    fn observe(&self, state: Arc<PersistentPodState>) -> Observed {
        let reference = &state.spec.target_ref;
        let namespace = state.namespace().unwrap_or_default();
        let key = ObjectKey::new(&namespace, &reference.name);
        let target = match Group::of(reference) {
            Some(Group::BuiltIn) => self.built_in.get(&key).and_then(|set| Target::of_built_in(&set)),
            Some(Group::Advanced) => self.advanced.get(&key).and_then(|set| Target::of_advanced(&set)),
            None => None,
        };
        let pods = target.as_ref().map(|target| self.pods.owned_by(&target.uid));
        let nodes = self.nodes.all().into_iter();
        Observed {
            nodes: nodes.map(|node| (node.name().to_owned(), node)).collect(),
            pods: pods.unwrap_or_default(),
            target,
            state,
        }
    }
}

/// Has those looked at whose set it is.
fn queue_states(
    states: &Informer<PersistentPodState>,
    group: Option<Group>,
    key: &ObjectKey,
    queue: &WorkQueue<ObjectKey>,
) {
    for state in states.all() {
        let reference = &state.spec.target_ref;
        let is_own = group.is_some()
            && Group::of(reference) == group
            && (reference.name.as_str(), state.namespace().as_deref()) == (&*key.name, Some(&*key.namespace));
        if is_own {
            queue.add(ObjectKey::of(state.as_ref()));
        }
    }
}

/// A set changed. Most changes of a set are those of its status, which nobody asks for.
fn set_changed<S: Resource<DynamicType = ()>>(
    states: &Informer<PersistentPodState>,
    group: Group,
    change: &Change<'_, S>,
    queue: &WorkQueue<ObjectKey>,
) {
    let (before, set) = match change {
        Change::Added(set) | Change::Deleted(set) => (None, set),
        Change::Updated(old, set) => (Some(old), set),
    };
    let key = |set: &S| (set.meta().generation, set.meta().deletion_timestamp.is_some());
    if before.is_none_or(|before| key(before) != key(set)) {
        queue_states(states, Some(group), &ObjectKey::of(set.as_ref()), queue);
    }
}

/// A pod changed: it came to be ready, begins to go, or is gone.
fn pod_changed(
    states: &Informer<PersistentPodState>,
    change: &Change<'_, CachedPod>,
    queue: &WorkQueue<ObjectKey>,
) {
    let stand = |pod: &CachedPod| (pod::is_ready(pod), pod.metadata.deletion_timestamp.is_some());
    let pod = match change {
        Change::Added(pod) | Change::Deleted(pod) => pod,
        Change::Updated(old, pod) if stand(old) != stand(pod) => pod,
        Change::Updated(..) => return,
    };
    let Some(owner) = controller_of(&pod.metadata) else {
        return;
    };
    let group = Group::of(&crate::api::v1alpha1::TargetReference {
        api_version: owner.api_version.clone(),
        kind: owner.kind.clone(),
        name: owner.name.clone(),
    });
    let namespace = pod.namespace().unwrap_or_default();
    queue_states(states, group, &ObjectKey::new(&namespace, &owner.name), queue);
}
