//! Every recorded admission of a CloneSet (OpenKruise 1.9.0) against the webhooks: those of a real cluster (`admission.jsonl`), and
//! templates and strategies for which OpenKruise's own manager 1.9.0 was asked on a simulated server (`templates.jsonl`).

use serde_json::{Value, json};

use super::mutate::mutate_cloneset;
use crate::gates::FeatureGates;
use crate::webhook::{Surroundings, review};

/// Objects that the server itself refuses before or between the webhooks: nothing to compare here.
const NOT_THE_WEBHOOKS: [&str; 6] = [
    "07-invalid-selector-missing",
    "13-invalid-bad-name",
    "39-invalid-unknown-field",
    "58-update-replicas-negative",
    "59-update-status-generation",
    "60-update-rename-label-key-bad",
];
/// Where we differ on purpose: a negative limit crashes the real manager.
const REFUSED_HERE: [&str; 1] = ["37-invalid-revision-history-negative"];
/// Objects for which the webhook needs the cluster's pods.
const NEEDS_PODS: [&str; 1] = ["57-update-pods-to-delete-unknown"];

/// Values that Go prints as structs or typed texts, which the rules here print as JSON: `Invalid value: foo` and
/// `Invalid value: "foo"`. Path and detail are compared.
const PRINTED_OTHERWISE: [&str; 5] = [
    "claims",
    "res-bad-name",
    "res-fraction-ext",
    "resize-policy-dup",
    "sec-priv-noescal",
];
/// The real webhook's patch also leaves out an empty name, which the API server leaves out here.
const STORED_OTHERWISE: [&str; 1] = ["pullsecret"];

/// A refusal's path up to the kind of error, and its detail: the text around the value.
fn around_value(text: &str) -> (String, String) {
    let (path, rest) = text.split_once(" value: ").unwrap_or((text, ""));
    let detail = rest.rsplit_once(": ").map_or("", |(_, detail)| detail);
    (path.to_owned(), detail.to_owned())
}

fn nothing_else() -> Surroundings {
    Surroundings::alone(FeatureGates::default())
}

async fn ask(path: &str, object: &Value, old: Option<&Value>) -> Value {
    let operation = if old.is_some() { "UPDATE" } else { "CREATE" };
    let request = json!({ "uid": "u", "operation": operation, "object": object, "oldObject": old });
    let answer = review(
        path,
        &json!({ "apiVersion": "admission.k8s.io/v1", "request": request }),
        &nothing_else(),
    )
    .await;
    assert_eq!(answer["response"]["uid"], "u");
    answer["response"].clone()
}

/// Applies a JSON patch whose operations address members of `spec`.
fn apply(object: &mut Value, response: &Value) {
    use base64::Engine;
    let Some(text) = response["patch"].as_str() else {
        return;
    };
    let bytes = base64::engine::general_purpose::STANDARD.decode(text).unwrap();
    let operations: Vec<Value> = serde_json::from_slice(&bytes).unwrap();
    for operation in operations {
        let key = operation["path"]
            .as_str()
            .unwrap()
            .strip_prefix("/spec/")
            .unwrap()
            .to_owned();
        let spec = object["spec"].as_object_mut().unwrap();
        match operation["op"].as_str().unwrap() {
            "remove" => drop(spec.remove(&key)),
            _ => drop(spec.insert(key, operation["value"].clone())),
        }
    }
}

/// RFC 7386, as the recorder's updates were sent.
fn merge_patch(value: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        return *value = patch.clone();
    };
    if !value.is_object() {
        *value = json!({});
    }
    let map = value.as_object_mut().unwrap();
    for (key, field) in patch {
        if field.is_null() {
            map.remove(key);
        } else {
            merge_patch(map.entry(key).or_insert(Value::Null), field);
        }
    }
}

/// The object after both webhooks, or the refusal's status and text.
async fn admit(mut object: Value, old: Option<&Value>) -> Result<Value, (u64, String)> {
    let mutated = ask("/mutate-apps-kruise-io-v1alpha1-cloneset", &object, old).await;
    apply(&mut object, &mutated);
    let validated = ask("/validate-apps-kruise-io-v1alpha1-cloneset", &object, old).await;
    for (webhook, response) in [("mcloneset.kb.io", mutated), ("vcloneset.kb.io", validated)] {
        if response["allowed"] != true {
            let message = response["status"]["message"].as_str().unwrap();
            let text = format!("admission webhook \"{webhook}\" denied the request: {message}");
            return Err((response["status"]["code"].as_u64().unwrap(), text));
        }
    }
    Ok(object)
}

#[tokio::test]
async fn answers_as_recorded() {
    compare(include_str!("../../../../tests/data/admission.jsonl"), 53).await;
}

#[tokio::test]
async fn judges_templates_as_the_real_webhook() {
    compare(include_str!("../../../../tests/data/templates.jsonl"), 150).await;
}

async fn compare(rows: &str, least: usize) {
    let mut wrong = Vec::new();
    let mut compared = 0;
    for line in rows.lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let name = row["name"].as_str().unwrap();
        if NOT_THE_WEBHOOKS.contains(&name) || NEEDS_PODS.contains(&name) || STORED_OTHERWISE.contains(&name)
        {
            continue;
        }
        compared += 1;
        let got = match &row["base"] {
            Value::Null => admit(row["object"].clone(), None).await,
            base => {
                let old = admit(base.clone(), None).await.unwrap();
                let mut new = old.clone();
                merge_patch(&mut new, &row["object"]);
                admit(new, Some(&old)).await
            }
        };
        let want = match row["spec"].as_object() {
            Some(_) => Ok(row["spec"].clone()),
            None => Err((
                row["http"].as_u64().unwrap(),
                row["message"].as_str().unwrap().to_owned(),
            )),
        };
        let got = got.map(|object| object["spec"].clone());
        if REFUSED_HERE.contains(&name) {
            assert!(got.is_err() && want.is_ok(), "{name}");
        } else if PRINTED_OTHERWISE.contains(&name) {
            let around = |result: &Result<Value, (u64, String)>| {
                let refusal = result.as_ref().err();
                refusal.map(|(code, text)| (*code, around_value(text)))
            };
            assert_ne!(got, want, "{name} is printed alike: take it off the list");
            assert_eq!(around(&got), around(&want), "{name}");
        } else if got != want {
            wrong.push(format!("{name}\n  want {want:?}\n  got  {got:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(compared >= least, "{compared}");
}

#[test]
fn defaulting_twice_changes_nothing() {
    for line in include_str!("../../../../tests/data/admission.jsonl").lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let mut once = row["object"].clone();
        if row["base"] != Value::Null || mutate_cloneset(&mut once, None).is_err() {
            continue;
        }
        let mut twice = once.clone();
        mutate_cloneset(&mut twice, None).unwrap();
        assert_eq!(once, twice, "{}", row["name"]);
    }
}
