//! Updates in place that the server refused.
//!
//! Before an update in place a pod is taken out of service, and the next pass puts it back when the update was refused. Each of
//! these writes asks for another pass. So a change that a node can never make room for would be tried without end, many times
//! a second, as OpenKruise's manager does. Here a refused update is tried again after one second, then two, and so on.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};
use kruise_kit::ActError;

use crate::PodRef;

/// The time until the second attempt; each further wait is twice as long, up to [`LONGEST`].
const FIRST: SignedDuration = SignedDuration::from_secs(1);
const LONGEST: SignedDuration = SignedDuration::from_secs(60);
/// A refusal is forgotten this long after the pod may be updated again.
const KEPT: SignedDuration = SignedDuration::from_mins(10);

/// The refusals, by the pod's uid and the revision that was refused.
#[derive(Debug, Default)]
pub struct Refusals(Mutex<BTreeMap<(String, String), Refusal>>);

#[derive(Debug, Clone)]
struct Refusal {
    error: ActError,
    wait: SignedDuration,
    until: Timestamp,
}

impl Refusals {
    /// The last refusal of this revision, if it is too early to try again.
    pub(super) fn holding(&self, pod: &PodRef, revision: &str, now: Timestamp) -> Option<ActError> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let refusal = all.get(&(pod.uid.clone(), revision.to_owned()))?;
        (now < refusal.until).then(|| refusal.error.clone())
    }

    /// Notes that the server refused to update a pod to a revision.
    pub(super) fn note(&self, pod: &PodRef, revision: &str, error: &ActError, now: Timestamp) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, refusal| now < refusal.until.checked_add(KEPT).unwrap_or(Timestamp::MAX));
        let key = (pod.uid.clone(), revision.to_owned());
        let wait = match all.get(&key) {
            Some(before) => (before.wait * 2).min(LONGEST),
            None => FIRST,
        };
        let refusal = Refusal {
            error: error.clone(),
            wait,
            until: now.checked_add(wait).unwrap_or(Timestamp::MAX),
        };
        all.insert(key, refusal);
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// After refusals at these seconds: whether an attempt for a revision is held back at a second.
    #[rstest]
    #[case::none(&[], "new", 0, false)]
    #[case::at_once(&[0], "new", 0, true)]
    #[case::after_a_second(&[0], "new", 1, false)]
    #[case::another_revision(&[0], "other", 0, false)]
    #[case::the_second_waits_longer(&[0, 1], "new", 2, true)]
    #[case::but_not_for_ever(&[0, 1], "new", 3, false)]
    #[case::no_longer_than_a_minute(&[0, 1, 3, 7, 15, 31, 63, 123], "new", 183, false)]
    #[case::a_minute(&[0, 1, 3, 7, 15, 31, 63, 123], "new", 182, true)]
    #[case::long_ago(&[0, 1, 3, 7, 1000], "new", 1001, false)]
    fn attempts(#[case] refused: &[i64], #[case] revision: &str, #[case] at: i64, #[case] held: bool) {
        let at_second = |second: i64| Timestamp::from_second(second).expect("a time");
        let pod = PodRef {
            name: "pod".to_owned(),
            uid: "uid".to_owned(),
        };
        let refusals = Refusals::default();
        for second in refused {
            refusals.note(&pod, "new", &ActError::planned("no room"), at_second(*second));
        }
        assert_eq!(refusals.holding(&pod, revision, at_second(at)).is_some(), held);
    }
}
