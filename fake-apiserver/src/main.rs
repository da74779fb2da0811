//! `fake-apiserver`: a Kubernetes cluster behind a socket, without containers.

use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr as _;
use std::sync::Arc;
use std::time::Duration;

use clap::{Parser, Subcommand};
use client_kit::{Clock as _, SystemClock};
use fake_apiserver::faults::Fault;
use fake_apiserver::nodes::{Disks, ImageRegistry, Kubelet, NodeFile, NodeSpec, Scheduler, Timing};
use fake_apiserver::serve::{Identity, Transport};
use fake_apiserver::{Cluster, ControllerSet, serve};
use shared_json::Value;
use tokio::net::TcpListener;

/// Documents are many small pieces, made and dropped.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How often a node says that it is alive, as a real one.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// A Kubernetes cluster without containers: API server, simulated nodes, built-in controllers.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serves a cluster, writes a kubeconfig for it and prints the line that makes kubectl use it.
    Serve(Serve),
    /// Gives any API server simulated nodes, until stopped.
    Nodes(Nodes),
}

#[derive(clap::Args)]
struct Nodes {
    /// The kubeconfig of the API server.
    #[arg(long)]
    kubeconfig: PathBuf,
    /// How many nodes.
    #[arg(long, default_value_t = 3)]
    count: u32,
    /// A YAML file that describes the nodes instead.
    #[arg(long, conflicts_with = "count")]
    node_config: Option<PathBuf>,
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

/// How long things take on simulated nodes.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Pace {
    /// As quick as the machine.
    Quick,
    /// What a kubelet with containerd takes.
    Kubelet,
}

impl Pace {
    fn timing(self) -> Timing {
        match self {
            Self::Quick => Timing::quick(),
            Self::Kubelet => Timing::default(),
        }
    }
}

