//! A program that runs as a process of this machine.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use machinery::meta::ObjectMeta as _;
use nodes::{AskedToEnd, ContainerLog, DIAL, OutsideContainer};
use rustix::process::{Pid, Signal, kill_process_group};
use shared_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;

use super::file::{RunImage, filled};
use super::folder::{Folder, kubeconfig};
use super::{Children, Reached, socket};

/// How long a token is good, and when it is renewed.
const TOKEN_SECONDS: u64 = 3600;
const TOKEN_RENEWAL: Duration = Duration::from_secs(TOKEN_SECONDS / 2);
/// How long the program waits until it is known where the server is.
const LOOK: Duration = Duration::from_millis(5);
/// The exit code of a container whose program cannot be started, as of a shell.
const NOT_STARTED: i32 = 127;
/// How long the last output of a program may take after its end.
const PRINTED_MAX: Duration = Duration::from_secs(1);
const READ_BYTES: usize = 16 << 10;

/// Why a program was not started.
#[derive(Debug, thiserror::Error)]
enum StartError {
    #[error("write its files: {0}")]
    Files(io::Error),
    #[error("find a free port: {0}")]
    Port(io::Error),
    #[error("run {program}: {error}")]
    Run { program: String, error: io::Error },
    #[error("ask the server: {0}")]
    Server(#[from] kube::Error),
    #[error("ask the server: {0}")]
    Request(#[from] http::Error),
    #[error("the server gave no token")]
    NoToken,
}

/// A program that is to run.
pub(super) struct Child {
    children: Children,
    image: RunImage,
    pod: Arc<Value>,
    container: String,
    words: Vec<String>,
    env: BTreeMap<String, String>,
    files: Vec<(String, Vec<u8>)>,
}

/// Kills a process and those that it has started, unless it has ended.
struct Group(Option<Pid>);

impl Group {
    fn signal(&self, signal: Signal) {
        // It may have ended just now.
        let _ = self.0.map(|pid| kill_process_group(pid, signal));
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

impl Child {
    pub(super) fn new(children: Children, image: RunImage, container: &OutsideContainer<'_>) -> Self {
        let name = container
            .spec
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or_default();
        Self {
            children,
            words: image.words(&container.command, &container.args),
            pod: Arc::clone(container.pod),
            container: name.to_owned(),
            env: container.env.clone(),
            files: (container.files)(),
            image,
        }
    }

    /// Runs it to its end; the exit code.
    pub(super) async fn run(self, log: ContainerLog, mut asked: AskedToEnd) -> i32 {
        let reached = loop {
            match self.children.0.reached.get() {
                Some(reached) => break reached,
                None => tokio::time::sleep(LOOK).await,
            }
        };
        match self.run_to_end(reached, &log, &mut asked).await {
            Ok(code) => code,
            Err(error) => {
                log.write(format!("failed to start the container: {error}\n").as_bytes());
                NOT_STARTED
            }
        }
    }

    async fn run_to_end(
        &self,
        reached: &Reached,
        log: &ContainerLog,
        asked: &mut AskedToEnd,
    ) -> Result<i32, StartError> {
        let name = format!("{}_{}", self.pod.uid(), self.container);
        let folder = Folder::make(self.children.0.folder.join(name)).map_err(StartError::Files)?;
        folder.write_volumes(&self.files).map_err(StartError::Files)?;
        self.write_account(reached, &folder).await?;
        let ports = self.ports()?;
        if !ports.is_empty() {
            self.tell_ports(reached, &ports).await?;
        }
        let mut process = self.start(&self.variables(reached, &folder, &ports))?;
        let mut group = Group(process.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)));
        let mut printed = Box::pin(copy(process.stdout.take(), process.stderr.take(), log));
        let mut is_printed = false;
        let mut is_asked = false;
        let status = loop {
            tokio::select! {
                biased;
                () = &mut printed, if !is_printed => is_printed = true,
                status = process.wait() => break status,
                () = asked.wait(), if !is_asked => {
                    is_asked = true;
                    group.signal(Signal::TERM);
                }
                () = tokio::time::sleep(TOKEN_RENEWAL) => {
                    if let Err(error) = self.write_account(reached, &folder).await {
                        tracing::warn!(%error, pod = %self.pod.name(), "renew a token");
                    }
                }
            }
        };
        // What it has started goes with it; so its output ends.
        drop(Group(group.0.take()));
        if !is_printed {
            // What has left its group may hold the output for ever.
            let _ = tokio::time::timeout(PRINTED_MAX, printed).await;
        }
        Ok(status.map_or(NOT_STARTED, exit_code))
    }

    /// Asks the server for a token, and writes the files of the service account.
    async fn write_account(&self, reached: &Reached, folder: &Folder) -> Result<(), StartError> {
        let namespace = self.pod.namespace();
        let account = self
            .pod
            .pointer("/spec/serviceAccountName")
            .and_then(Value::as_str);
        let path = format!(
            "/api/v1/namespaces/{namespace}/serviceaccounts/{}/token",
            account.unwrap_or("default")
        );
        let body = json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
            "spec": {
                "expirationSeconds": TOKEN_SECONDS,
                "boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": self.pod.name(), "uid": self.pod.uid()},
            },
        });
        let answer = ask(reached, "POST", &path, "application/json", &body).await?;
        let token = answer.pointer("/status/token").and_then(Value::as_str);
        let token = token.ok_or(StartError::NoToken)?;
        let authority = reached.authority.as_deref();
        let token_path = folder.path("serviceaccount/token");
        let config = kubeconfig(reached.address, authority, namespace, &token_path);
        for (name, content) in [
            ("serviceaccount/token", token),
            ("serviceaccount/namespace", namespace),
            ("serviceaccount/ca.crt", authority.unwrap_or_default()),
            ("kubeconfig", &format!("{config:#}\n")),
        ] {
            folder
                .write(name, content.as_bytes())
                .map_err(StartError::Files)?;
        }
        Ok(())
    }

    /// The ports of this machine for those of the container.
    fn ports(&self) -> Result<BTreeMap<u16, u16>, StartError> {
        let mut ports = BTreeMap::new();
        for (own, port) in &self.image.ports {
            let port = match port {
                0 => free_port().map_err(StartError::Port)?,
                port => *port,
            };
            ports.insert(*own, port);
        }
        Ok(ports)
    }

    /// Writes the ports into the pod's annotation, besides those of its other containers.
    async fn tell_ports(&self, reached: &Reached, ports: &BTreeMap<u16, u16>) -> Result<(), StartError> {
        let path = format!(
            "/api/v1/namespaces/{}/pods/{}",
            self.pod.namespace(),
            self.pod.name()
        );
        let pod = ask(reached, "GET", &path, "application/json", &Value::Null).await?;
        let annotations = pod.pointer("/metadata/annotations");
        let said = annotations
            .and_then(|annotations| annotations.get(DIAL))
            .and_then(Value::as_str)
            .unwrap_or_default();
        let is_ours = |part: &&str| {
            let own = part.split_once('=').and_then(|(own, _)| own.trim().parse().ok());
            own.is_some_and(|own: u16| ports.contains_key(&own))
        };
        let kept = said
            .split(',')
            .map(str::trim)
            .filter(|part| !part.is_empty() && !is_ours(part));
        let mut parts: Vec<String> = kept.map(str::to_owned).collect();
        parts.extend(ports.iter().map(|(own, port)| format!("{own}=127.0.0.1:{port}")));
        let annotation = json!({DIAL: parts.join(",")});
        let patch = json!({"metadata": {"uid": self.pod.uid(), "annotations": annotation}});
        ask(reached, "PATCH", &path, "application/merge-patch+json", &patch).await?;
        Ok(())
    }

    /// The variables of the program, besides those of the server's own.
    fn variables(
        &self,
        reached: &Reached,
        folder: &Folder,
        ports: &BTreeMap<u16, u16>,
    ) -> BTreeMap<String, String> {
        let mut variables = self.env.clone();
        let path = |name: &str| folder.path(name).to_string_lossy().into_owned();
        for (name, value) in [
            ("HOSTNAME", self.pod.name().to_owned()),
            ("KUBECONFIG", path("kubeconfig")),
            ("KUBERNETES_SERVICE_HOST", reached.address.ip().to_string()),
            ("KUBERNETES_SERVICE_PORT", reached.address.port().to_string()),
            ("SERVICE_ACCOUNT_DIR", path("serviceaccount")),
            ("VOLUMES_DIR", path("root")),
        ] {
            variables.insert(name.to_owned(), value);
        }
        for (own, port) in ports {
            variables.insert(format!("PORT_{own}"), port.to_string());
        }
        if let Some(sockets) = &self.children.0.sockets {
            let node = self.pod.pointer("/spec/nodeName").and_then(Value::as_str);
            let socket = socket(sockets, node.unwrap_or_default());
            variables.insert("CRI_SOCKET".to_owned(), socket.to_string_lossy().into_owned());
        }
        let of_file = self.image.env.iter();
        let of_file: Vec<_> = of_file
            .map(|(name, value)| (name.clone(), filled(value, &variables)))
            .collect();
        variables.extend(of_file);
        variables
    }

    fn start(&self, variables: &BTreeMap<String, String>) -> Result<tokio::process::Child, StartError> {
        let words: Vec<String> = self.words.iter().map(|word| filled(word, variables)).collect();
        let (program, args) = words
            .split_first()
            .map_or(("", &[][..]), |(program, args)| (program, args));
        let mut command = Command::new(program);
        command
            .args(args)
            .envs(variables)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        if let Some(directory) = &self.image.directory {
            command.current_dir(directory);
        }
        command.spawn().map_err(|error| StartError::Run {
            program: program.to_owned(),
            error,
        })
    }
}

