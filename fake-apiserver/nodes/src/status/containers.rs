//! The status of containers.

use machinery::meta::at;
use shared_json::{Array, Value, json};

use super::record::{ContainerRecord, Instance, Kind, PodRecord};

/// The action of a rule by which all containers begin anew.
const RESTART_ALL: &str = "RestartAllContainers";

/// A list of the spec.
pub(crate) fn items<'a>(pod: &'a Value, field: &str) -> &'a [Value] {
    at(pod, "spec")
        .and_then(|spec| spec.get(field))
        .and_then(Value::as_array)
        .map(Array::as_slice)
        .unwrap_or_default()
}

/// A container's name.
pub(crate) fn name_of(container: &Value) -> &str {
    container.get("name").and_then(Value::as_str).unwrap_or_default()
}

/// The pod's restart policy.
pub(crate) fn restart_policy(pod: &Value) -> &str {
    at(pod, "spec.restartPolicy")
        .and_then(Value::as_str)
        .unwrap_or("Always")
}

/// The action of the first of a container's own rules that fits its end.
fn action<'a>(record: &ContainerRecord, spec: Option<&'a Value>) -> Option<&'a str> {
    let code = i64::from(record.ended()?.code);
    let rules = spec?.get("restartPolicyRules")?.as_array()?;
    let fits = |rule: &&Value| {
        let Some(codes) = at(rule, "exitCodes.values").and_then(Value::as_array) else {
            return false;
        };
        let listed = codes.iter().any(|listed| listed.as_i64() == Some(code));
        match at(rule, "exitCodes.operator").and_then(Value::as_str) {
            Some("In") => listed,
            Some("NotIn") => !listed,
            _ => false,
        }
    };
    rules.iter().find(fits)?.get("action")?.as_str()
}

fn spec_of<'a>(record: &ContainerRecord, pod: &'a Value) -> Option<&'a Value> {
    items(pod, record.kind.field())
        .iter()
        .find(|spec| name_of(spec) == record.name)
}

/// Whether a container of the pod has ended in a way for which all begin anew.
pub(crate) fn restarts_all(record: &PodRecord, pod: &Value) -> bool {
    record
        .containers
        .iter()
        .any(|container| action(container, spec_of(container, pod)) == Some(RESTART_ALL))
}

/// Whether a pod has a rule by which all of its containers may begin anew.
pub(super) fn may_restart_all(pod: &Value) -> bool {
    let of = |field: &str| {
        items(pod, field)
            .iter()
            .filter_map(|spec| spec.get("restartPolicyRules").and_then(Value::as_array))
            .flatten()
            .any(|rule| rule.get("action").and_then(Value::as_str) == Some(RESTART_ALL))
    };
    of("initContainers") || of("containers")
}

/// Whether a container that does not run is to be started (again), as far as its own past and policies say.
pub(crate) fn should_restart(record: &ContainerRecord, pod: &Value) -> bool {
    let Some(ended) = record.ended() else {
        return record.current.is_none();
    };
    let spec = spec_of(record, pod);
    if action(record, spec).is_some() {
        return true;
    }
    let own = spec
        .and_then(|spec| spec.get("restartPolicy"))
        .and_then(Value::as_str);
    let policy = own.unwrap_or_else(|| restart_policy(pod));
    match (record.kind, policy) {
        (Kind::Ephemeral, _) => false,
        (Kind::Sidecar, _) => true,
        // An init container that has succeeded is done; one that failed starts again unless the pod never restarts.
        (Kind::Init, policy) => ended.code != 0 && policy != "Never",
        (Kind::Regular, "Always") => true,
        (Kind::Regular, "OnFailure") => ended.code != 0,
        (Kind::Regular, _) => false,
    }
}

/// The statuses of the containers of some kinds: sorted by name, but init containers as the spec has them.
pub(super) fn statuses(record: &PodRecord, pod: &Value, kinds: &[Kind]) -> Vec<Value> {
    let mut records: Vec<&ContainerRecord> = record.of_kinds(kinds).collect();
    if !kinds.contains(&Kind::Init) {
        records.sort_by(|one, other| one.name.cmp(&other.name));
    }
    records
        .into_iter()
        .filter_map(|container| {
            let spec = items(pod, container.kind.field())
                .iter()
                .find(|spec| name_of(spec) == container.name)?;
            Some(container_status(record, container, spec, pod))
        })
        .collect()
}

