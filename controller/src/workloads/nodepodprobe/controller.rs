//! The reconciler: from a node to its object and the marks of its pods.

use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Map, Value, json};

use super::marks::{Condition, Marks};
use super::observe::Observed;
use super::plan::{Plan, plan};
use super::wake::{node_changed, pod_changed};
use crate::api::v1alpha1::{NodePodProbe, NodePodProbeSpec, PodProbeMarker};
use crate::kit::{ActError, Change, Informer, Next, ObjectKey, Reconciler, Watches, settled};
use crate::pods::pod::Pod;
use crate::pods::{CachedNode, CachedPod};

/// The controller's name in metrics and logs.
pub(super) const CONTROLLER: &str = "NodePodProbe-controller";

/// The reconciler. Its keys are names of nodes.
pub(super) struct Controller {
    pub(super) client: Client,
    pub(super) probes: Informer<NodePodProbe>,
    pub(super) nodes: Informer<CachedNode>,
    pub(super) pods: Informer<CachedPod>,
    pub(super) markers: Informer<PodProbeMarker>,
}

impl Reconciler for Controller {
    type Key = ObjectKey;

    fn name(&self) -> &'static str {
        CONTROLLER
    }

    fn watches(&self, watches: &mut Watches<ObjectKey>) {
        watches.wait_for(&self.markers);
        watches.on(&self.probes, |change, queue| match change {
            Change::Updated(old, new) if old.status == new.status => {}
            Change::Added(probes) | Change::Updated(_, probes) | Change::Deleted(probes) => {
                queue.add(ObjectKey::of(probes.as_ref()));
            }
        });
        let probes = self.probes.clone();
        watches.on(&self.pods, move |change, queue| {
            pod_changed(&probes, change, queue)
        });
        let probes = self.probes.clone();
        watches.on(&self.nodes, move |change, queue| {
            node_changed(&probes, change, queue)
        });
    }

    async fn pass(&self, key: &ObjectKey) -> Result<Next, ActError> {
        let observed = self.observe(key);
        let api: Api<NodePodProbe> = Api::all(self.client.clone());
        match plan(&observed) {
            Plan::Nothing => {}
            Plan::Create => {
                let object = NodePodProbe::new(&key.name, NodePodProbeSpec::default());
                settled(api.create(&PostParams::default(), &object).await)?;
            }
            Plan::Delete => {
                let uid = observed.probes.and_then(|probes| probes.uid());
                let preconditions = Preconditions {
                    uid,
                    resource_version: None,
                };
                let params = DeleteParams {
                    preconditions: Some(preconditions),
                    ..DeleteParams::default()
                };
                settled(api.delete(&key.name, &params).await)?;
            }
            Plan::Work(spec, marks) => {
                if let (Some(spec), Some(known)) = (spec, &observed.probes) {
                    let object = NodePodProbe {
                        spec,
                        ..NodePodProbe::clone(known)
                    };
                    settled(
                        api.replace(&key.name, &PostParams::default(), &object)
                            .await
                            .map(drop),
                    )?;
                }
                for marks in &marks {
                    self.mark(marks).await?;
                }
            }
        }
        Ok(Next::Event)
    }
}

impl Controller {
    fn observe(&self, key: &ObjectKey) -> Observed {
        let probes = self.probes.get(key);
        let mut observed = Observed {
            node: self.nodes.get(key),
            ..Observed::default()
        };
        for entry in probes.iter().flat_map(|probes| &probes.spec.pod_probes) {
            let key = ObjectKey::new(&entry.namespace, &entry.name);
            if let Some(pod) = self.pods.get(&key) {
                observed.pods.insert(key, pod);
            }
        }
        let status = probes.iter().filter_map(|probes| probes.status.as_ref());
        for results in status.flat_map(|status| &status.pod_probe_statuses) {
            for (marker, _) in results
                .probe_states
                .iter()
                .filter_map(|state| state.name.split_once('#'))
            {
                let key = ObjectKey::new(&results.namespace, marker);
                if let Some(marker) = self.markers.get(&key) {
                    observed.markers.insert(key, marker);
                }
            }
        }
        observed.probes = probes;
        observed
    }

    /// Writes conditions, labels and annotations of a pod at once: the API server takes metadata with the status.
    async fn mark(&self, marks: &Marks) -> Result<(), ActError> {
        let mut metadata = Map::new();
        metadata.insert("uid".to_owned(), json!(marks.pod.uid));
        for (field, map) in [("labels", &marks.labels), ("annotations", &marks.annotations)] {
            if !map.is_empty() {
                metadata.insert(field.to_owned(), json!(map));
            }
        }
        let conditions: Vec<Value> = marks.conditions.iter().map(written).collect();
        let mut patch = json!({ "metadata": metadata });
        if !conditions.is_empty() {
            patch["status"] = json!({ "conditions": conditions });
        }
        let api: Api<Pod> = Api::namespaced(self.client.clone(), &marks.namespace);
        let params = PatchParams::default();
        let patched = api
            .patch_status(&marks.pod.name, &params, &Patch::Strategic(&patch))
            .await;
        settled(patched)
    }
}

/// A condition as it is written: a message that is empty takes the old one away.
fn written(condition: &Condition) -> Value {
    let message = Some(&condition.message).filter(|message| !message.is_empty());
    json!({
        "type": condition.kind, "status": if condition.status { "True" } else { "False" }, "message": message,
        "lastProbeTime": condition.last_probe_time, "lastTransitionTime": condition.last_transition_time,
    })
}
