//! The speed of a recording's nodes: a busy machine takes its time to start a pod and to let it go, and the changes
//! in the meantime follow from that.

use std::collections::BTreeMap;
use std::time::Duration;

use fake_apiserver::nodes::{RunTiming, Timing};
use jiff::Timestamp;
use shared_json::{Array, Value};

use crate::history::{Change, ChangeKind, number, text};

/// More than this is not the node's doing, but a program's or a finalizer's.
const LONGEST_MS: i64 = 10_000;

/// A pod that takes longer to show another container, or to become ready after its gates have opened, waits for something
/// else than the node.
const NOTE_MAX: Duration = Duration::from_millis(2500);

/// A scheduler that takes longer waits for something.
const SCHEDULE_MAX: Duration = Duration::from_secs(1);

/// The recorded changes of one pod, in its time.
#[derive(Debug, Clone, Default)]
struct Seen {
    created: Option<i64>,
    bound: Option<i64>,
    running: Option<i64>,
    /// For how long its only container ran, in whole seconds, and when the pod was over by itself.
    lasted: Option<Duration>,
    over: Option<i64>,
    containers: u32,
    /// Whether something else than the node decides how long the start takes.
    slowed: bool,
    going: Option<i64>,
    ended: Option<i64>,
    gone: Option<i64>,
    /// The images of its containers, since when they have been waited for, and whether that is more than one.
    images: Vec<String>,
    redefined: Option<i64>,
    several: bool,
    redefinitions: Vec<Option<Duration>>,
    restarts: i64,
    /// Whether a readiness gate says no, since when none has while the pod is not ready, and how long that took each time.
    gated: bool,
    reopened: Option<i64>,
    reopenings: Vec<Option<Duration>>,
    /// The runs of its only container, and when the present one began and ended.
    runs: Vec<RunTiming>,
    run_began: Option<i64>,
    run_ended: Option<i64>,
    /// The whole seconds from its creation to its first readiness, as both are stamped.
    ready_after: Option<Duration>,
}

/// How long things took for the pods of each name that came to a node, one after the other; none for a pod of which too little was
/// seen.
#[must_use]
pub fn of(history: &[Change]) -> BTreeMap<String, Vec<Option<Timing>>> {
    let mut pods: BTreeMap<String, Vec<(String, Seen)>> = BTreeMap::new();
    for change in history.iter().filter(|change| change.resource == "pods") {
        let uid = text(&change.object, "/metadata/uid");
        let lives = pods.entry(change.name()).or_default();
        if lives.last().is_none_or(|(last, _)| *last != uid) {
            lives.push((uid, Seen::default()));
        }
        let Some((_, seen)) = lives.last_mut().filter(|(_, seen)| seen.gone.is_none()) else {
            continue;
        };
        let (at, pod) = (change.at_ms, &*change.object);
        seen.created.get_or_insert(at);
        if !text(pod, "/spec/nodeName").is_empty() {
            seen.bound.get_or_insert(at);
        }
        seen.containers = count(pod, "/spec/containers");
        seen.slowed |= count(pod, "/spec/initContainers") > 0 || has_hook(pod);
        if any_state(pod, &["running", "terminated"]) {
            seen.running.get_or_insert(at);
        }
        if !text(pod, "/metadata/deletionTimestamp").is_empty() {
            seen.going.get_or_insert(at);
            if !any_state(pod, &["running"]) {
                seen.ended.get_or_insert(at);
            }
        }
        seen.note_run(at, pod);
        seen.note_end(at, pod);
        seen.note_redefinition(at, pod);
        seen.note_reopening(at, pod);
        seen.note_readiness(pod);
        let let_go = pod
            .pointer("/metadata/deletionGracePeriodSeconds")
            .and_then(Value::as_i64)
            == Some(0);
        if change.kind == ChangeKind::Deleted || (seen.going.is_some() && let_go) {
            seen.gone.get_or_insert(at);
        }
    }
    let bound = |lives: Vec<(String, Seen)>| {
        let lives = lives.into_iter().filter(|(_, seen)| seen.bound.is_some());
        lives.map(|(_, seen)| timing(&seen)).collect()
    };
    pods.into_iter()
        .map(|(name, lives)| (name, bound(lives)))
        .collect()
}

