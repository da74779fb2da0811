//! The desk that the writers of budgets share: the writes, and the events about refusals.

use std::sync::OnceLock;

use client_kit::{EventRecorder, EventType, SharedClock};
use k8s_openapi::api::core::v1::ObjectReference;
use kube::{Client, ResourceExt as _};

use crate::api::v1alpha1::PodUnavailableBudget;
use crate::kit::Desk as Writes;
use crate::pods::CachedPod;

/// The component of events about refusals.
const COMPONENT: &str = "pub-controller";

/// The desk that the webhook and the controllers of one process share.
#[derive(Default)]
pub(crate) struct Desk {
    /// The writes of statuses.
    pub(crate) writes: Writes<PodUnavailableBudget>,
    recorder: OnceLock<EventRecorder>,
}

/// The reference by which events are about a pod.
pub(crate) fn subject(pod: &CachedPod) -> ObjectReference {
    ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Pod".to_owned()),
        name: Some(pod.name_any()),
        namespace: pod.namespace(),
        uid: pod.uid(),
        resource_version: pod.resource_version(),
        field_path: None,
    }
}

impl Desk {
    /// Records that a pod was kept in service.
    pub(super) fn record(&self, client: &Client, clock: &SharedClock, pod: &CachedPod) {
        let new = || {
            EventRecorder::new(client.clone(), COMPONENT, None, SharedClock::clone(clock))
                .with_reporting(true)
        };
        let recorder = self.recorder.get_or_init(new);
        recorder.event(
            &subject(pod),
            EventType::Warning,
            "PubPreventPodDeletion",
            "openkruise pub prevents pod deletion".to_owned(),
        );
    }
}
