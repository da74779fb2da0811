//! A value does as `serde_json`'s does, and a write through a copy stays in that copy.

use std::collections::BTreeMap;

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

use crate::{Array, Map, Name, Value, from_slice, from_str, from_value, json, to_string, to_value};

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        // Fractions that have few digits: reading the others may be off by one in the last place.
        any::<i32>().prop_map(|eighths| Value::from(f64::from(eighths) / 8.0)),
        "[a-z/~\"\\\\\n\u{e9}]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 48, 6, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(Value::from),
            btree_map("[a-d/~]{0,3}", inner, 0..20).prop_map(|map| map.into_iter().collect()),
        ]
    })
}

/// A change of a field of an object.
#[derive(Debug, Clone)]
enum Step {
    Insert(String, i64),
    Remove(String),
    Entry(String, i64),
    Change(String, i64),
    Retain(i64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let name = || "[a-p]{1,2}";
    let step = prop_oneof![
        4 => (name(), 0..9_i64).prop_map(|(name, value)| Step::Insert(name, value)),
        2 => name().prop_map(Step::Remove),
        2 => (name(), 0..9_i64).prop_map(|(name, value)| Step::Entry(name, value)),
        2 => (name(), 0..9_i64).prop_map(|(name, value)| Step::Change(name, value)),
        1 => (0..9_i64).prop_map(Step::Retain),
    ];
    vec(step, 0..60)
}

proptest! {
    #[test]
    fn text_is_as_serde_json_has_it(value in values()) {
        let theirs = serde_json::Value::from(value.clone());
        let text = theirs.to_string();
        prop_assert_eq!(value.to_string(), &*text);
        prop_assert_eq!(format!("{value:#}"), format!("{theirs:#}"));
        prop_assert_eq!(&from_str::<Value>(&text)?, &value);
        prop_assert_eq!(&from_slice::<Value>(text.as_bytes())?, &value);
        prop_assert_eq!(&Value::from(theirs.clone()), &value);
        prop_assert_eq!(&to_value(&theirs)?, &value);
        prop_assert_eq!(&to_value(&value)?, &value);
        prop_assert_eq!(from_value::<serde_json::Value>(value)?, theirs);
    }

    #[test]
    fn pointers_point_to_the_same(value in values(), pointer in "(/[a-d0-2~/]{0,3}){0,3}") {
        let theirs = serde_json::Value::from(value.clone());
        let there = value.pointer(&pointer).cloned().map(serde_json::Value::from);
        prop_assert_eq!(there.as_ref(), theirs.pointer(&pointer));
        let mut changed = value.clone();
        if let Some(part) = changed.pointer_mut(&pointer) {
            *part = json!("changed");
            prop_assert_eq!(changed.pointer(&pointer), Some(&json!("changed")));
        }
        prop_assert_eq!(serde_json::Value::from(value), theirs, "what is written through a copy stays there");
    }

    #[test]
    fn objects_are_sorted_maps(steps in steps()) {
        let (mut map, mut model) = (Map::new(), BTreeMap::<String, Value>::new());
        for step in steps {
            let (before, copy) = (map.to_string_for_test(), map.clone());
            match step {
                Step::Insert(name, value) => {
                    prop_assert_eq!(map.insert(name.clone(), value.into()), model.insert(name, value.into()));
                }
                Step::Remove(name) => prop_assert_eq!(map.remove(&name), model.remove(&name)),
                Step::Entry(name, value) => {
                    let slot = map.entry(&*name).and_modify(|value| *value = json!(0)).or_insert(value.into());
                    let expected = model.entry(name).and_modify(|value| *value = json!(0)).or_insert(value.into());
                    prop_assert_eq!(slot, expected);
                }
                Step::Change(name, value) => {
                    for slot in map.get_mut(&name).into_iter().chain(model.get_mut(&name)) {
                        *slot = value.into();
                    }
                }
                Step::Retain(least) => {
                    map.retain(|_, value| value.as_i64() >= Some(least));
                    model.retain(|_, value| value.as_i64() >= Some(least));
                }
            }
            prop_assert!(map.iter().map(|(name, value)| (name.as_str(), value)).eq(model.iter().map(|(name, value)| (name.as_str(), value))));
            prop_assert!(map.keys().all(|name| map.get(name) == model.get(name.as_str())));
            prop_assert_eq!(copy.to_string_for_test(), before);
        }
    }
}

impl Map {
    fn to_string_for_test(&self) -> String {
        Value::Object(self.clone()).to_string()
    }
}

#[test]
fn a_copy_is_the_same_memory_until_it_is_written() {
    let object = json!({"metadata": {"name": "a"}, "spec": {"replicas": 1}});
    let mut copy = object.clone();
    assert!(copy.is_same(&object));
    copy["metadata"]["name"] = json!("b");
    assert!(!copy.is_same(&object) && copy["spec"].is_same(&object["spec"]));
    assert_eq!(object["metadata"]["name"], "a");
    let within = json!({"whole": object, "part": object["spec"]});
    assert!(within["whole"].is_same(&object) && within["part"].is_same(&object["spec"]));
}

#[test]
fn arrays_and_long_texts_are_the_same_memory_until_they_are_written() {
    let long = "a text that does not fit into its place";
    let value = json!([{"name": "a"}, long, ["x"]]);
    let mut copy = value.clone();
    let (Some(one), Some(other)) = (value.as_array(), copy.as_array()) else {
        panic!("arrays");
    };
    assert!(one.is_same(other));
    assert_eq!(
        one[1].as_str().map(str::as_ptr),
        other[1].as_str().map(str::as_ptr)
    );
    let items = copy.as_array_mut().expect("an array");
    items[2] = json!(["y"]);
    items.push(json!(1));
    // What was not written is still shared.
    assert!(copy[0].is_same(&value[0]));
    assert_eq!(copy, json!([{"name": "a"}, long, ["y"], 1]));
    assert_eq!(value, json!([{"name": "a"}, long, ["x"]]));
    assert!(Array::new().is_same(&Array::with_capacity(3)) && !one.is_same(&Array::new()));
}

#[test]
fn arrays_are_vectors() {
    let mut array: Array = (0..5).map(Value::from).collect();
    let before = array.clone();
    array.retain(|item| item != 1);
    array.insert(1, json!("x"));
    assert_eq!((array.pop(), array.remove(0)), (Some(json!(4)), json!(0)));
    array.extend([json!(7), json!(6)]);
    array.sort_by_key(Value::to_string);
    assert_eq!(Value::from(array.clone()), json!(["x", 2, 3, 6, 7]));
    array.truncate(2);
    for item in &mut array {
        *item = Value::Null;
    }
    assert_eq!(Vec::from(array), [Value::Null, Value::Null]);
    assert_eq!(Value::from(before), json!([0, 1, 2, 3, 4]));
}

#[test]
fn names_are_texts() {
    // Short and long, kept and not, with the same first, middle and last letters and the same length.
    let uid = "k:{\"uid\":\"0b8f6f1e-7f4f-4f1c-9d2e-6a1f3f4a5b6c\"}";
    let (long, longer) = ("a".repeat(200), "a".repeat(300));
    let texts = [
        "", "a", "ab", "metadata", "metbdata", "metedata", "é", "fieldsV1", "f:spec", "a1b2", "12", uid,
        &long, &longer,
    ];
    for one in texts {
        let name = Name::from(one);
        assert!(name == one && *one == name && &*name == one);
        assert_eq!(
            (name.to_string(), format!("{name:?}")),
            (one.to_owned(), format!("{one:?}"))
        );
        assert_eq!(Value::from(&name), Value::from(one));
        assert_eq!(
            from_str::<Name>(&to_string(&name).expect("text")).expect("a name"),
            name
        );
        for other in texts {
            let others = Name::from(other.to_owned());
            assert_eq!(
                (name == others, name.cmp(&others)),
                (one == other, one.cmp(other)),
                "{one} {other}"
            );
        }
    }
    let object: Map = texts.iter().map(|text| (*text, json!(text))).collect();
    assert!(object.keys().is_sorted() && object.len() == texts.len());
    assert!(texts.iter().all(|text| object[text] == **text));
    let many: Map = (0..20_000)
        .map(|number| (letters(number), json!(number)))
        .collect();
    assert!(
        (0..20_000).all(|number| many[&letters(number)] == number),
        "more than are kept"
    );
}

/// A number as text that is kept, as long as there is room.
fn letters(number: u32) -> String {
    number
        .to_string()
        .bytes()
        .map(|digit| char::from(digit - b'0' + b'a'))
        .collect()
}

#[test]
fn literals() {
    #[derive(serde::Serialize)]
    struct Named {
        name: &'static str,
        none: Option<u8>,
    }
    let (name, number, flags) = ("n".to_owned(), 7_u8, [true, false]);
    let value = json!({
        "text": "t", name.as_str(): {"a": [1, 2.5, null, {}, []], "b": -1},
        "number": number, "flags": flags, "struct": Named { name: "x", none: None }, "sum": 1 + 2, ("in ".to_owned() + "brackets"): null,
        "some": Some(&name), "list": vec![json!(1)], "bool": flags[0],
    });
    let expected = r#"{"bool":true,"flags":[true,false],"in brackets":null,"list":[1],"n":{"a":[1,2.5,null,{},[]],"b":-1},"number":7,"some":"n","struct":{"name":"x","none":null},"sum":3,"text":"t"}"#;
    assert_eq!(value.to_string(), expected);
}

#[test]
fn merge_patches() {
    // The cases of RFC 7386, appendix A.
    let rows = [
        (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
        (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
        (json!({"a": "b"}), json!({"a": null}), json!({})),
        (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
        (
            json!({"a": {"b": "c"}}),
            json!({"a": {"b": "d", "c": null}}),
            json!({"a": {"b": "d"}}),
        ),
        (json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]})),
        (json!(["a", "b"]), json!(["c", "d"]), json!(["c", "d"])),
        (json!({"a": "b"}), json!(null), json!(null)),
        (json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1})),
        (json!([1, 2]), json!({"a": "b", "c": null}), json!({"a": "b"})),
        (
            json!({}),
            json!({"a": {"bb": {"ccc": null}}}),
            json!({"a": {"bb": {}}}),
        ),
    ];
    for (mut value, patch, merged) in rows {
        value.merge(&patch);
        assert_eq!(value, merged, "{patch}");
    }
}
