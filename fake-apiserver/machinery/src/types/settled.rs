//! Fast path: recognises values that are already pruned, canonical and of the right type.

use super::canonical::{is_kept_as_json, is_left_empty, is_written, tells_empty_from_none, unset};
use super::decode::{Either, item_of};
use super::schema::{Kind, Object, Schema};
use super::{quantity, time};
use shared_json::{Map, Value};

impl Schema {
    /// Whether [`Schema::prune`] drops nothing of a built-in object, [`Schema::check_types`] takes it, and [`Schema::canonicalize`] leaves
    /// it as it is. Parts that share memory with `old`, of which that is known, are skipped. False says nothing.
    ///
    /// Values from programs nearly always have this form, and one pass shows it without a copy.
    pub fn is_settled(&self, value: &Value, old: Option<&Value>) -> bool {
        self.name.is_some() && settled(self, value, old)
    }
}

/// The same of any part.
pub(super) fn settled(schema: &Schema, value: &Value, old: Option<&Value>) -> bool {
    if old.is_some_and(|old| old.is_same(value)) {
        return true;
    }
    match (&schema.kind, value) {
        (Kind::Any, _) if Either::of(schema).is_some() => false,
        (Kind::Any | Kind::String, Value::String(_)) | (Kind::Boolean, Value::Bool(_)) => true,
        (Kind::Any, value) => !value.is_null(),
        (Kind::Object(object), Value::Object(map)) if object.fields.is_empty() => {
            is_map_settled(object, map, old.and_then(Value::as_object))
        }
        (Kind::Object(object), Value::Object(map)) => {
            is_struct_settled(schema, object, map, old.and_then(Value::as_object))
        }
        (Kind::Array(array), Value::Array(items)) => items
            .iter()
            .enumerate()
            .all(|(index, item)| settled(&array.items, item, item_of(old, index, item))),
        (Kind::Integer | Kind::IntOrString, Value::Number(number)) => {
            number.is_i64() && schema.check_types(value).is_ok()
        }
        (Kind::IntOrString, Value::String(_)) => true,
        (Kind::Quantity, Value::String(text)) => quantity::canonical(value).is_some_and(|form| form == *text),
        (Kind::Time, Value::String(text)) => time::is_in_seconds(text) && schema.check_types(value).is_ok(),
        (Kind::MicroTime, Value::String(text)) => {
            time::microseconds(text).is_some_and(|form| form == *text) && schema.check_types(value).is_ok()
        }
        (Kind::Number, Value::Number(_)) | (Kind::Bytes, Value::String(_)) => {
            schema.check_types(value).is_ok()
        }
        _ => false,
    }
}

fn is_map_settled(object: &Object, map: &Map, old: Option<&Map>) -> bool {
    let Some(values) = &object.additional else {
        return map.is_empty() || object.preserve_unknown;
    };
    map.iter().enumerate().all(|(index, (name, value))| {
        let old = old.and_then(|old| old.get_named(name, index));
        settled(values, value, old)
    })
}

