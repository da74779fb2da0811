//! WorkloadSpreads.

use shared_json::{Array, Map, Value};

use crate::history::{State, number, text};

/// The spreads with the statuses of their subsets, and the subsets and deletion costs of pods.
pub(super) fn spreads(state: &State) -> String {
    let all: Vec<&Value> = state.of("workloadspreads").collect();
    let mut out = String::new();
    for spread in &all {
        let name = text(spread, "/metadata/name");
        out.push_str(&format!("workloadspread {name}:"));
        let all = subsets(spread.pointer("/status/subsetStatuses"));
        out.push_str(&all);
        let versions = spread
            .pointer("/status/versionedSubsetStatuses")
            .and_then(Value::as_object);
        for (version, list) in versions.into_iter().flatten() {
            // OpenKruise has had versions since 1.6. The only one is told by all together.
            let list = subsets(Some(list));
            if list != all {
                out.push_str(&format!("  {version}:{list}"));
            }
        }
    }
    if !all.is_empty() {
        let mut lines: Vec<String> = state.of("pods").filter_map(placed).collect();
        lines.sort();
        out.push_str(&lines.concat());
    }
    out
}

/// Subsets, each with its numbers.
fn subsets(list: Option<&Value>) -> String {
    let list = list
        .and_then(Value::as_array)
        .map(Array::as_slice)
        .unwrap_or_default();
    let each: Vec<String> = list.iter().map(subset).collect();
    format!(" {}\n", each.join("; "))
}

fn subset(status: &Value) -> String {
    let recorded = |pointer: &str| {
        let records = status.pointer(pointer).and_then(Value::as_object);
        records.map_or(0, Map::len)
    };
    let mut out = format!(
        "{} {} pods, {} missing",
        text(status, "/name"),
        number(status, "/replicas"),
        number(status, "/missingReplicas")
    );
    for (pointer, words) in [
        ("/creatingPods", "being created"),
        ("/deletingPods", "being deleted"),
    ] {
        let count = recorded(pointer);
        if count > 0 {
            out.push_str(&format!(", {count} {words}"));
        }
    }
    let conditions = status.pointer("/conditions").and_then(Value::as_array);
    for condition in conditions.into_iter().flatten() {
        out.push_str(&format!(
            ", {}={}",
            text(condition, "/type"),
            text(condition, "/status")
        ));
    }
    out
}

/// A pod, its subset and its deletion cost.
fn placed(pod: &Value) -> Option<String> {
    let matched = text(
        pod,
        "/metadata/annotations/apps.kruise.io~1matched-workloadspread",
    );
    let matched: Value = shared_json::from_str(&matched).unwrap_or_default();
    let cost = text(
        pod,
        "/metadata/annotations/controller.kubernetes.io~1pod-deletion-cost",
    );
    let subset = text(&matched, "/subset");
    if subset.is_empty() && cost.is_empty() {
        return None;
    }
    Some(format!(
        "{} in subset {subset:?}, cost {cost:?}\n",
        text(pod, "/metadata/name")
    ))
}
