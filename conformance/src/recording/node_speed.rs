//! The speed of a recording's nodes: a busy machine takes its time to start a pod and to let it go, and the changes
//! in the meantime follow from that.

use std::collections::BTreeMap;
use std::time::Duration;

use fake_apiserver::nodes::Timing;
use jiff::Timestamp;
use shared_json::{Array, Value};

use crate::history::{Change, ChangeKind, text};

/// More than this is not the node's doing, but a program's or a finalizer's.
const LONGEST_MS: i64 = 10_000;

/// A pod that takes longer to show another container, or to become ready after its gates have opened, waits for something
/// else than the node.
const NOTE_MAX: Duration = Duration::from_millis(2500);

/// The recorded changes of one pod, in its time.
#[derive(Debug, Clone, Default)]
struct Seen {
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
        seen.note_end(at, pod);
        seen.note_redefinition(at, pod);
        seen.note_reopening(at, pod);
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
    let conditions = pod.pointer("/status/conditions")?.as_array()?;
    let condition = conditions
        .iter()
        .find(|condition| text(condition, "/type") == kind)?;
    Some(text(condition, "/status") == "True")
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
        ..usual.clone()
    };
    let mut told = !seen.redefinitions.is_empty() || !seen.reopenings.is_empty();
    if let (Some(start), false) = (between(seen.bound, seen.running), seen.slowed) {
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
    let span = to?.checked_sub(from?)?;
    (0..=LONGEST_MS)
        .contains(&span)
        .then(|| Duration::from_millis(span.unsigned_abs()))
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
