//! Stopping containers, and the pod.

use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, StreamExt as _};
use shared_json::Value;
use tokio::time::Instant;

use super::worker::{Gone, PodWorker};
use crate::programs::Exit;
use crate::status::{ContainerRecord, Kind};
use client_kit::timer;
use machinery::meta::at;

/// The grace period of a pod that names none.
const GRACE_SECONDS: u64 = 30;
/// The shortest time for a container to end, however long its hook took.
const GRACE_MIN: Duration = Duration::from_secs(2);
/// The shortest time for a pod of which all containers are to end.
const POD_GRACE_MIN: Duration = Duration::from_secs(1);

/// How far a container has come that is to end.
enum Phase {
    /// Its hook runs.
    Hook,
    /// It waits for those that are to end before it.
    Turn,
    /// It has been asked to end, and is killed at that time.
    Asked(Instant),
}

/// A container that is to end.
struct Ending {
    name: String,
    phase: Phase,
    /// The rest of its time, as of `since`.
    left: Duration,
    since: Instant,
}

impl Ending {
    /// Enters the next phase and subtracts the time that has passed: whole seconds, as the kubelet counts.
    fn turn_to(&mut self, phase: Phase) {
        let passed = Duration::from_secs(self.since.elapsed().as_secs());
        self.left = self.left.saturating_sub(passed);
        self.since = Instant::now();
        self.phase = phase;
    }

    /// Until when it stays as it is, at the latest.
    fn until(&self) -> Instant {
        match self.phase {
            Phase::Asked(until) => until,
            Phase::Hook | Phase::Turn => self.since + self.left,
        }
    }
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

    pub(super) fn announce_stop(&mut self, names: &[String]) {
        self.announced = true;
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
        let own = at(&self.pod, "metadata.deletionGracePeriodSeconds").and_then(Value::as_u64);
        Duration::from_secs(own.or(spec).unwrap_or(GRACE_SECONDS))
    }

    /// How long all of the pod may take to end.
    fn grace_of_all(&self, grace: Option<Duration>) -> Duration {
        grace.unwrap_or_else(|| self.grace()).max(POD_GRACE_MIN)
    }

    /// Stops all that runs of the pod, within this time or the pod's own.
    pub(super) async fn stop_all(&mut self, names: Vec<String>, grace: Option<Duration>) -> Result<(), Gone> {
        let grace = self.grace_of_all(grace);
        self.stop(names, Some(grace)).await
    }

    /// Stops containers: their hooks, a request to end, and when their time is over, the end. Sidecars are asked after
    /// the regular containers and later sidecars have ended, or when their time is over; their hooks run with the others'.
    /// Their readiness is probed all the while. A client that deletes the pod meanwhile with less time changes nothing,
    /// as for the kubelet, which does not interrupt a stop that it has begun.
    pub(super) async fn stop(&mut self, names: Vec<String>, grace: Option<Duration>) -> Result<(), Gone> {
        let grace = grace.unwrap_or_else(|| self.grace());
        self.probes.keep_readiness(&names);
        let mut hooks = FuturesUnordered::new();
        let mut endings = Vec::with_capacity(names.len());
        for name in names {
            let hook = self.pre_stop(&name).filter(|_| !grace.is_zero());
            let phase = if hook.is_some() { Phase::Hook } else { Phase::Turn };
            if let Some(hook) = hook {
                let name = name.clone();
                hooks.push(hook.map(move |result| (name, result)));
            }
            endings.push(Ending {
                name,
                phase,
                left: grace,
                since: Instant::now(),
            });
        }
        loop {
            self.leave_out_what_has_ended(&mut endings);
            self.ask_whose_turn_it_is(&mut endings);
            let Some(until) = self.next_end(&endings) else {
                break;
            };
            tokio::select! {
                biased;
                Some((name, result)) = hooks.next() => {
                    let done = endings.iter_mut().find(|ending| ending.name == name);
                    if let Some(ending) = done.filter(|ending| matches!(ending.phase, Phase::Hook)) {
                        ending.turn_to(Phase::Turn);
                        if result.is_err() {
                            self.hook_failed(&name);
                        }
                    }
                }
                Some((run, exit)) = self.exits.1.next() => self.note_exit(&run, exit),
                () = tokio::time::sleep_until(until) => self.end_what_is_due(&mut endings),
                changed = self.inbox.changed() => {
                    changed.map_err(|_| Gone)?;
                    self.take_update()?;
                }
                () = timer::until(self.probes.next_due()) => self.probe().await?,
            }
        }
        self.pause(Duration::ZERO).await
    }