/// Whether a condition says yes; `None` if it is not there.
fn says_yes(pod: &Value, kind: &str) -> Option<bool> {
    condition(pod, kind).map(|condition| text(condition, "/status") == "True")
}

fn condition<'a>(pod: &'a Value, kind: &str) -> Option<&'a Value> {
    let conditions = pod.pointer("/status/conditions")?.as_array()?;
    conditions
        .iter()
        .find(|condition| text(condition, "/type") == kind)
}

/// Whether one of the readiness gates says no.
fn has_closed_gate(pod: &Value) -> bool {
    let gates = pod.pointer("/spec/readinessGates").and_then(Value::as_array);
    gates
        .into_iter()
        .flatten()
        .any(|gate| says_yes(pod, &text(gate, "/conditionType")) == Some(false))
}

impl Seen {
    /// Notes how long the pod's only container ran, and how long the node then waited.
    fn note_run(&mut self, at: i64, pod: &Value) {
        let [status] = list(pod, "/status/containerStatuses") else {
            return;
        };
        let restarts = number(status, "/restartCount");
        let Ok(index) = usize::try_from(restarts) else {
            return;
        };
        let (runs, ended) = (any_state(pod, &["running"]), any_state(pod, &["terminated"]));
        if restarts > self.restarts {
            let ended = self.run_ended.take().filter(|_| self.redefined.is_none());
            let waited = ended.and_then(|ended| span(ended, at));
            if let Some(before) = self.runs.get_mut(index.wrapping_sub(1)) {
                before.waited = waited;
            }
            self.run_began = None;
        }
        self.runs.resize(index + 1, RunTiming::default());
        if runs {
            self.run_began.get_or_insert(at);
        }
        let leaves = self.going.is_some() || self.redefined.is_some();
        if ended && self.run_ended.is_none() && !leaves {
            self.run_ended = Some(at);
            let began = self.run_began;
            if let Some(run) = self.runs.last_mut() {
                run.lasted = began.and_then(|began| span(began, at));
            }
        }
    }

    /// Notes the end of a pod whose only container has ended by itself.
    fn note_end(&mut self, at: i64, pod: &Value) {
        let [status] = list(pod, "/status/containerStatuses") else {
            return;
        };
        let time = |field: &str| {
            let time = text(status, &format!("/state/terminated/{field}"));
            time.parse::<Timestamp>().ok()
        };
        if let (Some(start), Some(end)) = (time("startedAt"), time("finishedAt")) {
            self.lasted = Duration::try_from(end.duration_since(start)).ok();
        }
        let is_over = matches!(&*text(pod, "/status/phase"), "Succeeded" | "Failed");
        if is_over && self.going.is_none() && self.restarts == 0 {
            self.over.get_or_insert(at);
        }
    }

    /// Notes how long a container took to run again, under another image, after that was asked for.
    fn note_redefinition(&mut self, at: i64, pod: &Value) {
        let list = |pointer: &str| pod.pointer(pointer).and_then(Value::as_array);
        let containers = list("/spec/containers").into_iter().flatten();
        let images: Vec<String> = containers.map(|container| text(container, "/image")).collect();
        let statuses = list("/status/containerStatuses").into_iter().flatten();
        let restarts = statuses
            .filter_map(|status| status.get("restartCount")?.as_i64())
            .sum();
        if restarts > self.restarts
            && let Some(since) = self.redefined.take()
        {
            let took = between(Some(since), Some(at));
            let told = took.filter(|took| !self.several && *took < NOTE_MAX);
            self.redefinitions.push(told);
        }
        let changed = images.iter().zip(&self.images).filter(|(new, old)| new != old);
        let changed = changed.count();
        if changed > 0 {
            self.several = changed > 1;
            self.redefined = Some(at);
        }
        self.images = images;
        self.restarts = restarts;
    }

    /// Notes the time that the pod's first readiness names.
    fn note_readiness(&mut self, pod: &Value) {
        if self.ready_after.is_some() {
            return;
        }
        let condition = condition(pod, "Ready").filter(|ready| text(ready, "/status") == "True");
        let since = condition.map(|ready| text(ready, "/lastTransitionTime"));
        let parse = |time: &str| time.parse::<Timestamp>().ok();
        let span = since
            .and_then(|since| parse(&since))
            .zip(parse(&text(pod, "/metadata/creationTimestamp")))
            .map(|(since, created)| since.duration_since(created));
        self.ready_after = span.and_then(|span| Duration::try_from(span).ok());
    }

