//! Plays recorded admissions against webhooks.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

use crate::gates::FeatureGates;
use crate::kit::admission::{Surroundings, Webhook};
use crate::webhook::review;

/// The spec as it was stored, or the status and the text of the refusal.
pub(crate) type Outcome = Result<Value, (u64, String)>;

/// A recorded admission.
pub(crate) struct Row {
    pub(crate) name: String,
    /// The object as it was sent.
    pub(crate) object: Value,
    /// The object that it replaces.
    pub(crate) old: Option<Value>,
    /// The outcome.
    pub(crate) expected: Outcome,
}

/// Reads recorded admissions, one a line. Updates were sent as merge patches of a base.
pub(crate) fn recorded(lines: &str) -> Vec<Row> {
    lines
        .lines()
        .map(|line| {
            let row: Value = serde_json::from_str(line).unwrap();
            let old = (!row["base"].is_null()).then(|| row["base"].clone());
            let mut object = row["object"].clone();
            if let Some(base) = &old {
                object = base.clone();
                merge_patch(&mut object, &row["object"]);
            }
            let expected = match row["spec"].as_object() {
                Some(_) => Ok(row["spec"].clone()),
                None => Err((
                    row["http"].as_u64().unwrap(),
                    row["message"].as_str().unwrap().to_owned(),
                )),
            };
            Row {
                name: row["name"].as_str().unwrap().to_owned(),
                object,
                old,
                expected,
            }
        })
        .collect()
}

/// Plays recorded admissions against webhooks, but for those of the names to skip. The base of an update goes through the webhooks
/// first, and has a status by then. Gives the differences, and how many were compared.
pub(crate) async fn played(
    lines: &str,
    webhooks: &[Webhook],
    status: &Value,
    skip: &[&str],
) -> (Vec<String>, usize) {
    played_with(FeatureGates::default(), lines, webhooks, status, skip).await
}

/// The same, with other gates.
pub(crate) async fn played_with(
    gates: FeatureGates,
    lines: &str,
    webhooks: &[Webhook],
    status: &Value,
    skip: &[&str],
) -> (Vec<String>, usize) {
    let webhooks: Vec<&Webhook> = webhooks.iter().collect();
    let around = Surroundings::alone(gates);
    let (mut wrong, mut compared) = (Vec::new(), 0);
    for row in lines
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
    {
        let name = row["name"].as_str().unwrap();
        if skip.contains(&name) {
            continue;
        }
        compared += 1;
        let got = match &row["base"] {
            Value::Null => admit(&webhooks, &row["object"], None, &around).await,
            base => {
                let mut old = base.clone();
                old["spec"] = admit(&webhooks, base, None, &around).await.unwrap();
                old["status"] = status.clone();
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
        if got != want {
            wrong.push(format!("{name}\n  want {want:?}\n  got  {got:?}"));
        }
    }
    (wrong, compared)
}

/// RFC 7386, as the recorder's updates were sent.
pub(crate) fn merge_patch(value: &mut Value, patch: &Value) {
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

/// The answer of the webhook at `path`.
async fn ask(path: &str, object: &Value, old: Option<&Value>, surroundings: &Surroundings) -> Value {
    let operation = if old.is_some() { "UPDATE" } else { "CREATE" };
    let namespace = object.pointer("/metadata/namespace");
    let request = json!({
        "uid": "u", "operation": operation, "namespace": namespace, "object": object, "oldObject": old,
    });
    let asked = json!({ "apiVersion": "admission.k8s.io/v1", "request": request });
    let answer = review(path, &asked, surroundings).await;
    assert_eq!(answer["response"]["uid"], "u");
    answer["response"].clone()
}

/// Applies a JSON patch.
fn apply(object: &mut Value, response: &Value) {
    let Some(text) = response["patch"].as_str() else {
        return;
    };
    let operations: Vec<Value> = serde_json::from_slice(&STANDARD.decode(text).unwrap()).unwrap();
    for operation in operations {
        let (parent, key) = operation["path"].as_str().unwrap().rsplit_once('/').unwrap();
        let key = key.replace("~1", "/").replace("~0", "~");
        let parent = object.pointer_mut(parent).unwrap().as_object_mut().unwrap();
        match operation["op"].as_str().unwrap() {
            "remove" => drop(parent.remove(&key)),
            _ => drop(parent.insert(key, operation["value"].clone())),
        }
    }
}

/// Has an object pass through webhooks, those that change it first. Gives its spec.
pub(crate) async fn admit(
    webhooks: &[&Webhook],
    object: &Value,
    old: Option<&Value>,
    surroundings: &Surroundings,
) -> Outcome {
    let object = admit_whole(webhooks, object, old, surroundings).await?;
    Ok(object["spec"].clone())
}

/// The same; gives the whole object.
pub(crate) async fn admit_whole(
    webhooks: &[&Webhook],
    object: &Value,
    old: Option<&Value>,
    surroundings: &Surroundings,
) -> Outcome {
    let mut object = object.clone();
    for webhook in webhooks {
        let response = ask(webhook.rule.path, &object, old, surroundings).await;
        if response["allowed"] != true {
            let message = response["status"]["message"].as_str().unwrap();
            let text = format!(
                "admission webhook \"{}\" denied the request: {message}",
                webhook.rule.name
            );
            return Err((response["status"]["code"].as_u64().unwrap(), text));
        }
        apply(&mut object, &response);
    }
    Ok(object)
}

/// A cluster that refuses whatever is created, with this text.
pub(crate) fn refuses_to_create(message: &'static str) -> Client {
    let service = tower::service_fn(move |request: hyper::Request<Body>| {
        assert_eq!(request.method(), "POST");
        assert!(request.uri().query().unwrap_or_default().contains("dryRun=All"));
        let status = json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": message, "reason": "Invalid", "code": 422 });
        let answer = hyper::Response::builder().status(422);
        std::future::ready(answer.body(Body::from(status.to_string().into_bytes())))
    });
    Client::new(service, "default")
}
