//! The container runtimes of the node, by CRI.
//!
//! `sockets` finds the sockets, [`Runtimes`] the runtimes that answer there. `containers` and `images` make the daemon's requests of them:
//! container work goes to the runtime that is named before the container's id (`containerd://…`), images go to the first runtime.

mod containers;
mod images;
mod sockets;

use std::path::PathBuf;
use std::time::Duration;

use cri::messages::{ImageFsInfoRequest, ListImagesRequest, VersionRequest};
use cri::{Client, Status};

pub use sockets::{HOST_RUN, sockets};

use crate::error::DaemonError;

/// How long a call may take that does no work (the kubelet: two minutes).
const CALL_LIMIT: Duration = Duration::from_secs(120);
/// How long a runtime may take to answer at the start of the daemon.
const START_LIMIT: Duration = Duration::from_secs(10);

/// A runtime.
struct Runtime {
    /// Its name before the ids of its containers.
    name: String,
    client: Client,
}

/// The runtimes of the node. There is at least one.
pub struct Runtimes(Vec<Runtime>);

impl Runtimes {
    /// The runtimes at these sockets. One that does not answer is left out.
    ///
    /// # Errors
    /// If none answers.
    pub async fn connect(sockets: &[PathBuf], user_agent: &'static str) -> Result<Self, DaemonError> {
        let mut found = Vec::new();
        let mut refused = Vec::new();
        for socket in sockets {
            match Runtime::connect(Client::new(socket, user_agent)).await {
                Ok(runtime) => found.push(runtime),
                Err(status) => {
                    tracing::warn!(socket = %socket.display(), %status, "failed to use a runtime");
                    refused.push(format!("{}: {status}", socket.display()));
                }
            }
        }
        if found.is_empty() {
            return Err(DaemonError::NoRuntime(refused.join("\n")));
        }
        Ok(Self(found))
    }

    /// The runtime of a container, and the container's id there.
    fn of<'a>(&self, id: &'a str) -> Option<(&Runtime, &'a str)> {
        let (name, id) = id.split_once("://")?;
        let runtime = self.0.iter().find(|runtime| runtime.name == name)?;
        Some((runtime, id))
    }
}

impl Runtime {
    /// A runtime that has images and says its name.
    async fn connect(client: Client) -> Result<Self, Status> {
        let limit = Some(START_LIMIT);
        client.call(&ImageFsInfoRequest {}, limit).await?;
        client.call(&ListImagesRequest {}, limit).await?;
        let request = VersionRequest {
            version: "0.1.0".to_owned(),
        };
        let version = client.call(&request, limit).await?;
        tracing::info!(
            socket = %client.socket().display(),
            name = version.runtime_name,
            version = version.runtime_version,
            "use a runtime"
        );
        Ok(Self {
            name: version.runtime_name,
            client,
        })
    }
}

#[cfg(test)]
mod tests;
