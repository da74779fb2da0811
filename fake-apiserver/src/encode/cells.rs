//! The cells of tables.

use jiff::Timestamp;
use serde_json::Value;

use crate::meta::{ObjectMeta, at, string_map};
use crate::resources::Resource;

const UNKNOWN: &str = "<unknown>";
const NONE: &str = "<none>";

/// A cell of a built-in type, by its column.
pub(super) fn builtin(resource: &Resource, column: &str, object: &Value, now: Timestamp) -> Value {
    let text = |path: &str| {
        at(object, path)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let number = |path: &str| at(object, path).and_then(Value::as_i64).unwrap_or_default();
    let or_none = |text: String| Value::from(if text.is_empty() { NONE.to_owned() } else { text });
    match (resource.kind.as_str(), column) {
        (_, "Name") => Value::from(object.name()),
        ("Event", "Last Seen") => Value::from(event_age(object, now)),
        ("Event", "Object") => {
            let kind = text("involvedObject.kind").to_lowercase();
            Value::from(format!("{kind}/{}", text("involvedObject.name")))
        }
        ("Event", column) => match column {
            "Type" | "Reason" | "Message" => Value::from(text(&column.to_lowercase()).trim().to_owned()),
            "Count" => Value::from(number("count")),
            _ => Value::from(""),
        },
        (_, "Age" | "Created At") => Value::from(age(object.meta_str("creationTimestamp"), now)),
        ("Pod", _) => pod(column, object, now),
        ("Namespace", "Status") => Value::from(text("status.phase")),
        ("Node", "Status") => Value::from(node_status(object)),
        ("Node", "Roles") => or_none(node_roles(object)),
        ("Node", "Version") => Value::from(text("status.nodeInfo.kubeletVersion")),
        ("Node", "OS-Image") => or_none(text("status.nodeInfo.osImage")),
        ("Node", "Kernel-Version") => or_none(text("status.nodeInfo.kernelVersion")),
        ("Node", "Container-Runtime") => or_none(text("status.nodeInfo.containerRuntimeVersion")),
        ("Node", "Internal-IP") => or_none(node_address(object, "InternalIP")),
        ("Node", "External-IP") => or_none(node_address(object, "ExternalIP")),
        ("ConfigMap", "Data") => {
            let size = |field: &str| {
                object
                    .get(field)
                    .and_then(Value::as_object)
                    .map_or(0, serde_json::Map::len)
            };
            Value::from(size("data") + size("binaryData"))
        }
        ("Secret", "Type") => Value::from(text("type")),
        ("Secret", "Data") => Value::from(
            object
                .get("data")
                .and_then(Value::as_object)
                .map_or(0, serde_json::Map::len),
        ),
        ("ServiceAccount", "Secrets") => Value::from(
            object
                .get("secrets")
                .and_then(Value::as_array)
                .map_or(0, Vec::len),
        ),
        ("ControllerRevision", "Controller") => or_none(controller(object)),
        ("ControllerRevision", "Revision") => Value::from(number("revision")),
        ("Deployment", "Ready") => Value::from(format!(
            "{}/{}",
            number("status.readyReplicas"),
            number("spec.replicas")
        )),
        ("Deployment", "Up-to-date") => Value::from(number("status.updatedReplicas")),
        ("Deployment", "Available") => Value::from(number("status.availableReplicas")),
        ("ReplicaSet", "Desired") => Value::from(number("spec.replicas")),
        ("ReplicaSet", "Current") => Value::from(number("status.replicas")),
        ("ReplicaSet", "Ready") => Value::from(number("status.readyReplicas")),
        ("StatefulSet", "Ready") => Value::from(format!(
            "{}/{}",
            number("status.readyReplicas"),
            number("spec.replicas")
        )),
        ("Lease", "Holder") => Value::from(text("spec.holderIdentity")),
        (_, "Containers") => Value::from(containers(object, "name")),
        (_, "Images") => Value::from(containers(object, "image")),
        (_, "Selector") => Value::from(selector(object)),
        (_, _) => Value::from(""),
    }
}

fn containers(object: &Value, field: &str) -> String {
    let list = at(object, "spec.template.spec.containers").and_then(Value::as_array);
    let names = list
        .into_iter()
        .flatten()
        .filter_map(|container| container.get(field)?.as_str());
    names.collect::<Vec<_>>().join(",")
}

/// A label selector in its text form; `<none>` if it is empty.
fn selector(object: &Value) -> String {
    let text = label_selector_text(at(object, "spec.selector").unwrap_or(&Value::Null));
    if text.is_empty() { NONE.to_owned() } else { text }
}

/// `app=cs,tier in (a,b)`: a `LabelSelector` as text, labels and then expressions, each in order of their keys.
pub(crate) fn label_selector_text(selector: &Value) -> String {
    let mut parts: Vec<(String, String)> = Vec::new();
    if let Some(labels) = selector.get("matchLabels").and_then(Value::as_object) {
        parts.extend(labels.iter().map(|(key, value)| {
            (
                key.clone(),
                format!("{key}={}", value.as_str().unwrap_or_default()),
            )
        }));
    }
    for expression in selector
        .get("matchExpressions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let key = expression.get("key").and_then(Value::as_str).unwrap_or_default();
        let values: Vec<&str> = expression
            .get("values")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let text = match expression
            .get("operator")
            .and_then(Value::as_str)
            .unwrap_or_default()
        {
            "In" => format!("{key} in ({})", values.join(",")),
            "NotIn" => format!("{key} notin ({})", values.join(",")),
            "DoesNotExist" => format!("!{key}"),
            _ => key.to_owned(),
        };
        parts.push((key.to_owned(), text));
    }
    parts.sort();
    parts
        .into_iter()
        .map(|(_, text)| text)
        .collect::<Vec<_>>()
        .join(",")
}

fn controller(object: &Value) -> String {
    let owners = object
        .metadata()
        .and_then(|meta| meta.get("ownerReferences"))
        .and_then(Value::as_array);
    let owner = owners
        .into_iter()
        .flatten()
        .find(|owner| owner.get("controller").and_then(Value::as_bool) == Some(true));
    let text = |field: &str| {
        owner
            .and_then(|owner| owner.get(field))
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let (kind, name) = (text("kind").to_lowercase(), text("name"));
    if kind.is_empty() {
        return String::new();
    }
    match text("apiVersion").split_once('/') {
        Some((group, _)) => format!("{kind}.{group}/{name}"),
        None => format!("{kind}/{name}"),
    }
}

fn node_status(node: &Value) -> String {
    let conditions = at(node, "status.conditions").and_then(Value::as_array);
    let ready = conditions
        .into_iter()
        .flatten()
        .find(|c| c.get("type").and_then(Value::as_str) == Some("Ready"));
    let mut status = match ready.and_then(|c| c.get("status")).and_then(Value::as_str) {
        Some("True") => "Ready".to_owned(),
        Some(_) => "NotReady".to_owned(),
        None => "Unknown".to_owned(),
    };
    if at(node, "spec.unschedulable").and_then(Value::as_bool) == Some(true) {
        status.push_str(",SchedulingDisabled");
    }
    status
}

fn node_roles(node: &Value) -> String {
    let mut roles: Vec<&str> = string_map(node, "labels")
        .keys()
        .filter_map(|key| key.strip_prefix("node-role.kubernetes.io/"))
        .filter(|role| !role.is_empty())
        .collect();
    roles.sort_unstable();
    roles.join(",")
}

fn node_address(node: &Value, kind: &str) -> String {
    let list = at(node, "status.addresses").and_then(Value::as_array);
    let found = list
        .into_iter()
        .flatten()
        .find(|a| a.get("type").and_then(Value::as_str) == Some(kind));
    found
        .and_then(|a| a.get("address"))
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}

fn pod(column: &str, pod: &Value, now: Timestamp) -> Value {
    let text = |path: &str| {
        at(pod, path)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let or_none = |text: String| Value::from(if text.is_empty() { NONE.to_owned() } else { text });
    let statuses = at(pod, "status.containerStatuses")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    match column {
        "Ready" => {
            let total = at(pod, "spec.containers")
                .and_then(Value::as_array)
                .map_or(0, Vec::len);
            let ready = |status: &&Value| {
                status.get("ready").and_then(Value::as_bool) == Some(true)
                    && at(status, "state.running").is_some()
            };
            Value::from(format!("{}/{total}", statuses.iter().filter(ready).count()))
        }
        "Status" => Value::from(pod_status(pod, statuses)),
        "Restarts" => Value::from(pod_restarts(statuses, now)),
        "IP" => or_none(text("status.podIP")),
        "Node" => or_none(text("spec.nodeName")),
        "Nominated Node" => or_none(text("status.nominatedNodeName")),
        "Readiness Gates" => or_none(readiness_gates(pod)),
        _ => Value::from(""),
    }
}

/// The one word that `kubectl get pods` gives a pod.
fn pod_status(pod: &Value, statuses: &[Value]) -> String {
    let text = |value: &Value, path: &str| {
        at(value, path)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let mut reason = text(pod, "status.phase");
    let own = text(pod, "status.reason");
    if !own.is_empty() {
        reason = own;
    }
    let inits = at(pod, "status.initContainerStatuses")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    let mut initialising = false;
    let total = at(pod, "spec.initContainers")
        .and_then(Value::as_array)
        .map_or(0, Vec::len);
    for (index, init) in inits.iter().enumerate() {
        let exit = at(init, "state.terminated.exitCode").and_then(Value::as_i64);
        if exit == Some(0) || init.get("started").and_then(Value::as_bool) == Some(true) {
            continue;
        }
        let waiting = text(init, "state.waiting.reason");
        reason = match exit {
            Some(code) => {
                let why = text(init, "state.terminated.reason");
                if why.is_empty() {
                    format!("Init:ExitCode:{code}")
                } else {
                    format!("Init:{why}")
                }
            }
            None if !waiting.is_empty() && waiting != "PodInitializing" => format!("Init:{waiting}"),
            None => format!("Init:{index}/{total}"),
        };
        initialising = true;
        break;
    }
    if !initialising {
        let mut running = false;
        for status in statuses.iter().rev() {
            let waiting = text(status, "state.waiting.reason");
            let terminated = text(status, "state.terminated.reason");
            if !waiting.is_empty() {
                reason = waiting;
            } else if !terminated.is_empty() {
                reason = terminated;
            } else if let Some(code) = at(status, "state.terminated.exitCode").and_then(Value::as_i64) {
                reason = format!("ExitCode:{code}");
            } else if at(status, "state.running").is_some()
                && status.get("ready").and_then(Value::as_bool) == Some(true)
            {
                running = true;
            }
        }
        if reason == "Completed" && running {
            reason = if is_ready(pod) { "Running" } else { "NotReady" }.to_owned();
        }
    }
    if pod.is_terminating() {
        reason = if text(pod, "status.reason") == "NodeLost" {
            "Unknown"
        } else {
            "Terminating"
        }
        .to_owned();
    }
    reason
}

fn is_ready(pod: &Value) -> bool {
    condition(pod, "Ready") == Some("True")
}

fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a str> {
    let list = at(object, "status.conditions").and_then(Value::as_array)?;
    list.iter()
        .find(|c| c.get("type").and_then(Value::as_str) == Some(kind))?
        .get("status")?
        .as_str()
}

fn pod_restarts(statuses: &[Value], now: Timestamp) -> String {
    let count: i64 = statuses
        .iter()
        .filter_map(|status| status.get("restartCount")?.as_i64())
        .sum();
    let last = statuses
        .iter()
        .filter_map(|status| at(status, "lastState.terminated.finishedAt").and_then(Value::as_str))
        .max();
    match last {
        Some(last) if count > 0 => format!("{count} ({} ago)", age(last, now)),
        _ => count.to_string(),
    }
}

fn readiness_gates(pod: &Value) -> String {
    let gates = at(pod, "spec.readinessGates")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    if gates.is_empty() {
        return String::new();
    }
    let open = gates
        .iter()
        .filter_map(|gate| gate.get("conditionType")?.as_str())
        .filter(|kind| condition(pod, kind) == Some("True"))
        .count();
    format!("{open}/{}", gates.len())
}

fn event_age(event: &Value, now: Timestamp) -> String {
    let text = |path: &str| at(event, path).and_then(Value::as_str).unwrap_or_default();
    let last = [
        text("series.lastObservedTime"),
        text("lastTimestamp"),
        text("eventTime"),
        text("firstTimestamp"),
    ]
    .into_iter()
    .find(|time| !time.is_empty())
    .unwrap_or_default();
    age(last, now)
}

/// A cell of a custom resource's table.
pub(super) fn json_path(object: &Value, path: &str, kind: &str, now: Timestamp) -> Value {
    let Some(value) = follow(object, path) else {
        return Value::Null;
    };
    match (kind, value) {
        ("date", Value::String(time)) => Value::from(age(time, now)),
        ("integer" | "number", Value::Number(_)) | ("boolean", Value::Bool(_)) => value.clone(),
        (_, Value::String(text)) => Value::from(text.clone()),
        (_, Value::Null) => Value::Null,
        (_, other) => Value::from(other.to_string()),
    }
}

/// Follows a JSON path of fields, quoted fields, indexes and `[?(@.field=="value")]` filters; `[*]` joins what it finds.
fn follow<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    let mut value = object;
    let mut rest = path.trim_start_matches('$');
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('[') {
            let end = after.find(']')?;
            let inside = &after[..end];
            rest = &after[end + 1..];
            value = if let Some(filter) = inside
                .strip_prefix("?(@.")
                .and_then(|filter| filter.strip_suffix(')'))
            {
                let (field, wanted) = filter.split_once("==")?;
                let wanted = wanted.trim().trim_matches(['"', '\'']);
                value
                    .as_array()?
                    .iter()
                    .find(|item| item.get(field.trim()).and_then(Value::as_str) == Some(wanted))?
            } else if inside == "*" {
                value.as_array()?.first()?
            } else if let Ok(index) = inside.parse::<usize>() {
                value.as_array()?.get(index)?
            } else {
                value.get(inside.trim_matches(['"', '\'']))?
            };
            continue;
        }
        let after = rest.strip_prefix('.').unwrap_or(rest);
        let end = after.find(['.', '[']).unwrap_or(after.len());
        let field = after[..end].replace("\\.", ".");
        rest = &after[end..];
        if field.is_empty() {
            return None;
        }
        value = value.get(&field)?;
    }
    Some(value)
}

/// How long ago a time was, as kubectl writes it: `46s`, `2m30s`, `9h`, `3d4h`.
pub(super) fn age(time: &str, now: Timestamp) -> String {
    let Ok(time) = time.parse::<Timestamp>() else {
        return UNKNOWN.to_owned();
    };
    human_duration(now.as_second() - time.as_second())
}

/// A number of seconds in two units at most, coarser the longer it is.
fn human_duration(seconds: i64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let two = |large: i64, large_unit: &str, small: i64, small_unit: &str| {
        if small == 0 {
            format!("{large}{large_unit}")
        } else {
            format!("{large}{large_unit}{small}{small_unit}")
        }
    };
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1..0 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        120..600 => two(minutes, "m", seconds % 60, "s"),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => two(hours, "h", minutes % 60, "m"),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => two(days, "d", hours % 24, "h"),
        _ if days < 730 => format!("{days}d"),
        _ if days < 2920 => two(days / 365, "y", days % 365, "d"),
        _ => format!("{}y", days / 365),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case(0, "0s")]
    #[case(119, "119s")]
    #[case(150, "2m30s")]
    #[case(180, "3m")]
    #[case(599, "9m59s")]
    #[case(3_600, "60m")]
    #[case(12_720, "3h32m")]
    #[case(46_800, "13h")]
    #[case(180_000, "2d2h")]
    #[case(864_000, "10d")]
    fn durations(#[case] seconds: i64, #[case] expected: &str) {
        assert_eq!(human_duration(seconds), expected);
    }

    #[rstest]
    #[case(".spec.replicas", json!(3))]
    #[case(".status.conditions[?(@.type==\"Ready\")].status", json!("True"))]
    #[case(".metadata.labels['a.b']", json!("x"))]
    #[case(".list[1]", json!(2))]
    #[case(".nothing.here", Value::Null)]
    fn paths(#[case] path: &str, #[case] expected: Value) {
        let object = json!({
            "spec": {"replicas": 3}, "list": [1, 2], "metadata": {"labels": {"a.b": "x"}},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        });
        assert_eq!(follow(&object, path).cloned().unwrap_or_default(), expected);
    }
}
