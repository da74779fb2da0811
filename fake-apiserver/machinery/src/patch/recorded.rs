//! Recorded exchanges of a 1.36.2 server, replayed through the patch engines (`tests/data/patches.json`).
//!
//! Each case is a sequence of writes with the server's answers: the object, `managedFields` where the recording compared them
//! (sorted by manager there), or the error. Rows that need more than this module are left out: validation, deletes, reads.

use super::apply::{FieldSet, Operation, apply, track_update};
use super::{PatchError, json, merge, strategic};
use crate::types::{Schema, builtin};
use shared_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

const META: [&str; 6] = [
    "namespace",
    "uid",
    "creationTimestamp",
    "generation",
    "resourceVersion",
    "managedFields",
];

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// The fields that a resource does not let a write change.
fn reset_fields(kind: &str, subresource: &str) -> FieldSet {
    match (kind, subresource) {
        ("Deployment", "status") => FieldSet::of(&[&["spec"], &["metadata", "labels"]]),
        ("Widget", "status") => FieldSet::of(&[&["spec"], &["metadata"]]),
        ("Deployment" | "Widget", _) => FieldSet::of(&[&["status"]]),
        _ => FieldSet::default(),
    }
}

struct Server {
    custom: Option<Arc<Schema>>,
    objects: BTreeMap<String, Value>,
}

impl Server {
    fn schema(&self, api_version: &str, kind: &str) -> Arc<Schema> {
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        builtin((group, version, kind))
            .or_else(|| self.custom.clone())
            .unwrap_or_else(|| panic!("no {api_version} {kind}"))
    }

    fn write(&mut self, step: &Value) -> Result<Value, (u16, String, Vec<Value>)> {
        let body = &step["body"];
        let live = self.objects.get(text(step, "object")).cloned();
        let typed = live.as_ref().unwrap_or(body);
        if typed.get("kind").is_none() {
            return Err((404, "not found".to_owned(), vec![]));
        }
        let (api_version, kind) = (
            text(typed, "apiVersion").to_owned(),
            text(typed, "kind").to_owned(),
        );
        let schema = self.schema(&api_version, &kind);
        let subresource = text(step, "subresource");
        let reset_fields = reset_fields(&kind, subresource);
        let operation = Operation {
            manager: text(step, "manager"),
            api_version: &api_version,
            subresource,
            now: "2026-01-01T00:00:00Z",
            reset_fields: &reset_fields,
            versions: None,
        };
        let patched = |result: Result<Value, PatchError>| {
            result.map_err(|error| (error.code(), error.to_string(), vec![]))
        };
        let doc = live.clone().unwrap_or_default();
        let op = text(step, "op");
        let mut object = match op {
            "create" | "update" => body.clone(),
            "apply" => apply(&schema, live.as_ref(), body, step["force"] == true, &operation)
                .map_err(|error| (error.code(), error.to_string(), error.causes()))?,
            "json" => patched(json::apply(&doc, body))?,
            "merge" => patched(merge::apply(&doc, body))?,
            "strategic" => patched(strategic::apply(&schema, &doc, body))?,
            other => panic!("unknown operation {other}"),
        };
        if schema.name.is_some() {
            let code = if op == "create" || op == "update" {
                400
            } else {
                422
            };
            schema
                .check_types(&object)
                .map_err(|error| (code, error.to_string(), vec![]))?;
        }
        schema.prune(&mut object);
        schema.canonicalize(&mut object);
        schema.default(&mut object);
        if schema.name.is_none() && !schema.validate(&object).is_empty() {
            return Err((422, "invalid".to_owned(), vec![]));
        }
        self.keep_other_half(&schema, &kind, subresource, live.as_ref(), &mut object);
        if op != "apply" {
            track_update(&schema, live.as_ref(), &mut object, &operation);
        }
        let metadata = object["metadata"].as_object_mut().unwrap();
        for name in ["uid", "creationTimestamp"] {
            metadata
                .entry(name)
                .or_insert_with(|| "2026-01-01T00:00:00Z".into());
        }
        self.objects
            .insert(text(step, "object").to_owned(), object.clone());
        Ok(object)
    }

