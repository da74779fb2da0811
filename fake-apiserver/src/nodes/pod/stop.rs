//! Stopping containers, and the pod.

use std::time::Duration;

use futures::StreamExt as _;
use futures::future::join_all;
use shared_json::Value;
use tokio::time::Instant;

use super::worker::{Gone, PodWorker};
use crate::meta::at;
use crate::nodes::programs::Exit;
use crate::nodes::status::{ContainerRecord, Kind};

/// The grace period of a pod that names none.
const GRACE_SECONDS: u64 = 30;
/// What every container has left to end, however long its hook took.
const GRACE_MIN: Duration = Duration::from_secs(2);

impl PodWorker {
    /// The names of the running containers that fit, those that stay beside the others last.
    pub(super) fn running_names(&self, fits: impl Fn(&ContainerRecord) -> bool) -> Vec<String> {
        self.record
            .containers
            .iter()
            .filter(|container| container.is_running() && fits(container))
            .map(|container| container.name.clone())
            .collect()
    }

    pub(super) fn announce_stop(&self, names: &[String]) {
        for name in names {
            if let Some(container) = self
                .record
                .containers
                .iter()
                .find(|container| container.name == *name)
            {
                self.normal(
                    container.kind,
                    name,
                    "Killing",
                    format!("Stopping container {name}"),
                );
            }
        }
    }

    /// How long containers may take to end.
    fn grace(&self) -> Duration {
        let own = at(&self.pod, "metadata.deletionGracePeriodSeconds").and_then(Value::as_u64);
        let spec = at(&self.pod, "spec.terminationGracePeriodSeconds").and_then(Value::as_u64);
        Duration::from_secs(own.or(spec).unwrap_or(GRACE_SECONDS))
    }

    /// Stops containers: their hooks, a request to end, and when their time is over, the end. Sidecars are asked after
    /// the others have ended, the last one first; their hooks run with the others'.
    pub(super) async fn stop(&mut self, names: Vec<String>, grace: Option<Duration>) -> Result<(), Gone> {
        let grace = grace.unwrap_or_else(|| self.grace());
        let deadline = Instant::now() + grace;
        let is_sidecar = |worker: &Self, name: &String| {
            worker
                .record
                .containers
                .iter()
                .any(|container| container.name == *name && container.kind == Kind::Sidecar)
        };
        let (mut sidecars, others): (Vec<String>, Vec<String>) =
            names.into_iter().partition(|name| is_sidecar(self, name));
        let hooks = others
            .iter()
            .map(|name| (name, true))
            .chain(sidecars.iter().map(|name| (name, false)))
            .map(|(name, asks)| self.prepare_to_stop(name, deadline, !grace.is_zero(), asks));
        join_all(hooks).await;
        self.stop_together(&others, deadline).await;
        while let Some(name) = sidecars.pop() {
            if let Some(process) = self.processes.get(&name) {
                process.terminate();
            }
            self.stop_together(&[name], deadline).await;
        }
        self.pause(Duration::ZERO).await
    }

    /// Runs a container's hook, if it has one and there is time, and then asks the container to end if it is to end now.
    async fn prepare_to_stop(&self, name: &str, deadline: Instant, has_time: bool, asks: bool) {
        if has_time {
            self.pre_stop(name, deadline).await;
        }
        if let Some(process) = self.processes.get(name).filter(|_| asks) {
            process.terminate();
        }
    }

    /// Waits for containers that have been asked to end, and ends them when their time is over.
    async fn stop_together(&mut self, names: &[String], deadline: Instant) {
        let deadline = deadline.max(Instant::now() + GRACE_MIN);
        loop {
            let serving = names.iter().filter_map(|name| {
                let process = self.processes.get(name)?;
                Some((process.serves?, name.clone()))
            });
            // What simply serves ends after a moment, unless it has not even that.
            let next = serving.min();
            let left: Vec<&String> = names
                .iter()
                .filter(|name| self.processes.contains_key(name))
                .collect();
            if left.is_empty() {
                return;
            }
            if let Some((stop, name)) = next {
                tokio::time::sleep(stop.min(deadline.saturating_duration_since(Instant::now()))).await;
                let others: Vec<String> = names
                    .iter()
                    .filter(|name| {
                        self.processes
                            .get(name)
                            .is_some_and(|process| process.serves.is_some())
                    })
                    .cloned()
                    .collect();
                self.end(&name, Exit::default());
                for other in others {
                    self.end(&other, Exit::default());
                }
                continue;
            }
            tokio::select! {
                biased;
                Some((run, exit)) = self.exits.1.next() => self.note_exit(&run, exit),
                () = tokio::time::sleep_until(deadline) => {
                    for name in left.into_iter().cloned().collect::<Vec<_>>() {
                        self.kill(&name);
                    }
                    return;
                }
            }
        }
    }

    async fn pre_stop(&self, name: &str, deadline: Instant) {
        let Some(spec) = self.spec_of(name) else { return };
        let Some(hook) = at(spec, "lifecycle.preStop")
            .filter(|hook| hook.is_object())
            .cloned()
        else {
            return;
        };
        let kind = self
            .record
            .containers
            .iter()
            .find(|container| container.name == name)
            .map_or(Kind::Regular, |container| container.kind);
        match tokio::time::timeout_at(deadline, self.run_hook(name, &hook)).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => self.warning(kind, name, "FailedPreStopHook", "PreStopHook failed"),
            // The time is over: the container is killed while its hook still runs.
            Err(_) => {}
        }
    }

    /// Stops the containers, says so, and lets the pod go.
    pub(super) async fn terminate(&mut self) -> Result<(), Gone> {
        if !self.record.over {
            let running = self.running_names(|_| true);
            self.announce_stop(&running);
            self.write_status().await;
            self.stop(running, None).await?;
            self.processes.clear();
            self.record.sandbox = false;
            self.record.over = true;
            self.record.stopped = true;
            self.write_status().await;
            self.pause(self.timing().remove).await?;
        }
        while !self.remove().await {
            self.until(self.next_rewrite()).await?;
            self.refresh()?;
            self.write_status().await;
        }
        // A finalizer may hold the object: then it stays as it is.
        self.wait_gone().await
    }
}
