//! Laws of the patch engines, over generated objects.

use super::apply::{FieldSet, Operation, apply, keep_times, track_update};
use super::merge;
use crate::types::{Schema, builtin};
use proptest::prelude::*;
use shared_json::{Map, Value, json};

/// Any JSON without nulls.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-c]{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-d]{1,2}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect::<Map>())),
        ]
    })
}

fn any_object() -> impl Strategy<Value = Value> {
    prop::collection::btree_map("[a-d]{1,2}", any_json(), 0..5)
        .prop_map(|map| Value::Object(map.into_iter().collect::<Map>()))
}

/// A PodTemplate configuration: labels, containers with ports and environment, tolerations.
fn any_template() -> impl Strategy<Value = Value> {
    let names = || prop::collection::btree_set("[a-c]", 0..3);
    let labels = prop::collection::btree_map("[a-c]", "[x-z]", 0..3);
    let container =
        ("[x-z]", names(), prop::collection::btree_set(1..4, 0..3)).prop_map(|(image, env, ports)| {
            let env: Vec<Value> = env
                .into_iter()
                .map(|name| json!({"name": name, "value": "v"}))
                .collect();
            let ports: Vec<Value> = ports
                .into_iter()
                .map(|port: i32| json!({"containerPort": port}))
                .collect();
            json!({"image": image, "env": env, "ports": ports})
        });
    let containers = prop::collection::btree_map("[a-c]", container, 1..4);
    (labels, containers, any::<bool>()).prop_map(|(labels, containers, tolerates)| {
        let containers: Vec<Value> = containers
            .into_iter()
            .map(|(name, mut container)| {
                container["name"] = name.into();
                container
            })
            .collect();
        let mut spec = json!({"containers": containers});
        if tolerates {
            spec["tolerations"] = json!([{"operator": "Exists"}]);
        }
        json!({
            "apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "p", "labels": labels}, "template": {"spec": spec},
        })
    })
}

fn settle(schema: &Schema, mut object: Value) -> Value {
    schema.prune(&mut object);
    schema.canonicalize(&mut object);
    schema.default(&mut object);
    object
}

fn operation<'a>(manager: &'a str, now: &'a str, reset_fields: &'a FieldSet) -> Operation<'a> {
    Operation {
        manager,
        api_version: "v1",
        subresource: "",
        now,
        reset_fields,
        versions: None,
    }
}

const EARLY: &str = "2026-01-01T00:00:00Z";
const LATE: &str = "2026-01-02T00:00:00Z";

proptest! {
    #[test]
    fn merge_patch_of_a_difference_is_the_other(old in any_object(), new in any_object()) {
        prop_assert_eq!(merge::apply(&old, &merge::diff(&old, &new)), Ok(new));
    }

    #[test]
    fn defaulting_and_pruning_happen_once(template in any_template()) {
        let schema = builtin(("", "v1", "PodTemplate")).unwrap();
        let once = settle(&schema, template);
        prop_assert_eq!(settle(&schema, once.clone()), once);
    }

    #[test]
    fn applying_twice_changes_nothing(template in any_template()) {
        let schema = builtin(("", "v1", "PodTemplate")).unwrap();
        let none = FieldSet::default();
        let once = settle(&schema, apply(&schema, None, &template, false, &operation("m", EARLY, &none)).unwrap());
        let mut twice = settle(&schema, apply(&schema, Some(&once), &template, false, &operation("m", LATE, &none)).unwrap());
        prop_assert!(keep_times(&once, &mut twice));
        prop_assert_eq!(twice, once);
    }

    #[test]
    fn the_last_of_two_configurations_by_one_manager_is_what_is_left(first in any_template(), second in any_template()) {
        let schema = builtin(("", "v1", "PodTemplate")).unwrap();
        let none = FieldSet::default();
        let op = operation("m", EARLY, &none);
        let fresh = settle(&schema, apply(&schema, None, &second, false, &op).unwrap());
        let live = settle(&schema, apply(&schema, None, &first, false, &op).unwrap());
        let after = settle(&schema, apply(&schema, Some(&live), &second, false, &op).unwrap());
        prop_assert_eq!(after["metadata"]["managedFields"].clone(), fresh["metadata"]["managedFields"].clone());
        prop_assert_eq!(after["metadata"]["labels"].clone(), fresh["metadata"]["labels"].clone());
        let images = |object: &Value| -> Vec<(String, String)> {
            let containers = object["template"]["spec"]["containers"].as_array().unwrap();
            let mut images: Vec<_> = containers.iter().map(|c| (c["name"].to_string(), c["image"].to_string())).collect();
            images.sort();
            images
        };
        prop_assert_eq!(images(&after), images(&fresh));
    }

    #[test]
    fn field_sets_survive_their_encoding(template in any_template(), other in any_template()) {
        let schema = builtin(("", "v1", "PodTemplate")).unwrap();
        let none = FieldSet::default();
        let live = settle(&schema, apply(&schema, None, &template, false, &operation("a", EARLY, &none)).unwrap());
        let both = settle(&schema, apply(&schema, Some(&live), &other, true, &operation("b", EARLY, &none)).unwrap());
        for entry in both["metadata"]["managedFields"].as_array().unwrap() {
            let set = FieldSet::decode(&entry["fieldsV1"]).unwrap();
            prop_assert_eq!(set.encode(), entry["fieldsV1"].clone());
            prop_assert_eq!(set.union(FieldSet::decode(&entry["fieldsV1"]).unwrap()).encode(), entry["fieldsV1"].clone());
        }
    }

    #[test]
    fn an_update_owns_what_it_changed_and_nobody_else_does(before in any_template(), after in any_template()) {
        let schema = builtin(("", "v1", "PodTemplate")).unwrap();
        let none = FieldSet::default();
        let mut old = settle(&schema, before);
        track_update(&schema, None, &mut old, &operation("one", EARLY, &none));
        let mut new = settle(&schema, after);
        track_update(&schema, Some(&old), &mut new, &operation("two", LATE, &none));
        let entries = new["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
        let sets: Vec<FieldSet> = entries.iter().map(|entry| FieldSet::decode(&entry["fieldsV1"]).unwrap()).collect();
        if let [one, two] = sets.as_slice() {
            prop_assert!(one.intersection(two).is_empty());
        }
        // Writing the same again changes nobody's fields.
        let mut same = new.clone();
        track_update(&schema, Some(&new), &mut same, &operation("three", LATE, &none));
        prop_assert_eq!(same, new);
    }
}
