//! Which changes of pods have a set looked at, and when.

use std::time::Duration;

use super::sidecars::Sidecars;
use crate::api::v1beta1::SidecarSet;
use crate::pods::pod::{self, Pod};

/// How long after a pod's containers have come to run their images, or not to, a set is looked at.
pub(super) const AFTER_IMAGES: Duration = Duration::from_secs(5);

/// When the set is looked at after a change of a pod that has its containers; none if the change does not count.
pub(super) fn after(set: &SidecarSet, old: &Pod, new: &Pod) -> Option<Duration> {
    let update = set.spec.update_strategy.as_ref();
    if update.and_then(|update| update.kind.as_deref()) == Some("NotUpdate") {
        return None;
    }
    let ends = |pod: &Pod| pod.metadata.deletion_timestamp.is_some();
    if !ends(old) && (ends(new) || pod::is_ready(old) != pod::is_ready(new)) {
        return Some(Duration::ZERO);
    }
    let sidecars = Sidecars::of(set);
    if sidecars.all_run(old) != sidecars.all_run(new) {
        return Some(AFTER_IMAGES);
    }
    let selects = update.is_some_and(|update| update.selector.is_some());
    (selects && pod::all_labels(old) != pod::all_labels(new)).then_some(Duration::ZERO)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;
    use crate::pods::test_pods::TestPod;

    fn pod() -> TestPod {
        TestPod::new("p")
    }

    fn going() -> TestPod {
        pod().set("/metadata/deletionTimestamp", json!("1970-01-01T00:00:01Z"))
    }

    fn changing() -> TestPod {
        let state = json!({ "s": { "lastContainerStatuses": { "main": { "imageID": "id-v1" } } } });
        pod()
            .annotation("kruise.io/sidecarset-inplace-update-state", &state.to_string())
            .set("/spec/containers", json!([{ "name": "main", "image": "v2" }]))
    }

    #[rstest]
    #[case::nothing(json!({}), pod(), pod().annotation("a", "1"), None)]
    #[case::ready(json!({}), pod().not_ready(), pod(), Some(0))]
    #[case::not_ready(json!({}), pod(), pod().not_ready(), Some(0))]
    #[case::deleted(json!({}), pod(), going(), Some(0))]
    #[case::not_ready_while_deleted(json!({}), going(), going().not_ready(), None)]
    #[case::images(json!({}), pod(), changing(), Some(5))]
    #[case::images_and_ready(json!({}), pod().not_ready(), changing(), Some(0))]
    #[case::labels(json!({}), pod(), pod().label("canary", "yes"), None)]
    #[case::labels_of_a_selector(json!({ "selector": {} }), pod(), pod().label("canary", "yes"), Some(0))]
    #[case::of_a_set_that_does_not_update(json!({ "type": "NotUpdate" }), pod().not_ready(), pod(), None)]
    fn changes(
        #[case] strategy: Value,
        #[case] old: TestPod,
        #[case] new: TestPod,
        #[case] want: Option<u64>,
    ) {
        let spec = json!({ "containers": [{ "name": "main", "image": "v1" }], "updateStrategy": strategy });
        let set = SidecarSet::new("s", serde_json::from_value(spec).unwrap());
        let got = after(&set, &old.build(), &new.build());
        assert_eq!(got.map(|delay| delay.as_secs()), want);
    }
}
