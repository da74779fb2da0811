//! Containers of pods: the running ones, commands in them, their stop.

use std::collections::BTreeMap;
use std::time::Duration;

use controller::daemon::{CommandOutput, ContainerRuntime, RunningContainer, RuntimeError};
use cri::messages::{
    Container, ContainerFilter, ContainerState, ContainerStatus, ContainerStatusRequest, ExecSyncRequest,
    ListContainersRequest, StopContainerRequest,
};
use cri::{Code, Status};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use jiff::Timestamp;

use super::{CALL_LIMIT, Runtime, Runtimes};

/// The label with the uid of a container's pod, which the kubelet gives it. The others are below.
const POD_UID: &str = "io.kubernetes.pod.uid";
/// The label with its name.
const NAME: &str = "io.kubernetes.container.name";
/// The annotation with its hash, a hexadecimal number.
const HASH: &str = "io.kubernetes.container.hash";
/// The annotation with the number of its restarts.
const RESTARTS: &str = "io.kubernetes.container.restartCount";
/// The annotation with its hook before it is stopped.
const PRE_STOP: &str = "io.kubernetes.container.preStopHandler";

/// A failure of a runtime.
fn failed(status: &Status) -> RuntimeError {
    RuntimeError::Failed(status.to_string())
}

/// A time in whole seconds, rounded up, as CRI has it.
fn seconds(time: Duration) -> i64 {
    let seconds = time.as_secs() + u64::from(time.subsec_nanos() > 0);
    i64::try_from(seconds).unwrap_or(i64::MAX)
}

/// The text of a command that took too long, as the kubelet's client of CRI has it.
fn timed_out(command: &[String], seconds: i64) -> String {
    let time = match (seconds / 60, seconds % 60) {
        (0, seconds) => format!("{seconds}s"),
        (minutes, seconds) => format!("{minutes}m{seconds}s"),
    };
    format!(
        "command timed out: {:?} timed out after {time}",
        command.join(" ")
    )
}

/// The newest container of each name.
fn newest(containers: Vec<Container>) -> Vec<Container> {
    let mut by_name: BTreeMap<String, Container> = BTreeMap::new();
    for container in containers {
        let Some(name) = container.labels.get(NAME) else {
            continue;
        };
        let age = |container: &Container| {
            let attempt = container.metadata.as_ref().map(|metadata| metadata.attempt);
            (container.created_at, attempt)
        };
        let known = by_name.get(name);
        if known.is_none_or(|known| age(known) < age(&container)) {
            by_name.insert(name.clone(), container);
        }
    }
    by_name.into_values().collect()
}

/// A container of the runtime called `runtime`, as the daemon sees it. A value that cannot be read counts as absent.
fn shown(runtime: &str, status: ContainerStatus) -> RunningContainer {
    let annotation = |name: &str| status.annotations.get(name).map(String::as_str);
    let started = Timestamp::from_nanosecond(i128::from(status.started_at));
    RunningContainer {
        name: status.labels.get(NAME).cloned().unwrap_or_default(),
        restart_count: annotation(RESTARTS)
            .and_then(|count| count.parse().ok())
            .unwrap_or_default(),
        hash: annotation(HASH)
            .and_then(|hash| u64::from_str_radix(hash, 16).ok())
            .unwrap_or_default(),
        started_at: started.unwrap_or_default(),
        pre_stop: annotation(PRE_STOP).and_then(|hook| serde_json::from_str(hook).ok()),
        running: status.state() == ContainerState::Running,
        id: format!("{runtime}://{}", status.id),
    }
}

impl Runtime {
    async fn containers(&self, pod_uid: &str) -> Result<Vec<RunningContainer>, RuntimeError> {
        let filter = ContainerFilter {
            label_selector: BTreeMap::from([(POD_UID.to_owned(), pod_uid.to_owned())]),
            ..ContainerFilter::default()
        };
        let request = ListContainersRequest { filter: Some(filter) };
        let listed = self.client.call(&request, Some(CALL_LIMIT)).await;
        let listed = listed.map_err(|status| failed(&status))?;
        let mut containers = Vec::new();
        for container in newest(listed.containers) {
            let request = ContainerStatusRequest {
                container_id: container.id,
            };
            match self.client.call(&request, Some(CALL_LIMIT)).await {
                Ok(answer) => containers.extend(answer.status.map(|status| shown(&self.name, status))),
                // It was removed since the list.
                Err(status) if status.code == Code::NOT_FOUND => {}
                Err(status) => return Err(failed(&status)),
            }
        }
        Ok(containers)
    }
}

impl Runtimes {
    fn runtime_of<'a>(&self, id: &'a str) -> Result<(&Runtime, &'a str), RuntimeError> {
        let missing = || RuntimeError::Failed(format!("not found runtime service for {id}"));
        self.of(id).ok_or_else(missing)
    }
}

impl ContainerRuntime for Runtimes {
    fn containers<'a>(
        &'a self,
        pod_uid: &'a str,
    ) -> BoxFuture<'a, Result<Vec<RunningContainer>, RuntimeError>> {
        async move {
            let mut containers = Vec::new();
            for runtime in &self.0 {
                containers.extend(runtime.containers(pod_uid).await?);
            }
            Ok(containers)
        }
        .boxed()
    }

    fn exec<'a>(
        &'a self,
        id: &'a str,
        command: &'a [String],
        timeout: Duration,
    ) -> BoxFuture<'a, Result<CommandOutput, RuntimeError>> {
        async move {
            let (runtime, id) = self.runtime_of(id)?;
            let request = ExecSyncRequest {
                container_id: id.to_owned(),
                cmd: command.to_vec(),
                timeout: seconds(timeout),
            };
            let limit = timeout.saturating_add(CALL_LIMIT);
            match runtime.client.call(&request, Some(limit)).await {
                Ok(ended) => Ok(CommandOutput {
                    code: ended.exit_code,
                    out: ended.stdout,
                    err: ended.stderr,
                }),
                Err(status) if status.code == Code::DEADLINE_EXCEEDED => {
                    Err(RuntimeError::TimedOut(timed_out(command, request.timeout)))
                }
                Err(status) => Err(failed(&status)),
            }
        }
        .boxed()
    }

    fn stop<'a>(&'a self, id: &'a str, grace: Duration) -> BoxFuture<'a, Result<(), RuntimeError>> {
        async move {
            let (runtime, id) = self.runtime_of(id)?;
            let request = StopContainerRequest {
                container_id: id.to_owned(),
                timeout: seconds(grace),
            };
            let limit = grace.saturating_add(CALL_LIMIT);
            match runtime.client.call(&request, Some(limit)).await {
                Ok(_) => Ok(()),
                // A container that has been removed does not run.
                Err(status) if status.code == Code::NOT_FOUND => Ok(()),
                Err(status) => Err(failed(&status)),
            }
        }
        .boxed()
    }
}
