//! The form of a built-in object after Go has decoded and encoded it.

use super::decode::item_of;
use super::quantity;
use super::schema::{Field, Kind, Object, Schema, Written};
use super::settled::settled;
use super::time;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use shared_json::{Map, Name, Value};

impl Schema {
    /// Rewrites a value of a built-in type as Go's structs would write it: unknown fields and nulls go, empty optional
    /// fields go, structs that Go always writes appear (`resources: {}`, `status: {loadBalancer: {}}`), fields without
    /// `omitempty` appear with their zero value, amounts and times take their one form.
    ///
    /// Of a custom resource only `metadata` is treated so, and numbers, wherever they stand: whole ones lose their fraction
    /// (`1.0` becomes `1`).
    ///
    /// Expects values that [`Schema::check_types`] accepted; a value of a wrong type is left as it is. Doing it twice changes
    /// nothing.
    pub fn canonicalize(&self, value: &mut Value) {
        self.canonicalize_changed(value, None);
    }

    /// The same, except for parts that share memory with `old`, which has that form.
    pub fn canonicalize_changed(&self, value: &mut Value, old: Option<&Value>) {
        // A record of owners that is an empty list forgets them all.
        let metadata = value.get("metadata");
        let forgotten = metadata.map_or_else(Vec::new, |metadata| empty_fields(metadata, &["managedFields"]));
        match self.name {
            Some(_) => canonicalize(self, value, old),
            None => {
                whole_numbers(value, old);
                if let (Some(field), Some(metadata)) = (self.field("metadata"), value.get_mut("metadata"))
                    && field.schema.name.is_some()
                {
                    canonicalize(&field.schema, metadata, None);
                }
            }
        }
        if !forgotten.is_empty()
            && let Some(metadata) = value.get_mut("metadata")
        {
            put_back(forgotten, metadata);
        }
    }

    /// An object of a built-in type with nothing set, as Go writes it: a new object is compared with it to see
    /// which fields its creator set.
    pub fn empty_object(&self) -> Value {
        let mut value = Value::Object(Map::new());
        if self.name.is_some() {
            canonicalize(self, &mut value, None);
        }
        value
    }
}

