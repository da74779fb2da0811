//! A pass: compares running containers with the wanted ones.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use client_kit::EventType;
use machinery::meta::{ObjectMeta as _, at};
use machinery::types::rfc3339;
use shared_json::{Value, json};
use tokio::time::Instant;

use super::start::Missing;
use super::worker::{Gone, PodWorker, Run};
use crate::pressure;
use crate::programs::Exit;
use crate::status::{Ended, Kind, items, name_of, restart_policy, restarts_all, should_restart};

/// The longest termination message, and the longest end of a log in its place, in bytes.
const TERMINATION_MESSAGE_BYTES_MAX: usize = 4096;
const LOG_TAIL_BYTES_MAX: usize = 2048;

/// Why containers are killed though they do well.
const REDEFINED: &str = "definition changed";
const RESIZED: &str = "resize requires restart";

impl PodWorker {
    /// One pass.
    pub(super) async fn sync(&mut self) -> Result<(), Gone> {
        // Another writer's word that the pod is over needs no look at its containers.
        if self.condemned.remove("").is_some() {
            self.begin_pass();
            self.retry_at = None;
            return self.complete().await;
        }
        if self.record.had_sandbox {
            self.pause(self.timing().observe).await?;
        }
        if self.is_terminating() {
            return Ok(());
        }
        self.begin_pass();
        self.retry_at = None;
        if !self.can_go_on() {
            return self.complete().await;
        }
        self.finish_resize();
        self.probes.hurry();
        self.write_status().await;
        if self.is_terminating() {
            return Ok(());
        }
        if restarts_all(&self.record, &self.pod) {
            return self.restart_all().await;
        }
        if self.record.sandbox {
            self.refresh_volumes().await;
        } else if !self.make_sandbox().await? {
            return Ok(());
        }
        self.look_for_pull_secrets().await;
        let mut done = Pass::default();
        self.kill_condemned(&mut done).await?;
        done.missing = self.pull_volumes().await?;
        self.start_all(&mut done).await?;
        if self.is_terminating() {
            return Ok(());
        }
        if done.failed {
            self.retry_later(done.waits_until);
        } else if done.changed {
            // After a pass that went well the node lists at once.
            self.pause(self.timing().observe).await?;
            if done.redefined {
                self.wait_as_known().await?;
            }
            if self.is_terminating() {
                return Ok(());
            }
            self.relisted();
            self.record.shows_address = true;
            self.finish_resize();
            self.probes.hurry();
            self.write_status().await;
            // Seen by that list: a gate that opens now waits for the next one.
            self.listed_before_this_pass();
            self.sync_again();
        } else if done.resized {
            self.pause(self.timing().observe).await?;
            self.finish_resize();
            self.write_status().await;
        }
        Ok(())
    }

    /// How long the next change of a container's definition takes, if that is known.
    pub(super) fn known_redefinition(&self) -> Option<Duration> {
        let known = &self.timing().redefinitions;
        known.get(self.redefinitions).copied().flatten()
    }

    /// Waits for the recorded time between the change of a container's definition and the pod's status that shows it.
    async fn wait_as_known(&mut self) -> Result<(), Gone> {
        let known = self.known_redefinition();
        self.redefinitions += 1;
        match known {
            Some(whole) => {
                tokio::time::sleep_until(self.redefined_at + whole).await;
                self.pause(Duration::ZERO).await
            }
            None => Ok(()),
        }
    }

    /// A sidecar that has started lets the next container start, and a pod whose last container was killed is over.
    fn sync_again(&mut self) {
        if !self.can_go_on() {
            self.sync_now();
            return;
        }
        let waits = self.record.containers.iter().any(|container| {
            container.kind != Kind::Ephemeral && container.current.is_none() && container.blocked.is_none()
        });
        let init_runs = self
            .record
            .of_kinds(&[Kind::Init])
            .any(|container| container.is_running());
        let starting = self
            .record
            .of_kinds(&[Kind::Sidecar])
            .any(|container| container.is_running() && !container.started);
        if waits && !init_runs && !starting {
            self.sync_now();
        }
    }

    /// A container has ended in a way for which all containers begin anew: running ones are killed, one after the other, and all
    /// are removed. Only the sandbox stays; no container waits for earlier failures.
    async fn restart_all(&mut self) -> Result<(), Gone> {
        let running = self.running_names(|container| container.kind != Kind::Ephemeral);
        for name in running {
            let known = self.record.containers.iter().find(|known| known.name == name);
            let Some(kind) = known.filter(|known| known.is_running()).map(|known| known.kind) else {
                continue;
            };
            self.normal(kind, &name, "Killing", "killing");
            self.stop(vec![name], Some(Duration::ZERO)).await?;
            if self.is_terminating() {
                return Ok(());
            }
        }
        for container in &mut self.record.containers {
            if container.kind != Kind::Ephemeral {
                container.take_away();
                self.ended_at.remove(&container.name);
            }
        }
        self.sync_now();
        Ok(())
    }

