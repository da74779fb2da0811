//! Probes of running containers.

use std::collections::BTreeMap;
use std::time::Duration;

use machinery::meta::at;
use shared_json::Value;
use tokio::time::Instant;

use super::dialled;
use super::hooks::strings;
use super::worker::{Gone, PodWorker};
use crate::programs::{ProbeAnswer, Process, exec};
use crate::status::Kind;

/// The kind of a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Probe {
    Startup,
    Liveness,
    Readiness,
}

impl Probe {
    const ALL: [Self; 3] = [Self::Startup, Self::Liveness, Self::Readiness];

    fn field(self) -> &'static str {
        match self {
            Self::Startup => "startupProbe",
            Self::Liveness => "livenessProbe",
            Self::Readiness => "readinessProbe",
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Startup => "Startup",
            Self::Liveness => "Liveness",
            Self::Readiness => "Readiness",
        }
    }
}

/// How one probe of one container goes.
#[derive(Debug)]
struct State {
    spec: Value,
    due: Option<Instant>,
    /// It is not asked before.
    first: Instant,
    period: Duration,
    /// How often in a row it has given the last answer, and that answer.
    run: (u32, Option<bool>),
    result: Option<bool>,
}

/// The probes of a pod's containers.
#[derive(Debug, Default)]
pub(super) struct Probes {
    states: BTreeMap<(String, Probe), State>,
    /// All probes beat from here.
    base: Option<Instant>,
    graces: BTreeMap<String, Duration>,
}

fn number(spec: &Value, field: &str, default: u64) -> u64 {
    spec.get(field).and_then(Value::as_u64).unwrap_or(default)
}

/// The first beat at or after `time`, of those that come every period from `base` on.
fn beat(base: Instant, time: Instant, period: Duration) -> Instant {
    let since = time.saturating_duration_since(base).as_millis();
    let period = period.as_millis().max(1);
    let left = (period - since % period) % period;
    time + Duration::from_millis(u64::try_from(left).unwrap_or_default())
}

impl Probes {
    pub(super) fn begin(&mut self) {
        self.base = Some(Instant::now());
    }

    /// A container has started.
    pub(super) fn add(&mut self, name: &str, spec: &Value, process: &Process) {
        let has_startup = spec.get(Probe::Startup.field()).is_some();
        for probe in Probe::ALL {
            let Some(settings) = spec.get(probe.field()).filter(|settings| settings.is_object()) else {
                continue;
            };
            let period = Duration::from_secs(number(settings, "periodSeconds", 10).max(1));
            let delay = Duration::from_secs(number(settings, "initialDelaySeconds", 0));
            let waits = has_startup && probe != Probe::Startup;
            let due = (!waits).then(|| {
                beat(
                    self.base.unwrap_or(process.run.started),
                    process.run.started + delay,
                    period,
                )
            });
            let state = State {
                spec: settings.clone(),
                due,
                first: process.run.started + delay,
                period,
                run: (0, None),
                result: None,
            };
            self.states.insert((name.to_owned(), probe), state);
        }
    }

    pub(super) fn forget(&mut self, name: &str) {
        self.states.retain(|(container, _), _| container != name);
    }

    /// Of containers that are to end only their readiness is still asked.
    pub(super) fn keep_readiness(&mut self, names: &[String]) {
        self.states
            .retain(|(container, probe), _| *probe == Probe::Readiness || !names.contains(container));
    }

    /// Nothing is asked any more.
    pub(super) fn stop(&mut self) {
        self.states.clear();
    }

    /// Containers that have started and are not ready are asked now, as the kubelet does whenever it looks at their pod; if it is too
    /// early for that, periods count from now.
    pub(super) fn hurry(&mut self) {
        let now = Instant::now();
        for ((_, probe), state) in &mut self.states {
            if *probe == Probe::Readiness && state.result != Some(true) && state.due.is_some() {
                state.due = Some(beat(now, state.first.max(now), state.period));
            }
        }
    }

    pub(super) fn next_due(&self) -> Option<Instant> {
        self.states.values().filter_map(|state| state.due).min()
    }

    /// The grace period of the probe that has condemned a container.
    pub(super) fn take_grace(&mut self, name: &str) -> Option<Duration> {
        self.graces.remove(name)
    }
}

