//! A client's body before it was brought into shape: refusals show it, and some rules are about its very bytes.

use machinery::types::{Kind, Schema};
use pod_rules::field_error::FieldError;
use rules::validation::go;
use shared_json::Value;

use crate::context::Context;
use crate::message::decode;
use crate::resources::Resource;

/// Gives the object as it was sent, or as a patch made it of the present one; asked only where something is refused.
pub(crate) type Sent<'a> = &'a (dyn Fn(Option<&Value>) -> Option<Value> + Sync);

/// The object in the request's body.
pub(crate) fn in_body(context: &Context) -> Option<Value> {
    let format = decode::format(&context.content_type).ok()?;
    context.body.document(format).ok().map(|document| document.value)
}

/// Shows empty lists and maps as such in refusals. The store does not distinguish them from absent ones, so they are removed
/// before validation; the real server loses them later, when it writes.
pub(crate) fn show_empty(
    errors: &mut [FieldError],
    schema: Option<&Schema>,
    sent: impl FnOnce() -> Option<Value>,
) {
    let is_none = |error: &FieldError| {
        error.shown.is_none() && error.value.as_ref().is_none_or(Value::is_null) && error.path != "<nil>"
    };
    if !errors.iter().any(is_none) {
        return;
    }
    let Some(sent) = sent() else { return };
    for error in errors.iter_mut().filter(|error| is_none(error)) {
        let found = at(&sent, &error.path).filter(|found| match found {
            Value::Array(items) => items.is_empty(),
            Value::Object(map) => map.is_empty() && is_map(schema, &error.path),
            _ => false,
        });
        if let Some(found) = found {
            error.value = Some(found.clone());
        }
    }
}

/// The errors that `check` finds in an object of a built-in kind. If there are any, the object is checked again with the empty
/// lists and maps of the original body, which complaints that print structs show.
pub(crate) fn check_as_sent(
    resource: &Resource,
    object: &Value,
    sent: impl FnOnce() -> Option<Value>,
    check: impl Fn(&Value) -> Vec<FieldError>,
) -> Vec<FieldError> {
    let found = check(object);
    if found.is_empty() {
        return found;
    }
    let (Some(sent), Some(schema)) = (sent(), resource.schema()) else {
        return found;
    };
    let mut shown = object.clone();
    restore_empty(&mut shown, &sent, &schema, true);
    let again = check(&shown);
    let alike = again.len() == found.len() && again.iter().zip(&found).all(|(a, b)| a.path == b.path);
    if alike { again } else { found }
}

/// The object with the empty lists that were sent, where Go writes them as nulls; nothing if there are none.
pub(crate) fn with_lists_left_out(
    resource: &Resource,
    object: &Value,
    sent: impl FnOnce() -> Option<Value>,
) -> Option<Value> {
    if resource.is_custom() {
        return None;
    }
    let schema = resource.schema()?;
    let spec = object.get("spec").zip(schema.field("spec"));
    let in_spec = spec.is_some_and(|(spec, field)| has_null_list(spec, &field.schema));
    // Claims of devices have their lists further below.
    let is_deep = resource.group == "resource.k8s.io" && has_null_within(object.get("spec"));
    if !(has_null_list(object, &schema) || in_spec || is_deep) {
        return None;
    }
    let mut shown = object.clone();
    restore_empty(&mut shown, &sent()?, &schema, false);
    Some(shown)
}

/// Whether a list or a map of an object is null.
fn has_null_list(object: &Value, schema: &Schema) -> bool {
    let fields = object.as_object().into_iter().flatten();
    let mut nulls = fields.into_iter().filter(|(_, value)| value.is_null());
    nulls.any(|(name, _)| {
        let field = schema.field(name);
        field.is_none_or(|field| matches!(field.schema.kind, Kind::Array(_) | Kind::Object(_)))
    })
}

/// Whether the original body has an empty list or map outside of the metadata.
pub(crate) fn says_empty(resource: &Resource, sent: Option<&Value>) -> bool {
    fn within(value: &Value, schema: &Schema) -> bool {
        match value {
            Value::Array(items) => {
                let array = schema.as_array();
                let below = array.is_some_and(|array| items.iter().any(|item| within(item, &array.items)));
                items.is_empty() || below
            }
            Value::Object(map) => match schema.as_object() {
                Some(object) if object.fields.is_empty() => map.is_empty(),
                _ => map.iter().any(|(name, value)| {
                    let field = schema.field(name);
                    field.is_some_and(|field| within(value, &field.schema))
                }),
            },
            _ => false,
        }
    }
    let (Some(schema), Some(Value::Object(fields))) = (resource.schema(), sent) else {
        return false;
    };
    let mut spec = fields.iter().filter(|(name, _)| *name != "metadata");
    spec.any(|(name, value)| {
        let field = schema.field(name);
        field.is_some_and(|field| within(value, &field.schema))
    })
}

/// Whether a field of an object, or of one within it, is null.
fn has_null_within(part: Option<&Value>) -> bool {
    let fields = part.and_then(Value::as_object).into_iter().flatten();
    fields
        .into_iter()
        .any(|(_, value)| value.is_null() || has_null_within(Some(value)))
}