    fn hook_failed(&self, name: &str) {
        self.warning(
            self.kind_of(name),
            name,
            "FailedPreStopHook",
            "PreStopHook failed",
        );
    }

    /// Those that have ended are done. Commands of hooks end with their container; a hook that sleeps does so without it.
    fn leave_out_what_has_ended(&self, endings: &mut Vec<Ending>) {
        endings.retain(|ending| {
            if self.processes.contains_key(&ending.name) {
                return true;
            }
            let runs = matches!(ending.phase, Phase::Hook);
            let sleeps = self
                .spec_of(&ending.name)
                .is_some_and(|spec| at(spec, "lifecycle.preStop.sleep").is_some());
            if runs && !sleeps {
                self.hook_failed(&ending.name);
            }
            runs && sleeps
        });
    }

    /// Asks the containers to end whose time in the order has come.
    fn ask_whose_turn_it_is(&self, endings: &mut [Ending]) {
        let now = Instant::now();
        for index in 0..endings.len() {
            let Some((ending, later)) = endings.get(index..).and_then(<[_]>::split_first) else {
                continue;
            };
            let waits = self.kind_of(&ending.name) == Kind::Sidecar
                && later
                    .iter()
                    .any(|other| matches!(self.kind_of(&other.name), Kind::Sidecar | Kind::Regular));
            let is_over = ending.until() <= now;
            let asks = matches!(ending.phase, Phase::Turn) && (!waits || is_over);
            if let Some(ending) = endings.get_mut(index).filter(|_| asks) {
                ending.turn_to(Phase::Turn);
                ending.phase = Phase::Asked(now + ending.left.max(GRACE_MIN));
                self.ask_to_end(&ending.name);
            }
        }
    }

    /// The end of a program that only serves: a moment after the request, or earlier if its time is over.
    fn serves_until(&self, ending: &Ending) -> Option<Instant> {
        let Phase::Asked(until) = ending.phase else {
            return None;
        };
        let stop = self.processes.get(&ending.name)?.serves?;
        Some(until.min(ending.since + stop))
    }

    /// When something happens by itself; none if nothing is left.
    fn next_end(&self, endings: &[Ending]) -> Option<Instant> {
        let each = |ending: &Ending| {
            self.serves_until(ending)
                .map_or_else(|| ending.until(), |serves| serves.min(ending.until()))
        };
        endings.iter().map(each).min()
    }

    /// Ends serving programs that are due, and programs whose time is over. All serving ones end with the first of them.
    fn end_what_is_due(&mut self, endings: &mut [Ending]) {
        let now = Instant::now();
        let serving = endings
            .iter()
            .filter_map(|ending| Some((self.serves_until(ending)?, ending.name.clone())));
        let mut serving: Vec<(Instant, String)> = serving.collect();
        let first = serving.iter().min().cloned();
        if let Some(first) = first.filter(|(until, _)| *until <= now) {
            serving.retain(|other| *other != first);
            self.end(&first.1, Exit::default());
            for (_, other) in serving {
                self.end(&other, Exit::default());
            }
        }
        for ending in endings.iter_mut().filter(|ending| ending.until() <= now) {
            match ending.phase {
                // It is killed while its hook still runs.
                Phase::Hook => ending.turn_to(Phase::Turn),
                Phase::Turn => {}
                Phase::Asked(_) if self.processes.contains_key(&ending.name) => self.kill(&ending.name),
                Phase::Asked(_) => {}
            }
        }
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

    /// Stops the containers, says so, and lets the pod go.
    pub(super) async fn terminate(&mut self) -> Result<(), Gone> {
        if !self.record.over {
            let running = self.running_names(|_| true);
            self.announce_stop(&running);
            self.write_status().await;
            self.stop_all(running, None).await?;
            if self.is_overdue() {
                self.fail_for_deadline(2);
            }
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
