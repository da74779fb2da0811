//! `fake-apiserver serve`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr as _;
use std::sync::Arc;
use std::time::Duration;

use client_kit::{Clock as _, SystemClock};
use futures::future::BoxFuture;
use pki::FrontProxy;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::files::{definitions, node_specs, write_private};
use super::{HEARTBEAT, Pace, stop};
use crate::faults::FaultFile;
use crate::nodes::{Containers, ImageRegistry};
use crate::serve::{self, ClusterTime, Identity, Speed, Transport};
#[cfg(unix)]
use crate::serve::{Children, NodeSockets, RunFile};
use crate::{Cluster, ControllerSet};

/// Why a command failed, in words that follow "failed to run: ".
pub type Failure = Box<dyn std::error::Error>;

/// Serves a cluster, writes a kubeconfig for it and prints the line that makes kubectl use it.
#[derive(Debug, clap::Args)]
pub struct Serve {
    /// Where to listen; port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// How many simulated nodes there are.
    #[arg(long, default_value_t = 3)]
    nodes: u32,
    /// A YAML file that describes the nodes instead: `nodes:` with `name`, `count`, `labels`, `zone`, `taints`, `capacity`.
    #[arg(long, conflicts_with = "nodes")]
    node_config: Option<PathBuf>,
    /// A YAML file of images and how they can be pulled: `images:` with `name`, `missing`, `unreachable`, `digest`, `pullMs`, `failures`,
    /// `credential`, `program`.
    #[arg(long)]
    images: Option<PathBuf>,
    /// How long events are kept after they were last written (`1h`, `90s`).
    #[arg(long, default_value = "1h", value_parser = length)]
    event_ttl: Duration,
    /// Which built-in controllers run: all, none, or names separated by commas, as kube-controller-manager takes them. `all` does not
    /// name `service-lb-controller`, which gives Services of type LoadBalancer an address, as a cloud provider does.
    #[arg(long, default_value = "all,service-lb-controller", value_parser = ControllerSet::from_str)]
    controllers: ControllerSet,
    /// A directory of YAML or JSON files: the CustomResourceDefinitions in them are served from the start.
    #[arg(long)]
    crd: Option<PathBuf>,
    /// Keeps the objects in this directory, for the next start with it.
    #[arg(long)]
    data_dir: Option<PathBuf>,
    /// A YAML file of faults: what goes wrong with which requests and watches. What is left to chance follows from the seed.
    #[arg(long)]
    faults: Option<PathBuf>,
    /// Leaves out the default StorageClass `standard`.
    #[arg(long)]
    no_default_storage_class: bool,
    /// Leaves out the API `metrics.k8s.io`, which is there as long as there are nodes, as if metrics-server was installed.
    #[arg(long)]
    no_metrics_api: bool,
    /// How long things take on the nodes: as quick as the machine, or what a kubelet with containerd takes.
    #[arg(long, value_enum, default_value = "quick")]
    timing: Pace,
    /// How many times as fast as this machine's clock the cluster's runs. `fake-apiserver clock` lets it jump.
    #[arg(long, default_value = "1", value_parser = Speed::from_str)]
    speed: Speed,
    /// A YAML file of images that stand for command lines of this machine: `images:` with `name`, `entrypoint`, `command`, `args`, `append`,
    /// `ports`, `env`, `directory`.
    #[cfg(unix)]
    #[arg(long)]
    run_images: Option<PathBuf>,
    /// Has the container runtime of each node answer at a unix socket (CRI): NODE.sock in this directory. Programs of `--run-images` find
    /// theirs in the variable `CRI_SOCKET`; without this option the sockets are beside their files.
    #[cfg(unix)]
    #[arg(long)]
    cri_sockets: Option<PathBuf>,
    /// The number that names, uids and latencies follow from.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Where to write the kubeconfig; by default into the directory for temporary files.
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
    /// A bearer token that stands for an administrator; may be given more than once.
    #[arg(long)]
    token: Vec<String>,
    /// Plain HTTP instead of TLS; whoever shows no token is an administrator, so listen on loopback only.
    #[arg(long)]
    insecure_http: bool,
}

