//! The kubelet's conditions of a pod.

use machinery::meta::{ObjectMeta, at};
use shared_json::{Array, Map, Value, json};

use super::containers::{may_restart_all, restarts_all};
use super::record::{Kind, PodRecord, ResizeCondition};

/// A condition before it has its transition time.
struct Condition {
    kind: &'static str,
    met: bool,
    reason: &'static str,
    message: String,
}

impl Condition {
    fn met(kind: &'static str) -> Self {
        Self {
            kind,
            met: true,
            reason: "",
            message: String::new(),
        }
    }

    fn unmet(kind: &'static str, reason: &'static str, message: String) -> Self {
        Self {
            kind,
            met: false,
            reason,
            message,
        }
    }
}

/// The conditions as they are to be shown, in the order in which the kubelet writes them.
pub(super) fn conditions(record: &PodRecord, pod: &Value, phase: &str, early: bool, now: &str) -> Vec<Value> {
    let generation = pod.generation();
    let own = conditions_of(record, pod, phase, early)
        .into_iter()
        .map(|condition| {
            let status = if condition.met { "True" } else { "False" };
            // The time stays while the status does; one that another writer left empty is filled in.
            let since = condition_of(pod, condition.kind)
                .filter(|old| old.get("status").and_then(Value::as_str) == Some(status))
                .and_then(|old| old.get("lastTransitionTime"))
                .and_then(Value::as_str)
                .unwrap_or(now);
            // In order: nothing has to make room.
            let mut out = Map::with_capacity(7);
            out.insert("lastProbeTime", Value::Null);
            out.insert("lastTransitionTime", since.into());
            if !condition.message.is_empty() {
                out.insert("message", condition.message.into());
            }
            if generation > 0 {
                out.insert("observedGeneration", generation.into());
            }
            if !condition.reason.is_empty() {
                out.insert("reason", condition.reason.into());
            }
            out.insert("status", status.into());
            out.insert("type", condition.kind.into());
            Value::Object(out)
        });
    resizing(record).into_iter().chain(own).collect()
}

/// Whether a status says that its pod is ready.
pub(crate) fn is_ready(status: &Map) -> bool {
    let conditions = status.get("conditions").and_then(Value::as_array);
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|condition| {
        condition.get("type") == Some(&Value::from("Ready"))
            && condition.get("status") == Some(&Value::from("True"))
    })
}

/// Gives the readiness in a status, and that of its containers, an earlier time.
pub(crate) fn backdate_ready(status: &mut Map, since: &str) {
    let conditions = status.get_mut("conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten() {
        let kind = condition.get("type").and_then(Value::as_str);
        let earlier = matches!(kind, Some("Ready" | "ContainersReady"))
            && condition.get("lastTransitionTime").and_then(Value::as_str) > Some(since);
        if earlier {
            condition["lastTransitionTime"] = since.into();
        }
    }
}

/// The conditions of a resize; none once the pod is over.
fn resizing(record: &PodRecord) -> Vec<Value> {
    let Some(resizing) = record.resizing.as_ref().filter(|_| !record.over) else {
        return Vec::new();
    };
    let shown = |kind: &str, condition: &ResizeCondition| {
        let mut out = json!({
            "type": kind, "status": "True", "lastProbeTime": condition.probed, "lastTransitionTime": condition.since,
        });
        if condition.generation > 0 {
            out["observedGeneration"] = Value::from(condition.generation);
        }
        for (field, text) in [("reason", &condition.reason), ("message", &condition.message)] {
            if !text.is_empty() {
                out[field] = Value::from(text.clone());
            }
        }
        out
    };
    let pending = resizing.pending.iter().map(|one| shown("PodResizePending", one));
    let progress = resizing
        .progress
        .iter()
        .map(|one| shown("PodResizeInProgress", one));
    pending.chain(progress).collect()
}

