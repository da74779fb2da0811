//! Every recorded admission of a SidecarSet (OpenKruise 1.9.0) against the webhooks, in both versions.

use k8s_openapi::api::core::v1::ConfigMap;
use rstest::rstest;
use serde_json::{Value, json};

use super::WEBHOOKS;
use super::mutate::mutate_sidecar_set;
use crate::gates::FeatureGates;
use crate::kit::WebhookCaches;
use crate::kit::admission::{Surroundings, Webhook};
use crate::test_admission::{admit_whole, merge_patch};

const RECORDED: &str = include_str!("../../../../tests/data/sidecarset.jsonl");

/// Refused by the server itself, before or between the webhooks: nothing to compare here.
const NOT_THE_WEBHOOKS: [&str; 4] = [
    "sidecarset-new/11-invalid-policy-mode-bogus",
    "sidecarset-new/12-invalid-policy-mode-missing",
    "sidecarset-new/27-invalid-revision-policy",
    "sidecarset-v1beta1/37-invalid-namespace-field",
];
/// Filled in by the server itself: defaults of the definition.
const FILLED_IN_BY_THE_SERVER: [&str; 1] = ["sidecarset-new/14-invalid-policy-regex-empty"];
/// Go prints the addresses of values behind pointers.
const PRINTED_OTHERWISE: [&str; 1] = ["sidecarset-new/22-invalid-init-policy-without-restart-policy"];

/// A cluster whose white list has a rule for other sets.
fn surroundings() -> Surroundings {
    let list =
        r#"{"rules":[{"selector":{"matchLabels":{"team":"blue"}},"allowedAnnotationKeyExprs":["^a$"]}]}"#;
    let map: ConfigMap = serde_json::from_value(json!({
        "metadata": { "name": "kruise-configuration", "namespace": "kruise-system" },
        "data": { "SidecarSet_PatchPodMetadata_WhiteList": list },
    }))
    .unwrap();
    Surroundings {
        namespace: "kruise-system".to_owned(),
        caches: WebhookCaches::default().with(vec![map]),
        ..Surroundings::alone(FeatureGates::default())
    }
}

/// The compared parts of an object.
fn essence(object: &Value) -> Value {
    let annotations = [
        "kruise.io/sidecarset-hash",
        "kruise.io/sidecarset-hash-without-image",
    ]
    .map(|key| object["metadata"]["annotations"][key].clone());
    json!({ "annotations": annotations, "spec": object["spec"] })
}