fn container_status(pod_record: &PodRecord, record: &ContainerRecord, spec: &Value, pod: &Value) -> Value {
    let spec_image = spec.get("image").and_then(Value::as_str).unwrap_or_default();
    let (state, last) = states(pod_record, record, pod);
    let (image, image_id) = match &record.current {
        Some(instance) => (instance.image.as_str(), instance.image_id.as_str()),
        None => (spec_image, ""),
    };
    let mut status = json!({
        "name": record.name, "image": image, "imageID": image_id, "ready": record.is_ready(),
        "restartCount": record.restarts, "state": state, "lastState": last,
    });
    if record.kind != Kind::Ephemeral {
        let started = record.is_running() && record.started && record.kind != Kind::Init;
        status["started"] = Value::from(started);
    }
    if let Some(instance) = &record.current {
        status["containerID"] = Value::from(instance.id.clone());
        let allocated = record.allocated.as_ref().or_else(|| spec.get("resources"));
        if let Some(requests) = allocated.and_then(|resources| resources.get("requests")) {
            status["allocatedResources"] = requests.clone();
        }
        let actual = Some(&record.resources).filter(|resources| resources.is_object() && record.is_running());
        let resources = actual.or(allocated).cloned();
        status["resources"] = resources.unwrap_or_else(|| json!({}));
    }
    let mounts = spec
        .get("volumeMounts")
        .and_then(Value::as_array)
        .map(Array::as_slice)
        .unwrap_or_default();
    if !mounts.is_empty() {
        status["volumeMounts"] = mounts.iter().map(mount_status).collect();
    }
    status
}

/// The state and the last state to show.
fn states(pod_record: &PodRecord, record: &ContainerRecord, pod: &Value) -> (Value, Value) {
    let previous = record.previous.as_deref().map_or_else(|| json!({}), terminated);
    match &record.current {
        Some(instance) if instance.ended.is_none() => {
            (json!({"running": {"startedAt": instance.started}}), previous)
        }
        Some(instance) => match &record.blocked {
            // What is to be started again waits, if there is a word for why it does not run yet.
            Some((reason, message)) if !pod_record.over && should_restart(record, pod) => {
                (waiting(reason, message), terminated(instance))
            }
            _ => (terminated(instance), previous),
        },
        None if pod_record.stopped && pod_record.is_lost(record) => {
            let lost = json!({"terminated": {
                "exitCode": 137, "reason": "ContainerStatusUnknown", "startedAt": null, "finishedAt": null,
                "message": "The container could not be located when the pod was terminated",
            }});
            (lost, previous)
        }
        None => match &record.blocked {
            Some((reason, message)) => (waiting(reason, message), previous),
            None => {
                let has_init = pod_record
                    .containers
                    .iter()
                    .any(|c| matches!(c.kind, Kind::Init | Kind::Sidecar));
                let reason = if has_init {
                    "PodInitializing"
                } else {
                    "ContainerCreating"
                };
                (waiting(reason, ""), previous)
            }
        },
    }
}

fn waiting(reason: &str, message: &str) -> Value {
    let mut waiting = json!({"reason": reason});
    if !message.is_empty() {
        waiting["message"] = Value::from(message);
    }
    json!({"waiting": waiting})
}

fn terminated(instance: &Instance) -> Value {
    let Some(ended) = &instance.ended else {
        return json!({});
    };
    let mut state = json!({
        "containerID": instance.id, "exitCode": ended.code, "reason": ended.reason,
        "startedAt": instance.started, "finishedAt": ended.at,
    });
    if instance.id.is_empty() {
        state =
            json!({"exitCode": ended.code, "reason": ended.reason, "startedAt": null, "finishedAt": null});
    }
    if !ended.message.is_empty() {
        state["message"] = Value::from(ended.message.clone());
    }
    json!({"terminated": state})
}

fn mount_status(mount: &Value) -> Value {
    let mut out = json!({"name": mount.get("name"), "mountPath": mount.get("mountPath")});
    if mount.get("readOnly").and_then(Value::as_bool) == Some(true) {
        let wanted = mount.get("recursiveReadOnly").and_then(Value::as_str);
        let is_recursive = matches!(wanted, Some("Enabled" | "IfPossible"));
        out["readOnly"] = Value::from(true);
        out["recursiveReadOnly"] = Value::from(if is_recursive { "Enabled" } else { "Disabled" });
    }
    out
}

#[cfg(test)]
#[path = "restart_tests.rs"]
mod tests;
