//! The pods that are evicted so that a critical pod that no scheduler has placed finds room: pure, in the kubelet's order.

use std::collections::BTreeMap;
use std::sync::Arc;

use machinery::meta::{at, string_map};
use machinery::placement::{Amounts, Count, Insufficient, in_units, requests};
use shared_json::Value;

use super::pressure::{CRITICAL, Eviction};

/// The reason of evicted pods, and their message.
const REASON: &str = "Preempting";
const MESSAGE: &str = "Preempted in order to admit critical pod";
const DISRUPTION: &str = "Pod was preempted by Kubelet to accommodate a critical pod.";
/// The annotation of a mirror pod.
pub(super) const MIRROR: &str = "kubernetes.io/config.mirror";

fn priority(pod: &Value) -> i64 {
    at(pod, "spec.priority")
        .and_then(Value::as_i64)
        .unwrap_or_default()
}

/// Whether a node makes room for a pod that it has none for.
pub(super) fn is_critical(pod: &Value) -> bool {
    priority(pod) >= CRITICAL || string_map(pod, "annotations").contains_key(MIRROR)
}

/// The eviction that a pod's worker gets.
pub(super) fn eviction() -> Eviction {
    Eviction {
        reason: REASON,
        message: MESSAGE.to_owned(),
        disruption: DISRUPTION.to_owned(),
        annotations: BTreeMap::new(),
        grace: None,
    }
}

/// How much is wanted yet, by resource, in the order in which it was found lacking.
type Wanted = Vec<(String, i128)>;

struct Candidate<'a> {
    pod: &'a Arc<Value>,
    asks: Amounts,
}

impl Candidate<'_> {
    fn gives(&self, resource: &str) -> i128 {
        if resource == "pods" {
            return 1;
        }
        in_units(resource, self.asks.get(resource).copied().unwrap_or_default())
    }

    /// Its distance from the wanted amounts: the sum of the squares of the shares that it leaves open.
    fn distance(&self, wanted: &Wanted) -> f64 {
        let shares = wanted.iter().map(|(resource, amount)| {
            let left = (amount - self.gives(resource)).max(0);
            (exact(left) / exact(*amount)).powi(2)
        });
        shares.sum()
    }

    fn size(&self) -> (i128, i128) {
        (self.gives("memory"), self.gives("cpu"))
    }
}

#[expect(clippy::cast_precision_loss, reason = "as the kubelet does")]
fn exact(amount: i128) -> f64 {
    amount as f64
}

fn without<'a>(wanted: &Wanted, pods: impl Iterator<Item = &'a Candidate<'a>> + Clone) -> Wanted {
    let left = wanted.iter().map(|(resource, amount)| {
        let given: i128 = pods.clone().map(|pod| pod.gives(resource)).sum();
        (resource.clone(), amount - given)
    });
    left.filter(|(_, amount)| *amount > 0).collect()
}

fn in_vain(wanted: &Wanted) -> String {
    let parts: String = wanted
        .iter()
        .map(|(resource, amount)| format!("(res: {resource}, q: {amount}), "))
        .collect();
    format!(
        "preemption: error finding a set of pods to preempt: no set of running pods found to reclaim resources: [{parts}]"
    )
}

/// Chooses the pod nearest to the wanted amounts, again and again, until no amount is left.
fn nearest<'a>(
    mut pods: Vec<&'a Candidate<'a>>,
    mut wanted: Wanted,
) -> Result<Vec<&'a Candidate<'a>>, String> {
    let mut chosen = Vec::new();
    while !wanted.is_empty() {
        let mut best: Option<(usize, f64)> = None;
        for (index, pod) in pods.iter().enumerate() {
            let distance = pod.distance(&wanted);
            let is_better = best.is_none_or(|(known, least)| {
                distance < least
                    || (distance.total_cmp(&least).is_eq()
                        && pods.get(known).is_some_and(|known| pod.size() <= known.size()))
            });
            if is_better {
                best = Some((index, distance));
            }
        }
        let Some((index, _)) = best else {
            return Err(in_vain(&wanted));
        };
        let pod = pods.swap_remove(index);
        wanted = without(&wanted, [pod].into_iter());
        chosen.push(pod);
    }
    Ok(chosen)
}

