//! The pod-readiness controller: a pod with the readiness gate `KruisePodReady` is in service unless somebody says no.

use client_kit::SharedClock;
use jiff::Timestamp;
use kruise_api::labels;
use kruise_kit::{ActError, Change, Informer, Next, ObjectKey, Reconciler, Watches, settled};
use kube::Client;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};

use crate::CachedPod;
use crate::lifecycle::rfc3339;
use crate::pod::{self, Pod};

/// Whether the condition of the pod's gate `KruisePodReady` is missing, and the pod is not being deleted.
pub fn is_due(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_none()
        && pod::has_gate(pod, labels::KRUISE_POD_READY)
        && pod::condition(pod, labels::KRUISE_POD_READY).is_none()
}

/// The patch of its status.
fn patch(pod: &Pod, now: Timestamp) -> Value {
    json!({
        "metadata": { "uid": pod::uid(pod) },
        "status": { "conditions": [
            { "type": labels::KRUISE_POD_READY, "status": "True", "lastTransitionTime": rfc3339(now) },
        ] },
    })
}

/// Says of pods that they are in service.
pub struct Readiness {
    client: Client,
    pods: Informer<CachedPod>,
    clock: SharedClock,
}

impl Readiness {
    /// Looks at the pods of the cache.
    pub fn new(client: Client, pods: Informer<CachedPod>, clock: SharedClock) -> Self {
        Self { client, pods, clock }
    }
}

impl Reconciler for Readiness {
    type Key = ObjectKey;

    fn name(&self) -> &'static str {
        "pod-readiness-controller"
    }

    fn watches(&self, watches: &mut Watches<ObjectKey>) {
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
        let api: Api<Pod> = Api::namespaced(self.client.clone(), &key.namespace);
        let patch = patch(&pod, self.clock.now());
        let written = api
            .patch_status(&key.name, &PatchParams::default(), &Patch::Strategic(&patch))
            .await;
        settled(written).map(|()| Next::Event)
    }
}
