//! Cases that the recordings do not show: the cap on managers, starting the record anew, first applies, subresources.

use super::*;
use crate::types::builtin;
use rstest::rstest;
use shared_json::{Array, Value, json};

const NOW: &str = "2026-01-01T00:00:00Z";

fn config_map(data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data})
}

fn write(old: Option<&Value>, mut new: Value, manager: &str, now: &str) -> Value {
    let schema = builtin(("", "v1", "ConfigMap")).unwrap();
    let none = FieldSet::default();
    let operation = Operation {
        manager,
        api_version: "v1",
        subresource: "",
        now,
        reset_fields: &none,
        versions: None,
    };
    track_update(&schema, old, &mut new, &operation);
    new
}

fn applied(live: Option<&Value>, applied: Value, manager: &str, force: bool) -> Result<Value, ApplyError> {
    let schema = builtin(("", "v1", "ConfigMap")).unwrap();
    let none = FieldSet::default();
    apply(
        &schema,
        live,
        &applied,
        force,
        &Operation {
            manager,
            api_version: "v1",
            subresource: "",
            now: NOW,
            reset_fields: &none,
            versions: None,
        },
    )
}

fn managers(object: &Value) -> Vec<(&str, &str)> {
    let entries = object["metadata"]["managedFields"]
        .as_array()
        .map_or(&[][..], Array::as_slice);
    entries
        .iter()
        .map(|entry| {
            (
                entry["manager"].as_str().unwrap(),
                entry["operation"].as_str().unwrap(),
            )
        })
        .collect()
}

#[test]
fn the_oldest_updates_beyond_ten_become_one() {
    let mut object = write(None, config_map(json!({"k": "0"})), "m00", NOW);
    object["metadata"]["uid"] = "u".into();
    for i in 1..=11 {
        let mut next = object.clone();
        next["data"][format!("k{i}")] = "v".into();
        object = write(
            Some(&object),
            next,
            &format!("m{i:02}"),
            &format!("2026-01-01T00:00:{i:02}Z"),
        );
    }
    let names = managers(&object);
    assert_eq!(names.len(), UPDATE_MANAGERS_MAX);
    assert_eq!(names[0], ("ancient-changes", "Update"));
    assert_eq!(names[1], ("m03", "Update"));
    let ancient = &object["metadata"]["managedFields"][0];
    assert_eq!(
        ancient["fieldsV1"],
        json!({"f:data": {".": {}, "f:k": {}, "f:k1": {}, "f:k2": {}}})
    );
    assert_eq!(ancient["time"], "2026-01-01T00:00:02Z");
}

#[rstest]
#[case::one_empty_entry(json!([{}]))]
#[case::no_entries(json!([]))]
fn starting_anew(#[case] entries: Value) {
    let mut old = write(None, config_map(json!({"k": "v"})), "one", NOW);
    old["metadata"]["uid"] = "u".into();
    let mut new = old.clone();
    new["metadata"]["managedFields"] = entries;
    assert_eq!(managers(&write(Some(&old), new, "two", NOW)), []);
}

#[test]
fn an_update_of_an_object_without_a_record_starts_none() {
    let old = config_map(json!({"k": "v"}));
    assert_eq!(
        managers(&write(Some(&old), config_map(json!({"k": "w"})), "two", NOW)),
        []
    );
}

#[test]
fn the_first_apply_records_what_was_there() {
    let live = config_map(json!({"k": "v", "l": "w"}));
    let object = applied(Some(&live), config_map(json!({"k": "v"})), "me", false).unwrap();
    assert_eq!(
        managers(&object),
        [("me", "Apply"), ("before-first-apply", "Update")]
    );
    let conflict = applied(Some(&live), config_map(json!({"k": "x"})), "me", false).unwrap_err();
    assert_eq!(
        conflict.to_string(),
        "Apply failed with 1 conflict: conflict with \"before-first-apply\" using v1: .data.k"
    );
    let taken = applied(Some(&live), config_map(json!({"k": "x"})), "me", true).unwrap();
    assert_eq!(taken["data"], json!({"k": "x", "l": "w"}));
}

#[rstest]
#[case(json!({"apiVersion": "v2", "kind": "ConfigMap"}), 400,
    "Incorrect version specified in apply patch. Specified patch version: v2, expected: v1")]
#[case(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"managedFields": []}}), 400, "metadata.managedFields must be nil")]
#[case(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "n"}, "nope": 1}), 500,
    "failed to create typed patch object (n/a; /v1, Kind=ConfigMap): .nope: field not declared in schema")]
#[case(json!({"apiVersion": "v1", "kind": "ConfigMap", "data": "x", "immutable": "y"}), 500,
    "failed to create typed patch object (/; /v1, Kind=ConfigMap): errors:\n  .data: expected map, got &{x}\n  .immutable: expected boolean, got &{y}")]
fn refuses(#[case] configuration: Value, #[case] code: u16, #[case] message: &str) {
    let error = applied(None, configuration, "me", false).unwrap_err();
    assert_eq!((error.code(), error.to_string().as_str()), (code, message));
}

