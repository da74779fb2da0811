//! Writes the results into the status of the NodePodProbe, and tells them as events.

use std::sync::Arc;

use client_kit::{EventRecorder, EventType};
use k8s_openapi::api::core::v1::ObjectReference;
use kube::{Api, Client};

use super::count::State;
use super::key::ProbeKey;
use super::results::Results;
use super::status::status;
use crate::api::v1alpha1::{NodePodProbe, NodePodProbeStatus};
use crate::kit::{ActError, Change, Informer, Kind, Next, ObjectKey, Reconciler, Watches, requests};

/// The reconciler. Its key is the node.
pub(super) struct Writer {
    pub(super) client: Client,
    pub(super) recorder: EventRecorder,
    pub(super) probes: Informer<NodePodProbe>,
    pub(super) results: Arc<Results>,
}

impl Reconciler for Writer {
    type Key = ObjectKey;

    fn name(&self) -> &'static str {
        "podprobe-status"
    }

    fn watches(&self, watches: &mut Watches<ObjectKey>) {
        watches.on(&self.probes, |change, queue| {
            if let Change::Updated(old, new) = change
                && old.spec != new.spec
            {
                queue.add(ObjectKey::of(new.as_ref()));
            }
        });
    }

    async fn pass(&self, key: &ObjectKey) -> Result<Next, ActError> {
        let Some(object) = self.probes.get(key) else {
            return Ok(Next::Event);
        };
        for (probe, result) in self.results.take_untold() {
            if probe.find(&object.spec).is_some() {
                self.tell(&probe, result.state, result.message);
            }
        }
        let api: Api<NodePodProbe> = Api::all(self.client.clone());
        let known = object.status.clone().unwrap_or_default();
        if status(&object, &self.results.all()) == known {
            return Ok(Next::Event);
        }
        let set = |latest: &mut NodePodProbe| {
            let status: NodePodProbeStatus = status(latest, &self.results.all());
            latest.status = Some(status);
        };
        match requests::write_status(&api, &object, set).await {
            // The node has gone.
            Err(error) if error.kind == Kind::NotFound => Ok(Next::Event),
            written => written.map(|_| Next::Event),
        }
    }
}

impl Writer {
    fn tell(&self, probe: &ProbeKey, state: State, message: String) {
        let subject = ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("Pod".to_owned()),
            namespace: Some(probe.namespace.clone()),
            name: Some(probe.pod.clone()),
            uid: Some(probe.uid.clone()),
            ..ObjectReference::default()
        };
        let reason = match state {
            State::Succeeded => "KruiseProbeSucceeded",
            State::Failed | State::Unknown => "KruiseProbeFailed",
        };
        self.recorder.event(&subject, EventType::Normal, reason, message);
    }
}
