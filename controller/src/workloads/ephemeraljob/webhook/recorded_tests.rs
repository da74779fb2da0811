//! Every recorded admission of an EphemeralJob (OpenKruise 1.9.0) against the webhook, and the rules that no recording has.

use rstest::rstest;
use serde_json::{Value, json};

use super::WEBHOOKS;
use super::validate::validate_job;
use crate::test_admission::played;

const RECORDED: &str = include_str!("../../../../tests/data/ephemeraljob.jsonl");

/// Refused by the server itself, before the webhook.
const NOT_THE_WEBHOOKS: [&str; 8] = [
    "ephemeraljob/06-invalid-template-missing",
    "ephemeraljob/10-invalid-parallelism-string",
    "ephemeraljob/11-invalid-paused-string",
    "ephemeraljob/12-invalid-ttl-string",
    "ephemeraljob/13-invalid-deadline-string",
    "ephemeraljob/14-invalid-unknown-field",
    "ephemeraljob/15-invalid-bad-name",
    "ephemeraljob/17-invalid-selector-string",
];

#[tokio::test]
async fn answers_as_recorded() {
    let (wrong, compared) = played(RECORDED, WEBHOOKS, &json!({}), &NOT_THE_WEBHOOKS).await;
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(compared, 6);
}

/// Changes of a container that is fine.
#[rstest]
#[case::fine(json!({}), &[])]
#[case::ports(json!({ "ports": [{ "containerPort": 80, "protocol": "TCP" }] }), &[
    "ephemeralContainers[0].ports: Forbidden: cannot be set for an Ephemeral Container",
])]
#[case::target(json!({ "targetContainerName": "main" }), &[])]
#[case::mount(json!({ "volumeMounts": [{ "name": "data", "mountPath": "/data" }] }), &[])]
#[case::device(json!({ "volumeDevices": [{ "name": "disk", "devicePath": "/dev/disk" }] }), &[])]
#[case::sub_path(json!({ "volumeMounts": [{ "name": "data", "mountPath": "/data", "subPath": "a" }] }), &[
    "ephemeralContainers[0].volumeMounts[0].subPath: Forbidden: cannot be set for an Ephemeral Container",
])]
#[case::image(json!({ "image": " nginx" }), &[
    "ephemeralContainers[0].image: Invalid value: \" nginx\": must not have leading or trailing whitespace",
])]
fn containers(#[case] changes: Value, #[case] expect: &[&str]) {
    let mut container = json!({ "name": "debug", "image": "nginx", "imagePullPolicy": "Always", "terminationMessagePolicy": "File" });
    for (field, value) in changes.as_object().unwrap() {
        container[field] = value.clone();
    }
    let job = json!({ "spec": { "template": { "ephemeralContainers": [container] } } });
    let found: Vec<String> = validate_job(&job).iter().map(ToString::to_string).collect();
    assert_eq!(found, expect);
}
