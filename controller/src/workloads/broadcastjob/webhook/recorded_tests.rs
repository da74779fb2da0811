//! Every recorded admission of a BroadcastJob (OpenKruise 1.9.0) against the webhooks, in both versions, and the rules that no
//! recording has.

use rstest::rstest;
use serde_json::{Value, json};

use super::WEBHOOKS;
use crate::gates::FeatureGates;
use crate::kit::admission::{Surroundings, Webhook};
use crate::test_admission::{admit, merge_patch, played};

const RECORDED: &str = include_str!("../../../../tests/data/broadcastjob.jsonl");

#[tokio::test]
async fn answers_as_recorded() {
    let status = json!({ "active": 0, "desired": 0, "failed": 0, "succeeded": 0, "phase": "running" });
    let (wrong, compared) = played(RECORDED, WEBHOOKS, &status, &[]).await;
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(compared, 36);
}

fn job(changes: &Value) -> Value {
    let mut job = json!({ "apiVersion": "apps.kruise.io/v1beta1", "metadata": { "name": "j" }, "spec": { "template": {
        "metadata": { "labels": { "app": "x" } },
        "spec": { "restartPolicy": "Never", "containers": [{ "name": "main", "image": "v1" }] } } } });
    merge_patch(&mut job, changes);
    job
}

async fn check(new: &Value, old: Option<&Value>, gates: &str) -> Result<Value, (u64, String)> {
    let webhooks: Vec<&Webhook> = WEBHOOKS.iter().collect();
    let around = Surroundings::alone(FeatureGates::parse(gates).unwrap());
    admit(&webhooks, new, old, &around).await.map_err(|(code, text)| {
        let text = text
            .split_once("denied the request: ")
            .map(|(_, text)| text.to_owned());
        (code, text.unwrap_or_default())
    })
}

const NAME: &str = "BroadcastJob name must consist of alphanumeric characters or '-' (e.g. 'example-com', regex used for validation is \
                    '^[a-zA-Z0-9\\-]+$')";

#[rstest]
#[case::name_with_a_dot(json!({ "metadata": { "name": "a.b" } }), 500, format!("metadata.name: Invalid value: \"a.b\": {NAME}"))]
#[case::name_too_long(
    json!({ "metadata": { "name": "x".repeat(64) } }), 500,
    format!("metadata.name: Invalid value: \"{}\": must be no more than 63 characters", "x".repeat(64))
)]
#[case::both_times(
    json!({ "spec": { "completionPolicy": { "type": "Never", "ttlSecondsAfterFinished": 5, "activeDeadlineSeconds": 6 } } }), 500,
    "[spec.completionPolicy.ttlSecondsAfterFinished: Invalid value: 5: ttlSecondsAfterFinished can just work with Always \
     CompletionPolicyType, spec.completionPolicy.activeDeadlineSeconds: Invalid value: 6: activeDeadlineSeconds can just work with \
     Always CompletionPolicyType]".to_owned()
)]
#[case::one_label_of_two(
    json!({ "spec": { "template": { "metadata": { "labels": { "broadcastjob-name": "j" } } } } }), 500,
    "spec.template.metadata.labels: Invalid value: map[string]string{\"app\":\"x\", \"broadcastjob-name\":\"j\"}: \
     \"broadcastjob-name\" and \"broadcastjob-controller-uid\" are not allowed to preset in pod labels".to_owned()
)]
#[tokio::test]
async fn refused(#[case] changes: Value, #[case] code: u64, #[case] expect: String) {
    assert_eq!(check(&job(&changes), None, "").await, Err((code, expect)));
}

#[rstest]
#[case::negative_times(json!({ "spec": { "completionPolicy": { "ttlSecondsAfterFinished": -1, "activeDeadlineSeconds": -1 } } }))]
#[case::any_policies(json!({ "spec": { "completionPolicy": { "type": "Bogus" }, "failurePolicy": { "type": "Bogus" } } }))]
#[case::an_empty_label(json!({ "spec": { "template": { "metadata": { "labels": { "broadcastjob-name": "" } } } } }))]
#[case::nothing_of_a_restart_limit(json!({ "spec": { "failurePolicy": { "restartLimit": 0 } } }))]
#[tokio::test]
async fn taken(#[case] changes: Value) {
    check(&job(&changes), None, "").await.unwrap();
}

/// The scheduler's name is one of the template's defaults: whether it is filled in.
#[rstest]
#[case::new("", None, true)]
#[case::with_the_gate("TemplateNoDefaults=true", None, false)]
#[case::changed("", Some("v0"), true)]
#[case::as_it_was("", Some("v1"), false)]
#[tokio::test]
async fn defaults_of_templates(
    #[case] gates: &str,
    #[case] image_before: Option<&str>,
    #[case] expect: bool,
) {
    let containers = json!([{ "name": "main", "image": image_before }]);
    let old = job(&json!({ "spec": { "template": { "spec": { "containers": containers } } } }));
    let stored = check(&job(&json!({})), image_before.map(|_| &old), gates)
        .await
        .unwrap();
    let name = stored.pointer("/template/spec/schedulerName");
    assert_eq!(name.is_some(), expect);
    assert_eq!(stored["failurePolicy"], json!({ "type": "FailFast" }));
}
