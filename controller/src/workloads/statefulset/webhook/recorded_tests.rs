//! Every recorded admission of a StatefulSet (OpenKruise 1.9.0) against the webhooks, in both versions.

use serde_json::{Value, json};

use super::WEBHOOKS;
use super::mutate::mutate_stateful_set;
use crate::gates::FeatureGates;
use crate::kit::admission::{Surroundings, Webhook};
use crate::test_admission::{admit, merge_patch};

/// Refused by the server itself, before or between the webhooks: nothing to compare here.
const NOT_THE_WEBHOOKS: [&str; 6] = [
    "statefulset/09-invalid-selector-missing",
    "statefulset/15-invalid-bad-name",
    "statefulset/39-invalid-unknown-field",
    "statefulset-v1alpha1/05-invalid-selector-missing",
    "statefulset-v1alpha1/08-invalid-replicas-negative",
    "statefulset-v1alpha1/15-invalid-reserve-duplicate",
];
/// Let through there, and refused here: the manager crashes of the first, and makes pods with two hyphens of the second.
const REFUSED_HERE: [&str; 2] = [
    "statefulset/37-invalid-revision-history-negative",
    "statefulset-new/14-invalid-start-negative",
];
/// Go prints the addresses of the pointers in the value.
const PRINTED_OTHERWISE: [&str; 1] = ["statefulset/35-invalid-on-delete-with-rolling"];

fn surroundings(gates: &str) -> Surroundings {
    Surroundings::alone(FeatureGates::parse(gates).unwrap())
}

#[tokio::test]
async fn answers_as_recorded() {
    let webhooks: Vec<&Webhook> = WEBHOOKS.iter().collect();
    let mut wrong = Vec::new();
    let mut compared = 0;
    for line in include_str!("../../../../tests/data/statefulset.jsonl").lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let name = row["name"].as_str().unwrap();
        if NOT_THE_WEBHOOKS.contains(&name) {
            continue;
        }
        compared += 1;
        let around = surroundings("");
        let got = match &row["base"] {
            Value::Null => admit(&webhooks, &row["object"], None, &around).await,
            base => {
                let mut old = base.clone();
                old["spec"] = admit(&webhooks, base, None, &around).await.unwrap();
                // The controller has seen it.
                old["status"] = json!({ "replicas": 0, "observedGeneration": 1 });
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
        } else if PRINTED_OTHERWISE.contains(&name) {
            let around = |text: &str| {
                let (path, rest) = text.split_once("Partition").unwrap();
                let (_, detail) = rest.rsplit_once("}: ").unwrap();
                (path.to_owned(), detail.to_owned())
            };
            let (got, want) = (got.unwrap_err().1, want.unwrap_err().1);
            assert_ne!(got, want, "{name} is printed alike: take it off the list");
            assert_eq!(around(&got), around(&want), "{name}");
        } else if got != want {
            wrong.push(format!("{name}\n  want {want:?}\n  got  {got:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(compared >= 70, "{compared}");
}

#[test]
fn defaulting_twice_changes_nothing() {
    let gates = FeatureGates::default();
    for line in include_str!("../../../../tests/data/statefulset.jsonl").lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let mut once = row["object"].clone();
        if row["base"] != Value::Null || mutate_stateful_set(&mut once, None, &gates).is_err() {
            continue;
        }
        let mut twice = once.clone();
        mutate_stateful_set(&mut twice, None, &gates).unwrap();
        assert_eq!(once, twice, "{}", row["name"]);
    }
}
