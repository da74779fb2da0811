//! Restarts of containers whose environment comes from labels or annotations that have changed: the kubelet does not restart them.

use std::collections::BTreeMap;

use kube::ResourceExt as _;

use super::stopper::{GRACE_SECONDS, Stop, Stopper};
use crate::daemon::runtime::{RunningContainer, RuntimeError};
use crate::kit::{ActError, Informer, Next, ObjectKey, Reconciler, Subject, Watches};
use crate::pods::pod::{self, Pod};

/// A container to restart.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::daemon) struct Restart {
    /// Its pod.
    pub(in crate::daemon) pod: ObjectKey,
    /// The pod's uid.
    pub(in crate::daemon) uid: String,
    /// Its id.
    pub(in crate::daemon) id: String,
    /// Its name.
    pub(in crate::daemon) name: String,
}

impl Subject for Restart {
    fn namespace(&self) -> &str {
        &self.pod.namespace
    }

    fn name(&self) -> &str {
        &self.pod.name
    }
}

/// Ends containers whose environment has changed.
pub(super) struct Restarts {
    pub(super) stopper: Stopper,
    pub(super) pods: Informer<Pod>,
}

impl Reconciler for Restarts {
    type Key = Restart;

    fn name(&self) -> &'static str {
        "containermeta-restarter"
    }

    fn watches(&self, _: &mut Watches<Restart>) {}

    async fn pass(&self, restart: &Restart) -> Result<Next, ActError> {
        let stopped = self.stop(restart).await;
        stopped.map_err(|error| ActError::planned(&error.to_string()))?;
        Ok(Next::Event)
    }
}

impl Restarts {
    async fn stop(&self, restart: &Restart) -> Result<(), RuntimeError> {
        let pod = self.pods.get(&restart.pod);
        let Some(pod) = pod.filter(|pod| pod.uid().as_deref() == Some(&restart.uid)) else {
            return Ok(());
        };
        let containers = self.stopper.runtime.containers(&restart.uid).await?;
        let runs = |container: &&RunningContainer| container.id == restart.id && container.running;
        let Some(container) = containers.iter().find(runs) else {
            return Ok(());
        };
        let runtime = restart.id.split("://").next().unwrap_or_default();
        let spec = pod::containers(&pod)
            .iter()
            .find(|spec| spec.name == restart.name);
        let ports = spec.into_iter().flat_map(|spec| &spec.ports);
        let ports = ports.map(|port| (port.name.to_string(), port.container_port));
        let grace = pod.spec.termination_grace_period_seconds;
        let stop = Stop {
            pod: &restart.pod,
            uid: &restart.uid,
            address: &pod.status.ip,
            id: &restart.id,
            name: &restart.name,
            field_path: format!("implicitly required container {}", restart.name),
            // The runtime's id reads as the container's name in events.
            message: format!(
                "Stopping containerID {runtime}://{} by container meta restarter",
                restart.name
            ),
            hook: container.pre_stop.clone(),
            ports: ports.collect::<BTreeMap<String, i32>>(),
            grace_seconds: grace
                .and_then(|seconds| u64::try_from(seconds).ok())
                .unwrap_or(GRACE_SECONDS),
        };
        self.stopper.stop(stop).await
    }
}
