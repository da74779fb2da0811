//! The cells of custom resources: a JSON path and a type each.

use jiff::Timestamp;
use shared_json::Value;

use super::age::{age, between};

/// The cell of a path. A value that is not of the column's type is left out, as in the real server.
pub(super) fn cell(object: &Value, path: &str, kind: &str, now: Timestamp) -> Value {
    let Some(value) = follow(object, path) else {
        return Value::Null;
    };
    match (kind, value) {
        // Go's printer of a null that is there.
        ("string", Value::Null) => Value::from("<no value>"),
        ("string", Value::String(text)) => Value::from(text.clone()),
        ("string", other) => Value::from(other.to_string()),
        ("integer", Value::Number(number)) if !number.is_i64() => number
            .as_f64()
            .map_or(Value::Null, |number| Value::from(number.trunc() as i64)),
        ("integer" | "number", Value::Number(_)) | ("boolean", Value::Bool(_)) => value.clone(),
        ("date", Value::String(time)) if time.is_empty() => Value::from(super::UNKNOWN),
        ("date", Value::String(time)) if between(time, now).is_none() => Value::from("<invalid>"),
        ("date", Value::String(time)) => Value::from(age(time, now)),
        _ => Value::Null,
    }
}

/// Where a field's name ends: at a dot or a bracket that no backslash is before.
fn field_end(path: &str) -> usize {
    let mut before = ' ';
    for (index, character) in path.char_indices() {
        if matches!(character, '.' | '[') && before != '\\' {
            return index;
        }
        before = character;
    }
    path.len()
}

/// Follows a JSON path of fields, quoted fields, indexes and `[?(@.field=="value")]` filters; `[*]` joins its matches.
fn follow<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    let mut value = object;
    let mut rest = path.trim_start_matches('$');
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('[') {
            let end = after.find(']')?;
            let inside = &after[..end];
            rest = &after[end + 1..];
            value = if let Some(filter) = inside
                .strip_prefix("?(@")
                .and_then(|filter| filter.strip_suffix(')'))
            {
                let (field, wanted) = filter.split_once("==")?;
                let wanted = wanted.trim().trim_matches(['"', '\'']);
                let is_wanted = |item: &&Value| {
                    let compared = match field.trim() {
                        "" => Some(*item),
                        field => field.strip_prefix('.').and_then(|field| item.get(field)),
                    };
                    compared.and_then(Value::as_str) == Some(wanted)
                };
                value.as_array()?.iter().find(is_wanted)?
            } else if inside == "*" {
                value.as_array()?.first()?
            } else if let Some((first, _)) = inside.split_once(':') {
                // Of several results the first is shown.
                value
                    .as_array()?
                    .get(first.parse::<usize>().unwrap_or_default())?
            } else if let Ok(index) = inside.parse::<i64>() {
                let items = value.as_array()?;
                let from_end = usize::try_from(index.unsigned_abs()).ok()?;
                match index {
                    ..0 => items.get(items.len().checked_sub(from_end)?)?,
                    _ => items.get(from_end)?,
                }
            } else {
                // What is quoted is read as a path, too: its dots need a backslash.
                follow(value, &format!(".{}", inside.trim_matches(['"', '\''])))?
            };
            continue;
        }
        let after = rest.strip_prefix('.').unwrap_or(rest);
        let end = field_end(after);
        let field = after[..end].replace("\\.", ".");
        rest = &after[end..];
        if field.is_empty() {
            return None;
        }
        value = value.get(&field)?;
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use shared_json::json;

    use super::*;

    #[rstest]
    #[case(".spec.replicas", json!(3))]
    #[case(".status.conditions[?(@.type==\"Ready\")].status", json!("True"))]
    #[case(".metadata.labels['a\\.b']", json!("x"))]
    #[case(".metadata.labels['a.b']", Value::Null)]
    #[case(".words[?(@==\"b\")]", json!("b"))]
    #[case(".list[1]", json!(2))]
    #[case(".list[-1]", json!(2))]
    #[case(".list[0:2]", json!(1))]
    #[case(".list[-3]", Value::Null)]
    #[case(".nothing.here", Value::Null)]
    fn paths(#[case] path: &str, #[case] expected: Value) {
        let object = json!({
            "spec": {"replicas": 3}, "list": [1, 2], "words": ["a", "b"], "metadata": {"labels": {"a.b": "x"}},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        });
        assert_eq!(follow(&object, path).cloned().unwrap_or_default(), expected);
    }
}
