//! Whether a pod counts as available.

use crate::api::labels;
use crate::pods::CachedPod;
use crate::pods::inplace::consistent::{Digests, digests, is_consistent};
use crate::pods::inplace::state::UpdateState;
use crate::pods::pod::{self, Pod};
use std::collections::BTreeMap;

/// Whether labels take a pod out of service.
pub(super) fn is_marked<'a>(labels: impl IntoIterator<Item = &'a String>) -> bool {
    labels
        .into_iter()
        .any(|key| key.starts_with(labels::UNAVAILABLE_POD_PREFIX))
}

/// Whether a pod runs, is ready, and runs as its spec says. `minReadySeconds` and hooks do not matter.
pub(crate) fn is_available(pod: &CachedPod) -> bool {
    let is_ready = pod::phase(pod) == "Running"
        && pod::is_ready(pod)
        && pod.metadata.deletion_timestamp.is_none()
        && !is_marked(pod::all_labels(pod).keys());
    is_ready && runs_its_spec(pod)
}

/// Whether the containers run the images of the spec, as far as records of updates and the status say it.
fn runs_its_spec(pod: &CachedPod) -> bool {
    let names = pod::containers(pod)
        .iter()
        .map(|container| container.name.as_str());
    match digests(pod, names) {
        Digests::Differ => return false,
        Digests::All => return true,
        Digests::SomeTags => {}
    }
    let update = pod.in_place();
    sidecars_run(pod) && update.state.is_none() && update.waiting.is_none()
}

/// The same of sidecars that were updated in place.
fn sidecars_run(pod: &Pod) -> bool {
    let listed = pod::annotation(pod, labels::SIDECARS_INJECTED).unwrap_or_default();
    let text = pod::annotation(pod, labels::SIDECARS_IN_PLACE_STATE);
    let (Some(text), false) = (text, listed.is_empty()) else {
        return true;
    };
    let Ok(states) = serde_json::from_str::<BTreeMap<String, UpdateState>>(text) else {
        return false;
    };
    listed.split(',').filter_map(|set| states.get(set)).all(|state| {
        let names = state.last_container_statuses.iter().flatten();
        let names = names.map(|(name, _)| name.as_str());
        is_consistent(pod, names, Ok(Some(state)))
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::pods::test_pods::TestPod;

    fn updated(recorded: &str) -> TestPod {
        let state = json!({ "lastContainerStatuses": { "main": { "imageID": recorded } } });
        TestPod::new("p").annotation(labels::IN_PLACE_STATE, &state.to_string())
    }

    fn with_sidecars(state: &str) -> TestPod {
        TestPod::new("p")
            .annotation(labels::SIDECARS_INJECTED, "s")
            .annotation(labels::SIDECARS_IN_PLACE_STATE, state)
    }

    #[rstest]
    #[case::ready(TestPod::new("p"), true)]
    #[case::not_ready(TestPod::new("p").not_ready(), false)]
    #[case::pending(TestPod::new("p").phase("Pending"), false)]
    #[case::terminating(
        TestPod::new("p").set("/metadata/deletionTimestamp", json!("2026-01-01T00:00:00Z")),
        false
    )]
    #[case::marked(TestPod::new("p").label("unavailable-pod.kruise.io/x", ""), false)]
    #[case::updated(updated("id-v0"), true)]
    #[case::being_updated(updated("id-v1").set("/spec/containers", json!([{ "name": "main", "image": "v2" }])), false)]
    #[case::unreadable(TestPod::new("p").annotation(labels::IN_PLACE_STATE, "{"), false)]
    #[case::in_its_grace_period(TestPod::new("p").annotation(labels::IN_PLACE_GRACE, "{}"), false)]
    #[case::by_digest(
        TestPod::new("p")
            .set("/spec/containers", json!([{ "name": "main", "image": "a/b@sha256:1" }]))
            .set("/status/containerStatuses", json!([{ "name": "main", "image": "x", "imageID": "docker.io/a/b@sha256:1" }]))
            .annotation(labels::IN_PLACE_STATE, "{"),
        true
    )]
    #[case::by_another_digest(
        TestPod::new("p")
            .set("/spec/containers", json!([{ "name": "main", "image": "a/b@sha256:1" }]))
            .set("/status/containerStatuses", json!([{ "name": "main", "image": "x", "imageID": "docker.io/a/b@sha256:2" }])),
        false
    )]
    #[case::sidecars_run(
        with_sidecars(r#"{"s":{"lastContainerStatuses":{"main":{"imageID":"id-v0"}}}}"#),
        true
    )]
    #[case::sidecars_are_updated(
        with_sidecars(r#"{"s":{"lastContainerStatuses":{"main":{"imageID":"id-v1"}}}}"#)
            .set("/spec/containers", json!([{ "name": "main", "image": "v2" }])),
        false
    )]
    #[case::another_sidecar_set(
        with_sidecars(r#"{"t":{"lastContainerStatuses":{"main":{"imageID":"id-v1"}}}}"#)
            .set("/spec/containers", json!([{ "name": "main", "image": "v2" }])),
        true
    )]
    #[case::unreadable_sidecars(with_sidecars("{"), false)]
    fn availability(#[case] pod: TestPod, #[case] want: bool) {
        assert_eq!(is_available(&CachedPod::from(pod.build())), want);
    }
}
