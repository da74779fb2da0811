//! The program `kruise-daemon` as a process.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

use crate::cluster::{NODE, Place};
use crate::{Failure, until};

/// The daemon, which is killed when this is dropped.
pub(crate) struct Daemon {
    port: u16,
    child: Child,
}

impl Daemon {
    /// Starts `program` for the node, and waits until it is healthy. Its log goes below `folder`.
    pub(crate) async fn start(
        program: &Path,
        place: &Place,
        socket: &Path,
        folder: &Path,
    ) -> Result<Self, Failure> {
        let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let log = fs::File::create(folder.join("kruise-daemon.log"))?;
        let child = Command::new(program)
            .arg(format!("--addr=127.0.0.1:{port}"))
            .arg(format!("--socket-file={}", socket.display()))
            .arg(format!("--kubeconfig={}", place.kubeconfig.display()))
            .arg("--v=4")
            .env("NODE_NAME", NODE)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| format!("start {}: {error}", program.display()))?;
        let daemon = Self { port, child };
        until("the daemon's health", Duration::from_secs(30), async || {
            let answer = daemon.get("/healthz").await.unwrap_or_default();
            Ok((answer.starts_with("HTTP/1.1 200") && answer.ends_with("ok")).then_some(()))
        })
        .await?;
        Ok(daemon)
    }

    /// The answer of a path, with its head.
    pub(crate) async fn get(&self, path: &str) -> Result<String, Failure> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).await?;
        let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok(answer)
    }

    /// A number in the process's status: `VmRSS` in kB.
    pub(crate) fn status(&self, name: &str) -> Result<u64, Failure> {
        let id = self.child.id().ok_or("the daemon has ended")?;
        let text = fs::read_to_string(format!("/proc/{id}/status"))?;
        number(&text, name)
    }

    /// How often its threads have waited so far.
    pub(crate) fn waits(&self) -> Result<u64, Failure> {
        let id = self.child.id().ok_or("the daemon has ended")?;
        let mut sum = 0;
        for thread in fs::read_dir(format!("/proc/{id}/task"))? {
            // A thread may end meanwhile.
            if let Ok(text) = fs::read_to_string(thread?.path().join("status")) {
                sum += number(&text, "voluntary_ctxt_switches")?;
            }
        }
        Ok(sum)
    }

    /// Asks it to end, as the kubelet does. Gives whether it ended well.
    pub(crate) async fn stop(mut self) -> Result<bool, Failure> {
        let id = self.child.id().ok_or("the daemon has ended")?;
        Command::new("kill").arg(id.to_string()).status().await?;
        let ended = tokio::time::timeout(Duration::from_secs(10), self.child.wait()).await;
        Ok(ended.map_err(|_| "the daemon does not end")??.success())
    }
}

fn number(status: &str, name: &str) -> Result<u64, Failure> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let text = line.and_then(|line| line.split_whitespace().next());
    Ok(text.ok_or_else(|| format!("there is no {name}"))?.parse()?)
}