#[derive(clap::Args)]
struct Serve {
    /// Where to listen; port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// How many simulated nodes there are.
    #[arg(long, default_value_t = 3)]
    nodes: u32,
    /// A YAML file that describes the nodes instead: `nodes:` with `name`, `count`, `labels`, `zone`, `taints`, `capacity`.
    #[arg(long, conflicts_with = "nodes")]
    node_config: Option<PathBuf>,
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
    /// How long things take on the nodes: as quick as the machine, or what a kubelet with containerd takes.
    #[arg(long, value_enum, default_value = "quick")]
    timing: Pace,
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

fn main() -> ExitCode {
    let command = Arguments::parse().command;
    // One thread: a cluster's state is one store under one lock, and its tasks are short.
    let result = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Into::into)
        .and_then(|runtime| {
            runtime.block_on(async {
                match command {
                    Command::Serve(options) => run(options).await,
                    Command::Nodes(options) => run_nodes(options).await,
                }
            })
        });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: failed to run: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The nodes of a file, or so many plain ones; and the images of the file.
fn node_specs(
    file: Option<&Path>,
    count: u32,
) -> Result<(Vec<NodeSpec>, ImageRegistry), Box<dyn std::error::Error>> {
    let images = ImageRegistry::default();
    let mut nodes = Vec::new();
    if let Some(path) = file {
        let told = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let text = std::fs::read_to_string(path).map_err(|error| told(&error))?;
        let file = NodeFile::from_yaml(&text).map_err(|error| told(&error))?;
        file.register(&images);
        nodes = file.nodes;
    }
    if nodes.is_empty() {
        nodes = (1..=count).map(NodeSpec::numbered).collect();
    }
    Ok((nodes, images))
}

async fn run_nodes(options: Nodes) -> Result<(), Box<dyn std::error::Error>> {
    let kubeconfig = kube::config::Kubeconfig::read_from(&options.kubeconfig)?;
    let config =
        kube::Config::from_custom_kubeconfig(kubeconfig, &kube::config::KubeConfigOptions::default()).await?;
    let client = kube::Client::try_from(config)?;
    let clock: client_kit::SharedClock = Arc::new(SystemClock);
    let mut tasks = tokio::task::JoinSet::new();
    if options.scheduler {
        tasks.spawn(Scheduler::new(client.clone(), Arc::clone(&clock)).run());
    }
    let (seed, disks) = (client_kit::Seed(options.seed), Disks::default());
    let (nodes, images) = node_specs(options.node_config.as_deref(), options.count)?;
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

/// A length of time as Go and Kubernetes write it.
fn length(text: &str) -> Result<Duration, String> {
    let read: jiff::SignedDuration = text.parse().map_err(|error: jiff::Error| error.to_string())?;
    Duration::try_from(read).map_err(|error| error.to_string())
}

async fn run(options: Serve) -> Result<(), Box<dyn std::error::Error>> {
    let listener = TcpListener::bind(options.listen).await?;
    let address = listener.local_addr()?;
    let identity = match options.insecure_http {
        true => None,
        false => Some(Arc::new(Identity::generate(&[address.ip()])?)),
    };
    let authority = identity.as_ref().and_then(|identity| identity.authority());
    let transport = Transport {
        identity,
        tokens: options.token,
    };
    let (nodes, images) = node_specs(options.node_config.as_deref(), options.nodes)?;
    let mut builder = Cluster::builder()
        .seed(options.seed)
        .start_time(SystemClock.now())
        .node_specs(nodes)
        .images(images)
        .controller_set(options.controllers)
        .authority(authority)
        .event_life(options.event_ttl)
        .system_objects(true)
        .default_storage_class(!options.no_default_storage_class)
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
    let faults = match &options.faults {
        Some(path) => {
            let read = std::fs::read_to_string(path).map_err(|error| error.to_string());
            let faults = read.and_then(|text| Fault::from_yaml(&text).map_err(|error| error.to_string()));
            faults.map_err(|why| format!("{}: {why}", path.display()))?
        }
        None => Vec::new(),
    };
    let cluster = builder.start().await?;
    for fault in faults {
        cluster.faults().add(fault);
    }
    // Heard from before anybody is told that the server is there.
    let stopped = stop()?;
    let path = options.kubeconfig.unwrap_or_else(|| {
        std::env::temp_dir().join(format!("fake-apiserver-{}.kubeconfig", address.port()))
    });
    // JSON is YAML.
    write_private(&path, &format!("{:#}\n", serve::kubeconfig(address, &transport)))?;
    println!("export KUBECONFIG={}", path.display());
    let journal = cluster.journal();
    let broken = async {
        match &journal {
            Some(journal) => journal.broken().await,
            None => std::future::pending().await,
        }
    };
    let serving = serve::serve(cluster.server().clone(), listener, transport, stopped);
    tokio::select! {
        biased;
        () = broken => Err("the data directory cannot be written any more".into()),
        served = serving => Ok(served?),
    }
}

/// The CustomResourceDefinitions in the files of a directory, in the order of the files' names; other objects are left out.
fn definitions(directory: &Path) -> Result<Vec<Value>, Box<dyn std::error::Error>> {
    let told = |path: &Path, error: &dyn std::fmt::Display| format!("read {}: {error}", path.display());
    let entries = std::fs::read_dir(directory).map_err(|error| told(directory, &error))?;
    let mut paths = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    let mut found = Vec::new();
    for path in paths {
        let is_manifest = path
            .extension()
            .is_some_and(|extension| ["yaml", "yml", "json"].iter().any(|known| extension == *known));
        if !is_manifest {
            continue;
        }
        let text = std::fs::read_to_string(&path).map_err(|error| told(&path, &error))?;
        let documents: Vec<Value> =
            serde_saphyr::from_multiple(&text).map_err(|error| told(&path, &error))?;
        let mut kept: Vec<Value> = documents
            .into_iter()
            .filter(|document| {
                document.get("kind").and_then(Value::as_str) == Some("CustomResourceDefinition")
            })
            .collect();
        found.append(&mut kept);
    }
    Ok(found)
}

/// Writes a file that only its owner may read: it holds a key.
fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)?.write_all(text.as_bytes())
}

/// Ready when the process is asked to stop.
#[cfg(unix)]
fn stop() -> io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            biased;
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

/// Ready when the process is asked to stop.
#[cfg(not(unix))]
fn stop() -> io::Result<impl Future<Output = ()>> {
    Ok(async {
        // Without a way to hear of it the server runs until it is killed.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    })
}
