//! Spreads and pods for tests.

use std::sync::Arc;

use serde_json::{Value, json};

use super::groups::Groups;
use crate::api::v1alpha1::WorkloadSpread;
use crate::pods::CachedPod;
use crate::pods::test_pods::TestPod;

/// A spread over a workload of that kind, with these subsets: `name limit`.
pub(super) fn spread(kind: &str, subsets: &str) -> WorkloadSpread {
    let subsets = subsets.split(", ").map(|text| {
        let (name, limit) = text.split_once(' ').unwrap();
        let limit = match limit {
            "-" => Value::Null,
            limit => limit
                .parse::<i32>()
                .map_or_else(|_| json!(limit), |number| json!(number)),
        };
        json!({ "name": name, "maxReplicas": limit })
    });
    let subsets: Vec<Value> = subsets.collect();
    serde_json::from_value(json!({
        "apiVersion": "apps.kruise.io/v1alpha1", "kind": "WorkloadSpread",
        "metadata": { "name": "ws", "namespace": "default", "generation": 2 },
        "spec": { "targetRef": { "apiVersion": "v1", "kind": kind, "name": "x" }, "subsets": subsets },
    }))
    .unwrap()
}

/// The same, adaptive.
pub(super) fn adaptive(mut spread: WorkloadSpread, seconds: i32) -> WorkloadSpread {
    let strategy = json!({ "type": "Adaptive", "adaptive": { "rescheduleCriticalSeconds": seconds } });
    spread.spec.schedule_strategy = serde_json::from_value(strategy).unwrap();
    spread
}

/// So many pods in each subset, and in none.
pub(super) fn groups(spread: &WorkloadSpread, counts: &str) -> Groups {
    let counts: Vec<usize> = counts.split(' ').map(|count| count.parse().unwrap()).collect();
    let names = spread
        .spec
        .subsets
        .iter()
        .map(|subset| Some(subset.name.clone()))
        .chain([None]);
    let pods = names.zip(counts).flat_map(|(name, count)| {
        (0..count).map(move |number| {
            let pod = TestPod::new(&format!("{}-{number:02}", name.as_deref().unwrap_or("none")));
            (Arc::new(CachedPod::from(pod.build())), name.clone())
        })
    });
    Groups::of(spread, pods)
}
