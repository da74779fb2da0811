//! Which changes of pods matter.

use super::children::revision_of;
use crate::kit::Change;
use crate::pods::CachedPod;
use crate::pods::pod::{self, is_unschedulable};

/// Whether a change of a pod can change a status, or the numbers of subsets.
pub(super) fn matters(change: &Change<'_, CachedPod>) -> bool {
    let Change::Updated(old, new) = change else {
        return true;
    };
    let facts = |pod: &CachedPod| {
        (
            pod.facts().active,
            pod::is_ready(pod),
            is_unschedulable(pod),
            revision_of(pod).to_owned(),
        )
    };
    facts(old) != facts(new)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::api::labels;
    use crate::pods::test_pods::TestPod;

    fn cached(pod: TestPod) -> Arc<CachedPod> {
        Arc::new(CachedPod::from(pod.build()))
    }

    #[rstest]
    #[case::nothing(TestPod::new("a"), false)]
    #[case::a_restart(TestPod::new("a").restarts(1), false)]
    #[case::not_ready(TestPod::new("a").not_ready(), true)]
    #[case::over(TestPod::new("a").set("/metadata/deletionTimestamp", json!("1970-01-01T00:00:00Z")), true)]
    #[case::another_revision(TestPod::new("a").label(labels::SUBSET_REVISION, "u-2"), true)]
    fn changes(#[case] new: TestPod, #[case] expected: bool) {
        let (old, new) = (cached(TestPod::new("a")), cached(new));
        assert_eq!(matters(&Change::Updated(&old, &new)), expected);
        assert!(matters(&Change::Added(&new)) && matters(&Change::Deleted(&new)));
    }
}
