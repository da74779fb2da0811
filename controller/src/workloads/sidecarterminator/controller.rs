//! The reconciler: from a pod to the end of its sidecars.

use client_kit::{EventRecorder, EventType, SharedClock};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};

use super::plan::{Step, is_due, plan};
use crate::api::v1alpha1::{
    ContainerRecreateRequest, ContainerRecreateRequestSpec, RecreateStrategy, RecreatedContainer,
};
use crate::kit::{ActError, Change, Informer, Kind, Next, ObjectKey, Owner, Reconciler, Watches};
use crate::pods::lifecycle::rfc3339;
use crate::pods::pod::{self, Pod};
use crate::pods::{CachedNode, CachedPod};

/// The controller's name in events, metrics and logs.
pub(super) const CONTROLLER: &str = "sidecarterminator-controller";
/// The condition of a pod whose phase does not wait for its sidecars.
const TERMINATED: &str = "SidecarTerminated";

/// The reconciler. Its keys are pods.
pub(super) struct Controller {
    pub(super) client: Client,
    pub(super) recorder: EventRecorder,
    pub(super) clock: SharedClock,
    pub(super) pods: Informer<CachedPod>,
    pub(super) nodes: Informer<CachedNode>,
    pub(super) requests: Informer<ContainerRecreateRequest>,
}

impl Reconciler for Controller {
    type Key = ObjectKey;

    fn name(&self) -> &'static str {
        CONTROLLER
    }

    fn watches(&self, watches: &mut Watches<ObjectKey>) {
        watches.wait_for(&self.nodes);
        watches.wait_for(&self.requests);
        watches.on(&self.pods, |change, queue| {
            if let Change::Added(pod) | Change::Updated(_, pod) = change
                && is_due(pod)
            {
                queue.add(ObjectKey::of(pod.as_ref()));
            }
        });
    }

    async fn pass(&self, key: &ObjectKey) -> Result<Next, ActError> {
        let Some(pod) = self.pods.get(key).filter(|pod| is_due(pod)) else {
            return Ok(Next::Event);
        };
        let node = pod::node(&pod);
        let Some(node) = self.nodes.get(&ObjectKey::new("", node)) else {
            return Err(ActError::planned(&format!("node {node:?} is not there")));
        };
        let request = ObjectKey::new(&key.namespace, &request_name(&pod));
        let is_requested = self.requests.get(&request).is_some();
        for step in plan(&pod, node.is_virtual(), is_requested) {
            match self.act(&key.namespace, &pod, &step).await {
                Err(error) if error.kind != Kind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(Next::Event)
    }
}

/// The name of the request for a pod.
fn request_name(pod: &Pod) -> String {
    format!("sidecar-termination-{}", pod::uid(pod))
}

impl Controller {
    async fn act(&self, namespace: &str, pod: &CachedPod, step: &Step) -> Result<(), ActError> {
        let api: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        let params = PatchParams::default();
        let (name, uid) = (pod::name(pod), pod::uid(pod));
        match step {
            Step::Images(images) => {
                let changed = |(name, image): &(String, String)| json!({ "name": name, "image": image });
                let containers: Vec<Value> = images.iter().map(changed).collect();
                let patch = json!({ "metadata": { "uid": uid }, "spec": { "containers": containers } });
                api.patch(name, &params, &Patch::Strategic(&patch)).await?;
                let names: Vec<&str> = images.iter().map(|(name, _)| name.as_str()).collect();
                self.tell(pod, &names, "in-place update");
            }
            Step::End(phase) => {
                let condition = json!({
                    "type": TERMINATED, "status": "True", "message": "Terminated by Sidecar Terminator",
                    "lastTransitionTime": rfc3339(self.clock.now()),
                });
                let status = json!({ "phase": phase, "conditions": [condition] });
                let patch = json!({ "metadata": { "uid": uid }, "status": status });
                api.patch_status(name, &params, &Patch::Strategic(&patch)).await?;
            }
            Step::Request(containers) => self.request(namespace, pod, containers).await?,
        }
        Ok(())
    }

    /// Asks the daemon to stop containers. One request serves a pod for good.
    async fn request(&self, namespace: &str, pod: &CachedPod, containers: &[String]) -> Result<(), ActError> {
        let stopped = |name: &String| RecreatedContainer {
            name: name.clone(),
            ..RecreatedContainer::default()
        };
        let strategy = RecreateStrategy {
            failure_policy: Some("Ignore".to_owned()),
            force_recreate: Some(true),
            ..RecreateStrategy::default()
        };
        let spec = ContainerRecreateRequestSpec {
            pod_name: pod::name(pod).to_owned(),
            containers: containers.iter().map(stopped).collect(),
            strategy: Some(strategy),
            ..ContainerRecreateRequestSpec::default()
        };
        let mut request = ContainerRecreateRequest::new(&request_name(pod), spec);
        request.metadata.owner_references = Some(vec![Owner::of(pod).reference()]);
        let api: Api<ContainerRecreateRequest> = Api::namespaced(self.client.clone(), namespace);
        let created = api.create(&PostParams::default(), &request).await;
        match created.map_err(ActError::from) {
            Ok(_) => {
                let names: Vec<&str> = containers.iter().map(String::as_str).collect();
                self.tell(pod, &names, "crr");
                Ok(())
            }
            Err(error) if error.kind == Kind::AlreadyExists => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn tell(&self, pod: &CachedPod, containers: &[&str], way: &str) {
        let names = containers.join(" ");
        let message =
            format!("Kruise SidecarTerminator is trying to terminate sidecar [{names}] using {way}");
        let subject = Owner::of(pod).subject();
        self.recorder
            .event(&subject, EventType::Normal, "SidecarTerminator", message);
    }
}