/// A served cluster, as a program beside it sees it.
#[derive(Clone, Copy)]
pub struct Served<'a> {
    /// The cluster.
    pub cluster: &'a Cluster,
    /// The names of its nodes.
    pub nodes: &'a [String],
    /// The images that its nodes have or can get.
    pub images: &'a ImageRegistry,
    /// The containers of its nodes, if the programs look at them.
    pub containers: &'a Containers,
}

/// Programs that run beside a served cluster, in its process.
pub trait Beside {
    /// Whether the programs look at the containers of nodes.
    fn looks_at_containers(&self) -> bool {
        false
    }

    /// Starts the programs as tasks, and waits until they are ready. The line that tells that the cluster is there is printed then.
    ///
    /// # Errors
    /// Whatever ends the command.
    fn start<'a>(
        &'a self,
        _served: Served<'a>,
        _tasks: &'a mut JoinSet<()>,
    ) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async { Ok(()) })
    }
}

/// Nothing beside the cluster.
impl Beside for () {}

/// A length of time as Go and Kubernetes write it.
fn length(text: &str) -> Result<Duration, String> {
    let read: jiff::SignedDuration = text.parse().map_err(|error: jiff::Error| error.to_string())?;
    Duration::try_from(read).map_err(|error| error.to_string())
}

