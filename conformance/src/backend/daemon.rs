//! OpenKruise's daemon on simulated nodes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use client_kit::SharedClock;
use controller::daemon::{ContainerRuntime, Daemon, RunningContainer, container_hash};
use fake_apiserver::nodes::{Containers, ImageRegistry};
use kube::Client;
use tokio::task::JoinSet;

use super::daemon_images::SimulatedImages;

/// The simulated nodes' container runtime, as the daemon asks it.
struct SimulatedRuntime(Containers);

impl ContainerRuntime for SimulatedRuntime {
    fn containers(&self, pod_uid: &str) -> Vec<RunningContainer> {
        let containers = self.0.of_pod(pod_uid).into_iter();
        containers
            .map(|info| RunningContainer {
                hash: container_hash(&info.name, &info.image),
                name: info.name,
                id: info.id,
                restart_count: i32::try_from(info.restarts).unwrap_or(i32::MAX),
                running: info.running,
            })
            .collect()
    }

    fn environment(&self, id: &str) -> Option<BTreeMap<String, String>> {
        self.0.get(id).filter(|info| info.running).map(|info| info.env)
    }

    fn stop(&self, id: &str, grace_seconds: u64) {
        self.0.stop(id, Duration::from_secs(grace_seconds));
    }
}

/// Starts the daemon on each of these nodes.
pub(super) fn start(
    tasks: &mut JoinSet<()>,
    client: &Client,
    clock: &SharedClock,
    (containers, images): (&Containers, &ImageRegistry),
    nodes: u32,
) {
    let runtime: Arc<dyn ContainerRuntime> = Arc::new(SimulatedRuntime(containers.clone()));
    for number in 1..=nodes {
        let node = format!("node{number}");
        let service = SimulatedImages {
            registry: images.clone(),
            node: node.clone(),
        };
        let daemon = Daemon::new(client.clone(), &node, Arc::clone(&runtime), Arc::clone(clock))
            .with_images(Arc::new(service));
        tasks.spawn(daemon.run(std::future::pending::<()>()));
    }
}