/// The path that a probe gets; empty if it is not one by HTTP.
fn path_of(probe: &Value) -> &str {
    let path = at(probe, "httpGet.path").and_then(Value::as_str);
    path.unwrap_or_default()
}

/// The answer of a scripted program.
fn scripted(answers: &[ProbeAnswer], since: Duration) -> Result<(), String> {
    let now_ms = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
    match answers.iter().rev().find(|answer| answer.from_ms <= now_ms) {
        Some(answer) if !answer.ok && answer.output.is_empty() => {
            Err("HTTP probe failed with statuscode: 500".to_owned())
        }
        Some(answer) if !answer.ok => Err(answer.output.clone()),
        _ => Ok(()),
    }
}

impl PodWorker {
    /// Does the probe that is due.
    pub(super) async fn probe(&mut self) -> Result<(), Gone> {
        let now = Instant::now();
        let due = self
            .probes
            .states
            .iter()
            .filter(|(_, state)| state.due.is_some_and(|due| due <= now))
            .map(|(key, state)| (key.clone(), state.spec.clone()))
            .next();
        let Some(((name, probe), spec)) = due else {
            return Ok(());
        };
        let Some(process) = self.processes.get(&name) else {
            self.probes.forget(&name);
            return Ok(());
        };
        // What can never answer otherwise needs to be asked only until its answer counts.
        let constant = process.serves.is_some()
            && at(&spec, "exec").is_none()
            && process.run.files.finds_page(path_of(&spec)).is_none();
        let answer = self.ask(&name, probe, &spec).await;
        let Some(state) = self.probes.states.get_mut(&(name.clone(), probe)) else {
            return Ok(());
        };
        state.due = Some(now + state.period);
        let good = answer.is_ok();
        state.run = if state.run.1 == Some(good) {
            (state.run.0.saturating_add(1), Some(good))
        } else {
            (1, Some(good))
        };
        let threshold = if good {
            number(&spec, "successThreshold", 1)
        } else {
            number(&spec, "failureThreshold", 3)
        };
        let decided = u64::from(state.run.0) >= threshold && state.result != Some(good);
        if decided {
            state.result = Some(good);
        }
        if constant && good && state.result == Some(true) {
            state.due = None;
        }
        if let Err(output) = answer {
            let kind = self.kind_of(&name);
            self.warning(
                kind,
                &name,
                "Unhealthy",
                format!("{} probe failed: {output}", probe.word()),
            );
        }
        if decided {
            self.decide(&name, probe, good, &spec).await;
        }
        Ok(())
    }

    pub(super) fn kind_of(&self, name: &str) -> Kind {
        self.record
            .containers
            .iter()
            .find(|container| container.name == name)
            .map_or(Kind::Regular, |container| container.kind)
    }

    /// A probe's answer has counted.
    async fn decide(&mut self, name: &str, probe: Probe, good: bool, spec: &Value) {
        let Some(container) = self
            .record
            .containers
            .iter_mut()
            .find(|container| container.name == name)
        else {
            return;
        };
        match (probe, good) {
            (Probe::Readiness, good) => {
                if container.ready != good {
                    container.ready = good;
                    self.write_status().await;
                }
            }
            (Probe::Startup, true) => {
                container.started = true;
                let sidecar = container.kind == Kind::Sidecar;
                let now = Instant::now();
                let base = self.probes.base.unwrap_or(now);
                for ((other, kind), state) in &mut self.probes.states {
                    if other == name && *kind != Probe::Startup {
                        let soon = now.max(state.first);
                        state.due = Some(match kind {
                            Probe::Readiness => soon,
                            _ => beat(base, soon, state.period),
                        });
                    } else if other == name {
                        state.due = None;
                    }
                }
                self.write_status().await;
                if sidecar {
                    self.sync_next();
                }
            }
            (Probe::Liveness, true) => {}
            (Probe::Liveness | Probe::Startup, false) => {
                let word = probe.word().to_lowercase();
                if let Some(seconds) = spec.get("terminationGracePeriodSeconds").and_then(Value::as_u64) {
                    self.probes
                        .graces
                        .insert(name.to_owned(), Duration::from_secs(seconds));
                }
                self.probes.forget(name);
                let why = format!("failed {word} probe");
                self.condemned.insert(name.to_owned(), why);
                self.sync_next();
            }
        }
    }

