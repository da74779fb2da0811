//! The costs of calls, by the values with which they are made.

use kube_cel::cel::Value;
use kube_cel::cel::common::ast::operators;

/// The cost of reading a character, and of a character of a regular expression.
pub(super) const TEXT: f64 = 0.1;
pub(super) const PATTERN: f64 = 0.25;
pub(super) const LIST: u64 = 10;
pub(super) const MAP: u64 = 30;
/// The cost of asking an authorizer.
pub(super) const CHECK: u64 = 350_000;
/// The size of the pattern by which a named format is checked.
pub(super) const FORMAT_PATTERN: u64 = 128;

pub(super) fn scaled(size: u64, factor: f64) -> u64 {
    (size as f64 * factor).ceil() as u64
}

/// The size of a value as costs count it.
fn size(value: &Value) -> u64 {
    match value {
        // A type, which is a text here.
        Value::String(text) if text.starts_with("type(") => 1,
        Value::String(text) => text.chars().count() as u64,
        Value::Bytes(bytes) => bytes.len() as u64,
        Value::List(items) => items.len() as u64,
        Value::Map(map) => map.map.len() as u64,
        _ => 1,
    }
}

/// The cost of reading all of a value.
fn traversal(value: &Value) -> u64 {
    match value {
        Value::String(text) => (text.len() as f64 * TEXT) as u64,
        Value::Bytes(bytes) => (bytes.len() as f64 * TEXT) as u64,
        Value::List(items) => items.iter().map(traversal).sum(),
        Value::Map(map) => {
            let entries = map.map.iter();
            entries
                .map(|(key, value)| traversal(&Value::from(key.clone())) + traversal(value))
                .sum()
        }
        _ => 1,
    }
}

/// The cost of a call; a method's target is the first of its values.
pub(super) fn cost_of(function: &str, values: &[Value], result: &Value) -> u64 {
    let is_text = |value: &&Value| matches!(value, Value::String(_) | Value::Bytes(_));
    let sizes: Vec<u64> = values.iter().map(size).collect();
    let (first, second) = (values.first(), values.get(1));
    let of_first = sizes.first().copied().unwrap_or(1);
    let of_second = sizes.get(1).copied().unwrap_or(1);
    match function {
        "check" => CHECK,
        "startsWith" | "endsWith" | "format" | "quote" => scaled(of_first, TEXT),
        "bytes" if matches!(first, Some(Value::String(_))) => scaled(of_first, TEXT),
        "string" if matches!(first, Some(Value::Bytes(_))) => scaled(of_first, TEXT),
        "containsIP" | "containsCIDR" => {
            let own = match function {
                "containsIP" => scaled(2 * of_first, TEXT),
                _ => scaled(2 * of_first, TEXT) + scaled(of_first, TEXT) + 1,
            };
            let read = second.filter(is_text).map_or(0, |_| scaled(of_second, TEXT));
            own + read
        }
        operators::IN if matches!(second, Some(Value::List(_))) => of_second,
        operators::EQUALS | operators::NOT_EQUALS => scaled(of_first.min(of_second), TEXT),
        operators::LESS | operators::LESS_EQUALS | operators::GREATER | operators::GREATER_EQUALS
            if first.filter(is_text).is_some() =>
        {
            scaled(of_first.min(of_second), TEXT)
        }
        operators::ADD if first.filter(is_text).is_some() => scaled(of_first + of_second, TEXT),
        "matches" | "find" | "findAll" => {
            scaled(of_first + 1, TEXT).saturating_mul(scaled(of_second, PATTERN))
        }
        "validate" => scaled(of_second + 1, TEXT).saturating_mul(scaled(FORMAT_PATTERN, PATTERN)),
        "contains" if first.filter(is_text).is_some() => {
            scaled(of_first, TEXT).saturating_mul(scaled(of_second, TEXT))
        }
        "contains" | "intersects" => of_first.saturating_mul(of_second).saturating_add(1),
        "equivalent" => of_first
            .saturating_mul(of_second)
            .saturating_mul(2)
            .saturating_add(1),
        "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => first.map_or(0, traversal),
        "url" | "lowerAscii" | "upperAscii" | "substring" | "trim" | "cidr" | "isIP" | "isCIDR" | "ip"
        | "quantity" | "isQuantity" => scaled(of_first, TEXT),
        "replace" | "split" | "isCanonical" => scaled(of_first, 2.0 * TEXT),
        "join" => scaled(size(result), 2.0 * TEXT),
        "distinct" | "sort" => of_first
            .saturating_mul(of_first)
            .saturating_mul(2)
            .saturating_add(1 + LIST),
        "flatten" | "slice" | "reverse" | "range" => size(result).saturating_add(1 + LIST),
        operators::NOT_STRICTLY_FALSE => 1,
        // Functions of this crate beside the real one's.
        helper if helper.starts_with('@') => 0,
        _ => 1,
    }
}