/// The pods that go for a critical one: as few guaranteed ones as may be, then as few burstable ones, then others. The error says why
/// none do.
pub(super) fn victims(
    pod: &Value,
    others: &[Arc<Value>],
    lacking: &[Insufficient],
) -> Result<Vec<Arc<Value>>, String> {
    let wanted: Wanted = lacking
        .iter()
        .map(|lacking| (lacking.resource.clone(), lacking.missing))
        .collect();
    let candidates: Vec<Candidate<'_>> = others
        .iter()
        .filter(|other| !is_critical(other) || priority(pod) > priority(other))
        .map(|pod| Candidate {
            pod,
            asks: requests(pod, Count::Given),
        })
        .collect();
    let of_class = |class: &str| -> Vec<&Candidate<'_>> {
        let is_of = |candidate: &&Candidate<'_>| {
            at(candidate.pod, "status.qosClass").and_then(Value::as_str) == Some(class)
        };
        candidates.iter().filter(is_of).collect()
    };
    let (best_effort, burstable) = (of_class("BestEffort"), of_class("Burstable"));
    let guaranteed = of_class("Guaranteed");
    let all = best_effort.iter().chain(&burstable).chain(&guaranteed).copied();
    let left = without(&wanted, all);
    if !left.is_empty() {
        return Err(in_vain(&left));
    }
    let beside = without(&wanted, best_effort.iter().chain(&burstable).copied());
    let guaranteed = nearest(guaranteed, beside)?;
    let beside = without(&wanted, best_effort.iter().chain(&guaranteed).copied());
    let burstable = nearest(burstable, beside)?;
    let beside = without(&wanted, burstable.iter().chain(&guaranteed).copied());
    let best_effort = nearest(best_effort, beside)?;
    let chosen = best_effort.into_iter().chain(burstable).chain(guaranteed);
    Ok(chosen.map(|candidate| Arc::clone(candidate.pod)).collect())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use shared_json::json;

    use super::*;

    /// A pod in short: name, class (`b`, `u` or `g`), processors, memory, and `!` and its priority.
    fn pod(short: &str) -> Arc<Value> {
        let mut parts = short.split(' ');
        let mut next = || parts.next().unwrap_or_default().to_owned();
        let (name, class, cpu, memory, priority) = (next(), next(), next(), next(), next());
        let class = match class.as_str() {
            "b" => "BestEffort",
            "u" => "Burstable",
            _ => "Guaranteed",
        };
        let priority: i64 = priority.trim_start_matches('!').parse().unwrap_or(0);
        let mut asks = json!({});
        for (resource, amount) in [("cpu", cpu), ("memory", memory)] {
            if !amount.is_empty() && amount != "0" {
                asks[resource] = json!(amount);
            }
        }
        Arc::new(json!({
            "metadata": {"name": name}, "status": {"qosClass": class},
            "spec": {"priority": priority, "containers": [{"name": "c", "resources": {"requests": asks}}]},
        }))
    }

    #[rstest]
    #[case::one_is_enough(&[("cpu", 500)], &["a u 1", "b u 1"], "b")]
    #[case::the_smaller_one(&[("cpu", 500)], &["a u 1", "b u 600m"], "b")]
    #[case::the_one_with_less_memory(&[("cpu", 500)], &["a u 1 1Gi", "b u 1 2Gi"], "a")]
    #[case::one_rather_than_two(&[("cpu", 900)], &["a u 500m", "b u 500m", "c u 1"], "c")]
    #[case::two(&[("cpu", 900)], &["a u 500m", "b u 500m"], "b a")]
    #[case::the_nearest_first(&[("cpu", 900)], &["a u 200m", "b u 500m", "c u 600m"], "c b")]
    #[case::burstable_before_guaranteed(&[("cpu", 500)], &["a g 500m", "b u 1"], "b")]
    #[case::guaranteed_if_burstable_are_not_enough(&[("cpu", 1500)], &["a g 1", "b u 1"], "b a")]
    #[case::only_guaranteed_if_that_is_enough(&[("cpu", 1500)], &["a g 2", "b u 1"], "a")]
    #[case::best_effort_gives_nothing(&[("cpu", 500)], &["a b", "b u 1"], "b")]
    #[case::best_effort_gives_its_place(&[("pods", 1)], &["a b", "b u 1"], "a")]
    #[case::both(&[("cpu", 500), ("memory", 1024)], &["a u 500m", "b u 0 1Ki", "c u 500m 1Ki"], "c")]
    #[case::both_by_two(&[("cpu", 500), ("memory", 1024)], &["a u 500m", "b u 0 1Ki"], "a b")]
    #[case::critical_ones_stay(&[("cpu", 500)], &["a u 1 0 !2000000000", "b u 1"], "b")]
    #[case::less_critical_ones_go(&[("cpu", 500)], &["a u 1 0 !2000000000"], "a")]
    #[case::as_critical_ones_stay(&[("cpu", 500)], &["a u 1 0 !2000001000"], "[(res: cpu, q: 500), ]")]
    #[case::in_vain(&[("cpu", 1500)], &["a u 1"], "[(res: cpu, q: 500), ]")]
    #[case::in_vain_for_two(&[("cpu", 1500), ("memory", 10)], &["a u 1"], "[(res: cpu, q: 500), (res: memory, q: 10), ]")]
    #[case::nobody_there(&[("pods", 1)], &[], "[(res: pods, q: 1), ]")]
    #[case::nothing_lacks(&[], &["a u 1"], "")]
    fn who_goes(#[case] lacking: &[(&str, i128)], #[case] others: &[&str], #[case] expected: &str) {
        let others: Vec<Arc<Value>> = others.iter().map(|short| pod(short)).collect();
        let lacking: Vec<Insufficient> = lacking
            .iter()
            .map(|(resource, missing)| Insufficient {
                resource: (*resource).to_owned(),
                missing: *missing,
                reason: String::new(),
                message: String::new(),
            })
            .collect();
        let shown = match victims(&pod("x u 1 0 !2000001000"), &others, &lacking) {
            Ok(pods) => {
                let names: Vec<&str> = pods
                    .iter()
                    .filter_map(|pod| at(pod, "metadata.name")?.as_str())
                    .collect();
                names.join(" ")
            }
            Err(why) => why
                .trim_start_matches(
                    "preemption: error finding a set of pods to preempt: no set of running pods found to reclaim resources: ",
                )
                .to_owned(),
        };
        assert_eq!(shown, expected);
    }
}
