//! Every recorded admission of an AdvancedCronJob (OpenKruise 1.9.0) against the webhooks, in both versions, and the rules that no
//! recording has.

use rstest::rstest;
use serde_json::{Value, json};

use super::WEBHOOKS;
use crate::gates::FeatureGates;
use crate::kit::admission::{Surroundings, Webhook};
use crate::test_admission::{admit, merge_patch, played};

const RECORDED: &str = include_str!("../../../../tests/data/advancedcronjob.jsonl");

/// Refused by the server itself, between the webhooks.
const NOT_THE_WEBHOOKS: [&str; 2] = [
    "advancedcronjob/17-invalid-concurrency-bad",
    "advancedcronjob-v1beta1/17-invalid-concurrency-bad",
];

#[tokio::test]
async fn answers_as_recorded() {
    let status = json!({ "type": "BroadcastJob" });
    let (wrong, compared) = played(RECORDED, WEBHOOKS, &status, &NOT_THE_WEBHOOKS).await;
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(compared, 43);
}

fn cron(template: &Value, changes: &Value) -> Value {
    let mut cron = json!({ "apiVersion": "apps.kruise.io/v1beta1", "metadata": { "name": "a" },
        "spec": { "schedule": "* * * * *", "template": template } });
    merge_patch(&mut cron, changes);
    cron
}

fn pods() -> Value {
    json!({ "spec": { "template": { "spec": { "restartPolicy": "Never", "containers": [{ "name": "main", "image": "v1" }] } } } })
}

fn images(image: &str) -> Value {
    json!({ "imageListPullJobTemplate": { "spec": { "images": [image], "completionPolicy": { "type": "Always" } } } })
}

async fn check(new: &Value, old: Option<&Value>) -> Result<Value, (u64, String)> {
    let webhooks: Vec<&Webhook> = WEBHOOKS.iter().collect();
    let around = Surroundings::alone(FeatureGates::default());
    admit(&webhooks, new, old, &around).await.map_err(|(code, text)| {
        let text = text
            .split_once("denied the request: ")
            .map(|(_, text)| text.to_owned());
        (code, text.unwrap_or_default())
    })
}

#[rstest]
#[case::name(
    json!({ "metadata": { "name": "a.b" } }),
    "metadata.name: Invalid value: \"a.b\": AdvancedCronJob name must consist of alphanumeric characters or '-' (e.g. 'example-com', \
     regex used for validation is '^[a-zA-Z0-9\\-]+$')"
)]
#[case::bad_zone_in_the_schedule(
    json!({ "spec": { "schedule": "TZ=Mars/Base * * * * *" } }),
    "spec.schedule: Invalid value: \"TZ=Mars/Base * * * * *\": provided bad location Mars/Base: unknown time zone Mars/Base"
)]
#[case::row_24(
    json!({ "spec": { "schedule": "CRON_TZ=UTC 0 0 * * *", "timeZone": "UTC" } }),
    "spec.schedule: Invalid value: \"CRON_TZ=UTC 0 0 * * *\": cannot use both timeZone field and TZ or CRON_TZ in schedule"
)]
#[case::row_26(
    json!({ "spec": { "template": { "jobTemplate": pods() } } }),
    "spec.template: Forbidden: spec can have only one template, either JobTemplate or BroadcastJobTemplate or \
     ImageListPullJobTemplate should be provided"
)]
#[case::successful_limit(
    json!({ "spec": { "successfulJobsHistoryLimit": -1 } }),
    "spec.successfulJobsHistoryLimit: Invalid value: -1: must be greater than or equal to 0"
)]
#[tokio::test]
async fn refused(#[case] changes: Value, #[case] expect: &str) {
    let new = cron(&json!({ "broadcastJobTemplate": pods() }), &changes);
    assert_eq!(check(&new, None).await, Err((422, expect.to_owned())));
}

/// The templates before and after an update, and whether it is allowed.
#[rstest]
#[case::row_27(json!({ "jobTemplate": pods() }), json!({ "broadcastJobTemplate": pods() }), false)]
#[case::row_28(images("a"), images("b"), true)]
#[case::row_29(json!({ "broadcastJobTemplate": pods() }), images("a"), false)]
#[case::nothing(json!({ "jobTemplate": pods() }), json!({ "jobTemplate": pods() }), true)]
#[tokio::test]
async fn changes_of_templates(#[case] before: Value, #[case] after: Value, #[case] fits: bool) {
    let mut old = cron(&before, &json!({}));
    old["spec"] = check(&old, None).await.unwrap();
    let got = check(&cron(&after, &json!({})), Some(&old)).await;
    assert_eq!(got.is_ok(), fits, "{got:?}");
}

/// Rows 30 and 31: jobs that pull images replace each other.
#[rstest]
#[case::row_30(json!({}), Ok("Replace"))]
#[case::row_31(json!({ "spec": { "concurrencyPolicy": "Allow" } }), Err(
    "spec.spec.concurrencyPolicy: Invalid value: \"Allow\": concurrencyPolicy should be Replace or Forbid, but current value is: Allow"
))]
#[case::forbid(json!({ "spec": { "concurrencyPolicy": "Forbid" } }), Ok("Forbid"))]
#[tokio::test]
async fn policies_of_images(#[case] changes: Value, #[case] expect: Result<&str, &str>) {
    let got = check(&cron(&images("a"), &changes), None).await;
    let got = got.map(|spec| spec["concurrencyPolicy"].as_str().unwrap().to_owned());
    let expect = expect.map(str::to_owned).map_err(|text| (422, text.to_owned()));
    assert_eq!(got, expect);
}

#[tokio::test]
async fn images_have_defaults_where_nothing_says_when_the_job_is_over() {
    let template = json!({ "imageListPullJobTemplate": { "spec": { "images": ["a"], "pullPolicy": { "backoffLimit": 1 } } } });
    let stored = check(&cron(&template, &json!({})), None).await.unwrap();
    let expect = json!({ "images": ["a"], "completionPolicy": { "type": "Always" }, "imagePullPolicy": "IfNotPresent",
        "pullPolicy": { "backoffLimit": 1, "timeoutSeconds": 600 } });
    assert_eq!(stored["template"]["imageListPullJobTemplate"]["spec"], expect);
}

/// Row 32: a name that leaves its jobs without one is allowed.
#[tokio::test]
async fn long_names_are_taken() {
    let changes = json!({ "metadata": { "name": "x".repeat(60) } });
    check(&cron(&json!({ "broadcastJobTemplate": pods() }), &changes), None)
        .await
        .unwrap();
}
