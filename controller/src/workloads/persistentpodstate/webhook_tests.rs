//! Every recorded admission of a PersistentPodState (OpenKruise 1.9.0), and the rules that no recording has.

use k8s_openapi::api::core::v1::ConfigMap;
use rstest::rstest;
use serde_json::json;

use super::*;
use crate::gates::FeatureGates;
use crate::kit::WebhookCaches;
use crate::kit::admission::Surroundings;
use crate::test_admission::{admit, played};

/// Refused by the API server's schema: the webhook is not asked.
const NOT_THE_WEBHOOKS: [&str; 7] = [
    "persistentpodstate/04-invalid-target-missing",
    "persistentpodstate/09-invalid-topology-keys-missing",
    "persistentpodstate/10-invalid-preferred-no-weight",
    "persistentpodstate/11-invalid-preferred-no-keys",
    "persistentpodstate/12-invalid-annotation-no-key",
    "persistentpodstate/13-invalid-weight-string",
    "persistentpodstate/14-invalid-bad-name",
];

#[tokio::test]
async fn answers_as_recorded() {
    let lines = include_str!("../../../tests/data/persistentpodstate.jsonl");
    let (wrong, compared) = played(lines, WEBHOOKS, &json!({}), &NOT_THE_WEBHOOKS).await;
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(compared, 5);
}

fn state(name: &str, namespace: &str, version: &str, target: &str) -> PersistentPodState {
    let object = json!({ "metadata": { "name": name, "namespace": namespace }, "spec": {
        "targetRef": { "apiVersion": version, "kind": "StatefulSet", "name": target },
        "requiredPersistentTopology": { "nodeTopologyKeys": ["zone"] } } });
    serde_json::from_value(object).unwrap()
}

#[test]
fn a_target_stays() {
    let (old, new) = (
        state("a", "n", "apps/v1", "web"),
        state("a", "n", "apps/v1", "other"),
    );
    let found: Vec<String> = errors(&new, Some(&old), true)
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        found,
        ["spec.targetRef: Required value: targetRef cannot be modified"]
    );
}

#[test]
fn a_topology_must_be_asked_for() {
    let mut new = state("a", "n", "apps/v1", "web");
    new.spec.required_persistent_topology = None;
    let details: Vec<String> = errors(&new, None, true)
        .into_iter()
        .map(|error| error.detail)
        .collect();
    assert_eq!(
        details,
        ["TopologyConstraint and TopologyPreference cannot be empty at the same time"]
    );
}

#[rstest]
#[case::itself("a", "n", "apps/v1", "web", false)]
#[case::the_same_set("b", "n", "apps/v1", "web", true)]
#[case::in_another_version("b", "n", "apps/v2", "web", true)]
#[case::another_set("b", "n", "apps/v1", "other", false)]
#[case::another_group("b", "n", "apps.kruise.io/v1beta1", "web", false)]
#[case::another_namespace("b", "m", "apps/v1", "web", false)]
fn conflicts(
    #[case] name: &str,
    #[case] namespace: &str,
    #[case] version: &str,
    #[case] target: &str,
    #[case] expect: bool,
) {
    let other = state(name, namespace, version, target);
    assert_eq!(is_in_conflict(&state("a", "n", "apps/v1", "web"), &other), expect);
}

/// Kinds of workloads, with a white list.
#[rstest]
#[case::listed("example.com/v1", "Game", None)]
#[case::not_listed(
    "example.com/v1",
    "Round",
    Some("TargetReference.Kind must be StatefulSet or in PPS_Watch_Custom_Workload_WhiteList")
)]
#[tokio::test]
async fn targets(#[case] version: &str, #[case] kind: &str, #[case] expect: Option<&str>) {
    let list = r#"{"workloads":[{"Group":"example.com","Version":"v1","Kind":"Game"}]}"#;
    let settings: ConfigMap = serde_json::from_value(json!({
        "metadata": { "name": "kruise-configuration", "namespace": "kruise-system" },
        "data": { "PPS_Watch_Custom_Workload_WhiteList": list },
    }))
    .unwrap();
    let surroundings = Surroundings {
        namespace: "kruise-system".to_owned(),
        caches: WebhookCaches::default().with(vec![settings]),
        ..Surroundings::alone(FeatureGates::default())
    };
    let mut state = serde_json::to_value(state("a", "n", version, "web")).unwrap();
    state["spec"]["targetRef"]["kind"] = json!(kind);
    let refused = admit(&[&WEBHOOKS[0]], &state, None, &surroundings).await.err();
    let message = refused.as_ref().map(|(_, message)| message.as_str());
    assert_eq!(message.is_some(), expect.is_some());
    assert!(message.unwrap_or_default().ends_with(expect.unwrap_or_default()));
}