    /// The sandbox: network and volumes. False if a volume is missing.
    async fn make_sandbox(&mut self) -> Result<bool, Gone> {
        if !(self.has_claims().await && self.mount().await) {
            return Ok(false);
        }
        if self.is_leaving() {
            return Ok(false);
        }
        // What follows is done even if the pod is to go meanwhile: the kubelet does not interrupt what it has begun.
        self.pause(self.timing().sandbox).await?;
        self.record.sandbox = true;
        self.record.had_sandbox = true;
        self.changes += 1;
        self.plan_refresh();
        self.probes.begin();
        Ok(true)
    }

    /// Whether anything of the pod runs or will.
    fn can_go_on(&self) -> bool {
        let init_failed = self.record.of_kinds(&[Kind::Init]).any(|container| {
            container.ended().is_some_and(|ended| ended.code != 0) && !should_restart(container, &self.pod)
        });
        let regular_goes_on = self
            .record
            .of_kinds(&[Kind::Regular])
            .any(|container| container.is_running() || should_restart(container, &self.pod));
        !init_failed && regular_goes_on
    }

    /// All containers have ended, or must: writes the status, stops the rest and removes the sandbox.
    pub(super) async fn complete(&mut self) -> Result<(), Gone> {
        self.complete_within(None).await
    }

    /// The same, with another grace period than the pod's own.
    async fn complete_within(&mut self, grace: Option<Duration>) -> Result<(), Gone> {
        self.record.shows_address |= self.record.had_sandbox;
        self.probes.stop();
        let running = self.running_names(|_| true);
        self.announce_stop(&running);
        self.write_status().await;
        self.stop_all(running, grace).await?;
        if !self.record.failed {
            self.pause(self.timing().wind_down).await?;
        }
        self.record.sandbox = false;
        self.record.over = true;
        self.record.stopped = true;
        self.processes.clear();
        self.write_status().await;
        Ok(())
    }

    /// The pod was active for longer than it may be. Each look at its status says so: when that is found, before and after its
    /// containers are stopped, and once it is over.
    pub(super) async fn exceed_deadline(&mut self) -> Result<(), Gone> {
        self.fail_for_deadline(2);
        self.complete().await?;
        self.fail_for_deadline(2);
        Ok(())
    }

    /// The pod fails for its deadline, which is said so many times.
    pub(super) fn fail_for_deadline(&mut self, times: u32) {
        let message = "Pod was active on the node longer than the specified deadline".to_owned();
        for _ in 0..times {
            self.pod_event(EventType::Normal, "DeadlineExceeded", message.clone());
        }
        self.record.failed = true;
        self.record.failure = Some(("DeadlineExceeded".to_owned(), message));
    }

    /// The node is short of something, or needs the room for another, and the pod has to go.
    pub(super) async fn evict(&mut self, eviction: &pressure::Eviction) -> Result<(), Gone> {
        let message = &eviction.message;
        self.evicted_event(eviction);
        self.record.failed = true;
        self.record.failure = Some((eviction.reason.to_owned(), message.clone()));
        self.record.disrupted = Some(eviction.disruption.clone());
        self.complete_within(eviction.grace).await
    }

    /// The node does not take the pod.
    pub(super) async fn refuse(&mut self, reason: &str, message: String) {
        self.pod_event(EventType::Warning, reason, message.clone());
        let told = format!("Pod was rejected: {message}");
        self.record.failed = true;
        self.record.failure = Some((reason.to_owned(), told));
        self.record.over = true;
        self.record.refused = true;
        self.write_status().await;
    }