fn is_struct_settled(schema: &Schema, object: &Object, map: &Map, old: Option<&Map>) -> bool {
    if object.embedded_resource {
        return false;
    }
    let unset = unset(object);
    let mut always = 0;
    let fields = map.iter().enumerate().all(|(index, (name, value))| {
        let zero = unset.iter().find(|(always, _)| always == name);
        always += usize::from(zero.is_some());
        if value.is_null() {
            return zero.is_some_and(|(_, zero)| zero.is_null());
        }
        let old = old.and_then(|old| old.get_named(name, index));
        object.fields.named(name).is_some_and(|field| {
            settled(&field.schema, value, old)
                && (is_kept_as_json(schema) || !is_left_empty(field, value))
                && (is_written(field, value) || tells_empty_from_none(schema, name, value))
        })
    });
    fields && always == unset.len()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use client_kit::{Random, Seed};
    use shared_json::json;

    use super::*;
    use crate::types::builtin;

    /// All objects in the answers of a real server.
    fn recorded(directory: &Path, found: &mut Vec<Value>) {
        fn collect(value: &Value, found: &mut Vec<Value>) {
            let said = |field: &str| value.get(field).is_some_and(Value::is_string);
            if said("kind") && said("apiVersion") {
                found.push(value.clone());
            }
            let below = value.as_object().into_iter().flat_map(Map::values);
            for value in below.chain(value.as_array().into_iter().flatten()) {
                collect(value, found);
            }
        }
        let mut entries: Vec<_> = std::fs::read_dir(directory)
            .expect("recordings")
            .map(|entry| entry.expect("an entry").path())
            .collect();
        entries.sort();
        for path in entries {
            if path.is_dir() {
                recorded(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "json") {
                let text = std::fs::read_to_string(&path).expect("text");
                let case: Value = shared_json::from_str(&text).expect("JSON");
                collect(&case["answers"], found);
            }
        }
    }

    /// The object with a time wherever the recording says that there was one.
    fn with_times(value: &mut Value, field: &str) {
        match value {
            Value::Object(map) => {
                map.retain(|_, value| *value != "<absent>");
                let fields = map.iter_mut();
                fields.for_each(|(name, value)| with_times(value, name));
            }
            Value::Array(items) => items.iter_mut().for_each(|item| with_times(item, field)),
            Value::String(text) if text == "<time>" => {
                let micro = matches!(
                    field,
                    "eventTime" | "renewTime" | "acquireTime" | "lastObservedTime"
                );
                *text = format!("2026-01-02T03:04:05{}Z", if micro { ".000000" } else { "" }).into();
            }
            _ => {}
        }
    }

    /// Puts something else in some place.
    fn mutate(value: &mut Value, random: &mut Random) {
        let junk = [
            json!(null),
            json!(""),
            json!("x"),
            json!(0),
            json!(7),
            json!(1.0),
            json!(2.5),
            json!(5_000_000_000_i64),
            json!(true),
            json!(false),
            json!([]),
            json!({}),
            json!([null]),
            json!({"x": "y"}),
            json!("100m"),
            json!("0.1"),
            json!("2026-01-02T03:04:05Z"),
            json!("2026-01-02T03:04:05.5+01:00"),
            json!("2026-13-02T03:04:05Z"),
            json!("2026-01-02T03:04:05.000000Z"),
            json!("aGk="),
        ];
        let mut pick = |count: usize| random.below(u64::try_from(count).unwrap_or(1)) as usize;
        let ends = pick(4) == 0;
        match value {
            Value::Object(map) if !map.is_empty() && !ends => {
                let names: Vec<String> = map.keys().map(ToString::to_string).collect();
                let name = &names[pick(names.len())];
                match pick(12) {
                    0 => drop(map.remove(name.as_str())),
                    1 => drop(map.insert("unknown", json!(1))),
                    _ => map
                        .get_mut(name.as_str())
                        .into_iter()
                        .for_each(|value| mutate(value, random)),
                }
            }
            Value::Array(items) if !items.is_empty() && !ends => {
                let index = pick(items.len());
                mutate(&mut items[index], random);
            }
            value => *value = junk[pick(junk.len())].clone(),
        }
    }

    #[test]
    fn what_is_settled_stays_as_it_is() {
        let mut objects = Vec::new();
        recorded(Path::new("../../fixtures/apidiff/cases/apply"), &mut objects);
        recorded(Path::new("../../fixtures/apidiff/cases/defaulting"), &mut objects);
        recorded(
            Path::new("../../fixtures/apidiff/cases/controllers"),
            &mut objects,
        );
        objects.iter_mut().for_each(|object| with_times(object, ""));
        let mut random = Seed(7).random();
        let (mut settled, mut looked, mut untouched) = (0, 0, 0);
        for object in &objects {
            let text = |field: &str| object[field].as_str().unwrap_or_default();
            let (group, version) = text("apiVersion")
                .split_once('/')
                .unwrap_or(("", text("apiVersion")));
            let Some(schema) = builtin((group, version, text("kind"))) else {
                continue;
            };
            let mut check = |value: &Value| {
                looked += 1;
                let mut shaped = value.clone();
                let unknown = schema.prune(&mut shaped);
                let fits = schema.check_types(&shaped);
                schema.canonicalize(&mut shaped);
                if fits.is_ok() {
                    let mut defaulted = shaped.clone();
                    schema.default(&mut defaulted);
                    let mut again = defaulted.clone();
                    schema.canonicalize(&mut again);
                    assert_eq!(again, defaulted, "defaults have their form");
                }
                let stays = unknown.is_empty() && fits.is_ok() && shaped == *value;
                untouched += usize::from(stays && !value.is_null());
                if schema.is_settled(value, None) {
                    settled += 1;
                    assert!(stays, "{unknown:?} {fits:?} {value} {shaped}");
                }
                shaped
            };
            let mut shaped = check(object);
            for _ in 0..6 {
                mutate(&mut shaped, &mut random);
                let mutated = shaped.clone();
                shaped = check(&mutated);
            }
        }
        assert_eq!(settled, untouched, "none is missed");
        assert!(looked > 5000 && settled > 900, "{settled} of {looked}");
    }
}