/// Go writes floats without a fraction as whole numbers.
fn whole_numbers(value: &mut Value, old: Option<&Value>) {
    if old.is_some_and(|old| old.is_same(value)) {
        return;
    }
    match value {
        Value::Number(number) => {
            let is_float = number.is_f64() || number.is_u64() && !number.is_i64();
            let float = number.as_f64().filter(|_| is_float).unwrap_or(0.5);
            // Beyond 2^53 a float stands for many whole numbers; Go prints the shortest, filled up with zeros.
            if float >= 9_007_199_254_740_992.0
                && let Ok(shortest) = float.to_string().parse::<u64>()
            {
                *value = Value::from(shortest);
            } else if float.fract() == 0.0 && float.abs() < 9_007_199_254_740_992.0 {
                *value = Value::from(float as i64);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                let old = item_of(old, index, item);
                whole_numbers(item, old);
            }
        }
        Value::Object(map) => {
            let old = old.and_then(Value::as_object);
            for (index, (name, value)) in map.iter_mut().enumerate() {
                whole_numbers(value, old.and_then(|old| old.get_named(name, index)));
            }
        }
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

fn canonicalize(schema: &Schema, value: &mut Value, old: Option<&Value>) {
    if old.is_some_and(|old| old.is_same(value)) {
        return;
    }
    // What has the form already stays where it is, and is not copied if others have it, too.
    if (value.is_object() || value.is_array()) && settled(schema, value, old) {
        return;
    }
    match &schema.kind {
        Kind::Object(object) if object.fields.is_empty() => canonicalize_map(object, value, old),
        Kind::Object(object) => canonicalize_struct(schema, object, value, old),
        Kind::Array(array) => {
            if let Value::Array(items) = value {
                for (index, item) in items.iter_mut().enumerate() {
                    if item.is_null() {
                        *item = zero(&array.items);
                    }
                    let old = item_of(old, index, item);
                    canonicalize(&array.items, item, old);
                }
            }
        }
        Kind::Quantity => {
            if let Some(text) = quantity::canonical(value) {
                *value = Value::from(text);
            }
        }
        Kind::Time => rewrite(value, |text| {
            if time::is_in_seconds(text) {
                return None;
            }
            time::seconds(text)
        }),
        Kind::MicroTime => rewrite(value, time::microseconds),
        Kind::Integer => {
            // 5e0 and 5.0 do not get here: the decoder refuses them.
            if let Some(number) = value.as_i64() {
                *value = number.into();
            }
        }
        Kind::Bytes => {
            if let Value::Array(bytes) = value {
                let byte = |byte: &Value| u8::try_from(byte.as_u64().unwrap_or_default()).unwrap_or_default();
                let bytes: Vec<u8> = bytes.iter().map(byte).collect();
                *value = Value::from(STANDARD.encode(bytes));
            }
        }
        Kind::String | Kind::Number | Kind::Boolean | Kind::IntOrString | Kind::Any => {}
    }
}

fn rewrite(value: &mut Value, form: impl Fn(&str) -> Option<String>) {
    if let Some(text) = value.as_str().and_then(form) {
        *value = Value::from(text);
    }
}

fn canonicalize_map(object: &Object, value: &mut Value, old: Option<&Value>) {
    let (Some(values), Value::Object(map)) = (&object.additional, value) else {
        return;
    };
    // Texts have one form.
    if matches!(values.kind, Kind::String) && map.values().all(Value::is_string) {
        return;
    }
    let old = old.and_then(Value::as_object);
    for (index, (name, value)) in map.iter_mut().enumerate() {
        if value.is_null() {
            // The store does not tell no bytes from none at all.
            *value = match values.kind {
                Kind::Bytes => Value::from(""),
                _ => zero(values),
            };
        }
        canonicalize(values, value, old.and_then(|old| old.get_named(name, index)));
    }
}

fn canonicalize_struct(schema: &Schema, object: &Object, value: &mut Value, old: Option<&Value>) {
    let Value::Object(map) = value else { return };
    let old = old.and_then(Value::as_object);
    let refused = refused_within(schema);
    let both_lists = both_lists(schema, map);
    let mut places = 0..;
    map.retain(|name, value| {
        let index = places.next().unwrap_or_default();
        let Some(field) = object.fields.named(name).filter(|_| !value.is_null()) else {
            return false;
        };
        let kept = refused.iter().find(|(part, _)| *part == *name);
        let kept = kept.map_or_else(Vec::new, |(_, fields)| empty_fields(value, fields));
        canonicalize(
            &field.schema,
            value,
            old.and_then(|old| old.get_named(name, index)),
        );
        put_back(kept, value);
        if is_left_empty(field, value) && !is_kept_as_json(schema) {
            // The store does not tell an empty list from none.
            *value = Value::Null;
        }
        is_written(field, value) || both_lists || tells_empty_from_none(schema, name, value)
    });
    for (name, zero) in unset(object) {
        if map.get_named(name, 0).is_none() {
            map.insert(name, zero.clone());
        }
    }
}

/// Whether a list or a map is written that has nothing in it.
pub(super) fn is_left_empty(field: &Field, value: &Value) -> bool {
    let part = matches!(field.schema.kind, Kind::Array(_) | Kind::Object(_)) && !is_go_struct(&field.schema);
    field.written == Written::Always && part && is_empty(value)
}

/// The output of Go's encoder for a struct without set fields.
pub(super) fn unset(object: &Object) -> &[(Name, Value)] {
    object.unset.get_or_init(|| {
        let fields = object.fields.iter();
        let written = fields.filter_map(|(name, field)| Some((name.clone(), written_when_unset(field)?)));
        written.collect()
    })
}

/// Definitions of custom resources are stored as JSON, which distinguishes empty lists from absent ones.
pub(super) fn is_kept_as_json(schema: &Schema) -> bool {
    schema
        .name
        .as_deref()
        .is_some_and(|name| name.starts_with("io.k8s.apiextensions-apiserver."))
}

/// Whether an empty list or map says something else than none: they are refused, and so never stored.
pub(super) fn tells_empty_from_none(schema: &Schema, field: &str, value: &Value) -> bool {
    let of = match field {
        "policies" => ".HPAScalingRules",
        "ports" | "resizePolicy" | "restartPolicyRules" => ".EphemeralContainer",
        "dependencies" => ".JSONSchemaProps",
        _ => return false,
    };
    (value.is_array() || value.is_object()) && is_type(schema, of)
}

/// The name of a part and of fields in it.
type Part = (&'static str, &'static [&'static str]);

/// Fields of a part that are refused there even if they are empty, unlike in other places of the part's type.
fn refused_within(schema: &Schema) -> &'static [Part] {
    const TABLE: [(&str, &[Part]); 3] = [
        (
            ".EphemeralContainer",
            &[("resources", &["claims", "limits", "requests"])],
        ),
        (".PodSpec", &[("resources", &["claims"])]),
        (
            ".PersistentVolumeClaimTemplate",
            &[("metadata", &["finalizers", "managedFields", "ownerReferences"])],
        ),
    ];
    let row = TABLE.iter().find(|(of, _)| is_type(schema, of));
    row.map_or(&[], |(_, parts)| parts)
}

fn is_type(schema: &Schema, of: &str) -> bool {
    schema.name.as_deref().is_some_and(|name| name.ends_with(of))
}

/// The fields among these that a value has and that are empty.
fn empty_fields(value: &Value, fields: &[&'static str]) -> Vec<(Name, Value)> {
    let given = |field: &&'static str| {
        let value = value
            .get(field)
            .filter(|value| !value.is_null() && is_empty(value))?;
        Some((Name::from(*field), value.clone()))
    };
    fields.iter().filter_map(given).collect()
}

/// Puts back fields that are to be seen, though they are empty.
fn put_back(fields: Vec<(Name, Value)>, value: &mut Value) {
    if !fields.is_empty()
        && let Value::Object(map) = value
    {
        for (name, value) in fields {
            map.insert(name, value);
        }
    }
}

/// Whether a ResourceSlice has both of two exclusive lists, even if they are empty.
fn both_lists(schema: &Schema, map: &Map) -> bool {
    let is_list = |field: &str| map.get(field).is_some_and(Value::is_array);
    is_type(schema, ".ResourceSliceSpec") && is_list("devices") && is_list("sharedCounters")
}

/// Whether Go's encoder writes a field that holds this value.
pub(super) fn is_written(field: &Field, value: &Value) -> bool {
    match field.written {
        Written::Always => true,
        Written::UnlessEmpty => field.pointer || is_go_struct(&field.schema) || !is_empty(value),
        Written::UnlessZero => field.pointer || *value != zero(&field.schema),
    }
}

/// The output of Go's encoder for an unset field; none if it leaves the field out.
fn written_when_unset(field: &Field) -> Option<Value> {
    match field.written {
        Written::Always if field.pointer => Some(Value::Null),
        Written::Always => Some(zero(&field.schema)),
        Written::UnlessEmpty if !field.pointer && is_go_struct(&field.schema) => Some(zero(&field.schema)),
        _ => None,
    }
}

/// Types that are structs in Go, for which `omitempty` does nothing.
fn is_go_struct(schema: &Schema) -> bool {
    match &schema.kind {
        Kind::Object(_) => schema.is_struct() || schema.name.is_some(),
        Kind::IntOrString | Kind::Quantity | Kind::Time | Kind::MicroTime => true,
        Kind::Any => schema
            .name
            .as_deref()
            .is_some_and(|name| name.ends_with(".RawExtension")),
        _ => false,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Bool(true) => false,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
    }
}

/// How Go writes the zero value of a type.
fn zero(schema: &Schema) -> Value {
    match &schema.kind {
        Kind::Object(_) if is_go_struct(schema) => {
            let mut value = Value::Object(Map::new());
            canonicalize(schema, &mut value, None);
            value
        }
        Kind::String => Value::from(""),
        Kind::Integer | Kind::Number | Kind::IntOrString => Value::from(0),
        Kind::Quantity => Value::from("0"),
        Kind::Boolean => Value::from(false),
        Kind::Object(_) | Kind::Array(_) | Kind::Time | Kind::MicroTime | Kind::Bytes | Kind::Any => {
            Value::Null
        }
    }
}