#[test]
fn a_subresource_neither_takes_nor_sets_the_record_of_the_request() {
    let schema = builtin(("apps", "v1", "Deployment")).unwrap();
    let main = FieldSet::of(&[&["status"]]);
    let status = FieldSet::of(&[&["spec"], &["metadata", "labels"]]);
    let operation = |subresource, reset_fields| Operation {
        manager: "m",
        api_version: "apps/v1",
        subresource,
        now: NOW,
        reset_fields,
        versions: None,
    };
    let mut old = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {"replicas": 1, "selector": null}, "status": {}});
    track_update(&schema, None, &mut old, &operation("", &main));
    let mut new = old.clone();
    new["status"] = json!({"replicas": 1});
    new["metadata"]["managedFields"] = json!([{}]);
    track_update(&schema, Some(&old), &mut new, &operation("status", &status));
    let entries = new["metadata"]["managedFields"].as_array().unwrap();
    let fields: Vec<&Value> = entries.iter().map(|entry| &entry["fieldsV1"]).collect();
    assert_eq!(
        fields,
        [
            &json!({"f:spec": {"f:replicas": {}}}),
            &json!({"f:status": {"f:replicas": {}}})
        ]
    );
    assert_eq!(entries[1]["subresource"], "status");
}

#[test]
fn a_part_that_became_one_is_owned_as_one() {
    let schema = |map_type: &str| {
        let labels = json!({"type": "object", "additionalProperties": {"type": "string"}, "x-kubernetes-map-type": map_type});
        let spec = json!({"type": "object", "properties": {"m": labels}});
        crate::types::Schema::from_openapi_v3(&json!({"type": "object", "properties": {"spec": spec}}))
            .unwrap()
    };
    let none = FieldSet::default();
    let operation = |manager| Operation {
        manager,
        api_version: "x/v1",
        subresource: "",
        now: NOW,
        reset_fields: &none,
        versions: None,
    };
    let body =
        |m: Value| json!({"apiVersion": "x/v1", "kind": "X", "metadata": {"name": "a"}, "spec": {"m": m}});
    let live = apply(
        &schema("granular"),
        None,
        &body(json!({"a": "1"})),
        false,
        &operation("one"),
    )
    .unwrap();
    let fields = |object: &Value, at: usize| object["metadata"]["managedFields"][at]["fieldsV1"].clone();
    assert_eq!(fields(&live, 0), json!({"f:spec": {"f:m": {"f:a": {}}}}));
    let error = apply(
        &schema("atomic"),
        Some(&live),
        &body(json!({"b": "2"})),
        false,
        &operation("two"),
    )
    .unwrap_err();
    assert_eq!(
        error.to_string(),
        "Apply failed with 1 conflict: conflict with \"one\": .spec.m"
    );
    let taken = apply(
        &schema("atomic"),
        Some(&live),
        &body(json!({"b": "2"})),
        true,
        &operation("two"),
    )
    .unwrap();
    assert_eq!(taken["spec"], json!({"m": {"b": "2"}}));
    assert_eq!(fields(&taken, 0), json!({"f:spec": {"f:m": {}}}));
}

/// Versions of a kind that call one field by two names.
#[derive(Debug)]
struct Renamed(std::sync::Arc<crate::types::Schema>);

impl Versions for Renamed {
    fn convert(
        &self,
        object: &Value,
        version: &str,
    ) -> Result<(Value, std::sync::Arc<crate::types::Schema>), Unconvertible> {
        let (from, to) = match version {
            "x/v1" => ("b", "a"),
            "x/v2" => ("a", "b"),
            "x/gone" => return Err(Unconvertible::Unknown),
            _ => return Err(Unconvertible::Refused("no such version".to_owned())),
        };
        let mut object = object.clone();
        object["apiVersion"] = Value::from(version);
        if let Some(spec) = object["spec"].as_object_mut()
            && let Some(value) = spec.remove(from)
        {
            spec.insert(to.to_owned(), value);
        }
        Ok((object, std::sync::Arc::clone(&self.0)))
    }
}

#[rstest]
#[case("x/v1", json!({"a": "1"}), "y", Err(409))]
#[case("x/v1", json!({"a": "1"}), "x", Ok(json!([["m1", {"f:spec": {"f:a": {}}}], ["m2", {"f:spec": {"f:b": {}}}]])))]
#[case("x/gone", json!({"b": "1"}), "y", Ok(json!([["m2", {"f:spec": {"f:b": {}}}]])))]
#[case("x/odd", json!({"b": "1"}), "y", Err(500))]
fn owners_see_their_own_version(
    #[case] version: &str,
    #[case] owned: Value,
    #[case] wanted: &str,
    #[case] expected: Result<Value, u16>,
) {
    let text = json!({"type": "string"});
    let spec = json!({"type": "object", "properties": {"a": text, "b": text}});
    let schema =
        crate::types::Schema::from_openapi_v3(&json!({"type": "object", "properties": {"spec": spec}}))
            .unwrap();
    let versions = Renamed(std::sync::Arc::new(schema.clone()));
    let none = FieldSet::default();
    let fields: shared_json::Map = owned
        .as_object()
        .unwrap()
        .keys()
        .map(|name| (format!("f:{name}"), json!({})))
        .collect();
    let live = json!({"apiVersion": "x/v2", "kind": "X", "metadata": {"name": "o", "managedFields": [{
        "manager": "m1", "operation": "Apply", "apiVersion": version, "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": fields},
    }]}, "spec": {"b": "x"}});
    let wanted = json!({"apiVersion": "x/v2", "kind": "X", "metadata": {"name": "o"}, "spec": {"b": wanted}});
    let operation = Operation {
        manager: "m2",
        api_version: "x/v2",
        subresource: "",
        now: NOW,
        reset_fields: &none,
        versions: Some(&versions),
    };
    let got = apply(&schema, Some(&live), &wanted, false, &operation);
    let owners = got.map_err(|error| error.code()).map(|object| {
        let entries = object["metadata"]["managedFields"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        entries
            .iter()
            .map(|entry| json!([entry["manager"], entry["fieldsV1"]]))
            .collect::<Value>()
    });
    assert_eq!(owners, expected);
}