    /// Kills containers whose image has changed or whose probe has failed.
    async fn kill_condemned(&mut self, done: &mut Pass) -> Result<(), Gone> {
        let mut doomed = std::mem::take(&mut self.condemned);
        for container in &self.record.containers {
            let Some(spec) = self.spec_of(&container.name) else {
                continue;
            };
            let image = spec.get("image").and_then(Value::as_str).unwrap_or_default();
            if container.is_running() && container.kind != Kind::Init && container.spec_image != image {
                doomed.insert(container.name.clone(), REDEFINED.to_owned());
                done.redefined = true;
            } else if container.is_running()
                && container.allocated.is_none()
                && needs_restart_for(&container.resources, spec)
            {
                doomed.insert(container.name.clone(), RESIZED.to_owned());
            }
        }
        doomed.retain(|name, _| {
            self.record
                .containers
                .iter()
                .any(|one| one.name == *name && one.is_running())
        });
        let goes_on = self.goes_on_without(&doomed);
        for (name, why) in doomed {
            let Some(container) = self
                .record
                .containers
                .iter()
                .find(|container| container.name == name)
            else {
                continue;
            };
            if !container.is_running() {
                continue;
            }
            let message = match (container.kind, goes_on) {
                (Kind::Sidecar, _) => format!("Init container {name} {why}"),
                (_, false) => format!("Stopping container {name}"),
                _ if why == RESIZED || !self.restarts_after(&name, &why) => format!("Container {name} {why}"),
                _ => format!("Container {name} {why}, will be restarted"),
            };
            self.normal(container.kind, &name, "Killing", message);
            let grace = self.probes.take_grace(&name).filter(|_| goes_on);
            done.killed
                .insert(name.clone(), self.ended_at.get(&name).copied());
            if self.restarts_after(&name, &why) {
                done.begin_anew.insert(name.clone());
            }
            self.stop(vec![name], grace).await?;
            self.changes += 1;
            done.changed = true;
        }
        done.resized = self.take_resources();
        Ok(())
    }

    /// Whether a container begins again once it has been killed. Its own rules are about programs that end, and this one is killed.
    fn restarts_after(&self, name: &str, why: &str) -> bool {
        let own = self
            .spec_of(name)
            .and_then(|spec| spec.get("restartPolicy"))
            .and_then(Value::as_str);
        [REDEFINED, RESIZED].contains(&why) || own.unwrap_or_else(|| restart_policy(&self.pod)) != "Never"
    }

    /// Whether anything of the pod runs on, or begins again, once these containers have been killed. If not, all of it is stopped.
    fn goes_on_without(&self, doomed: &BTreeMap<String, String>) -> bool {
        self.record
            .of_kinds(&[Kind::Regular])
            .any(|container| match doomed.get(&container.name) {
                Some(why) => self.restarts_after(&container.name, why),
                None => container.is_running() || should_restart(container, &self.pod),
            })
    }

    /// A resize that the node has taken up and that needs no restart is simply done. Whether there was one.
    fn take_resources(&mut self) -> bool {
        let mut resized = false;
        for container in &mut self.record.containers {
            let spec = items(&self.pod, container.kind.field())
                .iter()
                .find(|spec| name_of(spec) == container.name);
            if let Some(resources) = spec.and_then(|spec| spec.get("resources"))
                && container.is_running()
                && container.allocated.is_none()
            {
                resized |= container.resources != *resources;
                container.resources = resources.clone();
            }
        }
        resized
    }

    /// Starts the wanted containers that do not run, in the order of the kinds of containers.
    async fn start_all(&mut self, done: &mut Pass) -> Result<(), Gone> {
        let names: Vec<(String, Kind)> = self
            .record
            .containers
            .iter()
            .map(|container| (container.name.clone(), container.kind))
            .collect();
        for (name, _) in names.iter().filter(|(_, kind)| *kind == Kind::Ephemeral) {
            self.start_if_due(name, done).await?;
        }
        // Where no regular container runs, what comes before them is looked at again: a sidecar that has ended must run first.
        let initialized = self
            .record
            .of_kinds(&[Kind::Regular])
            .any(|container| container.is_running());
        for (name, kind) in names
            .iter()
            .filter(|(_, kind)| matches!(kind, Kind::Init | Kind::Sidecar))
        {
            if initialized && *kind == Kind::Init {
                continue;
            }
            self.start_if_due(name, done).await?;
            let Some(container) = self
                .record
                .containers
                .iter()
                .find(|container| container.name == *name)
            else {
                continue;
            };
            let passed = match kind {
                Kind::Init => container.has_succeeded(),
                _ => container.is_running() && container.started,
            };
            if !initialized && !passed {
                return Ok(());
            }
        }
        for (name, _) in names.iter().filter(|(_, kind)| *kind == Kind::Regular) {
            self.start_if_due(name, done).await?;
        }
        Ok(())
    }

    async fn start_if_due(&mut self, name: &str, done: &mut Pass) -> Result<(), Gone> {
        let Some(container) = self
            .record
            .containers
            .iter()
            .find(|container| container.name == name)
        else {
            return Ok(());
        };
        let begins = done.begin_anew.contains(name) || should_restart(container, &self.pod);
        if container.is_running() || !begins {
            return Ok(());
        }
        done.changed |= self.start(name, done).await?;
        let blocked = self
            .record
            .containers
            .iter()
            .any(|container| container.name == name && container.blocked.is_some());
        done.failed |= blocked;
        Ok(())
    }