fn conditions_of(record: &PodRecord, pod: &Value, phase: &str, early: bool) -> Vec<Condition> {
    let sandbox = if record.sandbox {
        Condition::met("PodReadyToStartContainers")
    } else {
        Condition::unmet("PodReadyToStartContainers", "", String::new())
    };
    let incomplete = names(
        record,
        &[Kind::Init, Kind::Sidecar],
        |container| match container.kind {
            Kind::Init => !container.has_succeeded(),
            _ => !(container.current.is_some() && container.started),
        },
    );
    let initialized = if phase == "Succeeded" {
        Condition {
            reason: "PodCompleted",
            ..Condition::met("Initialized")
        }
    } else if record.is_initialized() || is_shown(pod, "Initialized") {
        // What was once so stays so, even when all containers begin anew.
        Condition::met("Initialized")
    } else {
        let message = format!("containers with incomplete status: {incomplete}");
        Condition::unmet("Initialized", "ContainersNotInitialized", message)
    };
    let (ready, containers_ready) = readiness(record, pod, phase);
    let mut all = vec![
        sandbox,
        initialized,
        ready,
        containers_ready,
        Condition::met("PodScheduled"),
    ];
    if may_restart_all(pod) {
        all.push(restarting_all(record, pod, phase));
    }
    // Why it had to go is told with its last phase.
    if let Some(message) = record.disrupted.as_ref().filter(|_| !early) {
        all.push(Condition {
            reason: "TerminationByKubelet",
            message: message.clone(),
            ..Condition::met("DisruptionTarget")
        });
    }
    all
}

/// Whether a condition is shown as met.
fn is_shown(pod: &Value, kind: &str) -> bool {
    condition_of(pod, kind)
        .and_then(|condition| condition.get("status"))
        .and_then(Value::as_str)
        == Some("True")
}

/// Whether all containers are about to begin anew.
fn restarting_all(record: &PodRecord, pod: &Value, phase: &str) -> Condition {
    const KIND: &str = "AllContainersRestarting";
    match phase {
        "Succeeded" => Condition::unmet(KIND, "PodCompleted", String::new()),
        "Failed" => Condition::unmet(KIND, "PodFailed", String::new()),
        _ if restarts_all(record, pod) => Condition {
            reason: "RestartAllContainersStarted",
            message: "container exited with restart policy rule".to_owned(),
            ..Condition::met(KIND)
        },
        _ => Condition::unmet(KIND, "", String::new()),
    }
}

fn readiness(record: &PodRecord, pod: &Value, phase: &str) -> (Condition, Condition) {
    let over = match phase {
        "Succeeded" => Some("PodCompleted"),
        "Failed" => Some("PodFailed"),
        _ => None,
    };
    if let Some(reason) = over {
        let unmet = |kind| Condition::unmet(kind, reason, String::new());
        return (unmet("Ready"), unmet("ContainersReady"));
    }
    let unready = names(record, &[Kind::Sidecar, Kind::Regular], |container| {
        !container.is_ready()
    });
    if unready != "[]" {
        let message = format!("containers with unready status: {unready}");
        return (
            Condition::unmet("Ready", "ContainersNotReady", message.clone()),
            Condition::unmet("ContainersReady", "ContainersNotReady", message),
        );
    }
    (gates(pod), Condition::met("ContainersReady"))
}

/// The names of the containers that are lacking something, as Go prints a list.
fn names(record: &PodRecord, kinds: &[Kind], lacking: impl Fn(&super::ContainerRecord) -> bool) -> String {
    let names: Vec<&str> = record
        .of_kinds(kinds)
        .filter(|container| lacking(container))
        .map(|container| container.name.as_str())
        .collect();
    format!("[{}]", names.join(" "))
}

/// Ready, as far as the pod's readiness gates let it be.
fn gates(pod: &Value) -> Condition {
    let gates = at(pod, "spec.readinessGates")
        .and_then(Value::as_array)
        .map(Array::as_slice)
        .unwrap_or_default();
    let mut messages = Vec::new();
    for kind in gates
        .iter()
        .filter_map(|gate| gate.get("conditionType").and_then(Value::as_str))
    {
        match condition_of(pod, kind)
            .and_then(|c| c.get("status"))
            .and_then(Value::as_str)
        {
            Some("True") => {}
            Some(status) => {
                messages.push(format!(
                    "the status of pod readiness gate \"{kind}\" is not \"True\", but {status}"
                ));
            }
            None => messages.push(format!(
                "corresponding condition of pod readiness gate \"{kind}\" does not exist."
            )),
        }
    }
    if messages.is_empty() {
        Condition::met("Ready")
    } else {
        Condition::unmet("Ready", "ReadinessGatesNotReady", messages.join(", "))
    }
}

/// A condition that the pod shows.
pub(crate) fn condition_of<'a>(pod: &'a Value, kind: &str) -> Option<&'a Value> {
    let list = at(pod, "status.conditions").and_then(Value::as_array)?;
    list.iter()
        .find(|condition| condition.get("type").and_then(Value::as_str) == Some(kind))
}
