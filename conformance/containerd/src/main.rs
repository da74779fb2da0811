//! Proves `kruise-daemon` on a real containerd.
//!
//! The proof starts a registry and a cluster with OpenKruise's manager in this process, a containerd and the daemon beside it, and
//! runs the pods of the node by a small kubelet. Each scene asks the cluster for something and looks for it at the runtime and in
//! the cluster. The daemon is the built program, and reaches the rest through the API server and the runtime's socket alone.
//!
//! Usage: `containerd-proof BUSYBOX KRUISE-DAEMON FOLDER`, as root, with containerd and runc in the path.

mod cluster;
mod containerd;
mod daemon;
mod image;
mod kubelet;
mod registry;
mod scenes;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::cluster::Place;
use crate::containerd::Containerd;
use crate::daemon::Daemon;
use crate::kubelet::Kubelet;
use crate::registry::Images;

/// Why the proof fails.
type Failure = Box<dyn std::error::Error + Send + Sync>;

/// How long between two looks at something that is waited for.
const LOOK: Duration = Duration::from_millis(100);

/// Asks until there is an answer.
async fn until<T>(
    what: &str,
    limit: Duration,
    mut ask: impl AsyncFnMut() -> Result<Option<T>, Failure>,
) -> Result<T, Failure> {
    let began = Instant::now();
    loop {
        if let Some(found) = ask().await? {
            return Ok(found);
        }
        if began.elapsed() > limit {
            return Err(format!("waited {} s in vain for {what}", limit.as_secs()).into());
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// All that runs.
struct Proof {
    /// The address of the registry.
    registry: String,
    place: Place,
    containerd: Containerd,
    daemon: Daemon,
    /// The folder of the containers' logs.
    logs: PathBuf,
}

/// The images of the registry, whose layer has `busybox`.
fn images(busybox: &[u8]) -> Images {
    let layer = image::layer(busybox);
    let names = ["pause:1", "app:1", "app:2", "private/app:1"];
    let image = |name: &&str| ((*name).to_owned(), image::image(&layer, name));
    names.iter().map(image).collect()
}

async fn prove(busybox: &Path, program: &Path, folder: &Path) -> Result<bool, Failure> {
    let busybox = std::fs::read(busybox)?;
    let mut tasks = JoinSet::new();
    let registry = registry::start(&mut tasks, images(&busybox)).await?;
    let place = cluster::start(&mut tasks, folder).await?;
    let containerd = Containerd::start(folder, &format!("{registry}/pause:1")).await?;
    let daemon = Daemon::start(program, &place, &containerd.socket, folder).await?;
    let logs = folder.join("pods");
    let kubelet = Kubelet::new(place.client.clone(), containerd.client(), &logs);
    tasks.spawn(kubelet.run());
    let proof = Proof {
        registry,
        place,
        containerd,
        daemon,
        logs,
    };
    let ended = scenes::play(&proof).await;
    tasks.shutdown().await;
    scenes::clean_up(&proof).await?;
    proof.containerd.stop().await?;
    let stopped = proof.daemon.stop().await?;
    if !stopped {
        println!("failed: containerd: the daemon did not end well when it was asked to");
    }
    Ok(ended && stopped)
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [busybox, program, folder] = &arguments[..] else {
        eprintln!("usage: containerd-proof BUSYBOX KRUISE-DAEMON FOLDER");
        return ExitCode::from(2);
    };
    match prove(busybox, program, folder).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("failed: containerd: {error}");
            ExitCode::FAILURE
        }
    }
}
