//! UnitedDeployments.

use shared_json::{Map, Value};

use super::tables::{align, rows};
use crate::history::{State, number, text};

/// The UnitedDeployments with the columns that `kubectl get` prints, their revisions, conditions and subsets.
pub(super) fn deployments(state: &State) -> String {
    let sets: Vec<&Value> = state.of("uniteddeployments").collect();
    if sets.is_empty() {
        return String::new();
    }
    let columns = [
        "/spec/replicas",
        "/status/replicas",
        "/status/updatedReplicas",
        "/status/readyReplicas",
    ];
    let header = ["NAME", "DESIRED", "CURRENT", "UPDATED", "READY"];
    let mut out = align(&header, &rows(&sets, &columns));
    for set in sets {
        let name = text(set, "/metadata/name");
        out.push_str(&format!(
            "{name}: current revision {}, update revision {}, {} updated and ready, generation {} seen, selector {}\n",
            text(set, "/status/currentRevision"),
            text(set, "/status/updateStatus/updatedRevision"),
            number(set, "/status/updatedReadyReplicas"),
            number(set, "/status/observedGeneration"),
            text(set, "/status/labelSelector"),
        ));
        let conditions = conditions(set, "/status/conditions");
        if !conditions.is_empty() {
            out.push_str(&format!("{name}: {}\n", conditions.join(", ")));
        }
        out.push_str(&subsets(state, set));
    }
    out
}

/// The conditions that say something: OpenKruise has `UnitedDeploymentUpdated` since 1.9, so that it is told while it is false.
fn conditions(object: &Value, pointer: &str) -> Vec<String> {
    let list = object.pointer(pointer).and_then(Value::as_array);
    let shown = |condition: &Value| {
        let (kind, status) = (text(condition, "/type"), text(condition, "/status"));
        let is_usual = kind == "UnitedDeploymentUpdated" && status == "True";
        (!is_usual).then(|| format!("{kind}={status}"))
    };
    list.into_iter().flatten().filter_map(shown).collect()
}

/// The subsets: the numbers that they are to have, the conditions, and the numbers that the status says, where those are not the ones of
/// their workload, or the subset is gone. OpenKruise has the latter since 1.9.
fn subsets(state: &State, set: &Value) -> String {
    let map = |pointer: &str| {
        let map = set.pointer(pointer).and_then(Value::as_object);
        map.cloned().unwrap_or_else(Map::new)
    };
    let partitions = map("/status/updateStatus/currentPartitions");
    let statuses = set.pointer("/status/subsetStatuses").and_then(Value::as_array);
    let statuses: Vec<&Value> = statuses.into_iter().flatten().collect();
    let mut lines: Vec<String> = Vec::new();
    let wanted = map("/status/subsetReplicas");
    for (name, replicas) in &wanted {
        let partition = partitions.get(name).and_then(Value::as_i64).unwrap_or(0);
        let mut line = format!(
            "{name}: {} wanted, partition {partition}",
            replicas.as_i64().unwrap_or(0)
        );
        let status = statuses
            .iter()
            .find(|status| text(status, "/name") == name.as_str());
        for condition in status.into_iter().flat_map(|status| schedulable(status)) {
            line.push_str(&format!(", {condition}"));
        }
        lines.push(line);
    }
    for status in statuses {
        let name = text(status, "/name");
        let told = numbers(status);
        let workload = ["clonesets", "statefulsets.kruise"]
            .into_iter()
            .flat_map(|kind| state.of(kind))
            .find(|child| text(child, "/metadata/labels/apps.kruise.io~1subset-name") == name);
        let is_right = match workload {
            Some(workload) => numbers(workload.pointer("/status").unwrap_or(&Value::Null)) == told,
            // Workloads of Kubernetes are not recorded.
            None => wanted.contains_key(name.as_str()),
        };
        if !is_right {
            lines.push(format!(
                "{name}: the status tells of {} pods, {} ready",
                told.0, told.1
            ));
        }
    }
    lines.sort();
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn numbers(status: &Value) -> (i64, i64) {
    (number(status, "/replicas"), number(status, "/readyReplicas"))
}

/// The conditions of a subset with their reasons.
fn schedulable(status: &Value) -> Vec<String> {
    let list = status.pointer("/conditions").and_then(Value::as_array);
    let shown = |condition: &Value| {
        let at = |field: &str| text(condition, field);
        format!("{}={} ({})", at("/type"), at("/status"), at("/reason"))
    };
    list.into_iter().flatten().map(shown).collect()
}
