//! The deletion costs of pods: when the workload shrinks, the last subsets shrink first.

use std::sync::Arc;

use super::groups::{FAKE, Groups};
use crate::api::labels;
use crate::api::v1alpha1::WorkloadSpread;
use crate::injection::spreads::room::limit;
use crate::pods::sort::active;
use crate::pods::{CachedPod, PodRef, pod};

/// The kinds whose controllers read the cost.
const KINDS: [&str; 3] = ["ReplicaSet", "Deployment", "CloneSet"];

/// The cost that a pod is to have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::workloads::workloadspread) struct Cost {
    /// Which pod.
    pub(in crate::workloads::workloadspread) pod: PodRef,
    /// The cost.
    pub(in crate::workloads::workloadspread) cost: i64,
    /// The name of the pod's subset.
    pub(in crate::workloads::workloadspread) subset: String,
}

/// The costs that change. Versions other than the workload's own give up their first subsets first.
pub(in crate::workloads::workloadspread) fn costs(
    spread: &WorkloadSpread,
    groups: &Groups,
    version: &str,
    replicas: i32,
) -> Vec<Cost> {
    let kind = spread.spec.target_ref.as_ref().map_or("", |target| &target.kind);
    if !KINDS.contains(&kind) {
        return Vec::new();
    }
    let subsets = &spread.spec.subsets;
    let count = subsets.len();
    let mut out = Vec::new();
    for (of, pods) in &groups.0 {
        // A workload that does not say its version has pods of one version alone.
        let is_old = of != version && !version.is_empty();
        for (at, subset) in subsets.iter().enumerate() {
            let rank = if is_old { count - 1 - at } else { at };
            if let Ok(limit) = limit(subset, replicas) {
                of_subset(&pods[at], limit, (rank, count), &subset.name, &mut out);
            }
        }
        let last = number(count) + 1;
        for pod in pods[count].iter().filter(|pod| pod.facts().active) {
            set(pod, -100 * last, FAKE, &mut out);
        }
    }
    out
}

fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX / 1000)
}

fn of_subset(
    pods: &[Arc<CachedPod>],
    limit: Option<i32>,
    (rank, count): (usize, usize),
    subset: &str,
    out: &mut Vec<Cost>,
) {
    let mut active: Vec<&Arc<CachedPod>> = pods.iter().filter(|pod| pod.facts().active).collect();
    active
        .sort_by(|one, other| active::compare(one, other).then_with(|| pod::name(one).cmp(pod::name(other))));
    let limit = limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(0));
    let beyond = active.len().saturating_sub(limit);
    for (at, pod) in active.into_iter().enumerate() {
        let cost = match at < beyond {
            true => -100 * (number(rank) + 1),
            false => 100 * number(count - rank),
        };
        set(pod, cost, subset, out);
    }
}

fn set(pod: &CachedPod, cost: i64, subset: &str, out: &mut Vec<Cost>) {
    if pod::annotation(pod, labels::DELETION_COST) == Some(&cost.to_string()) {
        return;
    }
    out.push(Cost {
        pod: PodRef::of(pod),
        cost,
        subset: subset.to_owned(),
    });
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::super::test_world::{groups, spread};
    use super::*;

    /// The subsets, the pods of each, the version of the pods, the workload's kind and number of pods, and the costs.
    #[rstest]
    #[case::row_1("a 2, b -", "2 2 0", "CloneSet", true, 4, "a 200 200, b 100 100")]
    #[case::row_2("a 1, b -", "3 0 0", "CloneSet", true, 3, "a -100 -100 200")]
    #[case::row_3("a 1, b -", "2 0 0", "Deployment", false, 2, "a -200 100")]
    #[case::row_5(
        "a 1, b -",
        "0 0 1",
        "CloneSet",
        true,
        1,
        "kruise.io/workloadspread-fake-subset-name -300"
    )]
    #[case::row_5_old(
        "a 1, b -",
        "0 0 1",
        "Deployment",
        false,
        1,
        "kruise.io/workloadspread-fake-subset-name -300"
    )]
    #[case::row_7("a 0, b -", "1 0 0", "CloneSet", true, 1, "a -100")]
    #[case::row_8(
        "a 25%, b 75%",
        "2 6 0",
        "CloneSet",
        true,
        2,
        "a -100 200, b -200 -200 -200 -200 100 100"
    )]
    #[case::other_kinds("a 1, b -", "3 0 0", "Job", true, 3, "")]
    fn costs_of_pods(
        #[case] subsets: &str,
        #[case] pods: &str,
        #[case] kind: &str,
        #[case] is_current: bool,
        #[case] replicas: i32,
        #[case] want: &str,
    ) {
        let spread = spread(kind, subsets);
        let version = if is_current { "versionIgnored" } else { "new" };
        let mut text: Vec<(String, String)> = Vec::new();
        for cost in costs(&spread, &groups(&spread, pods), version, replicas) {
            match text.last_mut().filter(|(subset, _)| *subset == cost.subset) {
                Some((_, costs)) => costs.push_str(&format!(" {}", cost.cost)),
                None => text.push((cost.subset, cost.cost.to_string())),
            }
        }
        let text: Vec<String> = text
            .into_iter()
            .map(|(subset, costs)| format!("{subset} {costs}"))
            .collect();
        assert_eq!(text.join(", "), want);
    }

    /// Row 4.
    #[test]
    fn three_subsets_of_twenty_pods() {
        let spread = spread("CloneSet", "a 10, b 10, c -");
        let costs = costs(&spread, &groups(&spread, "20 20 20 0"), "versionIgnored", 60);
        let count = |subset: &str, cost: i64| {
            let of = costs
                .iter()
                .filter(|one| one.subset == subset && one.cost == cost);
            of.count()
        };
        assert_eq!((count("a", 300), count("a", -100)), (10, 10));
        assert_eq!((count("b", 200), count("b", -200)), (10, 10));
        assert_eq!(count("c", 100), 20);
    }

    /// Row 6, in the order that a user would want: the real manager empties the first subset first.
    #[test]
    fn a_workload_without_a_version_keeps_its_first_subset() {
        let spread = spread("ReplicaSet", "a 1, b -");
        let costs = costs(&spread, &groups(&spread, "1 1 0"), "", 2);
        let numbers: Vec<i64> = costs.iter().map(|cost| cost.cost).collect();
        assert_eq!(numbers, [200, 100]);
    }
}
