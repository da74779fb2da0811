//! The numbers of a SidecarSet's spec, with percentages resolved.

use std::sync::Arc;

use crate::api::v1alpha1::ScatterTerm;
use crate::api::v1beta1::{SidecarSet, SidecarSetUpdateStrategy};
use crate::kit::numbers::{NumberError, Round, partition, scaled};
use crate::pods::{CachedPod, pod};

/// How many revisions are kept when `revisionHistoryLimit` is not set.
pub(super) const DEFAULT_HISTORY_LIMIT: i32 = 10;

/// The numbers of a spec.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Settings {
    /// How many pods keep the old version.
    pub(super) partition: usize,
    /// How many pods may be unavailable.
    pub(super) max_unavailable: usize,
}

impl Settings {
    /// The numbers for a set that matches so many pods.
    ///
    /// # Errors
    /// If a text is no number and no percentage.
    pub(super) fn of(
        strategy: Option<&SidecarSetUpdateStrategy>,
        matched: usize,
    ) -> Result<Self, NumberError> {
        let matched = i32::try_from(matched).unwrap_or(i32::MAX);
        let kept = match strategy.and_then(|strategy| strategy.partition.as_ref()) {
            Some(value) => partition(value, matched)?,
            None => 0,
        };
        let unavailable = match strategy.and_then(|strategy| strategy.max_unavailable.as_ref()) {
            Some(value) => scaled(value, matched, Round::Up)?,
            None => 1,
        };
        let count = |number: i32| usize::try_from(number).unwrap_or(0);
        Ok(Self {
            partition: count(kept),
            max_unavailable: count(unavailable),
        })
    }
}

/// How many revisions are kept, the latest included.
pub(super) fn history_limit(set: &SidecarSet) -> usize {
    let limit = set.spec.revision_history_limit.unwrap_or(DEFAULT_HISTORY_LIMIT);
    usize::try_from(limit).unwrap_or(0).max(1)
}

/// The terms by which pods are scattered. The value `*` stands for every value that the key has among the pods.
pub(super) fn scatter_terms(
    strategy: Option<&SidecarSetUpdateStrategy>,
    pods: &[Arc<CachedPod>],
) -> Vec<ScatterTerm> {
    let mut out: Vec<ScatterTerm> = Vec::new();
    for term in strategy
        .iter()
        .flat_map(|strategy| strategy.scatter_strategy.iter().flatten())
    {
        let values: Vec<&str> = match term.value.as_str() {
            "*" => pods.iter().filter_map(|pod| pod::label(pod, &term.key)).collect(),
            value => vec![value],
        };
        for value in values {
            let term = ScatterTerm {
                key: term.key.clone(),
                value: value.to_owned(),
            };
            if !out.contains(&term) {
                out.push(term);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;
    use crate::pods::test_pods::TestPod;

    #[rstest]
    #[case(json!({}), 4, Ok((0, 1)))]
    #[case(json!({ "partition": 3, "maxUnavailable": 2 }), 4, Ok((3, 2)))]
    #[case(json!({ "partition": "50%" }), 5, Ok((3, 1)))]
    #[case::one_moves(json!({ "partition": "99%", "maxUnavailable": "5%" }), 3, Ok((2, 1)))]
    #[case::of_one_pod(json!({ "partition": "50%" }), 1, Ok((1, 1)))]
    #[case::all_stay(json!({ "partition": "100%" }), 3, Ok((3, 1)))]
    #[case::nothing_is_to_be_unavailable(json!({ "maxUnavailable": 0 }), 3, Ok((0, 0)))]
    #[case::more_than_all(json!({ "partition": 7, "maxUnavailable": "20%" }), 3, Ok((3, 1)))]
    #[case::no_number(json!({ "partition": "abc" }), 3, Err(()))]
    fn numbers(#[case] strategy: Value, #[case] matched: usize, #[case] want: Result<(usize, usize), ()>) {
        let strategy = serde_json::from_value(strategy).unwrap();
        let got = Settings::of(Some(&strategy), matched).map(|got| (got.partition, got.max_unavailable));
        assert_eq!(got.map_err(drop), want);
    }

    #[rstest]
    #[case(None, 10)]
    #[case(Some(2), 2)]
    #[case(Some(0), 1)]
    #[case(Some(-3), 1)]
    fn history(#[case] limit: Option<i32>, #[case] want: usize) {
        let mut set = SidecarSet::default();
        set.spec.revision_history_limit = limit;
        assert_eq!(history_limit(&set), want);
    }

    #[rstest]
    #[case(json!([{ "key": "k", "value": "a" }]), "k=a")]
    #[case::every_value(json!([{ "key": "k", "value": "*" }]), "k=b k=a")]
    #[case::once(json!([{ "key": "k", "value": "*" }, { "key": "k", "value": "a" }, { "key": "l", "value": "1" }]), "k=b k=a l=1")]
    fn scattering(#[case] terms: Value, #[case] want: &str) {
        let strategy = serde_json::from_value(json!({ "scatterStrategy": terms })).unwrap();
        let pods: Vec<Arc<CachedPod>> = ["b", "a", "b"]
            .map(|value| Arc::new(TestPod::new("p").label("k", value).build().into()))
            .into();
        let terms = scatter_terms(Some(&strategy), &pods);
        let terms: Vec<String> = terms
            .iter()
            .map(|term| format!("{}={}", term.key, term.value))
            .collect();
        assert_eq!(terms.join(" "), want);
    }
}
