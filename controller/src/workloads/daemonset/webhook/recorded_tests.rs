//! Every recorded admission of a DaemonSet (OpenKruise 1.9.0) against the webhooks, in both versions.

use rstest::rstest;
use serde_json::{Value, json};

use super::WEBHOOKS;
use super::mutate::mutate_daemon_set;
use super::validate::validate_daemon_set;
use crate::gates::FeatureGates;
use crate::kit::admission::{Surroundings, Webhook};
use crate::test_admission::{admit, merge_patch};

const RECORDED: &str = include_str!("../../../../tests/data/daemonset.jsonl");

/// Refused by the server itself, before or between the webhooks: nothing to compare here.
const NOT_THE_WEBHOOKS: [&str; 3] = [
    "daemonset/10-invalid-selector-missing",
    "daemonset/16-invalid-bad-name",
    "daemonset-v1beta1/08-invalid-selector-missing",
];
/// Let through there, and refused here: the manager crashes of a negative number, of one that is none nothing ever comes.
const REFUSED_HERE: [&str; 3] = [
    "daemonset/30-invalid-burst-negative",
    "daemonset-v1beta1/28-invalid-burst-negative",
    "daemonset-v1beta1/29-invalid-burst-bad",
];

#[tokio::test]
async fn answers_as_recorded() {
    let webhooks: Vec<&Webhook> = WEBHOOKS.iter().collect();
    let around = Surroundings::alone(FeatureGates::default());
    let mut wrong = Vec::new();
    let mut compared = 0;
    for line in RECORDED.lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let name = row["name"].as_str().unwrap();
        if NOT_THE_WEBHOOKS.contains(&name) {
            continue;
        }
        compared += 1;
        let got = match &row["base"] {
            Value::Null => admit(&webhooks, &row["object"], None, &around).await,
            base => {
                let mut old = base.clone();
                old["spec"] = admit(&webhooks, base, None, &around).await.unwrap();
                // The controller has seen it.
                old["status"] = json!({ "desiredNumberScheduled": 0, "observedGeneration": 1 });
                let mut new = old.clone();
                merge_patch(&mut new, &row["object"]);
                admit(&webhooks, &new, Some(&old), &around).await
            }
        };
        let want = match row["spec"].as_object() {
            Some(_) => Ok(row["spec"].clone()),
            None => Err((
                row["http"].as_u64().unwrap(),
                row["message"].as_str().unwrap().to_owned(),
            )),
        };
        if REFUSED_HERE.contains(&name) {
            assert!(got.is_err() && want.is_ok(), "{name}");
        } else if got != want {
            wrong.push(format!("{name}\n  want {want:?}\n  got  {got:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(compared >= 50, "{compared}");
}

#[test]
fn defaulting_twice_changes_nothing() {
    for line in RECORDED.lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let mut once = row["object"].clone();
        if row["base"] != Value::Null || mutate_daemon_set(&mut once).is_err() {
            continue;
        }
        let mut twice = once.clone();
        mutate_daemon_set(&mut twice).unwrap();
        assert_eq!(once, twice, "{}", row["name"]);
    }
}

/// The errors of a set with these changes.
#[rstest]
#[case::fine(json!({}), &[])]
#[case::burst_of_a_percentage(json!({ "burstReplicas": "10%" }), &[])]
#[case::no_number(json!({ "burstReplicas": "x" }), &[
    "spec.burstReplicas: Invalid value: intstr.IntOrString{Type:1, IntVal:0, StrVal:\"x\"}: a valid percent string must be a numeric \
     string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')",
])]
#[case::selector_of_nodes_that_is_none(
    json!({ "updateStrategy": { "rollingUpdate": { "selector": { "matchExpressions": [{ "key": "a", "operator": "Like" }] } } } }),
    &["spec.updateStrategy.rollingUpdate.selector.matchExpressions[0].operator: Invalid value: \"Like\": not a valid selector operator"]
)]
#[case::selector_of_no_node(
    json!({ "updateStrategy": { "rollingUpdate": { "selector": { "matchExpressions": [{ "key": "a", "operator": "Exists" }] } } } }),
    &[]
)]
#[case::on_delete_looks_at_no_details(
    json!({ "updateStrategy": { "type": "OnDelete", "rollingUpdate": { "rollingUpdateType": "Bogus" } } }), &[]
)]
#[case::percentage_of_nothing(json!({ "updateStrategy": { "rollingUpdate": { "maxUnavailable": "0%", "maxSurge": 1 } } }), &[])]
#[case::partition_of_more_than_all(
    json!({ "updateStrategy": { "rollingUpdate": { "partition": "101%" } } }),
    &["spec.updateStrategy.rollingUpdate.rollingUpdate.partition: Invalid value: intstr.IntOrString{Type:1, IntVal:0, \
       StrVal:\"101%\"}: must not be greater than 100%"]
)]
fn errors(#[case] spec: Value, #[case] expect: &[&str]) {
    let mut set = json!({ "apiVersion": "apps.kruise.io/v1beta1", "spec": {
        "selector": { "matchLabels": { "app": "x" } },
        "template": { "metadata": { "labels": { "app": "x" } }, "spec": { "containers": [{ "name": "main", "image": "v1" }] } },
        "updateStrategy": { "type": "RollingUpdate", "rollingUpdate": {} },
    } });
    merge_patch(&mut set, &json!({ "spec": spec }));
    mutate_daemon_set(&mut set).unwrap();
    let found: Vec<String> = validate_daemon_set(&set, None)
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(found, expect);
}