    /// Notes how long the pod took to become ready after its readiness gates had opened again.
    fn note_reopening(&mut self, at: i64, pod: &Value) {
        let (gated, ready) = (has_closed_gate(pod), says_yes(pod, "Ready") == Some(true));
        if let Some(since) = self.reopened.filter(|_| gated || ready) {
            let took = between(Some(since), Some(at)).filter(|took| ready && *took < NOTE_MAX);
            self.reopenings.push(took);
            self.reopened = None;
        }
        if self.gated && !gated && !ready {
            self.reopened = Some(at);
        }
        self.gated = gated;
    }
}

fn timing(seen: &Seen) -> Option<Timing> {
    let usual = Timing::default();
    let mut timing = Timing {
        varies: false,
        redefinitions: seen.redefinitions.clone(),
        reopenings: seen.reopenings.clone(),
        ready_after: seen.ready_after,
        // A pod that is over by itself runs once, and its end is timed as a whole.
        runs: if seen.over.is_none() {
            seen.runs.clone()
        } else {
            Vec::new()
        },
        ..usual.clone()
    };
    let mut told =
        !seen.redefinitions.is_empty() || !seen.reopenings.is_empty() || seen.ready_after.is_some();
    // A simulated scheduler takes no time; a recorded one that took longer waited for something else than the machine.
    let scheduled = between(seen.created, seen.bound).filter(|took| *took < SCHEDULE_MAX);
    if let (Some(start), false) = (between(seen.bound, seen.running), seen.slowed) {
        let start = start + scheduled.unwrap_or_default();
        let rest = usual.admit + (usual.create + usual.start) * seen.containers + usual.observe;
        timing.sandbox = start.saturating_sub(rest);
        told = true;
    }
    if let (Some(whole), Some(lasted)) = (between(seen.running, seen.over), seen.lasted) {
        timing.wind_down = whole.saturating_sub(lasted);
        told = true;
    }
    // A container that ends at once ends as the simulated ones do; the rest is the node's.
    let quick = between(seen.going, seen.ended).is_some_and(|end| end < Duration::from_secs(2));
    let removal = if quick {
        between(seen.going, seen.gone).map(|whole| whole.saturating_sub(usual.stop))
    } else {
        between(seen.ended, seen.gone)
    };
    if let Some(removal) = removal {
        timing.remove = removal;
        told = true;
    }
    told.then_some(timing)
}

fn between(from: Option<i64>, to: Option<i64>) -> Option<Duration> {
    span(from?, to?).filter(|span| span.as_millis() <= u128::from(LONGEST_MS.unsigned_abs()))
}

/// The time from one moment to another.
fn span(from: i64, to: i64) -> Option<Duration> {
    u64::try_from(to.checked_sub(from)?)
        .ok()
        .map(Duration::from_millis)
}

fn count(pod: &Value, pointer: &str) -> u32 {
    u32::try_from(list(pod, pointer).len()).unwrap_or(u32::MAX)
}

fn list<'a>(pod: &'a Value, pointer: &str) -> &'a [Value] {
    let list = pod.pointer(pointer).and_then(Value::as_array);
    list.map(Array::as_slice).unwrap_or_default()
}

fn has_hook(pod: &Value) -> bool {
    let containers = pod.pointer("/spec/containers").and_then(Value::as_array);
    containers.into_iter().flatten().any(|container| {
        container
            .pointer("/lifecycle/postStart")
            .is_some_and(Value::is_object)
    })
}

fn any_state(pod: &Value, states: &[&str]) -> bool {
    let statuses = pod.pointer("/status/containerStatuses").and_then(Value::as_array);
    statuses.into_iter().flatten().any(|status| {
        states.iter().any(|state| {
            status
                .pointer(&format!("/state/{state}"))
                .is_some_and(Value::is_object)
        })
    })
}

#[cfg(test)]
#[path = "node_speed_tests.rs"]
mod tests;
