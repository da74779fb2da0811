//! Stopping containers, and the pod.

use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, StreamExt as _};
use shared_json::Value;
use tokio::time::Instant;

use super::worker::{Gone, PodWorker};
use crate::meta::at;
use crate::nodes::programs::Exit;
use crate::nodes::status::{ContainerRecord, Kind};
use crate::timer;

/// The grace period of a pod that names none.
const GRACE_SECONDS: u64 = 30;
/// What every container has left to end, however long its hook took.
const GRACE_MIN: Duration = Duration::from_secs(2);

/// How long containers have to end, and until when.
struct Time {
    grace: Duration,
    deadline: Instant,
}

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
        let spec = at(&self.pod, "spec.terminationGracePeriodSeconds").and_then(Value::as_u64);
        let spec = Duration::from_secs(spec.unwrap_or(GRACE_SECONDS));
        self.grace_of_deletion().unwrap_or(spec)
    }

    /// How long whoever deletes the pod gives it.
    fn grace_of_deletion(&self) -> Option<Duration> {
        let own = at(&self.pod, "metadata.deletionGracePeriodSeconds").and_then(Value::as_u64);
        own.map(Duration::from_secs)
    }

    /// Stops containers: their hooks, a request to end, and when their time is over, the end. Sidecars are asked after
    /// the others have ended, the last one first; their hooks run with the others'. Whether they are ready is asked all
    /// the while.
    pub(super) async fn stop(&mut self, names: Vec<String>, grace: Option<Duration>) -> Result<(), Gone> {
        let grace = grace.unwrap_or_else(|| self.grace());
        let mut time = Time {
            grace,
            deadline: Instant::now() + grace,
        };
        self.probes.keep_readiness(&names);
        let is_sidecar = |worker: &Self, name: &String| worker.kind_of(name) == Kind::Sidecar;
        let (mut sidecars, others): (Vec<String>, Vec<String>) =
            names.into_iter().partition(|name| is_sidecar(self, name));
        let hooks = FuturesUnordered::new();
        let asks = others.iter().map(|name| (name, true));
        for (name, asks) in asks.chain(sidecars.iter().map(|name| (name, false))) {
            match self.pre_stop(name).filter(|_| !grace.is_zero()) {
                Some(hook) => {
                    let name = name.clone();
                    hooks.push(hook.map(move |result| (name, asks, result)));
                }
                None if asks => self.ask_to_end(name),
                None => {}
            }
        }
        self.run_hooks(hooks, &mut time).await?;
        // Those whose hooks still run.
        for name in &others {
            self.ask_to_end(name);
        }
        self.stop_together(&others, &mut time).await?;
        while let Some(name) = sidecars.pop() {
            self.ask_to_end(&name);
            self.stop_together(&[name], &mut time).await?;
        }
        self.pause(Duration::ZERO).await
    }

    fn ask_to_end(&self, name: &str) {
        if let Some(process) = self.processes.get(name) {
            process.terminate();
        }
    }

    /// The hook before a container's end, if it has one.
    fn pre_stop(&self, name: &str) -> Option<BoxFuture<'static, Result<(), String>>> {
        let hook = at(self.spec_of(name)?, "lifecycle.preStop").filter(|hook| hook.is_object())?;
        Some(self.hook(name, hook).boxed())
    }

    /// Runs hooks until all are done or the time is over, and then asks each container to end if it is to end now. When the time is
    /// over, containers are killed while their hooks still run.
    async fn run_hooks(
        &mut self,
        mut hooks: FuturesUnordered<impl Future<Output = (String, bool, Result<(), String>)>>,
        time: &mut Time,
    ) -> Result<(), Gone> {
        while !hooks.is_empty() {
            tokio::select! {
                biased;
                Some((name, asks, result)) = hooks.next() => {
                    if result.is_err() {
                        self.warning(self.kind_of(&name), &name, "FailedPreStopHook", "PreStopHook failed");
                    }
                    if asks {
                        self.ask_to_end(&name);
                    }
                }
                () = tokio::time::sleep_until(time.deadline) => return Ok(()),
                changed = self.inbox.changed() => {
                    changed.map_err(|_| Gone)?;
                    self.shorten(time)?;
                }
                () = timer::until(self.probes.next_due()) => self.probe().await?,
            }
        }
        Ok(())
    }

    /// Takes the newest pod: whoever deletes it (again) may give it less time, which then begins; but no more.
    fn shorten(&mut self, time: &mut Time) -> Result<(), Gone> {
        self.take_update()?;
        if let Some(grace) = self.grace_of_deletion().filter(|grace| *grace < time.grace) {
            time.grace = grace;
            time.deadline = Instant::now() + grace;
        }
        Ok(())
    }

    /// Waits for containers that have been asked to end, and ends them when their time is over.
    async fn stop_together(&mut self, names: &[String], time: &mut Time) -> Result<(), Gone> {
        let least = Instant::now() + GRACE_MIN;
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
                return Ok(());
            }
            let deadline = time.deadline.max(least);
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
                    return Ok(());
                }
                changed = self.inbox.changed() => {
                    changed.map_err(|_| Gone)?;
                    self.shorten(time)?;
                }
                () = timer::until(self.probes.next_due()) => self.probe().await?,
            }
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
