//! A containerd of the proof's own, with its folders and its socket below one folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use cri::Client;
use cri::messages::ListPodSandboxRequest;
use tokio::process::{Child, Command};
use tokio::sync::Mutex;

use crate::{Failure, until};

/// A containerd, which is killed when this is dropped.
pub(crate) struct Containerd {
    /// Its socket.
    pub(crate) socket: PathBuf,
    folder: PathBuf,
    child: Mutex<Child>,
}

impl Containerd {
    /// Starts it below `folder`. Sandboxes run `pause`, an image of the registry.
    ///
    /// There is no network plugin: sandboxes have the network of the node.
    pub(crate) async fn start(folder: &Path, pause: &str) -> Result<Self, Failure> {
        let socket = folder.join("containerd.sock");
        let root = folder.display();
        let config = format!(
            r#"version = 2
root = "{root}/root"
state = "{root}/state"
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs"]
[grpc]
address = "{root}/containerd.sock"
[ttrpc]
address = "{root}/containerd.sock.ttrpc"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{pause}"
disable_tcp_service = true
stream_server_port = "0"
restrict_oom_score_adj = true
disable_apparmor = true
tolerate_missing_hugetlb_controller = true
[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "native"
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{root}/cni"
conf_dir = "{root}/cni"
"#
        );
        fs::create_dir_all(folder.join("cni"))?;
        fs::write(folder.join("config.toml"), config)?;
        let containerd = Self {
            socket,
            folder: folder.to_owned(),
            child: Mutex::new(spawn(folder)?),
        };
        containerd.answers().await?;
        Ok(containerd)
    }

    /// Kills it, and starts it again. Containers run on meanwhile.
    pub(crate) async fn restart(&self) -> Result<(), Failure> {
        let mut child = self.child.lock().await;
        child.kill().await?;
        *child = spawn(&self.folder)?;
        drop(child);
        self.answers().await
    }

    /// Waits until it answers.
    async fn answers(&self) -> Result<(), Failure> {
        let client = self.client();
        until("containerd to answer", Duration::from_secs(30), async || {
            let limit = Some(Duration::from_secs(5));
            // Its version it tells before it knows its containers.
            Ok(client.call(&ListPodSandboxRequest {}, limit).await.ok())
        })
        .await?;
        Ok(())
    }

    /// A client of its own.
    pub(crate) fn client(&self) -> Client {
        Client::new(&self.socket, "containerd-proof")
    }

    /// Ends it.
    pub(crate) async fn stop(self) -> Result<(), Failure> {
        self.child.lock().await.kill().await?;
        Ok(())
    }
}

/// Starts the process with the configuration in a folder.
fn spawn(folder: &Path) -> Result<Child, Failure> {
    let log = fs::File::options()
        .create(true)
        .append(true)
        .open(folder.join("containerd.log"))?;
    let child = Command::new("containerd")
        .arg("--config")
        .arg(folder.join("config.toml"))
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .kill_on_drop(true)
        .spawn();
    Ok(child.map_err(|error| format!("start containerd: {error}"))?)
}