/// Where a client of this machine reaches a server that listens at `address`: on loopback, if that is every address.
fn reached_at(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// The programs of images that run as processes, and the sockets of the nodes.
#[cfg(unix)]
struct Outside {
    children: Option<Children>,
    sockets: Option<NodeSockets>,
}

#[cfg(unix)]
impl Outside {
    /// Those that are asked for, of a server at this port.
    fn new(
        run_images: Option<&std::path::Path>,
        cri_sockets: Option<PathBuf>,
        port: u16,
        nodes: &[String],
        (containers, images): (&Containers, &ImageRegistry),
    ) -> Result<Self, Failure> {
        let folder = std::env::temp_dir().join(format!("fake-apiserver-{port}-programs"));
        let sockets = cri_sockets.or_else(|| run_images.is_some().then(|| folder.join("cri")));
        let children = run_images.map(|path| children(path, folder, sockets.clone()));
        let listen = |folder: PathBuf| {
            let listening = NodeSockets::listen(&folder, nodes, containers, images);
            listening.map_err(|error| format!("listen at a socket in {}: {error}", folder.display()))
        };
        Ok(Self {
            children: children.transpose()?,
            sockets: sockets.map(listen).transpose()?,
        })
    }
}

/// The programs of images that run as processes, with their files in `folder`.
#[cfg(unix)]
fn children(path: &std::path::Path, folder: PathBuf, sockets: Option<PathBuf>) -> Result<Children, Failure> {
    let told = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
    let text = std::fs::read_to_string(path).map_err(|error| told(&error))?;
    let images = RunFile::from_yaml(&text).map_err(|error| told(&error))?;
    Ok(Children::new(images, folder, sockets))
}

impl Serve {
    /// Serves the cluster until the process is asked to stop.
    ///
    /// # Errors
    /// If a file cannot be read or written, if the address is taken, if the cluster does not start, or if its data directory cannot be
    /// written any more.
    pub async fn run(self, beside: &dyn Beside) -> Result<(), Failure> {
        let options = self;
        let listener = TcpListener::bind(options.listen).await?;
        let address = listener.local_addr()?;
        let identity = match options.insecure_http {
            true => None,
            false => Some(Arc::new(Identity::generate(&[address.ip()])?)),
        };
        let authority = identity.as_ref().and_then(|identity| identity.authority());
        let front_proxy = match &identity {
            Some(_) => Some(Arc::new(FrontProxy::generate()?)),
            None => None,
        };
        let transport = Transport {
            identity,
            tokens: options.token,
        };
        let (nodes, images) = node_specs(
            options.node_config.as_deref(),
            options.nodes,
            options.images.as_deref(),
        )?;
        let names: Vec<String> = nodes.iter().map(|node| node.name.clone()).collect();
        let mut builder = Cluster::builder()
            .seed(options.seed)
            .node_specs(nodes)
            .images(images.clone())
            .controller_set(options.controllers)
            .authority(authority)
            .front_proxy(front_proxy)
            .metrics_api(!options.no_metrics_api && !names.is_empty())
            .event_life(options.event_ttl)
            .system_objects(true)
            .default_storage_class(!options.no_default_storage_class)
            .agenda(true)
            .quick(options.timing == Pace::Quick)
            .heartbeats(HEARTBEAT);
        if let Some(directory) = &options.crd {
            for definition in definitions(directory)? {
                builder = builder.object(definition);
            }
        }
        if let Some(directory) = options.data_dir {
            builder = builder.data_dir(directory);
        }
        let containers = Containers::default();
        #[cfg(unix)]
        let outside = {
            let (run_images, port) = (options.run_images.as_deref(), address.port());
            let place = (&containers, &images);
            let outside = Outside::new(run_images, options.cri_sockets, port, &names, place)?;
            if let Some(children) = &outside.children {
                builder = builder.outside_programs(Arc::new(children.clone()));
            }
            outside
        };
        #[cfg(unix)]
        let has_sockets = outside.sockets.is_some();
        #[cfg(not(unix))]
        let has_sockets = false;
        if has_sockets || beside.looks_at_containers() {
            builder = builder.containers(containers.clone());
        }
        let faults = match &options.faults {
            Some(path) => {
                let read = std::fs::read_to_string(path).map_err(|error| error.to_string());
                let faults =
                    read.and_then(|text| FaultFile::from_yaml(&text).map_err(|error| error.to_string()));
                faults.map_err(|why| format!("{}: {why}", path.display()))?
            }
            None => FaultFile::default(),
        };
        // Read as late as can be: programs beside the cluster have the machine's clock.
        let cluster = builder.start_time(SystemClock.now()).start().await?;
        for fault in faults.requests {
            cluster.faults().add(fault);
        }
        for fault in faults.connections {
            let _stays = cluster.network().faults().add(fault);
        }
        // Heard from before anybody is told that the server is there.
        let stopped = stop()?;
        let path = options.kubeconfig.unwrap_or_else(|| {
            std::env::temp_dir().join(format!("fake-apiserver-{}.kubeconfig", address.port()))
        });
        let serving = serve::serve(cluster.server().clone(), listener, transport.clone(), stopped);
        let mut serving = std::pin::pin!(serving);
        #[cfg(unix)]
        if let Some(children) = &outside.children {
            let authority = transport
                .identity
                .as_ref()
                .map(|identity| identity.authority_pem());
            children.connect(cluster.client(), reached_at(address), authority);
        }
        let mut programs = JoinSet::new();
        let time = ClusterTime::new(&cluster, options.speed);
        time.publish(cluster.server());
        programs.spawn(time.run());
        let served = Served {
            cluster: &cluster,
            nodes: &names,
            images: &images,
            containers: &containers,
        };
        tokio::select! {
            biased;
            served = &mut serving => return Ok(served?),
            started = beside.start(served, &mut programs) => started?,
        }
        // JSON is YAML.
        write_private(
            &path,
            &format!("{:#}\n", serve::kubeconfig(reached_at(address), &transport)),
        )?;
        println!("export KUBECONFIG={}", path.display());
        let journal = cluster.journal();
        let broken = async {
            let Some(journal) = &journal else {
                return std::future::pending().await;
            };
            journal.broken().await;
            journal.path().display().to_string()
        };
        tokio::select! {
            biased;
            path = broken => Err(format!("{path} cannot be written any more").into()),
            served = serving => Ok(served?),
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("127.0.0.1:1", "127.0.0.1:1")]
    #[case("10.0.0.1:1", "10.0.0.1:1")]
    #[case("0.0.0.0:6443", "127.0.0.1:6443")]
    #[case("[::]:6443", "[::1]:6443")]
    fn addresses(#[case] listened: &str, #[case] reached: &str) {
        let address = |text: &str| text.parse::<SocketAddr>().expect("an address");
        assert_eq!(reached_at(address(listened)), address(reached));
    }
}
