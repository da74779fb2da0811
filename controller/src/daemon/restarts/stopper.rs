//! The stop of a container: its event, its hook, and its end.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use client_kit::{EventRecorder, EventType};
use k8s_openapi::api::core::v1::{LifecycleHandler, ObjectReference};
use tokio::time::Instant;

use super::hooks::Hooked;
use crate::daemon::runtime::{ContainerRuntime, PodNetwork, RuntimeError};
use crate::kit::ObjectKey;

/// The shortest time for a container to end, however long its hook took.
const GRACE_SECONDS_MIN: u64 = 2;
/// The grace period of a pod that names none.
pub(super) const GRACE_SECONDS: u64 = 30;

/// Stops containers.
pub(super) struct Stopper {
    pub(super) runtime: Arc<dyn ContainerRuntime>,
    pub(super) network: Arc<dyn PodNetwork>,
    pub(super) recorder: EventRecorder,
}

/// A container to stop.
pub(super) struct Stop<'a> {
    /// Its pod.
    pub(super) pod: &'a ObjectKey,
    /// The pod's uid.
    pub(super) uid: &'a str,
    /// The pod's address.
    pub(super) address: &'a str,
    /// Its id with the runtime's name.
    pub(super) id: &'a str,
    /// Its name.
    pub(super) name: &'a str,
    /// The part of the pod that the events are about.
    pub(super) field_path: String,
    /// The text of the event.
    pub(super) message: String,
    /// Its hook before it is stopped.
    pub(super) hook: Option<LifecycleHandler>,
    /// The numbers of its ports by name.
    pub(super) ports: BTreeMap<String, i32>,
    /// How long it may take to end.
    pub(super) grace_seconds: u64,
}

impl Stopper {
    /// Stops a container. A hook that fails does not hold it up.
    ///
    /// # Errors
    /// The runtime's.
    pub(super) async fn stop(&self, stop: Stop<'_>) -> Result<(), RuntimeError> {
        let subject = ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("Pod".to_owned()),
            namespace: Some(stop.pod.namespace.clone()),
            name: Some(stop.pod.name.clone()),
            uid: Some(stop.uid.to_owned()),
            field_path: Some(stop.field_path),
            ..ObjectReference::default()
        };
        self.recorder
            .event(&subject, EventType::Normal, "Killing", stop.message);
        let mut left = stop.grace_seconds;
        if let Some(hook) = stop.hook.filter(|_| left > 0) {
            let pod = format!("{}_{}({})", stop.pod.name, stop.pod.namespace, stop.uid);
            let hooked = Hooked {
                id: stop.id,
                container: stop.name,
                pod: &pod,
                address: stop.address,
                ports: &stop.ports,
            };
            let began = Instant::now();
            let limit = Duration::from_secs(left);
            let run = hooked.run(self.runtime.as_ref(), self.network.as_ref(), &hook, limit);
            if let Err(text) = run.await {
                self.recorder
                    .event(&subject, EventType::Warning, "FailedPreStopHook", text);
            }
            left = left.saturating_sub(began.elapsed().as_secs());
        }
        let grace = Duration::from_secs(left.max(GRACE_SECONDS_MIN));
        self.runtime.stop(stop.id, grace).await
    }
}
