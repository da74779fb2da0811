//! A pod's status as its kubelet tells it: pure.

use serde_json::{Map, Value, json};

use crate::meta::{ObjectMeta, at};

/// The conditions that are the kubelet's own, in the order in which it writes them.
const KUBELET_CONDITIONS: [&str; 5] = [
    "PodReadyToStartContainers",
    "Initialized",
    "Ready",
    "ContainersReady",
    "PodScheduled",
];

/// What a container is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ContainerState {
    Waiting {
        reason: String,
        message: String,
    },
    Running {
        id: String,
        image: String,
        image_id: String,
        started: String,
        ready: bool,
    },
    Terminated {
        id: String,
        image: String,
        image_id: String,
        started: String,
        finished: String,
        exit_code: i32,
    },
}

/// One container of the pod, as the node knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ContainerRecord {
    pub name: String,
    pub state: ContainerState,
    pub last: Option<ContainerState>,
    pub restarts: u32,
    /// The image in the spec from which the present container was made.
    pub spec_image: String,
}

impl ContainerRecord {
    pub(super) fn new(name: &str) -> Self {
        let reason = "ContainerCreating".to_owned();
        Self {
            name: name.to_owned(),
            state: ContainerState::Waiting {
                reason,
                message: String::new(),
            },
            last: None,
            restarts: 0,
            spec_image: String::new(),
        }
    }

    pub(super) fn is_running(&self) -> bool {
        matches!(self.state, ContainerState::Running { .. })
    }

    fn is_ready(&self) -> bool {
        matches!(self.state, ContainerState::Running { ready: true, .. })
    }
}

/// What the node knows of a pod.
#[derive(Debug, Clone)]
pub(super) struct PodRecord {
    pub containers: Vec<ContainerRecord>,
    pub sandbox: bool,
    pub start_time: String,
    pub host_ip: String,
    pub pod_ip: String,
    /// All containers have ended and none will be started again.
    pub over: bool,
}

fn terminated(state: &ContainerState) -> Value {
    let ContainerState::Terminated {
        id,
        started,
        finished,
        exit_code,
        ..
    } = state
    else {
        return json!({});
    };
    let reason = if *exit_code == 0 { "Completed" } else { "Error" };
    json!({"terminated": {
        "containerID": id, "exitCode": exit_code, "reason": reason, "startedAt": started, "finishedAt": finished,
    }})
}

fn container_status(record: &ContainerRecord, container: &Value) -> Value {
    let (state, id, image, image_id, running) = match &record.state {
        ContainerState::Waiting { reason, message } => {
            let mut waiting = json!({"reason": reason});
            if !message.is_empty() {
                waiting["message"] = Value::from(message.clone());
            }
            let spec_image = container.get("image").and_then(Value::as_str).unwrap_or_default();
            let (id, image, image_id) = match &record.last {
                Some(ContainerState::Terminated {
                    id, image, image_id, ..
                }) => (id.as_str(), image.as_str(), image_id.as_str()),
                _ => ("", spec_image, ""),
            };
            (json!({"waiting": waiting}), id, image, image_id, false)
        }
        ContainerState::Running {
            id,
            image,
            image_id,
            started,
            ..
        } => (
            json!({"running": {"startedAt": started}}),
            id.as_str(),
            image.as_str(),
            image_id.as_str(),
            true,
        ),
        state @ ContainerState::Terminated {
            id, image, image_id, ..
        } => (
            terminated(state),
            id.as_str(),
            image.as_str(),
            image_id.as_str(),
            false,
        ),
    };
    let mut status = json!({
        "name": record.name, "image": image, "imageID": image_id, "ready": record.is_ready(),
        "restartCount": record.restarts, "started": running, "state": state,
        "lastState": record.last.as_ref().map_or_else(|| json!({}), terminated),
    });
    if !id.is_empty() {
        status["containerID"] = Value::from(id);
        status["resources"] = container.get("resources").cloned().unwrap_or_else(|| json!({}));
    }
    let mounts = container
        .get("volumeMounts")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    if !mounts.is_empty() {
        status["volumeMounts"] = mounts.iter().map(mount_status).collect();
    }
    status
}

fn mount_status(mount: &Value) -> Value {
    let mut out = json!({"name": mount.get("name"), "mountPath": mount.get("mountPath")});
    if mount.get("readOnly").and_then(Value::as_bool) == Some(true) {
        out["readOnly"] = Value::from(true);
        out["recursiveReadOnly"] = Value::from("Disabled");
    }
    out
}

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

fn conditions(record: &PodRecord, pod: &Value) -> Vec<Condition> {
    let completed = |kind| Condition::unmet(kind, "PodCompleted", String::new());
    let sandbox = if record.sandbox && !record.over {
        Condition::met("PodReadyToStartContainers")
    } else {
        Condition::unmet("PodReadyToStartContainers", "", String::new())
    };
    let initialized = Condition {
        reason: if record.over { "PodCompleted" } else { "" },
        ..Condition::met("Initialized")
    };
    let unready: Vec<&str> = record
        .containers
        .iter()
        .filter(|c| !c.is_ready())
        .map(|c| c.name.as_str())
        .collect();
    let (ready, containers_ready) = if record.over {
        (completed("Ready"), completed("ContainersReady"))
    } else if unready.is_empty() {
        (gates(pod), Condition::met("ContainersReady"))
    } else {
        let message = format!("containers with unready status: [{}]", unready.join(" "));
        (
            Condition::unmet("Ready", "ContainersNotReady", message.clone()),
            Condition::unmet("ContainersReady", "ContainersNotReady", message),
        )
    };
    vec![
        sandbox,
        initialized,
        ready,
        containers_ready,
        Condition::met("PodScheduled"),
    ]
}

