//! PodUnavailableBudgets.

use shared_json::{Map, Value};

use super::tables::align;
use crate::history::{State, number, text};

/// The budgets with the columns that `kubectl get` prints, and how many pods are recorded as going.
pub(super) fn budgets(state: &State) -> String {
    let all: Vec<&Value> = state.of("podunavailablebudgets").collect();
    if all.is_empty() {
        return String::new();
    }
    let columns = [
        "/status/unavailableAllowed",
        "/status/currentAvailable",
        "/status/desiredAvailable",
        "/status/totalReplicas",
    ];
    let rows = super::tables::rows(&all, &columns);
    let mut out = align(&["NAME", "ALLOWED", "CURRENT", "DESIRED", "TOTAL"], &rows);
    for budget in all {
        let name = text(budget, "/metadata/name");
        let recorded = |pointer: &str| {
            let records = budget.pointer(pointer).and_then(Value::as_object);
            records.map_or(0, Map::len)
        };
        let (disrupted, unavailable) = (
            recorded("/status/disruptedPods"),
            recorded("/status/unavailablePods"),
        );
        out.push_str(&format!(
            "{name}: {disrupted} pods disrupted, {unavailable} unavailable"
        ));
        let seen = number(budget, "/status/observedGeneration");
        out.push_str(&format!(", generation {seen} seen\n"));
    }
    let guarded: Vec<String> = state.of("pods").filter_map(guarded).collect();
    if !guarded.is_empty() {
        out.push_str(&format!("guarded: {}\n", guarded.join(", ")));
    }
    out
}

/// A pod and the budget that guards it.
fn guarded(pod: &Value) -> Option<String> {
    let budget = text(pod, "/metadata/annotations/kruise.io~1related-pub");
    (!budget.is_empty()).then(|| format!("{} by {budget}", text(pod, "/metadata/name")))
}
