//! The reconciler: from a marker to the probes of nodes and its status.

use std::sync::Arc;

use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::json;

use super::observe::Observed;
use super::plan::{FINALIZER, Mark, Plan, plan};
use super::wake::{Waker, is_probed};
use crate::api::v1alpha1::{NodePodProbe, PodProbeMarker};
use crate::kit::{
    ActError, Change, Informer, Kind, Next, ObjectKey, Reconciler, Watches, requests, selector,
};
use crate::pods::pod::{self, Pod};
use crate::pods::{CachedNode, CachedPod};

/// The controller's name in metrics and logs.
pub(super) const CONTROLLER: &str = "PodProbeMarker-controller";

/// The reconciler.
pub(super) struct Controller {
    pub(super) client: Client,
    pub(super) serverless: bool,
    pub(super) markers: Informer<PodProbeMarker>,
    pub(super) probes: Informer<NodePodProbe>,
    pub(super) pods: Informer<CachedPod>,
    pub(super) nodes: Informer<CachedNode>,
}

impl Reconciler for Controller {
    type Key = ObjectKey;

    fn name(&self) -> &'static str {
        CONTROLLER
    }

    fn watches(&self, watches: &mut Watches<ObjectKey>) {
        watches.on(&self.markers, |change, queue| {
            let (Change::Added(marker) | Change::Updated(_, marker) | Change::Deleted(marker)) = change;
            queue.add(ObjectKey::of(marker.as_ref()));
        });
        watches.wait_for(&self.nodes);
        let waker = Waker {
            markers: self.markers.clone(),
            nodes: self.nodes.clone(),
            serverless: self.serverless,
        };
        watches.on(&self.pods, move |change, queue| waker.pod_changed(change, queue));
        let markers = self.markers.clone();
        watches.on(&self.probes, move |change, queue| {
            // The probes of a node can be written once there is an object for them.
            if let Change::Added(_) = change {
                for marker in markers.all() {
                    queue.add(ObjectKey::of(marker.as_ref()));
                }
            }
        });
    }

    async fn pass(&self, key: &ObjectKey) -> Result<Next, ActError> {
        let Some(marker) = self.markers.get(key) else {
            return Ok(Next::Event);
        };
        let observed = self.observe(marker);
        let plan = plan(&observed);
        self.act(&observed, plan).await?;
        Ok(Next::Event)
    }
}

impl Controller {
    fn observe(&self, marker: Arc<PodProbeMarker>) -> Observed {
        let namespace = marker.namespace().unwrap_or_default();
        let (mut pods, mut serverless) = (Vec::new(), Vec::new());
        for pod in self.pods.in_namespace(&namespace) {
            let labels = pod::all_labels(&pod);
            if !is_probed(&pod) || !selector::selects(&marker.spec.selector, labels).unwrap_or(false) {
                continue;
            }
            match self.nodes.get(&ObjectKey::new("", pod::node(&pod))) {
                Some(node) if node.is_virtual() => serverless.push(pod),
                Some(_) => pods.push(pod),
                None => {}
            }
        }
        Observed {
            marker,
            pods,
            serverless,
            probes: self.probes.all(),
            marks_serverless: self.serverless,
        }
    }

    /// Carries out the plan. The finalizer comes before the first probe and goes after the last one.
    ///
    /// A node's probes are written over the version from which they were planned: another marker may have written them meanwhile, and the
    /// newest version would bring back the probes that it took away.
    async fn act(&self, observed: &Observed, plan: Plan) -> Result<(), ActError> {
        let marker = &observed.marker;
        let api: Api<PodProbeMarker> =
            Api::namespaced(self.client.clone(), &marker.namespace().unwrap_or_default());
        if plan.finalizer == Some(true) {
            finalizers(&api, marker, true).await?;
        }
        for mark in &plan.marks {
            self.mark(marker, mark).await?;
        }
        for (node, spec) in plan.nodes {
            let Some(known) = observed.probes.iter().find(|known| known.name_any() == node) else {
                continue;
            };
            let api: Api<NodePodProbe> = Api::all(self.client.clone());
            let next = NodePodProbe {
                spec,
                ..NodePodProbe::clone(known)
            };
            let replaced = api.replace(&node, &PostParams::default(), &next).await;
            unless_gone(replaced.map(drop))?;
        }
        if plan.finalizer == Some(false) {
            finalizers(&api, marker, false).await?;
        }
        if let Some(status) = plan.status {
            requests::write_status(&api, marker, |latest| latest.status = Some(status.clone())).await?;
        }
        Ok(())
    }

    /// Gives a pod on a virtual node its labels and annotations.
    async fn mark(&self, marker: &PodProbeMarker, mark: &Mark) -> Result<(), ActError> {
        let api: Api<Pod> = Api::namespaced(self.client.clone(), &marker.namespace().unwrap_or_default());
        let patch = json!({ "metadata": {
            "uid": mark.pod.uid, "labels": mark.labels, "annotations": mark.annotations,
        } });
        let params = PatchParams::default();
        let patched = api
            .patch(&mark.pod.name, &params, &Patch::Strategic(&patch))
            .await;
        unless_gone(patched.map(drop))
    }
}

/// Adds the finalizer, or takes it away. A change by another meanwhile is a conflict.
async fn finalizers(api: &Api<PodProbeMarker>, marker: &PodProbeMarker, holds: bool) -> Result<(), ActError> {
    let mut finalizers = marker.metadata.finalizers.clone().unwrap_or_default();
    finalizers.retain(|finalizer| finalizer != FINALIZER);
    if holds {
        finalizers.push(FINALIZER.to_owned());
    }
    let version = &marker.metadata.resource_version;
    let patch = json!({ "metadata": { "finalizers": finalizers, "resourceVersion": version } });
    let params = PatchParams::default();
    let patched = api
        .patch(&marker.name_any(), &params, &Patch::Merge(&patch))
        .await;
    unless_gone(patched.map(drop))
}

/// The failure of a write, unless its object has gone.
fn unless_gone(written: Result<(), kube::Error>) -> Result<(), ActError> {
    match written.map_err(ActError::from) {
        Err(error) if error.kind != Kind::NotFound => Err(error),
        _ => Ok(()),
    }
}
