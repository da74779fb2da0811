//! `fake-apiserver nodes`.

use std::path::PathBuf;
use std::sync::Arc;

use client_kit::SystemClock;

use super::files::node_specs;
use super::{Failure, HEARTBEAT, Pace, stop};
use crate::network::Network;
use crate::nodes::{Disks, Kubelet, Scheduler, ServiceProxy};

/// Gives any API server simulated nodes, until stopped.
#[derive(Debug, clap::Args)]
pub struct Nodes {
    /// The kubeconfig of the API server.
    #[arg(long)]
    kubeconfig: PathBuf,
    /// How many nodes.
    #[arg(long, default_value_t = 3)]
    count: u32,
    /// A YAML file that describes the nodes instead.
    #[arg(long, conflicts_with = "count")]
    node_config: Option<PathBuf>,
    /// A YAML file of images and how they can be pulled, as `serve` takes it.
    #[arg(long)]
    images: Option<PathBuf>,
    /// Whether to schedule pods, too: for a server without a scheduler.
    #[arg(long)]
    scheduler: bool,
    /// How long things take on the nodes: as quick as the machine, or what a kubelet with containerd takes.
    #[arg(long, value_enum, default_value = "quick")]
    timing: Pace,
    /// The number that addresses and latencies follow from.
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

impl Nodes {
    /// Runs the nodes until the process is asked to stop.
    ///
    /// # Errors
    /// If the kubeconfig or the nodes' file cannot be read.
    pub async fn run(self) -> Result<(), Failure> {
        let options = self;
        let kubeconfig = kube::config::Kubeconfig::read_from(&options.kubeconfig)?;
        let config =
            kube::Config::from_custom_kubeconfig(kubeconfig, &kube::config::KubeConfigOptions::default())
                .await?;
        let client = kube::Client::try_from(config)?;
        let clock: client_kit::SharedClock = Arc::new(SystemClock);
        let mut tasks = tokio::task::JoinSet::new();
        if options.scheduler {
            tasks.spawn(Scheduler::new(client.clone(), Arc::clone(&clock)).run());
        }
        let (seed, disks) = (client_kit::Seed(options.seed), Disks::default());
        let network = Network::new(seed);
        tasks.spawn(ServiceProxy::new(client.clone(), &network).run());
        let (nodes, images) = node_specs(
            options.node_config.as_deref(),
            options.count,
            options.images.as_deref(),
        )?;
        for spec in nodes {
            let (name, images) = (spec.name.clone(), images.clone());
            let kubelet = Kubelet::new(
                client.clone(),
                spec,
                Arc::clone(&clock),
                seed,
                images,
                options.timing.timing(),
            )
            .with_disks(disks.clone())
            .with_network(&network)
            .with_heartbeat(HEARTBEAT);
            tasks.spawn(async move {
                if let Err(error) = kubelet.run().await {
                    eprintln!("error: node {name}: {error}");
                }
            });
        }
        stop()?.await;
        Ok(())
    }
}
