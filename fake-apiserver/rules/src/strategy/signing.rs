//! CertificateSigningRequests: the request stays, a verdict comes by `approval`, a certificate by `status`.

use machinery::user::User;
use shared_json::{Array, Value, json};

use super::{Strategy, copy_field};

pub(super) struct SigningStrategy;

/// Conditions that only `approval` may change.
const APPROVALS: [&str; 2] = ["Approved", "Denied"];

impl Strategy for SigningStrategy {
    fn prepare_create(&self, object: &mut Value) {
        object["status"] = json!({});
    }

    fn prepare_update(&self, object: &mut Value, old: &Value) {
        copy_field(object, old, "spec");
        copy_field(object, old, "status");
    }

    fn prepare_status_update(&self, object: &mut Value, old: &Value) {
        copy_field(object, old, "spec");
        for kind in APPROVALS {
            let before: Vec<Value> = conditions(old).iter().filter(|c| is(c, kind)).cloned().collect();
            let list = object
                .pointer_mut("/status/conditions")
                .and_then(Value::as_array_mut);
            let present: Vec<&mut Value> = list.into_iter().flatten().filter(|c| is(c, kind)).collect();
            if present.len() == before.len() {
                for (present, before) in std::iter::zip(present, before) {
                    *present = before;
                }
            }
        }
    }
}

fn conditions(object: &Value) -> &[Value] {
    let list = object.pointer("/status/conditions").and_then(Value::as_array);
    list.map_or(&[], Array::as_slice)
}

fn is(condition: &Value, kind: &str) -> bool {
    condition.get("type").and_then(Value::as_str) == Some(kind)
}

/// Keeps of a change through `approval` the conditions only.
pub fn keep_conditions(object: &mut Value, old: &Value) {
    let given = object.pointer("/status/conditions").cloned();
    copy_field(object, old, "spec");
    copy_field(object, old, "status");
    if let Some(given) = given {
        object["status"]["conditions"] = given;
    } else if let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) {
        status.remove("conditions");
    }
}

/// Writes into conditions when they came, where their writer does not say.
pub fn stamp(object: &mut Value, old: &Value, now: &str) {
    let list = object
        .pointer_mut("/status/conditions")
        .and_then(Value::as_array_mut);
    for condition in list.into_iter().flatten() {
        let absent = |condition: &Value, field: &str| condition.get(field).is_none_or(Value::is_null);
        if absent(condition, "lastUpdateTime") {
            condition["lastUpdateTime"] = Value::from(now);
        }
        if absent(condition, "lastTransitionTime") {
            let same = |other: &&Value| {
                ["type", "status"]
                    .iter()
                    .all(|f| other.get(*f) == condition.get(*f))
            };
            let before = conditions(old).iter().find(same);
            let since = before.and_then(|before| before.get("lastTransitionTime")?.as_str());
            condition["lastTransitionTime"] = Value::from(since.unwrap_or(now));
        }
    }
}

/// Sets the requesting user.
pub fn set_requester(object: &mut Value, user: &User) {
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    for field in ["username", "uid", "groups", "extra"] {
        spec.remove(field);
    }
    spec.insert("username".to_owned(), Value::from(user.name.clone()));
    if !user.uid.is_empty() {
        spec.insert("uid".to_owned(), Value::from(user.uid.clone()));
    }
    if !user.groups.is_empty() {
        spec.insert("groups".to_owned(), Value::from(user.groups.clone()));
    }
    if !user.extra.is_empty() {
        spec.insert("extra".to_owned(), json!(user.extra));
    }
}