/// Ready, as far as the pod's readiness gates let it be.
fn gates(pod: &Value) -> Condition {
    let gates = at(pod, "spec.readinessGates")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
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

fn condition_of<'a>(pod: &'a Value, kind: &str) -> Option<&'a Value> {
    let list = at(pod, "status.conditions").and_then(Value::as_array)?;
    list.iter()
        .find(|condition| condition.get("type").and_then(Value::as_str) == Some(kind))
}

/// The status that the kubelet would have the pod show, as far as it is the kubelet's.
pub(super) fn status(record: &PodRecord, pod: &Value, now: &str) -> Map<String, Value> {
    let generation = pod.generation();
    let list: Vec<Value> = conditions(record, pod)
        .into_iter()
        .map(|condition| {
            let status = if condition.met { "True" } else { "False" };
            // The time stays while the status does; one that another writer left empty is filled in.
            let since = condition_of(pod, condition.kind)
                .filter(|old| old.get("status").and_then(Value::as_str) == Some(status))
                .and_then(|old| old.get("lastTransitionTime"))
                .and_then(Value::as_str)
                .unwrap_or(now);
            let mut out = json!({
                "type": condition.kind, "status": status, "lastProbeTime": null, "lastTransitionTime": since,
            });
            if generation > 0 {
                out["observedGeneration"] = Value::from(generation);
            }
            if !condition.reason.is_empty() {
                out["reason"] = Value::from(condition.reason);
            }
            if !condition.message.is_empty() {
                out["message"] = Value::from(condition.message);
            }
            out
        })
        .collect();
    let specs = at(pod, "spec.containers")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    let statuses: Vec<Value> = record
        .containers
        .iter()
        .filter_map(|record| {
            let spec = specs
                .iter()
                .find(|spec| spec.get("name").and_then(Value::as_str) == Some(&record.name))?;
            Some(container_status(record, spec))
        })
        .collect();
    let mut out = Map::new();
    let mut put = |field: &str, value: Value| out.insert(field.to_owned(), value);
    put("conditions", Value::Array(list));
    put("containerStatuses", Value::Array(statuses));
    put("phase", Value::from(phase(record)));
    put("startTime", Value::from(record.start_time.clone()));
    put("hostIP", Value::from(record.host_ip.clone()));
    put("hostIPs", json!([{"ip": record.host_ip}]));
    if generation > 0 {
        put("observedGeneration", Value::from(generation));
    }
    if record.sandbox {
        put("podIP", Value::from(record.pod_ip.clone()));
        put("podIPs", json!([{"ip": record.pod_ip}]));
    }
    out
}

fn phase(record: &PodRecord) -> &'static str {
    if record.over {
        let failed = record
            .containers
            .iter()
            .any(|c| matches!(c.state, ContainerState::Terminated { exit_code, .. } if exit_code != 0));
        return if failed { "Failed" } else { "Succeeded" };
    }
    let started = |c: &ContainerRecord| c.is_running() || c.last.is_some() || c.restarts > 0;
    if record.containers.iter().all(started) && !record.containers.is_empty() {
        "Running"
    } else {
        "Pending"
    }
}

/// The strategic merge patch that makes `pod` show `status`; `None` if it does already.
pub(super) fn patch(pod: &Value, status: &Map<String, Value>) -> Option<Value> {
    let mut changed = Map::new();
    for (field, value) in status {
        if field == "conditions" {
            continue;
        }
        if at(pod, "status").and_then(|old| old.get(field)) != Some(value) {
            changed.insert(field.clone(), value.clone());
        }
    }
    let new = status
        .get("conditions")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    let kind_of = |condition: &Value| {
        condition
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let differing: Vec<Value> = new
        .iter()
        .filter(|c| condition_of(pod, &kind_of(c)) != Some(*c))
        .cloned()
        .collect();
    if changed.is_empty() && differing.is_empty() {
        return None;
    }
    if !differing.is_empty() {
        let old = at(pod, "status.conditions")
            .and_then(Value::as_array)
            .map(Vec::as_slice)
            .unwrap_or_default();
        let others = old
            .iter()
            .map(kind_of)
            .filter(|kind| !KUBELET_CONDITIONS.contains(&kind.as_str()));
        let order: Vec<Value> = others
            .chain(new.iter().map(kind_of))
            .map(|kind| json!({"type": kind}))
            .collect();
        // A field that a condition no longer has must be taken away by name.
        let differing: Vec<Value> = differing.into_iter().map(|c| with_removals(pod, c)).collect();
        changed.insert("$setElementOrder/conditions".to_owned(), Value::Array(order));
        changed.insert("conditions".to_owned(), Value::Array(differing));
    }
    Some(json!({"metadata": {"uid": pod.uid()}, "status": changed}))
}

fn with_removals(pod: &Value, mut condition: Value) -> Value {
    let kind = condition
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    if let (Some(old), Some(new)) = (
        condition_of(pod, &kind).and_then(Value::as_object),
        condition.as_object_mut(),
    ) {
        for field in ["reason", "message"] {
            if old.contains_key(field) && !new.contains_key(field) {
                new.insert(field.to_owned(), Value::Null);
            }
        }
    }
    condition
}
