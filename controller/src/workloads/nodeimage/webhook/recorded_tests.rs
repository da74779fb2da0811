//! Every recorded admission of a NodeImage (OpenKruise 1.9.0) against the webhooks, in both versions, and rules that no recording
//! has.

use rstest::rstest;
use serde_json::{Value, json};

use super::WEBHOOKS;
use crate::gates::FeatureGates;
use crate::kit::admission::{Surroundings, Webhook};
use crate::test_admission::{admit, played};

const RECORDED: &str = include_str!("../../../../tests/data/nodeimage.jsonl");

/// Refused by the server itself, between the webhooks.
const NOT_THE_WEBHOOKS: [&str; 4] = [
    "nodeimage/06-invalid-tags-missing",
    "nodeimage/14-invalid-bad-name",
    "nodeimage-v1beta1/06-invalid-tags-missing",
    "nodeimage-v1beta1/14-invalid-bad-name",
];

#[tokio::test]
async fn answers_as_recorded() {
    let status = json!({ "desired": 0 });
    let (wrong, compared) = played(RECORDED, WEBHOOKS, &status, &NOT_THE_WEBHOOKS).await;
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(compared, 19);
}

async fn check(images: &Value, gates: &str) -> Result<Value, (u64, String)> {
    let webhooks: Vec<&Webhook> = WEBHOOKS.iter().collect();
    let around = Surroundings::alone(FeatureGates::parse(gates).unwrap());
    let image = json!({ "apiVersion": "apps.kruise.io/v1beta1", "metadata": { "name": "n" }, "spec": { "images": images } });
    admit(&webhooks, &image, None, &around)
        .await
        .map_err(|(code, text)| {
            let text = text
                .split_once("denied the request: ")
                .map(|(_, text)| text.to_owned());
            (code, text.unwrap_or_default())
        })
}

#[tokio::test]
async fn tags_are_filled_in_and_sorted() {
    let policy = json!({ "ttlSecondsAfterFinished": 60 });
    let images = json!({ "a": { "tags": [{ "tag": "2", "pullPolicy": policy }, { "tag": "1", "pullPolicy": policy }] } });
    let stored = check(&images, "").await.unwrap();
    let tag = |tag: &str| {
        json!({ "tag": tag, "createdAt": "1970-01-01T00:00:00Z",
            "pullPolicy": { "timeoutSeconds": 600, "backoffLimit": 3, "ttlSecondsAfterFinished": 60 } })
    };
    assert_eq!(stored["images"]["a"]["tags"], json!([tag("1"), tag("2")]));
}

#[rstest]
#[case::too_many(
    (0..257).map(|number| (format!("i{number}"), json!({ "tags": [] }))).collect(),
    "", 400, "spec images length 257 can not be more than 256"
)]
#[case::gate(json!({}), "KruiseDaemon=false", 403, "feature-gate KruiseDaemon is not enabled")]
#[tokio::test]
async fn refused(#[case] images: Value, #[case] gates: &str, #[case] code: u64, #[case] expect: &str) {
    assert_eq!(check(&images, gates).await, Err((code, expect.to_owned())));
}
