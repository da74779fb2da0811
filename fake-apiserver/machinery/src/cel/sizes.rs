//! How large values can be that a schema describes, as far as the largest request allows.

use super::values::is_called;
use crate::types::{Kind, Object, Schema};

/// The largest request, which no object is larger than.
const REQUEST_BYTES_MAX: u64 = 3 * 1024 * 1024;
/// The longest times, dates and durations, as JSON.
const TIME_BYTES_MAX: u64 = 32;
const DATE_BYTES: u64 = 12;

/// The most characters, items or entries of the value at a path below a value; none if the schema knows no such path.
pub(super) fn size_at(schema: &Schema, path: &[String]) -> Option<u64> {
    let Some((part, rest)) = path.split_first() else {
        return Some(most(schema));
    };
    match (part.as_str(), &schema.kind) {
        ("@items", Kind::Array(array)) => size_at(&array.items, rest),
        (
            "@values",
            Kind::Object(Object {
                additional: Some(values),
                ..
            }),
        ) => size_at(values, rest),
        // The length of keys is not limited by anything that the estimate looks at.
        (
            "@keys",
            Kind::Object(Object {
                additional: Some(_), ..
            }),
        ) if rest.is_empty() => Some(0),
        (name, Kind::Object(object)) if object.additional.is_none() => {
            let (_, field) = object.fields.iter().find(|(field, _)| is_called(field, name))?;
            size_at(&field.schema, rest)
        }
        _ => None,
    }
}

fn most(schema: &Schema) -> u64 {
    let limits = schema.limits.as_deref();
    match &schema.kind {
        Kind::Array(array) => limits
            .and_then(|limits| number(limits.max_items))
            .unwrap_or_else(|| (REQUEST_BYTES_MAX - 2) / (least_bytes(&array.items) + 1)),
        Kind::Object(Object {
            additional: Some(values),
            ..
        }) => limits
            .and_then(|limits| number(limits.max_properties))
            .unwrap_or_else(|| (REQUEST_BYTES_MAX - 2) / (least_bytes(values) + 6)),
        Kind::String | Kind::Bytes => {
            let length = limits.and_then(|limits| number(limits.max_length));
            match (schema.format.as_deref(), length) {
                (Some("date-time" | "duration"), _) => TIME_BYTES_MAX,
                (Some("date"), _) => DATE_BYTES,
                (Some("byte"), Some(length)) => length,
                // A character may take four bytes.
                (_, Some(length)) => length.saturating_mul(4),
                (Some("byte"), None) => REQUEST_BYTES_MAX - 2,
                (_, None) => {
                    let texts = schema.allowed.iter().filter_map(|value| value.as_str());
                    texts
                        .map(|text| text.len() as u64)
                        .max()
                        .unwrap_or(REQUEST_BYTES_MAX - 2)
                }
            }
        }
        Kind::IntOrString => {
            let length = limits.and_then(|limits| number(limits.max_length));
            length.map_or(REQUEST_BYTES_MAX - 2, |length| length.saturating_mul(4))
        }
        _ => 0,
    }
}

/// A limit as a number of parts; one below zero is none.
fn number(limit: Option<i64>) -> Option<u64> {
    limit.and_then(|limit| u64::try_from(limit).ok())
}

/// The least bytes of a value as JSON.
fn least_bytes(schema: &Schema) -> u64 {
    match &schema.kind {
        Kind::Object(Object {
            additional: Some(_), ..
        })
        | Kind::Array(_) => 2,
        Kind::Object(object) => {
            let required = object.required.iter().filter_map(|name| {
                let field = object.fields.get(name.as_str())?;
                let must = field.schema.default.is_none();
                must.then(|| name.len() as u64 + 4 + least_bytes(&field.schema))
            });
            2 + required.sum::<u64>()
        }
        Kind::String | Kind::Bytes => match schema.format.as_deref() {
            Some("duration") => 3,
            Some("date") => DATE_BYTES,
            Some("date-time") => 21,
            _ => 2,
        },
        Kind::Boolean => 4,
        _ => 1,
    }
}

/// How often values of a schema can stand in one request.
pub(super) fn in_a_request(schema: &Schema) -> u64 {
    REQUEST_BYTES_MAX / (least_bytes(schema) + 1)
}

/// How many parts a value can have in which the rules of parts hold; none for any number.
pub(super) fn parts_most(schema: &Schema) -> Option<u64> {
    let limits = schema.limits.as_deref();
    match &schema.kind {
        Kind::Array(_) => number(limits?.max_items),
        Kind::Object(Object {
            additional: Some(_), ..
        }) => number(limits?.max_properties),
        _ => Some(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use shared_json::{Value, json};

    #[rstest]
    #[case(json!({"type": "string", "maxLength": 5}), 20)]
    #[case(json!({"type": "string", "enum": ["a", "abc"]}), 3)]
    #[case(json!({"type": "array", "items": {"type": "string"}}), 1_048_575)]
    #[case(json!({"type": "array", "maxItems": 4, "items": {"type": "string"}}), 4)]
    #[case(json!({"type": "object", "additionalProperties": {"type": "boolean"}}), 314_572)]
    #[case(json!({"type": "string", "format": "date-time"}), 32)]
    #[case(json!({"type": "integer"}), 0)]
    fn values_are_as_large_as_a_request_allows(#[case] schema: Value, #[case] expect: u64) {
        let schema = Schema::from_openapi_v3_unchecked(&schema);
        assert_eq!(size_at(&schema, &[]), Some(expect));
    }
}