/// A request of the cluster's own administrator.
async fn ask(
    reached: &Reached,
    method: &str,
    path: &str,
    kind: &str,
    body: &Value,
) -> Result<Value, StartError> {
    let body = match body {
        Value::Null => Vec::new(),
        body => body.to_string().into_bytes(),
    };
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(http::header::CONTENT_TYPE, kind)
        .body(body)?;
    Ok(reached.client.request(request).await?)
}

fn free_port() -> io::Result<u16> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    Ok(listener.local_addr()?.port())
}

/// A process that a signal has ended has the code that a shell gives it.
fn exit_code(status: ExitStatus) -> i32 {
    let by_signal = status.signal().map(|signal| signal.saturating_add(128));
    status.code().or(by_signal).unwrap_or(NOT_STARTED)
}

/// Writes what a program prints into the log, to its end.
async fn copy(out: Option<impl AsyncRead + Unpin>, err: Option<impl AsyncRead + Unpin>, log: &ContainerLog) {
    tokio::join!(copy_one(out, log), copy_one(err, log));
}

/// Writes whole lines, so that those of the two streams are not within each other; a long one is written in parts.
async fn copy_one(stream: Option<impl AsyncRead + Unpin>, log: &ContainerLog) {
    let Some(mut stream) = stream else { return };
    let (mut buffer, mut line) = (vec![0; READ_BYTES], Vec::new());
    while let Ok(count @ 1..) = stream.read(&mut buffer).await {
        line.extend_from_slice(buffer.get(..count).unwrap_or_default());
        let end = line.iter().rposition(|byte| *byte == b'\n');
        let end = match end {
            Some(end) => end + 1,
            None if line.len() >= READ_BYTES => line.len(),
            None => continue,
        };
        log.write(line.get(..end).unwrap_or_default());
        line.drain(..end);
    }
    if !line.is_empty() {
        log.write(&line);
    }
}
