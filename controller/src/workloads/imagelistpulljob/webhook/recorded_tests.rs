//! Every recorded admission of an ImageListPullJob (OpenKruise 1.9.0) against the webhooks, in both versions, and rules that no
//! recording has.

use rstest::rstest;
use serde_json::{Value, json};

use super::WEBHOOKS;
use crate::gates::FeatureGates;
use crate::kit::admission::{Surroundings, Webhook};
use crate::test_admission::{admit, merge_patch, played_with};

const RECORDED: &str = include_str!("../../../../tests/data/imagelistpulljob.jsonl");
const GATES: &str = "ImagePullJobGate=true";

/// Refused by the server itself, between the webhooks.
const NOT_THE_WEBHOOKS: [&str; 1] = ["imagelistpulljob-v1beta1/03-invalid-images-missing"];

#[tokio::test]
async fn answers_as_recorded() {
    let status = json!({ "desired": 0 });
    let gates = FeatureGates::parse(GATES).unwrap();
    let (wrong, compared) = played_with(gates, RECORDED, WEBHOOKS, &status, &NOT_THE_WEBHOOKS).await;
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(compared, 28);
}

/// Changes of a list that is fine, and the refusal of each.
#[rstest]
#[case::most_images(json!({ "images": (0..255).map(|number| format!("a:{number}")).collect::<Vec<_>>() }), "")]
#[case::too_many(
    json!({ "images": (0..256).map(|number| format!("a:{number}")).collect::<Vec<_>>() }),
    "the maximum number of images cannot > 255"
)]
#[case::negative_parallelism(json!({ "parallelism": -1 }), "")]
#[case::no_deadline_of_its_own(json!({ "completionPolicy": { "activeDeadlineSeconds": 5 } }), "")]
#[tokio::test]
async fn lists(#[case] changes: Value, #[case] expect: &str) {
    let mut list = json!({ "apiVersion": "apps.kruise.io/v1beta1", "metadata": { "name": "l", "namespace": "d" },
        "spec": { "images": ["nginx:1"], "completionPolicy": { "type": "Always" } } });
    merge_patch(&mut list["spec"], &changes);
    let webhooks: Vec<&Webhook> = WEBHOOKS.iter().collect();
    let around = Surroundings::alone(FeatureGates::parse(GATES).unwrap());
    let got = admit(&webhooks, &list, None, &around)
        .await
        .map(|_| String::new());
    let got = got.unwrap_or_else(|(_, text)| text.split_once("request: ").unwrap().1.to_owned());
    assert_eq!(got, expect);
}
