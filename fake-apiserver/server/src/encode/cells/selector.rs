//! Selectors and labels as text.

use shared_json::Value;

use super::NONE;
use super::fields::Fields;

/// A label selector in its text form; `<none>` if it is empty.
pub(super) fn selector(object: Fields<'_>, path: &str) -> String {
    let text = label_selector_text(object.get(path).unwrap_or(&Value::Null));
    if text.is_empty() { NONE.to_owned() } else { text }
}

/// `a=b,c=d`: a map of labels in order of their keys; `<none>` if it is empty.
pub(super) fn labels(object: Fields<'_>, path: &str) -> String {
    let mut pairs: Vec<String> = object
        .map(path)
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    pairs.sort();
    if pairs.is_empty() {
        return NONE.to_owned();
    }
    pairs.join(",")
}

/// `app=cs,tier in (a,b)`: a `LabelSelector` as text, labels and then expressions, each in order of their keys.
pub(crate) fn label_selector_text(selector: &Value) -> String {
    let mut parts: Vec<(String, String)> = Vec::new();
    if let Some(labels) = selector.get("matchLabels").and_then(Value::as_object) {
        parts.extend(labels.iter().map(|(key, value)| {
            let value = value.as_str().unwrap_or_default();
            (key.to_string(), format!("{key}={value}"))
        }));
    }
    let expressions = selector.get("matchExpressions").and_then(Value::as_array);
    for expression in expressions.into_iter().flatten() {
        let text = |field: &str| expression.get(field).and_then(Value::as_str).unwrap_or_default();
        let key = text("key");
        let values = expression.get("values").and_then(Value::as_array);
        let mut values: Vec<&str> = values.into_iter().flatten().filter_map(Value::as_str).collect();
        values.sort_unstable();
        let text = match text("operator") {
            "In" => format!("{key} in ({})", values.join(",")),
            "NotIn" => format!("{key} notin ({})", values.join(",")),
            "DoesNotExist" => format!("!{key}"),
            _ => key.to_owned(),
        };
        parts.push((key.to_owned(), text));
    }
    parts.sort();
    parts
        .into_iter()
        .map(|(_, text)| text)
        .collect::<Vec<_>>()
        .join(",")
}
