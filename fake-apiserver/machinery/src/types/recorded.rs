//! Answers of a 1.36.2 server: created objects with its defaults, and its complaints about custom resources and their schemas
//! (`tests/data/defaults.json`, `tests/data/custom-resources.json`).
//!
//! The rows of defaults leave out those that depend on more than the object: service accounts, cluster addresses, a job's
//! selector.

use super::{Schema, builtin};
use pod_rules::field_error::FieldError;
use shared_json::Value;

fn rows(text: &str) -> Vec<Value> {
    shared_json::from_str(text).unwrap()
}

#[test]
fn created_objects() {
    let mut wrong = Vec::new();
    for row in rows(include_str!("../../tests/data/defaults.json")) {
        let mut object = row["body"].clone();
        let api_version = object["apiVersion"].as_str().unwrap().to_owned();
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", &api_version));
        let schema = builtin((group, version, object["kind"].as_str().unwrap())).unwrap();
        schema.check_types(&object).unwrap();
        schema.prune(&mut object);
        schema.canonicalize(&mut object);
        schema.default(&mut object);
        let mut again = object.clone();
        schema.canonicalize(&mut again);
        schema.default(&mut again);
        if again != object {
            wrong.push(format!(
                "{}: changes when done again\n  {object}\n  {again}",
                row["case"]
            ));
        }
        if object["kind"] == "Pod" {
            object.as_object_mut().unwrap().remove("status");
        }
        if object["kind"] == "Job" {
            object["metadata"].as_object_mut().unwrap().remove("labels");
            object["spec"]["template"]["metadata"]
                .as_object_mut()
                .unwrap()
                .remove("labels");
        }
        if object != row["expect"] {
            wrong.push(format!("{}:\n  {object}\nnot\n  {}", row["case"], row["expect"]));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn causes(errors: &[FieldError]) -> Vec<Value> {
    let mut causes: Vec<Value> = errors.iter().map(FieldError::to_cause).collect();
    causes.sort_by_key(Value::to_string);
    causes
}

#[test]
fn custom_resources_and_their_schemas() {
    let mut wrong = Vec::new();
    for row in rows(include_str!("../../tests/data/custom-resources.json")) {
        let (errors, object) = match (Schema::from_openapi_v3(&row["schema"]), row.get("body")) {
            (Err(errors), None) => (
                errors
                    .into_iter()
                    .map(|error| error.under("spec.validation.openAPIV3Schema"))
                    .collect(),
                Value::Null,
            ),
            (Err(errors), Some(_)) => {
                wrong.push(format!("{}: schema refused: {errors:?}", row["case"]));
                continue;
            }
            (Ok(_), None) => (vec![], Value::Null),
            (Ok(schema), Some(body)) => {
                let mut object = body.clone();
                schema.prune(&mut object);
                schema.canonicalize(&mut object);
                schema.default(&mut object);
                (schema.validate(&object), object)
            }
        };
        let mut wanted = row
            .get("causes")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        wanted.sort_by_key(Value::to_string);
        if causes(&errors) != wanted.to_vec() {
            wrong.push(format!(
                "{}: {:?}\n  not {wanted:?}",
                row["case"],
                causes(&errors)
            ));
        }
        for (name, wanted) in row.get("expect").and_then(Value::as_object).into_iter().flatten() {
            if object.get(name) != Some(wanted) {
                wrong.push(format!(
                    "{}: {name} is {:?}, not {wanted}",
                    row["case"],
                    object.get(name)
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
