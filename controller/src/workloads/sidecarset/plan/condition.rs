//! The condition of a pod that says whether its sidecars can be upgraded in place.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::api::labels;
use crate::pods::lifecycle::rfc3339;
use crate::pods::pod::{self, Pod};

/// The patch that says whether a pod can be upgraded to a set's present version; none if the pod already says so.
pub(super) fn patch(pod: &Pod, set: &str, upgradable: bool, now: Timestamp) -> Option<Value> {
    let before = pod::condition(pod, labels::SIDECARS_UPGRADABLE);
    let message = before
        .and_then(|condition| condition.message.as_deref())
        .unwrap_or_default();
    let mut by_set: BTreeMap<String, bool> = serde_json::from_str(message).unwrap_or_default();
    by_set.insert(set.to_owned(), upgradable);
    let text = json!(by_set).to_string();
    let (status, reason) = match by_set.values().all(|upgradable| *upgradable) {
        true => ("True", "AllSidecarsetUpgradable"),
        false => ("False", "UpdateImmutableField"),
    };
    let same_status = before.is_some_and(|condition| &*condition.status == status);
    if same_status && message == text {
        return None;
    }
    let mut condition =
        json!({ "type": labels::SIDECARS_UPGRADABLE, "status": status, "reason": reason, "message": text });
    if !same_status {
        condition["lastTransitionTime"] = json!(rfc3339(now));
    }
    Some(json!({ "status": { "conditions": [condition] } }))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::pods::test_pods::TestPod;

    fn pod(before: Option<(&str, &str)>) -> Pod {
        let pod = TestPod::new("p");
        let Some((status, message)) = before else {
            return pod.build();
        };
        pod.set(
            "/status/conditions",
            json!([{ "type": labels::SIDECARS_UPGRADABLE, "status": status, "message": message }]),
        )
        .build()
    }

    #[rstest]
    #[case::first(None, true, Some(("True", r#"{"s":true}"#, true)))]
    #[case::not(None, false, Some(("False", r#"{"s":false}"#, true)))]
    #[case::the_same(Some(("True", r#"{"s":true}"#)), true, None)]
    #[case::no_more(Some(("True", r#"{"s":true}"#)), false, Some(("False", r#"{"s":false}"#, true)))]
    #[case::again(Some(("False", r#"{"s":false}"#)), true, Some(("True", r#"{"s":true}"#, true)))]
    #[case::beside_another(Some(("True", r#"{"a":true}"#)), true, Some(("True", r#"{"a":true,"s":true}"#, false)))]
    #[case::beside_one_that_cannot(Some(("False", r#"{"a":false}"#)), true, Some(("False", r#"{"a":false,"s":true}"#, false)))]
    fn conditions(
        #[case] before: Option<(&str, &str)>,
        #[case] upgradable: bool,
        #[case] want: Option<(&str, &str, bool)>,
    ) {
        let patch = patch(&pod(before), "s", upgradable, Timestamp::UNIX_EPOCH);
        let got = patch.as_ref().map(|patch| {
            let condition = &patch["status"]["conditions"][0];
            let text = |field: &str| condition[field].as_str().unwrap();
            (
                text("status"),
                text("message"),
                condition.get("lastTransitionTime").is_some(),
            )
        });
        assert_eq!(got, want);
    }
}
