//! Every recorded admission of an ImagePullJob (OpenKruise 1.9.0) against the webhooks, in both versions, and rules that no
//! recording has.

use rstest::rstest;
use serde_json::{Value, json};

use super::WEBHOOKS;
use crate::gates::FeatureGates;
use crate::kit::admission::{Surroundings, Webhook};
use crate::test_admission::{admit_whole, merge_patch, played_with};

const RECORDED: &str = include_str!("../../../../tests/data/imagepulljob.jsonl");
const GATES: &str = "ImagePullJobGate=true";

#[tokio::test]
async fn answers_as_recorded() {
    let status = json!({ "desired": 0 });
    let gates = FeatureGates::parse(GATES).unwrap();
    let (wrong, compared) = played_with(gates, RECORDED, WEBHOOKS, &status, &[]).await;
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(compared, 42);
}

fn job(version: &str, changes: &Value) -> Value {
    let mut job = json!({ "apiVersion": format!("apps.kruise.io/{version}"), "metadata": { "name": "j", "namespace": "d" },
        "spec": { "image": "nginx:1", "completionPolicy": { "type": "Always" } } });
    merge_patch(&mut job["spec"], changes);
    job
}

async fn check(new: &Value, old: Option<&Value>, gates: &str) -> Result<Value, (u64, String)> {
    let webhooks: Vec<&Webhook> = WEBHOOKS.iter().collect();
    let around = Surroundings::alone(FeatureGates::parse(gates).unwrap());
    admit_whole(&webhooks, new, old, &around)
        .await
        .map_err(|(code, text)| {
            let text = text
                .split_once("denied the request: ")
                .map(|(_, text)| text.to_owned());
            (code, text.unwrap_or_default())
        })
}

#[rstest]
#[case::deadline_below_the_timeout(
    json!({ "completionPolicy": { "activeDeadlineSeconds": 60 } }),
    "completionPolicy.activeDeadlineSeconds must be greater than pullPolicy.timeoutSeconds(default 600)"
)]
#[case::percentage(json!({ "parallelism": "50%" }), "parallelism does not support percentage value")]
#[case::no_number(
    json!({ "parallelism": "abc" }),
    "parallelism must be a valid integer: strconv.ParseInt: parsing \"abc\": invalid syntax"
)]
#[case::negative_text(json!({ "parallelism": "-1" }), "parallelism must be non-negative")]
#[case::negative(json!({ "parallelism": -1 }), "parallelism must be non-negative")]
#[case::a_name_twice(json!({ "selector": { "names": ["a", "a"] } }), "duplicated name in selector names")]
#[case::both_selectors(json!({ "selector": {}, "podSelector": {} }), "can not set both selector and podSelector")]
#[tokio::test]
async fn refused(#[case] changes: Value, #[case] expect: &str) {
    let got = check(&job("v1beta1", &changes), None, GATES).await;
    assert_eq!(got, Err((400, expect.to_owned())));
}

#[rstest]
#[case::deadline_as_long_as_the_timeout(json!({ "completionPolicy": { "activeDeadlineSeconds": 600 } }))]
#[case::a_number_as_text(json!({ "parallelism": "3" }))]
#[case::negative_times(json!({ "pullPolicy": { "backoffLimit": -1, "timeoutSeconds": -1 } }))]
#[case::an_unknown_policy(json!({ "imagePullPolicy": "Bogus" }))]
#[tokio::test]
async fn taken(#[case] changes: Value) {
    check(&job("v1beta1", &changes), None, GATES).await.unwrap();
}

#[rstest]
#[case::without_the_gate("", "feature-gate ImagePullJobGate is not enabled")]
#[case::without_the_daemon("KruiseDaemon=false", "feature-gate KruiseDaemon is not enabled")]
#[tokio::test]
async fn refused_without_a_gate(#[case] gates: &str, #[case] expect: &str) {
    let got = check(&job("v1beta1", &json!({})), None, gates).await;
    assert_eq!(got, Err((403, expect.to_owned())));
}

#[rstest]
#[case::other_image(json!({ "image": "nginx:2" }), true)]
#[case::other_secrets(json!({ "pullSecrets": ["a"] }), false)]
#[tokio::test]
async fn updates(#[case] changes: Value, #[case] fits: bool) {
    let got = check(
        &job("v1beta1", &changes),
        Some(&job("v1beta1", &json!({}))),
        GATES,
    )
    .await;
    assert_eq!(got.is_ok(), fits, "{got:?}");
}

/// The version, whether the job is new, and whether the webhook gives it its finalizer.
#[rstest]
#[case("v1alpha1", true, true)]
#[case("v1alpha1", false, false)]
#[case("v1beta1", true, false)]
#[tokio::test]
async fn finalizers(#[case] version: &str, #[case] is_new: bool, #[case] expect: bool) {
    let new = job(version, &json!({}));
    let stored = check(&new, (!is_new).then_some(&new), GATES).await.unwrap();
    assert_eq!(stored.pointer("/metadata/finalizers/0").is_some(), expect);
}
