//! OpenKruise's daemon on simulated nodes.

use std::sync::Arc;
use std::time::Duration;

use client_kit::SharedClock;
use controller::daemon::{
    CommandOutput, Connection, ContainerRuntime, Daemon, PodNetwork, RunningContainer, RuntimeError,
    container_hash,
};
use controller::gates::FeatureGates;
use fake_apiserver::nodes::{ContainerInfo, Containers, ExecError, ImageRegistry};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use kube::Client;
use tokio::task::JoinSet;

use super::images::SimulatedImages;

/// The simulated nodes' container runtime and network, as the daemon asks them.
struct SimulatedRuntime(Containers);

fn shown(info: ContainerInfo) -> RunningContainer {
    RunningContainer {
        hash: container_hash(&info.name, &info.image),
        name: info.name,
        id: info.id,
        restart_count: i32::try_from(info.restarts).unwrap_or(i32::MAX),
        started_at: info.started,
        // A hook that the API server took can be read; null is none.
        pre_stop: shared_json::from_value(info.pre_stop).unwrap_or_default(),
        running: info.running,
    }
}

impl ContainerRuntime for SimulatedRuntime {
    fn containers<'a>(
        &'a self,
        pod_uid: &'a str,
    ) -> BoxFuture<'a, Result<Vec<RunningContainer>, RuntimeError>> {
        let containers = self.0.of_pod(pod_uid).into_iter().map(shown).collect();
        std::future::ready(Ok(containers)).boxed()
    }

    fn exec<'a>(
        &'a self,
        id: &'a str,
        command: &'a [String],
        timeout: Duration,
    ) -> BoxFuture<'a, Result<CommandOutput, RuntimeError>> {
        async move {
            match self.0.exec(id, command.to_vec(), timeout).await {
                Ok(ran) => Ok(CommandOutput {
                    code: ran.code,
                    out: ran.out,
                    err: ran.err,
                }),
                Err(error @ ExecError::TimedOut { .. }) => Err(RuntimeError::TimedOut(error.to_string())),
                Err(error) => Err(RuntimeError::Failed(error.to_string())),
            }
        }
        .boxed()
    }

    fn stop<'a>(&'a self, id: &'a str, grace: Duration) -> BoxFuture<'a, Result<(), RuntimeError>> {
        self.0.stop(id, grace).map(Ok).boxed()
    }
}

impl PodNetwork for SimulatedRuntime {
    fn connect<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, Result<Box<dyn Connection>, String>> {
        let connected = self.0.connect(host, port);
        let connected = connected.map(|stream| -> Box<dyn Connection> { Box::new(stream) });
        std::future::ready(connected.map_err(|error| error.to_string())).boxed()
    }
}

/// Starts the daemon on each of the nodes of these names, whose kubelets run `containers`.
pub fn start(
    tasks: &mut JoinSet<()>,
    (client, clock): (&Client, &SharedClock),
    (containers, images): (&Containers, &ImageRegistry),
    gates: &FeatureGates,
    nodes: &[String],
) {
    let runtime = Arc::new(SimulatedRuntime(containers.clone()));
    for node in nodes {
        let (runtime, network) = (Arc::clone(&runtime), Arc::clone(&runtime));
        let service = SimulatedImages {
            registry: images.clone(),
            node: node.clone(),
        };
        let daemon = Daemon::new(client.clone(), node, runtime, network, Arc::clone(clock))
            .with_gates(gates.clone())
            .with_images(Arc::new(service));
        tasks.spawn(daemon.run(std::future::pending::<()>()));
    }
}