#[tokio::test]
async fn answers_as_recorded() {
    let webhooks: Vec<&Webhook> = WEBHOOKS.iter().collect();
    let mut wrong = Vec::new();
    let mut compared = 0;
    for line in RECORDED.lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let name = row["name"].as_str().unwrap();
        if NOT_THE_WEBHOOKS.contains(&name) || FILLED_IN_BY_THE_SERVER.contains(&name) {
            continue;
        }
        compared += 1;
        let around = surroundings();
        let got = match &row["base"] {
            Value::Null => admit_whole(&webhooks, &row["object"], None, &around).await,
            base => {
                let old = admit_whole(&webhooks, base, None, &around).await.unwrap();
                let mut new = old.clone();
                merge_patch(&mut new, &row["object"]);
                admit_whole(&webhooks, &new, Some(&old), &around).await
            }
        };
        let got = got.as_ref().map(essence).map_err(Clone::clone);
        let want = match row["stored"].as_object() {
            Some(_) => Ok(essence(&row["stored"])),
            None => Err((
                row["http"].as_u64().unwrap(),
                row["message"].as_str().unwrap().to_owned(),
            )),
        };
        if PRINTED_OTHERWISE.contains(&name) {
            let around = |text: &str| {
                let (before, rest) = text.split_once("Limits:").unwrap();
                (before.to_owned(), rest.rsplit_once("}}: ").unwrap().1.to_owned())
            };
            let (got, want) = (got.unwrap_err().1, want.unwrap_err().1);
            assert_ne!(got, want, "{name} is printed alike: take it off the list");
            assert_eq!(around(&got), around(&want), "{name}");
        } else if got != want {
            wrong.push(format!("{name}\n  want {want:?}\n  got  {got:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(compared >= 75, "{compared}");
}

#[test]
fn defaulting_twice_changes_nothing() {
    for line in RECORDED.lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let mut once = row["object"].clone();
        // Refused ones may have an empty list of containers, which is absent the second time.
        let is_refused = row["stored"].is_null();
        if is_refused || row["base"] != Value::Null || mutate_sidecar_set(&mut once).is_err() {
            continue;
        }
        let mut twice = once.clone();
        mutate_sidecar_set(&mut twice).unwrap();
        assert_eq!(once, twice, "{}", row["name"]);
    }
}

fn set(spec: Value) -> Value {
    let mut set = json!({ "apiVersion": "apps.kruise.io/v1beta1", "kind": "SidecarSet", "metadata": { "name": "s" },
        "spec": { "selector": { "matchLabels": { "app": "x" } }, "containers": [{ "name": "side", "image": "a:1" }] } });
    merge_patch(&mut set["spec"], &spec);
    set
}

#[rstest]
#[case::update_without_a_change(json!({}), json!({}), None)]
#[case::container_gone(json!({ "containers": [{ "name": "a", "image": "a:1" }, { "name": "b", "image": "a:1" }] }),
    json!({ "containers": [{ "name": "b", "image": "a:1" }] }), None)]
#[case::container_new(json!({}), json!({ "containers": [{ "name": "side", "image": "a:1" }, { "name": "b", "image": "a:1" }] }),
    Some(r#"spec.containers.name: Invalid value: "b": container b is not found"#))]
#[case::init_container_new(json!({}), json!({ "initContainers": [{ "name": "b", "image": "a:1" }] }), None)]
#[tokio::test]
async fn updates(#[case] old: Value, #[case] new: Value, #[case] want: Option<&str>) {
    let webhooks: Vec<&Webhook> = WEBHOOKS.iter().collect();
    let around = surroundings();
    let old = admit_whole(&webhooks, &set(old), None, &around).await.unwrap();
    let got = admit_whole(&webhooks, &set(new), Some(&old), &around).await.err();
    let prefix = "admission webhook \"vsidecarset.kb.io\" denied the request: ";
    assert_eq!(got, want.map(|text| (500, format!("{prefix}{text}"))));
}

#[rstest]
#[case::expression_of_two_amounts(json!({ "limits": { "cpu": "cpu*cpu" } }), None)]
#[case::by_an_amount(json!({ "limits": { "cpu": "1/cpu" } }), None)]
#[case::less_than_one(json!({ "limits": { "cpu": "cpu-200m" } }), None)]
#[case::less_than_nothing(json!({ "limits": { "cpu": "cpu-2" } }),
    Some(r#"spec[0].resourcesPolicy.resourcesExpr.limits.cpu: Invalid value: "cpu-2": invalid expression: calculation result is negative: -1"#))]
#[case::memory_less_an_amount(json!({ "requests": { "memory": "max(memory-100Mi,0)" } }), None)]
#[tokio::test]
async fn expressions_are_tried_with_the_number_1(#[case] expressions: Value, #[case] want: Option<&str>) {
    let webhooks: Vec<&Webhook> = WEBHOOKS.iter().collect();
    let policy = json!({ "targetContainersMode": "sum", "targetContainersNameRegex": ".*", "resourcesExpr": expressions });
    let set = set(json!({ "containers": [{ "name": "side", "image": "a:1", "resourcesPolicy": policy }] }));
    let got = admit_whole(&webhooks, &set, None, &surroundings()).await.err();
    let prefix = "admission webhook \"vsidecarset.kb.io\" denied the request: ";
    assert_eq!(got, want.map(|text| (500, format!("{prefix}{text}"))));
}