    /// A write to an object leaves its status, a write to its status leaves the rest.
    fn keep_other_half(
        &self,
        schema: &Schema,
        kind: &str,
        subresource: &str,
        live: Option<&Value>,
        object: &mut Value,
    ) {
        if kind != "Deployment" && kind != "Widget" {
            return;
        }
        let live = live.cloned().unwrap_or_else(|| schema.empty_object());
        let written = std::mem::replace(object, live.clone());
        let (mut kept, from) = match subresource {
            "status" => (live, written),
            _ => (written, live),
        };
        let owners = if subresource == "status" {
            from.pointer("/metadata/managedFields").cloned()
        } else {
            None
        };
        let fields = kept.as_object_mut().unwrap();
        match from.get("status") {
            Some(status) => fields.insert("status".to_owned(), status.clone()),
            None => fields.remove("status"),
        };
        if let Some(owners) = owners {
            kept["metadata"]["managedFields"] = owners;
        }
        *object = kept;
    }
}

fn check(
    case: &str,
    at: usize,
    step: &Value,
    result: Result<Value, (u16, String, Vec<Value>)>,
) -> Option<String> {
    let status = step["status"].as_u64().unwrap();
    let object = match result {
        Err((code, _, _)) if u64::from(code) != status => {
            return Some(format!("answered {code}, not {status}"));
        }
        Err((_, message, causes)) => {
            let wanted = text(step, "message");
            // Where the server wraps the engine's words, ours are the end of it.
            if !wanted.ends_with(&message) && !wanted.is_empty() {
                return Some(format!("{message:?} is not {wanted:?}"));
            }
            return match step.get("causes") {
                Some(wanted) if *wanted != Value::from(causes.clone()) => Some(format!("causes {causes:?}")),
                _ => None,
            };
        }
        Ok(object) => object,
    };
    if status >= 300 {
        return Some(format!("{case}#{at} was taken, not answered with {status}"));
    }
    for (pointer, wanted) in step
        .get("pointers")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        let found = object.pointer(pointer);
        if !covers(found.unwrap_or(&Value::Null), wanted) {
            return Some(format!("{pointer} is {found:?}, not {wanted}"));
        }
    }
    if let Some(wanted) = step.get("managedFields") {
        let mut found = object["metadata"]["managedFields"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        found.sort_by_key(|entry| {
            (
                text(entry, "manager").to_owned(),
                text(entry, "operation").to_owned(),
            )
        });
        if *wanted != Value::Array(found.clone()) {
            return Some(format!("managedFields\n  {}\nnot {wanted}", Value::Array(found)));
        }
    }
    let wanted = step.get("expect")?;
    let mut bare = object;
    bare["metadata"]
        .as_object_mut()
        .unwrap()
        .retain(|name, _| !META.contains(&name.as_str()));
    if text(&bare, "kind") == "Widget" {
        bare.as_object_mut().unwrap().remove("status");
    }
    (bare != *wanted).then(|| format!("object\n  {bare}\nnot {wanted}"))
}

/// Equality, but for fields that the recording left out.
fn covers(found: &Value, wanted: &Value) -> bool {
    match (found, wanted) {
        (Value::Object(found), Value::Object(wanted)) => wanted
            .iter()
            .all(|(name, wanted)| covers(found.get(name).unwrap_or(&Value::Null), wanted)),
        (Value::Array(found), Value::Array(wanted)) => {
            found.len() == wanted.len()
                && found
                    .iter()
                    .zip(wanted)
                    .all(|(found, wanted)| covers(found, wanted))
        }
        (found, wanted) => found == wanted,
    }
}

#[test]
fn as_recorded() {
    let cases: Vec<Map> = shared_json::from_str(include_str!("../../tests/data/patches.json")).unwrap();
    let mut wrong = Vec::new();
    for case in &cases {
        let custom = case
            .get("schema")
            .map(|schema| Arc::new(Schema::from_openapi_v3(schema).unwrap()));
        let mut server = Server {
            custom,
            objects: BTreeMap::new(),
        };
        let name = case["case"].as_str().unwrap();
        for (at, step) in case["steps"].as_array().unwrap().iter().enumerate() {
            let result = server.write(step);
            wrong.extend(check(name, at, step, result).map(|wrong| format!("{name} step {at}: {wrong}")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