    pub(super) fn spec_of(&self, name: &str) -> Option<&Value> {
        ["initContainers", "containers", "ephemeralContainers"]
            .into_iter()
            .flat_map(|field| items(&self.pod, field))
            .find(|spec| name_of(spec) == name)
    }

    /// A program has ended by itself; the node's next list will show it.
    pub(super) fn note_exit(&mut self, run: &Run, exit: Exit) {
        let (name, number) = run;
        let current = self.record.containers.iter().any(|container| {
            container.name == *name && container.restarts == *number && container.is_running()
        });
        if current {
            // The times between two statuses are those between what leads to them.
            let lasted = self.run_timing().and_then(|run| run.lasted);
            self.notes_exit_at = lasted.map(|lasted| (self.began_at + lasted).max(Instant::now()));
            self.end(name, exit);
            self.changes += 1;
        }
    }

    /// Marks a running container as ended.
    pub(super) fn end(&mut self, name: &str, exit: Exit) {
        let process = self.processes.remove(name);
        if let Some(containers) = &self.kubelet.containers {
            containers.ended(self.pod.uid(), name);
        }
        self.probes.forget(name);
        self.ended_at.insert(name, Instant::now());
        let message = match &process {
            Some(process) if exit.message.is_empty() => self.termination_message(name, process, exit.code),
            _ => exit.message,
        };
        let at = exit.at.unwrap_or_else(|| self.kubelet.clock.now_seconds());
        let at = rfc3339(at);
        let reason = match (exit.reason.is_empty(), exit.code) {
            (true, 0) => "Completed".to_owned(),
            (true, _) => "Error".to_owned(),
            _ => exit.reason,
        };
        let Some(container) = self
            .record
            .containers
            .iter_mut()
            .find(|container| container.name == name)
        else {
            return;
        };
        container.ready = false;
        container.started = false;
        if let Some(instance) = container
            .current
            .as_mut()
            .filter(|instance| instance.ended.is_none())
        {
            instance.ended = Some(Box::new(Ended {
                at,
                code: exit.code,
                reason,
                message,
            }));
        }
    }

    /// The content of a container's termination file, or the end of its log if its policy says so.
    fn termination_message(&self, name: &str, process: &crate::programs::Process, code: i32) -> String {
        let spec = self.spec_of(name).cloned().unwrap_or_else(|| json!({}));
        let path = spec
            .get("terminationMessagePath")
            .and_then(Value::as_str)
            .unwrap_or("/dev/termination-log");
        let mut bytes = process.run.files.read(path).unwrap_or_default();
        bytes.truncate(TERMINATION_MESSAGE_BYTES_MAX);
        let from_log =
            at(&spec, "terminationMessagePolicy").and_then(Value::as_str) == Some("FallbackToLogsOnError");
        if bytes.is_empty() && from_log && code != 0 {
            let log = process.run.logs.bytes();
            let from = log.len().saturating_sub(LOG_TAIL_BYTES_MAX);
            bytes = log.get(from..).unwrap_or_default().to_vec();
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// Whether a changed resource may only change with a restart.
fn needs_restart_for(running: &Value, spec: &Value) -> bool {
    let wanted = spec.get("resources").unwrap_or(&Value::Null);
    if running.is_null() || running == wanted {
        return false;
    }
    let policies = spec.get("resizePolicy").and_then(Value::as_array);
    policies.into_iter().flatten().any(|policy| {
        let name = policy
            .get("resourceName")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let of = |resources: &Value| {
            ["requests", "limits"].map(|list| at(resources, list).and_then(|list| list.get(name)).cloned())
        };
        policy.get("restartPolicy").and_then(Value::as_str) == Some("RestartContainer")
            && of(running) != of(wanted)
    })
}

/// The actions of a pass.
#[derive(Default)]
pub(super) struct Pass {
    pub changed: bool,
    /// Containers were restarted because their definition has changed.
    pub redefined: bool,
    pub failed: bool,
    /// Containers have other resources, and run on.
    pub resized: bool,
    /// Images that are volumes and did not come.
    pub missing: Missing,
    /// Containers that were killed, and when their last run before that had ended.
    pub killed: BTreeMap<String, Option<Instant>>,
    /// Those of them that begin anew, whatever their policies say of how they end.
    pub begin_anew: BTreeSet<String>,
    /// When the first container that has ended too often may begin again.
    pub waits_until: Option<Instant>,
}
