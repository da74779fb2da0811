//! The command line of `fake-apiserver`: [`Serve`] a cluster, move its [`Clock`], or give another one [`Nodes`].
//!
//! Another program may have the same command line, and start programs [`Beside`] the cluster, in its process.

mod clock;
mod files;
mod nodes;
mod serve;

use std::io;
use std::time::Duration;

use crate::nodes::Timing;

pub use clock::Clock;
pub use nodes::Nodes;
pub use serve::{Beside, Failure, Serve, Served};

/// The version of Kubernetes that a cluster has.
pub const KUBERNETES_VERSION: &str = "1.36.2";

/// How often a node says that it is alive, as a real one.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// How long things take on simulated nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Pace {
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

/// Ready when the process is asked to stop.
#[cfg(unix)]
pub(crate) fn stop() -> io::Result<impl Future<Output = ()>> {
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
pub(crate) fn stop() -> io::Result<impl Future<Output = ()>> {
    Ok(async {
        // Without a way to hear of it the server runs until it is killed.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    })
}
