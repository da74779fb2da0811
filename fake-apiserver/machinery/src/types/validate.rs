//! Validating custom resources: the bounds of their schema, in the words of the real server.

use super::schema::{Array, Kind, Limits, ListType, Logic, Object, Schema};
use super::{bounds, format};
use crate::pattern;
use pod_rules::field_error::{FieldError, FieldErrorKind};
use regex::Regex;
use shared_json::{Map, Number, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

/// The field of complaints about a combination of schemas, as the real server prints it.
pub(super) const NO_FIELD: &str = "<nil>";

impl Schema {
    /// Every complaint about a custom resource: types, required fields, bounds, formats, combinations, and items of sets and keyed lists
    /// that are there twice. Empty if the object is valid.
    ///
    /// Expects pruned and defaulted values. `metadata` is not looked at: it is the same for all kinds and checked elsewhere.
    /// Rules in CEL (`x-kubernetes-validations`) are not evaluated here.
    pub fn validate(&self, value: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        validate(self, value, "", &mut errors);
        check_lists(self, value, "", &mut errors);
        errors
    }
}

fn validate(schema: &Schema, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    if schema.name.is_some() {
        return;
    }
    if value.is_null() && schema.nullable {
        // Null is none of the values, whether it is listed or not.
        if !schema.allowed.is_empty() {
            errors.push(unsupported(schema, value, path));
        }
        return;
    }
    if !check_type(schema, value, path, errors) {
        if let Some(logic) = schema.logic.as_ref().filter(|_| !value.is_null()) {
            check_logic(logic, value, path, errors);
        }
        // A number that is no whole one is measured all the same.
        if value.is_number()
            && matches!(schema.kind, Kind::Integer | Kind::IntOrString)
            && let Some(limits) = &schema.limits
        {
            check_limits(limits, value, path, errors);
        }
        if !schema.allowed.is_empty() {
            errors.push(unsupported(schema, value, path));
        }
        return;
    }
    if let Some(logic) = &schema.logic {
        check_logic(logic, value, path, errors);
    }
    // The items of a list are looked at before how many there are, the parts of an object after.
    if let (Kind::Array(array), Value::Array(items)) = (&schema.kind, value) {
        for (index, item) in items.iter().enumerate() {
            validate(&array.items, item, &format!("{path}[{index}]"), errors);
        }
    }
    if let Some(limits) = &schema.limits {
        match value {
            Value::Number(number) => bounds::check(schema, limits, number, path, errors),
            _ => check_limits(limits, value, path, errors),
        }
    }
    if let (Some(format), Value::String(text)) = (&schema.format, value)
        && !format::fits(format, text)
    {
        let detail = format!(
            "{path} in body must be of type {format}: {}",
            pod_rules::field_error::go_quote(text)
        );
        errors.push(FieldError::new(
            FieldErrorKind::TypeInvalid,
            path,
            Some(value.clone()),
            detail,
        ));
    }
    if !schema.allowed.is_empty() && !schema.allowed.contains(value) {
        errors.push(unsupported(schema, value, path));
    }
    if let (Kind::Object(object), Value::Object(map)) = (&schema.kind, value) {
        check_object(object, map, path, errors);
    }
}

fn join(path: &str, name: &str) -> String {
    match path.is_empty() {
        true => name.to_owned(),
        false => format!("{path}.{name}"),
    }
}

fn check_object(object: &Object, map: &Map, path: &str, errors: &mut Vec<FieldError>) {
    for (name, value) in map {
        if let Some(field) = object.fields.named(name) {
            validate(&field.schema, value, &join(path, name), errors);
        } else if let Some(values) = &object.additional {
            // The path of a map's values has its dot in front of anything.
            validate(values, value, &format!("{path}.{name}"), errors);
        }
    }
    // What is missing is said after what is there.
    let missing = object.required.iter().filter(|name| !map.contains_key(*name));
    errors.extend(missing.map(|name| FieldError::required(join(path, name), "")));
}

/// A value that is none of those that are allowed, which are all shown as texts.
fn unsupported(schema: &Schema, value: &Value, path: &str) -> FieldError {
    let text = |value: &Value| match value {
        Value::String(text) => text.to_string(),
        other => other.to_string(),
    };
    let allowed: Vec<String> = schema.allowed.iter().map(text).collect();
    let allowed: Vec<&str> = allowed.iter().map(String::as_str).collect();
    FieldError::not_supported(path, value.clone(), &allowed)
}

/// False if the value is of another type; then nothing else is said about it.
fn check_type(schema: &Schema, value: &Value, path: &str, errors: &mut Vec<FieldError>) -> bool {
    if schema.untyped {
        return true;
    }
    let expected = match &schema.kind {
        Kind::Object(_) => "object",
        Kind::Array(_) => "array",
        Kind::Integer => return check_integer(schema, value, path, errors),
        Kind::Number => return check_number(schema, value, path, errors),
        Kind::Boolean => "boolean",
        Kind::IntOrString => "integer,string",
        Kind::String | Kind::Time | Kind::MicroTime | Kind::Bytes | Kind::Quantity => "string",
        Kind::Any => return true,
    };
    let found = type_name(value);
    let fits = expected.split(',').any(|expected| expected == found);
    if !fits {
        errors.push(wrong_type(path, expected, found));
    }
    // A number is held against limits even where it should be a whole one.
    fits || matches!(schema.kind, Kind::IntOrString) && value.is_number()
}

fn check_number(schema: &Schema, value: &Value, path: &str, errors: &mut Vec<FieldError>) -> bool {
    let Some(number) = value.as_f64() else {
        errors.push(wrong_type(path, "number", type_name(value)));
        return false;
    };
    if schema.format.as_deref() == Some("float") && number.abs() > f64::from(f32::MAX) {
        let detail = format!("Checked value must be of type number with format float in {path}");
        errors.push(FieldError::invalid(NO_FIELD, "", detail));
        return false;
    }
    true
}

fn check_integer(schema: &Schema, value: &Value, path: &str, errors: &mut Vec<FieldError>) -> bool {
    let Value::Number(number) = value else {
        errors.push(wrong_type(path, "integer", type_name(value)));
        return false;
    };
    let format = schema.format.as_deref();
    let whole = whole(number);
    let (fits, named) = match format {
        Some("int32") => (
            whole.is_some_and(|whole| i32::try_from(whole).is_ok()),
            "with format int32",
        ),
        Some("int64") => (whole.is_some(), "with format int64"),
        _ => (whole.is_some(), "(default format)"),
    };
    if fits {
        return true;
    }
    if whole.is_none() {
        errors.push(match format {
            Some("int64" | "int32") => wrong_type(path, format.unwrap_or("int64"), "float64"),
            _ => wrong_type(path, "integer", "number"),
        });
    }
    let detail = format!("Checked value must be of type integer {named} in {path}");
    errors.push(FieldError::invalid(NO_FIELD, "", detail));
    true
}

fn whole(number: &Number) -> Option<i64> {
    number.as_i64().or_else(|| {
        let float = number.as_f64()?;
        // Whole floats below 2^53 are exact.
        (float.fract() == 0.0 && float.abs() < 9_007_199_254_740_992.0).then_some(float as i64)
    })
}

fn wrong_type(path: &str, expected: &str, found: &str) -> FieldError {
    let detail = format!("{path} in body must be of type {expected}: \"{found}\"");
    FieldError::new(FieldErrorKind::TypeInvalid, path, Some(found.into()), detail)
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if whole(number).is_some() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn check_limits(limits: &Limits, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let mut bad = |value: Value, rule: String| {
        errors.push(FieldError::invalid(path, value, format!("{path} in body {rule}")));
    };
    match value {
        Value::String(text) => {
            let length = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
            // Only the first of these is told.
            if let Some(max) = limits.max_length.filter(|max| length > *max) {
                errors.push(match usize::try_from(max) {
                    Ok(max) => FieldError::too_long(path, max),
                    Err(_negative) => {
                        FieldError::new(FieldErrorKind::TooLong, path, None, "value is too long")
                    }
                });
            } else if let Some(min) = limits.min_length.filter(|min| length < *min) {
                bad(value.clone(), format!("should be at least {min} chars long"));
            } else if let Some(pattern) = &limits.pattern
                && !matches(pattern, text)
            {
                bad(value.clone(), format!("should match '{pattern}'"));
            }
        }
        Value::Array(items) => {
            let length = i64::try_from(items.len()).unwrap_or(i64::MAX);
            if let Some(min) = limits.min_items.filter(|min| length < *min) {
                bad(length.into(), format!("should have at least {min} items"));
            }
            if limits.unique_items
                && items
                    .iter()
                    .enumerate()
                    .any(|(at, item)| items.iter().take(at).any(|other| other == item))
            {
                bad(value.clone(), "shouldn't contain duplicates".to_owned());
            }
            if let Some(max) = limits.max_items.filter(|max| length > *max) {
                errors.push(too_many(path, items.len(), max));
            }
        }
        Value::Object(map) => {
            let length = i64::try_from(map.len()).unwrap_or(i64::MAX);
            if let Some(min) = limits.min_properties.filter(|min| length < *min) {
                bad(length.into(), format!("should have at least {min} properties"));
            }
            if let Some(max) = limits.max_properties.filter(|max| length > *max) {
                errors.push(too_many(path, map.len(), max));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// A complaint about too many parts. Less than none may be asked for, too.
fn too_many(path: &str, actual: usize, max: i64) -> FieldError {
    match u64::try_from(max) {
        Ok(max) => FieldError::too_many(path, actual, max),
        Err(_negative) => {
            let detail = "has too many items";
            FieldError::new(FieldErrorKind::TooMany, path, Some(actual.into()), detail)
        }
    }
}

/// The number of compiled patterns that are cached, so that a client that defines ever new ones cannot fill the memory.
const PATTERNS_MAX: usize = 256;

static PATTERNS: Mutex<BTreeMap<String, Option<Regex>>> = Mutex::new(BTreeMap::new());

/// Whether a pattern matches; one that cannot be compiled matches everything. Compiled patterns are kept until there are too many.
fn matches(pattern: &str, text: &str) -> bool {
    let mut compiled = PATTERNS.lock().unwrap_or_else(PoisonError::into_inner);
    if !compiled.contains_key(pattern) {
        if compiled.len() >= PATTERNS_MAX {
            compiled.clear();
        }
        compiled.insert(pattern.to_owned(), pattern::compile(pattern).ok());
    }
    compiled
        .get(pattern)
        .and_then(Option::as_ref)
        .is_none_or(|regex| regex.is_match(text))
}

fn check_logic(logic: &Logic, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let about = |text: &str| FieldError::invalid(NO_FIELD, "", format!("\"{path}\" {text}"));
    let failures = |schema: &Schema| {
        let mut failures = Vec::new();
        validate(schema, value, path, &mut failures);
        failures
    };
    if !logic.any_of.is_empty() {
        let all: Vec<Vec<FieldError>> = logic.any_of.iter().map(failures).collect();
        if all.iter().all(|failures| !failures.is_empty()) {
            errors.push(about("must validate at least one schema (anyOf)"));
            errors.extend(all.into_iter().next().unwrap_or_default());
        }
    }
    if !logic.one_of.is_empty() {
        let all: Vec<Vec<FieldError>> = logic.one_of.iter().map(failures).collect();
        match all.iter().filter(|failures| failures.is_empty()).count() {
            1 => {}
            0 => {
                errors.push(about(
                    "must validate one and only one schema (oneOf). Found none valid",
                ));
                errors.extend(all.into_iter().next().unwrap_or_default());
            }
            valid => {
                errors.push(about(&format!(
                    "must validate one and only one schema (oneOf). Found {valid} valid alternatives"
                )));
            }
        }
    }
    if !logic.all_of.is_empty() {
        let all: Vec<FieldError> = logic.all_of.iter().flat_map(failures).collect();
        if !all.is_empty() {
            errors.extend(all);
            errors.push(about("must validate all the schemas (allOf)"));
        }
    }
    if logic.not.as_ref().is_some_and(|not| failures(not).is_empty()) {
        errors.push(about("must not validate the schema (not)"));
    }
}

/// Items of sets and keyed lists must differ.
fn check_lists(schema: &Schema, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    if schema.name.is_some() {
        return;
    }
    match (&schema.kind, value) {
        (Kind::Object(object), Value::Object(map)) => {
            for (name, value) in map {
                let child = object
                    .fields
                    .get(name)
                    .map(|field| &*field.schema)
                    .or(object.additional.as_deref());
                if let Some(child) = child {
                    check_lists(child, value, &join(path, name), errors);
                }
            }
        }
        (Kind::Array(array), Value::Array(items)) => {
            check_unique(array, items, path, errors);
            for (index, item) in items.iter().enumerate() {
                check_lists(&array.items, item, &format!("{path}[{index}]"), errors);
            }
        }
        _ => {}
    }
}

fn check_unique(array: &Array, items: &[Value], path: &str, errors: &mut Vec<FieldError>) {
    let mut seen = BTreeSet::new();
    for (index, item) in items.iter().enumerate() {
        let path = format!("{path}[{index}]");
        let identity = match (&array.list_type, item) {
            (ListType::Atomic, _) => return,
            (ListType::Set, item) => item.clone(),
            (ListType::Map(keys), Value::Object(map)) => {
                let fields = keys
                    .iter()
                    .filter_map(|key| Some((key.clone(), map.get(key)?.clone())));
                Value::Object(fields.collect())
            }
            (ListType::Map(_), other) => {
                let detail = "must be an object for an array of list-type map";
                errors.push(FieldError::invalid(path, other.clone(), detail));
                continue;
            }
        };
        if !seen.insert(identity.to_string()) {
            errors.push(FieldError::duplicate(path, identity));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_that_are_ever_new_do_not_fill_the_memory() {
        for number in 0..2 * PATTERNS_MAX {
            let pattern = format!("^a{{{number}}}$");
            assert!(matches(&pattern, &"a".repeat(number)));
            assert!(!matches(&pattern, "b"));
            let kept = PATTERNS.lock().unwrap_or_else(PoisonError::into_inner).len();
            assert!(kept <= PATTERNS_MAX, "{kept}");
        }
    }
}
