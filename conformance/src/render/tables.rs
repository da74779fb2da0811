//! Tables in the manner of `kubectl get`.

use shared_json::{Array, Value};

use crate::history::{State, number, text};

/// Lines up cells under a header; columns are three spaces apart, as kubectl's.
pub(crate) fn align(header: &[&str], rows: &[Vec<String>]) -> String {
    let mut widths: Vec<usize> = header.iter().map(|cell| cell.len()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut out = String::new();
    let header: Vec<String> = header.iter().map(|cell| (*cell).to_owned()).collect();
    for row in std::iter::once(&header).chain(rows) {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            line.push_str(cell);
            line.push_str(&" ".repeat(width.saturating_sub(cell.chars().count()) + 3));
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// The CloneSets, with the columns that every version prints, and the revisions.
pub(super) fn workloads(state: &State) -> String {
    let clonesets: Vec<&Value> = state.of("clonesets").collect();
    if clonesets.is_empty() {
        return String::new();
    }
    let columns = [
        "/status/updatedReplicas",
        "/status/updatedReadyReplicas",
        "/status/readyReplicas",
        "/status/replicas",
    ];
    let rows: Vec<Vec<String>> = clonesets
        .iter()
        .map(|set| {
            let mut row = vec![
                text(set, "/metadata/name"),
                number(set, "/spec/replicas").to_string(),
            ];
            row.extend(columns.iter().map(|column| number(set, column).to_string()));
            row
        })
        .collect();
    let mut out = align(
        &["NAME", "DESIRED", "UPDATED", "UPDATED_READY", "READY", "TOTAL"],
        &rows,
    );
    for set in clonesets {
        let (current, update) = (
            text(set, "/status/currentRevision"),
            text(set, "/status/updateRevision"),
        );
        out.push_str(&format!(
            "{}: current revision {current}, update revision {update}\n",
            text(set, "/metadata/name")
        ));
        let left = set
            .pointer("/spec/scaleStrategy/podsToDelete")
            .and_then(Value::as_array);
        if let Some(left) = left.filter(|left| !left.is_empty()) {
            let names: Vec<&str> = left.iter().filter_map(Value::as_str).collect();
            out.push_str(&format!(
                "{}: podsToDelete {}\n",
                text(set, "/metadata/name"),
                names.join(", ")
            ));
        }
    }
    out.push_str(&revisions(state));
    out
}

/// The names and the numbers at these places of sets, a row each.
pub(super) fn rows(sets: &[&Value], columns: &[&str]) -> Vec<Vec<String>> {
    sets.iter()
        .map(|set| {
            let mut row = vec![text(set, "/metadata/name")];
            row.extend(columns.iter().map(|column| number(set, column).to_string()));
            row
        })
        .collect()
}

/// The DaemonSets of OpenKruise with the columns that `kubectl get` prints, and the revisions.
pub(super) fn daemon_sets(state: &State) -> String {
    let sets: Vec<&Value> = state.of("daemonsets.kruise").collect();
    if sets.is_empty() {
        return String::new();
    }
    let columns = [
        "/status/desiredNumberScheduled",
        "/status/currentNumberScheduled",
        "/status/numberReady",
        "/status/updatedNumberScheduled",
        "/status/numberAvailable",
    ];
    let rows = rows(&sets, &columns);
    let header = ["NAME", "DESIRED", "CURRENT", "READY", "UP-TO-DATE", "AVAILABLE"];
    let mut out = align(&header, &rows);
    for set in sets {
        // `v1alpha1`, in which recordings have it, calls the revision's hash otherwise.
        let hashes = ["/status/daemonSetHash", "/status/updateRevision"].map(|hash| text(set, hash));
        out.push_str(&format!(
            "{}: update revision {}, misscheduled {}, generation {} seen\n",
            text(set, "/metadata/name"),
            hashes.concat(),
            number(set, "/status/numberMisscheduled"),
            number(set, "/status/observedGeneration"),
        ));
    }
    out.push_str(&revisions(state));
    out
}

/// The StatefulSets of OpenKruise with the columns that `kubectl get` prints, their claims with the owners that these have, and
/// the revisions.
pub(super) fn stateful_sets(state: &State) -> String {
    let sets: Vec<&Value> = state.of("statefulsets.kruise").collect();
    if sets.is_empty() {
        return String::new();
    }
    let columns = [
        "/spec/replicas",
        "/status/replicas",
        "/status/updatedReplicas",
        "/status/readyReplicas",
    ];
    let rows = rows(&sets, &columns);
    let mut out = align(&["NAME", "DESIRED", "CURRENT", "UPDATED", "READY"], &rows);
    for set in sets {
        out.push_str(&format!(
            "{}: current revision {} ({} pods), update revision {}, available {}\n",
            text(set, "/metadata/name"),
            text(set, "/status/currentRevision"),
            number(set, "/status/currentReplicas"),
            text(set, "/status/updateRevision"),
            number(set, "/status/availableReplicas"),
        ));
    }
    for claim in state.of("persistentvolumeclaims") {
        let owners = claim
            .pointer("/metadata/ownerReferences")
            .and_then(Value::as_array);
        let owners: Vec<String> = owners
            .into_iter()
            .flatten()
            .map(|owner| format!("{}/{}", text(owner, "/kind"), text(owner, "/name")))
            .collect();
        out.push_str(&format!(
            "claim {} of {}, owners: {}\n",
            text(claim, "/metadata/name"),
            text(claim, "/spec/resources/requests/storage"),
            owners.join(", ")
        ));
    }
    out.push_str(&revisions(state));
    out
}

/// The revisions, oldest first.
fn revisions(state: &State) -> String {
    let mut revisions: Vec<(i64, String)> = state
        .of("controllerrevisions")
        // Those of SidecarSets are in a namespace that is not recorded.
        .filter(|revision| text(revision, "/metadata/namespace") != "kruise-system")
        .map(|revision| (number(revision, "/revision"), text(revision, "/metadata/name")))
        .collect();
    revisions.sort();
    let list: Vec<String> = revisions
        .into_iter()
        .map(|(number, name)| format!("{number} {name}"))
        .collect();
    format!("revisions: {}\n", list.join(", "))
}

/// The pods, with the columns that a reader of the tutorial looks at.
pub(super) fn pods(state: &State) -> String {
    let rows: Vec<Vec<String>> = state
        .of("pods")
        .map(|pod| {
            vec![
                text(pod, "/metadata/name"),
                ready(pod),
                status(pod),
                restarts(pod).to_string(),
                text(pod, "/metadata/labels/controller-revision-hash"),
                images(pod),
            ]
        })
        .collect();
    if rows.is_empty() {
        return "no pods\n".to_owned();
    }
    align(
        &["NAME", "READY", "STATUS", "RESTARTS", "REVISION", "IMAGE"],
        &rows,
    )
}

fn statuses(pod: &Value) -> &[Value] {
    pod.pointer("/status/containerStatuses")
        .and_then(Value::as_array)
        .map(Array::as_slice)
        .unwrap_or_default()
}

/// How often the pod's containers were restarted.
pub(super) fn restarts(pod: &Value) -> i64 {
    statuses(pod)
        .iter()
        .map(|status| number(status, "/restartCount"))
        .sum()
}

fn ready(pod: &Value) -> String {
    let total = pod
        .pointer("/spec/containers")
        .and_then(Value::as_array)
        .map_or(0, Array::len);
    let ready = statuses(pod)
        .iter()
        .filter(|status| status.get("ready") == Some(&Value::Bool(true)))
        .count();
    format!("{ready}/{total}")
}

fn status(pod: &Value) -> String {
    if !text(pod, "/metadata/deletionTimestamp").is_empty() {
        return "Terminating".to_owned();
    }
    let waiting = statuses(pod)
        .iter()
        .map(|status| text(status, "/state/waiting/reason"))
        .find(|r| !r.is_empty())
        .map(super::normalise::waiting_reason);
    let ended = statuses(pod)
        .iter()
        .map(|status| text(status, "/state/terminated/reason"))
        .find(|r| !r.is_empty());
    let phase = text(pod, "/status/phase");
    waiting
        .or(ended.filter(|_| phase != "Succeeded"))
        .unwrap_or(phase)
}

fn images(pod: &Value) -> String {
    let containers = pod.pointer("/spec/containers").and_then(Value::as_array);
    let images: Vec<String> = containers
        .into_iter()
        .flatten()
        .map(|container| text(container, "/image"))
        .collect();
    images.join(",")
}
