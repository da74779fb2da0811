//! The kubelet's events of a pod.

use client_kit::EventType;
use k8s_openapi::api::core::v1::ObjectReference;
use machinery::meta::ObjectMeta as _;

use super::worker::PodWorker;
use crate::pressure::Eviction;
use crate::status::Kind;

/// Where a pod has a container.
pub(super) fn field_path(kind: Kind, name: &str) -> String {
    format!("spec.{}{{{name}}}", kind.field())
}

impl PodWorker {
    /// An event about a container.
    pub(super) fn event(&self, kind: Kind, name: &str, severity: EventType, reason: &str, message: String) {
        self.write_event(Some(field_path(kind, name)), severity, reason, message);
    }

    pub(super) fn normal(&self, kind: Kind, name: &str, reason: &str, message: impl Into<String>) {
        self.event(kind, name, EventType::Normal, reason, message.into());
    }

    pub(super) fn warning(&self, kind: Kind, name: &str, reason: &str, message: impl Into<String>) {
        self.event(kind, name, EventType::Warning, reason, message.into());
    }

    /// An event about the pod as a whole.
    pub(super) fn pod_event(&self, severity: EventType, reason: &str, message: String) {
        self.write_event(None, severity, reason, message);
    }

    /// The event about an eviction.
    pub(super) fn evicted_event(&self, eviction: &Eviction) {
        self.kubelet.recorder.annotated_event(
            &self.reference(None),
            eviction.annotations.clone(),
            EventType::Warning,
            eviction.reason,
            eviction.message.clone(),
        );
    }

    pub(super) fn write_event(
        &self,
        field_path: Option<String>,
        severity: EventType,
        reason: &str,
        message: String,
    ) {
        let object = self.reference(field_path);
        self.kubelet.recorder.event(&object, severity, reason, message);
    }

    fn reference(&self, field_path: Option<String>) -> ObjectReference {
        let text = |value: &str| Some(value.to_owned());
        ObjectReference {
            api_version: text("v1"),
            kind: text("Pod"),
            name: text(self.pod.name()),
            namespace: text(self.pod.namespace()),
            uid: text(self.pod.uid()),
            resource_version: text(self.pod.resource_version()),
            field_path,
        }
    }
}
