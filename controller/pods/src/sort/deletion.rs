//! Which pods a set gives up when it shrinks.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use kruise_api::labels;

use super::active;
use crate::CachedPod;
use crate::pod::{self, Pod};

/// The knowledge of the ranking beside the pods.
pub struct Ranking<'a> {
    /// Whether a pod is available.
    pub available: &'a dyn Fn(&CachedPod) -> bool,
    /// The keys of the template's topology spread constraints.
    pub topology_keys: &'a [String],
    /// The labels of nodes, by name.
    pub nodes: &'a BTreeMap<String, BTreeMap<String, String>>,
}

/// Sorts `pods`, those to delete first: unassigned; by phase; not available; not ready; cheap ones
/// (`controller.kubernetes.io/pod-deletion-cost`); crowded ones; ready for a short time; often restarted; new ones.
pub fn sort(pods: &mut [Arc<CachedPod>], ranking: &Ranking<'_>) {
    let ranks = ranks(pods, ranking);
    let rank = |pod: &Pod| ranks.get(pod::name(pod)).copied().unwrap_or(0.0);
    pods.sort_by(|one, other| {
        before_rank(one, other, ranking.available)
            .then_with(|| rank(other).total_cmp(&rank(one)))
            .then_with(|| active::by_age(one, other))
    });
}

fn before_rank(one: &CachedPod, other: &CachedPod, available: &dyn Fn(&CachedPod) -> bool) -> Ordering {
    active::by_phase(one, other)
        .then_with(|| available(one).cmp(&available(other)))
        .then_with(|| pod::is_ready(one).cmp(&pod::is_ready(other)))
        .then_with(|| cost(one).cmp(&cost(other)))
}

/// The annotated cost; 0 when it is not a plain number.
pub fn cost(pod: &Pod) -> i32 {
    let Some(text) = pod::annotation(pod, labels::DELETION_COST) else {
        return 0;
    };
    let digits = text.strip_prefix('-').unwrap_or(text);
    let plain = digits == "0" || !digits.starts_with(['0', '+']);
    if plain { text.parse().unwrap_or(0) } else { 0 }
}

/// How crowded each pod's place is; higher goes first.
fn ranks(pods: &[Arc<CachedPod>], ranking: &Ranking<'_>) -> BTreeMap<String, f64> {
    let mut ranks: BTreeMap<String, f64> = BTreeMap::new();
    let mut add = |groups: BTreeMap<String, Vec<&Arc<CachedPod>>>, weight: f64| {
        for mut group in groups.into_values() {
            group.sort_by(|one, other| {
                before_rank(one, other, ranking.available).then_with(|| active::by_age(one, other))
            });
            for (position, pod) in group.iter().rev().enumerate() {
                #[expect(clippy::cast_precision_loss, reason = "pods of one set are few")]
                let rank = position as f64 * weight;
                *ranks.entry(pod::name(pod).to_owned()).or_default() += rank;
            }
        }
    };
    if ranking.topology_keys.is_empty() {
        add(group(pods, |pod| pod::node(pod).to_owned()), 1.0);
    }
    for key in ranking.topology_keys {
        let groups = group(pods, |pod| topology(pod, key, ranking.nodes));
        #[expect(clippy::cast_precision_loss, reason = "topologies are few")]
        let weight = (groups.len() as f64 + 2.0).ln();
        add(groups, weight);
    }
    ranks
}

fn group(pods: &[Arc<CachedPod>], key: impl Fn(&Pod) -> String) -> BTreeMap<String, Vec<&Arc<CachedPod>>> {
    let mut groups: BTreeMap<String, Vec<&Arc<CachedPod>>> = BTreeMap::new();
    for pod in pods {
        groups.entry(key(pod)).or_default().push(pod);
    }
    groups
}

fn topology(pod: &Pod, key: &str, nodes: &BTreeMap<String, BTreeMap<String, String>>) -> String {
    let node = pod::node(pod);
    let label = nodes.get(node).and_then(|labels| labels.get(key));
    match label {
        Some(value) => value.clone(),
        None if key == "kubernetes.io/hostname" => node.to_owned(),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_pods::TestPod;
    use rstest::rstest;

    fn sorted(pods: Vec<TestPod>, keys: &[&str]) -> Vec<String> {
        let mut pods: Vec<Arc<CachedPod>> = pods
            .into_iter()
            .rev()
            .map(|pod| Arc::new(pod.build().into()))
            .collect();
        let nodes = [("n1", "a"), ("n2", "a"), ("n3", "b")].map(|(node, zone)| {
            (
                node.to_owned(),
                BTreeMap::from([("zone".to_owned(), zone.to_owned())]),
            )
        });
        let keys: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
        let available = |pod: &CachedPod| pod::is_ready(pod) && pod::label(pod, "late").is_none();
        sort(
            &mut pods,
            &Ranking {
                available: &available,
                topology_keys: &keys,
                nodes: &BTreeMap::from(nodes),
            },
        );
        pods.iter().map(|pod| pod::name(pod).to_owned()).collect()
    }

    #[test]
    fn availability_then_cost_then_crowd() {
        let pods = || {
            vec![
                TestPod::new("a-pending").phase("Pending"),
                TestPod::new("b-not-ready")
                    .not_ready()
                    .annotation(labels::DELETION_COST, "9"),
                TestPod::new("c-not-available").label("late", "1"),
                TestPod::new("d-cheap")
                    .annotation(labels::DELETION_COST, "-10")
                    .ready_at(1),
                TestPod::new("e-crowded").node("n2").ready_at(2),
                TestPod::new("f-alone").node("n3").ready_at(9),
                TestPod::new("g-crowd").node("n2").ready_at(1),
                TestPod::new("h-dear")
                    .annotation(labels::DELETION_COST, "100")
                    .ready_at(99),
            ]
        };
        let want = [
            "a-pending",
            "b-not-ready",
            "c-not-available",
            "d-cheap",
            "e-crowded",
            "f-alone",
            "g-crowd",
            "h-dear",
        ];
        assert_eq!(sorted(pods(), &[]), want);
    }

    #[test]
    fn topologies_weigh_in() {
        let pods = vec![
            TestPod::new("p1").node("n1").ready_at(4),
            TestPod::new("p2").node("n2").ready_at(3),
            TestPod::new("p3").node("n1").ready_at(2),
            TestPod::new("p4").node("n3").ready_at(9),
        ];
        assert_eq!(sorted(pods, &["zone"]), ["p1", "p2", "p4", "p3"]);
    }

    #[rstest]
    #[case("10", 10)]
    #[case("-10", -10)]
    #[case("+10", 0)]
    #[case("008", 0)]
    #[case("0", 0)]
    #[case("x", 0)]
    #[case("99999999999", 0)]
    fn costs(#[case] text: &str, #[case] want: i32) {
        assert_eq!(
            cost(&TestPod::new("p").annotation(labels::DELETION_COST, text).build()),
            want
        );
    }
}