    async fn ask(&self, name: &str, probe: Probe, spec: &Value) -> Result<(), String> {
        let Some(process) = self.processes.get(name) else {
            return Ok(());
        };
        if let Some(program) = &process.run.program {
            let answers = match probe {
                Probe::Startup => &program.startup,
                Probe::Liveness => &program.liveness,
                Probe::Readiness => &program.readiness,
            };
            if !answers.is_empty() {
                return scripted(answers, process.run.started.elapsed());
            }
        }
        let seconds = number(spec, "timeoutSeconds", 1).max(1);
        if at(spec, "exec").is_some() {
            let argv = strings(at(spec, "exec.command"));
            let run = exec(&argv, &process.run);
            return match tokio::time::timeout(Duration::from_secs(seconds), run).await {
                Ok((0, _)) => Ok(()),
                // A program that is only known to serve has commands of its own.
                Ok((127, _)) if process.serves.is_some() || process.is_outside => Ok(()),
                Ok((_, out)) => Err(out.text()),
                Err(_) => Err(format!(
                    "command timed out: \"{}\" timed out after {seconds}s",
                    argv.join(" ")
                )),
            };
        }
        if let Some(place) = self.place_of(name, spec) {
            let _outside = self.kubelet.jumps.outside();
            return dialled::ask(&place?, spec, Duration::from_secs(seconds)).await;
        }
        let number = ["httpGet.port", "tcpSocket.port", "grpc.port"]
            .into_iter()
            .find_map(|field| at(spec, field))
            .and_then(|port| self.port_of(name, port).parse().ok());
        if let Some(number) = number
            && let Some(answer) = self
                .ask_listener(number, spec, Duration::from_secs(seconds))
                .await
        {
            return answer;
        }
        let listens = number.and_then(|number| process.run.listens_by_image(number));
        if listens.unwrap_or_else(|| process.run.listens()) {
            return match process.run.files.finds_page(path_of(spec)) {
                Some(false) => Err("HTTP probe failed with statuscode: 404".to_owned()),
                _ => Ok(()),
            };
        }
        let ip = &self.record.pod_ip;
        let port = |field: &str| self.port_of(name, at(spec, field).unwrap_or(&Value::Null));
        if let Some(http) = spec.get("httpGet") {
            let address = format!("{ip}:{}", port("httpGet.port"));
            let text = |field: &str| http.get(field).and_then(Value::as_str);
            let scheme = text("scheme").unwrap_or("HTTP").to_lowercase();
            let path = text("path").unwrap_or("/");
            return Err(format!(
                "Get \"{scheme}://{address}{path}\": dial tcp {address}: connect: connection refused"
            ));
        }
        if spec.get("grpc").is_some() {
            let address = format!("{ip}:{}", port("grpc.port"));
            return Err(format!(
                "timeout: failed to connect service \"{address}\" within {seconds}s: context deadline exceeded"
            ));
        }
        let address = format!("{ip}:{}", port("tcpSocket.port"));
        Err(format!("dial tcp {address}: connect: connection refused"))
    }

    /// Where a probe goes if the pod stands for a port of this machine.
    fn place_of(&self, name: &str, spec: &Value) -> Option<Result<(String, u16), String>> {
        let port = ["httpGet.port", "tcpSocket.port", "grpc.port"]
            .into_iter()
            .find_map(|field| at(spec, field))?;
        let port = self.port_of(name, port).parse().ok()?;
        let place = node_access::dialled(&self.pod, port);
        place.map_err(|error| error.to_string()).transpose()
    }

    /// A port by number or by the name that the container gives it.
    pub(super) fn port_of(&self, name: &str, port: &Value) -> String {
        if let Some(number) = port.as_u64() {
            return number.to_string();
        }
        let wanted = port.as_str().unwrap_or_default();
        let ports = self
            .spec_of(name)
            .and_then(|spec| spec.get("ports"))
            .and_then(Value::as_array);
        let found = ports
            .into_iter()
            .flatten()
            .find(|entry| entry.get("name").and_then(Value::as_str) == Some(wanted));
        found
            .and_then(|entry| entry.get("containerPort"))
            .map_or_else(|| wanted.to_owned(), Value::to_string)
    }
}
