//! `updateStrategy.scatterStrategy`: pods of one kind are not updated in a row.

use std::cmp::Reverse;
use std::sync::Arc;

use kruise_api::v1alpha1::ScatterTerm;

use crate::CachedPod;
use crate::pod::{self, Pod};

/// Spreads the pods that wait over their order, term by term; with several, the one that most of them match first.
/// `all` are the pods of the set.
pub fn sort(
    waiting: Vec<Arc<CachedPod>>,
    all: &[Arc<CachedPod>],
    terms: &[ScatterTerm],
) -> Vec<Arc<CachedPod>> {
    if waiting.len() <= 2 {
        return waiting;
    }
    let mut terms: Vec<&ScatterTerm> = terms.iter().collect();
    terms.sort_by_key(|term| Reverse(waiting.iter().filter(|pod| matches(pod, term)).count()));
    terms
        .into_iter()
        .fold(waiting, |waiting, term| spread(waiting, all, term))
}

fn matches(pod: &Pod, term: &ScatterTerm) -> bool {
    pod::label(pod, &term.key) == Some(term.value.as_str())
}

/// How many pods of each kind make a group, and how many groups there are.
#[derive(Clone, Copy)]
struct Groups {
    count: usize,
    matched: usize,
    others: usize,
}

impl Groups {
    /// One of the rarer kind with its share of the other.
    fn of(matched: usize, others: usize) -> Self {
        if matched < others {
            Self {
                count: matched,
                matched: 1,
                others: rounded(others, matched),
            }
        } else {
            Self {
                count: others,
                matched: rounded(matched, others),
                others: 1,
            }
        }
    }
}

/// `number / by` to the nearest integer, halves up, at least 1.
fn rounded(number: usize, by: usize) -> usize {
    if by == 0 {
        1
    } else {
        ((2 * number + by) / (2 * by)).max(1)
    }
}

fn spread(waiting: Vec<Arc<CachedPod>>, all: &[Arc<CachedPod>], term: &ScatterTerm) -> Vec<Arc<CachedPod>> {
    let (mut matched, others): (Vec<_>, Vec<_>) = waiting.iter().cloned().partition(|pod| matches(pod, term));
    if matched.len() <= 1 || others.len() <= 1 {
        return waiting;
    }
    // One matching pod is kept for the very end, so that the last ones updated are not all of the other kind.
    let Some(last) = matched.pop() else { return waiting };
    let total_matched = all
        .iter()
        .filter(|pod| matches(pod, term))
        .count()
        .saturating_sub(1);
    let total_others = all.iter().filter(|pod| !matches(pod, term)).count();

    let mut groups = Groups::of(matched.len(), others.len());
    let mut first_others = 0;
    // others/matched among all is lower than among those that wait: keep the density of the whole set.
    if total_others * matched.len() < others.len() * total_matched {
        let whole = Groups::of(total_matched, total_others);
        let count = (matched.len() / whole.matched).min(others.len() / whole.others);
        groups = Groups { count, ..whole };
        first_others = others.len() - count * whole.others;
    }
    let mut result = Vec::with_capacity(waiting.len());
    let (mut matched, mut others) = (matched.into_iter(), others.into_iter());
    result.extend(others.by_ref().take(first_others));
    for _ in 0..groups.count {
        result.extend(matched.by_ref().take(groups.matched));
        result.extend(others.by_ref().take(groups.others));
    }
    result.extend(matched);
    result.extend(others);
    result.push(last);
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_pods::TestPod;
    use rstest::rstest;

    /// `m` matches the term, `o` does not; the set consists of the waiting pods and those of `rest`.
    fn order(waiting: &str, rest: &str) -> String {
        let build = |text: &str| -> Vec<Arc<CachedPod>> {
            text.chars()
                .map(|kind| {
                    Arc::new(
                        TestPod::new("p")
                            .label("k", if kind == 'm' { "v" } else { "x" })
                            .build()
                            .into(),
                    )
                })
                .collect()
        };
        let waiting = build(waiting);
        let all: Vec<Arc<CachedPod>> = waiting.iter().cloned().chain(build(rest)).collect();
        let term = ScatterTerm {
            key: "k".to_owned(),
            value: "v".to_owned(),
        };
        let kind = |pod: &Arc<CachedPod>| if matches(pod, &term) { 'm' } else { 'o' };
        sort(waiting, &all, std::slice::from_ref(&term))
            .iter()
            .map(kind)
            .collect()
    }

    #[rstest]
    #[case("mmmooo", "", "moomom")]
    #[case("mmmoooooo", "", "mooomooom")]
    #[case("mmooooo", "", "mooooom")]
    #[case("mmmmmoo", "", "mmommom")]
    #[case("moooo", "", "moooo")]
    #[case("mmmm", "", "mmmm")]
    #[case("mmmoooooo", "mmm", "oooomomom")]
    fn spreads(#[case] waiting: &str, #[case] rest: &str, #[case] want: &str) {
        assert_eq!(order(waiting, rest), want);
    }
}