/// Puts the original body's empty lists and maps where there is nothing, or, if not `everywhere`, where there is a null.
fn restore_empty(object: &mut Value, sent: &Value, schema: &Schema, everywhere: bool) {
    // Types that are the same in all versions are printed as they are sent, without what is empty.
    let is_shared = |name: &str| name.starts_with("io.k8s.apimachinery.");
    if schema.name.as_deref().is_some_and(is_shared) {
        return;
    }
    match (object, sent) {
        (Value::Object(map), Value::Object(sent)) => {
            for (name, sent) in sent {
                let Some(field) = schema.field(name).map(|field| &field.schema) else {
                    continue;
                };
                let is_map = field.as_object().is_some_and(|object| object.fields.is_empty());
                let is_empty = match sent {
                    Value::Array(items) => items.is_empty(),
                    Value::Object(fields) => fields.is_empty() && is_map,
                    _ => false,
                };
                match map.get_mut(name.as_str()) {
                    Some(Value::Null) if is_empty => {
                        map.insert(name.clone(), sent.clone());
                    }
                    None if is_empty && everywhere => {
                        map.insert(name.clone(), sent.clone());
                    }
                    Some(value) if !is_empty => restore_empty(value, sent, field, everywhere),
                    _ => {}
                }
            }
        }
        (Value::Array(items), Value::Array(sent)) => {
            if let Some(array) = schema.as_array() {
                for (item, sent) in items.iter_mut().zip(sent) {
                    restore_empty(item, sent, &array.items, everywhere);
                }
            }
        }
        _ => {}
    }
}

/// Whether a field is a map: an empty struct is no empty value, and the complaint about it shows something else.
fn is_map(schema: Option<&Schema>, path: &str) -> bool {
    let names: Vec<&str> = path
        .split('.')
        .map(|part| part.split('[').next().unwrap_or(part))
        .collect();
    schema
        .and_then(|schema| schema.at(&names))
        .and_then(Schema::as_object)
        .is_some_and(|object| object.fields.is_empty())
}

/// Follows the path of a field error: `spec.containers[0].name`, `metadata.labels[a.b]`.
fn at<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    let mut found = object;
    let mut rest = path;
    while !rest.is_empty() {
        if let Some(inner) = rest.strip_prefix('[') {
            let (key, after) = inner.split_once(']')?;
            found = match found {
                Value::Array(items) => items.get(key.parse::<usize>().ok()?)?,
                other => other.get(key)?,
            };
            rest = after;
        } else {
            let name = rest.strip_prefix('.').unwrap_or(rest);
            let end = name.find(['.', '[']).unwrap_or(name.len());
            let (name, after) = name.split_at(end);
            found = found.get(name)?;
            rest = after;
        }
    }
    Some(found)
}

/// The `data` of a ControllerRevision as it is kept: the bytes that were sent, if they are not those that a Go client would have
/// sent of the same value.
pub(crate) fn revision_data(context: &Context) -> Option<String> {
    let is_json = decode::format(&context.content_type).ok() == Some(decode::Format::Json);
    let body = std::str::from_utf8(&context.body).ok().filter(|_| is_json)?;
    let text = member(body, "data")?;
    let value: Value = shared_json::from_str(text).ok()?;
    (go::json(&value) != text).then(|| text.to_owned())
}

/// The text of a member of a JSON object.
fn member<'a>(text: &'a str, wanted: &str) -> Option<&'a str> {
    let bytes = text.as_bytes();
    let (mut depth, mut quoted, mut escaped) = (0_u32, false, false);
    let (mut begun, mut key, mut value) = (0, None, None);
    for (at, &byte) in bytes.iter().enumerate() {
        if quoted {
            quoted = escaped || byte != b'"';
            escaped = !escaped && byte == b'\\';
            continue;
        }
        match byte {
            b'"' => quoted = true,
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        match (depth, byte) {
            (1, b'{') => begun = at + 1,
            (1, b':') => {
                key = text.get(begun..at).map(str::trim);
                begun = at + 1;
            }
            (1, b',') | (0, b'}') => {
                let is_it = key.is_some_and(|key| key.trim_matches('"') == wanted);
                if is_it {
                    value = text.get(begun..at).map(str::trim);
                }
                begun = at + 1;
            }
            _ => {}
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use shared_json::json;

    #[rstest]
    #[case("spec.scopes", "Invalid value: []: no")]
    #[case("spec.template.spec.containers[0].resources.limits", "Invalid value: {}: no")]
    #[case("spec.template", "Invalid value: null: no")]
    #[case("spec.strategy", "Invalid value: null: no")]
    #[case("spec.absent", "Invalid value: null: no")]
    #[case("spec.full", "Invalid value: null: no")]
    fn empty_is_not_absent(#[case] path: &str, #[case] expected: &str) {
        let sent = json!({"spec": {
            "scopes": [], "full": ["x"], "strategy": {},
            "template": {"spec": {"containers": [{"resources": {"limits": {}}}]}},
        }});
        let mut errors = [FieldError::invalid(path, Value::Null, "no")];
        let schema = machinery::types::builtin(("apps", "v1", "Deployment"));
        show_empty(&mut errors, schema.as_deref(), || Some(sent));
        assert_eq!(errors[0].body(), expected);
    }

    #[rstest]
    #[case(
        r#"{"a": {"data": 1}, "data": {"x": [1, "}"]} , "b":2}"#,
        Some(r#"{"x": [1, "}"]}"#)
    )]
    #[case(r#"{"a":{"data":1}}"#, None)]
    #[case(r#"{"data":5}"#, Some("5"))]
    #[case("[", None)]
    fn members(#[case] text: &str, #[case] expected: Option<&str>) {
        assert_eq!(member(text, "data"), expected);
    }
}
