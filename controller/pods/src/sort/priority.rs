//! `updateStrategy.priorityStrategy`: which pods are updated first.

use std::cmp::Reverse;
use std::sync::Arc;

use kruise_api::v1alpha1::{OrderPriorityTerm, UpdatePriorityStrategy, WeightPriorityTerm};
use kube::core::{Selector, SelectorExt};

use crate::CachedPod;
use crate::pod::{self, Pod};

/// Sorts `pods` by the strategy; equal ones keep their order.
pub fn sort(pods: &mut [Arc<CachedPod>], strategy: &UpdatePriorityStrategy) {
    if let Some(terms) = strategy
        .weight_priority
        .as_deref()
        .filter(|terms| !terms.is_empty())
    {
        pods.sort_by_key(|pod| Reverse(weight(pod, terms)));
    } else if let Some(terms) = strategy.order_priority.as_deref() {
        pods.sort_by_key(|pod| order(pod, terms));
    }
}

fn weight(pod: &Pod, terms: &[WeightPriorityTerm]) -> i64 {
    let matches = |term: &&WeightPriorityTerm| {
        Selector::try_from(term.match_selector.clone())
            .is_ok_and(|selector| selector.matches(pod::all_labels(pod)))
    };
    terms
        .iter()
        .filter(matches)
        .map(|term| i64::from(term.weight))
        .sum()
}

/// The first key that the pod has, and the number its value ends with. Pods with none of the keys come first: OpenKruise
/// does the same, although its documentation reads otherwise.
fn order(pod: &Pod, terms: &[OrderPriorityTerm]) -> (i64, Reverse<i64>) {
    for (level, term) in (0..).zip(terms) {
        if let Some(value) = pod::label(pod, &term.ordered_key) {
            return (level, Reverse(trailing_number(value)));
        }
    }
    (-1, Reverse(0))
}

fn trailing_number(text: &str) -> i64 {
    let start = text.rfind(|c: char| !c.is_ascii_digit()).map_or(0, |at| at + 1);
    text.get(start..)
        .and_then(|digits| digits.parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_pods::TestPod;
    use serde_json::{Value, json};

    fn sorted(strategy: Value, pods: &[(&str, &[(&str, &str)])]) -> Vec<String> {
        let strategy: UpdatePriorityStrategy = serde_json::from_value(strategy).unwrap();
        let mut pods: Vec<Arc<CachedPod>> = pods
            .iter()
            .map(|(name, labels)| {
                Arc::new(
                    labels
                        .iter()
                        .fold(TestPod::new(name), |pod, (k, v)| pod.label(k, v))
                        .build()
                        .into(),
                )
            })
            .collect();
        sort(&mut pods, &strategy);
        pods.iter().map(|pod| pod::name(pod).to_owned()).collect()
    }

    #[test]
    fn by_weight() {
        let strategy = json!({ "weightPriority": [
            { "weight": 50, "matchSelector": { "matchLabels": { "zone": "b" } } },
            { "weight": 30, "matchSelector": { "matchLabels": { "tier": "gold" } } },
        ] });
        let pods: &[(&str, &[(&str, &str)])] = &[
            ("none", &[]),
            ("gold", &[("tier", "gold")]),
            ("both", &[("zone", "b"), ("tier", "gold")]),
            ("zone", &[("zone", "b")]),
        ];
        assert_eq!(sorted(strategy, pods), ["both", "zone", "gold", "none"]);
    }

    #[test]
    fn by_order() {
        let strategy = json!({ "orderPriority": [{ "orderedKey": "k1" }, { "orderedKey": "k2" }] });
        let pods: &[(&str, &[(&str, &str)])] = &[
            ("second", &[("k2", "99")]),
            ("first-5", &[("k1", "x5")]),
            ("first-10", &[("k1", "v1-10"), ("k2", "1")]),
            ("first-none", &[("k1", "x")]),
            ("none", &[]),
        ];
        assert_eq!(
            sorted(strategy, pods),
            ["none", "first-10", "first-5", "first-none", "second"]
        );
    }
}
