//! The path of a field as a definition gives it (`.a.b['c']`), followed along a schema.

use shared_json::Value;

const NOWHERE: &str = "does not refer to a valid field";
const ENDS: &str = "unexpected end of JSON path";

/// The schema of the field at a path; null for one of which nothing is said. `quoted` is whether names may stand in brackets.
///
/// # Errors
/// The error in the path, in the real server's words.
pub(super) fn follow<'a>(path: &str, schema: &'a Value, quoted: bool) -> Result<&'a Value, String> {
    let (mut place, mut rest) = (schema, path);
    while !rest.is_empty() {
        let (token, after) = token(rest);
        rest = match token {
            "." => {
                let (name, after) = self::token(after);
                if name.is_empty() {
                    return Err(ENDS.to_owned());
                }
                place = part(place, name)?;
                after
            }
            "[" if !quoted => return Err("array notation is not allowed".to_owned()),
            "[" => {
                let (name, after) = self::token(after);
                if name.is_empty() {
                    return Err(ENDS.to_owned());
                }
                let inner = name.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
                let inner = inner.ok_or_else(|| format!("expected single quoted string but got {name}"))?;
                place = part(place, &inner.replace("\\'", "'").replace("\\\\", "\\"))?;
                match self::token(after) {
                    ("]", after) => after,
                    ("", _) => return Err(ENDS.to_owned()),
                    (other, _) => return Err(format!("expected ] but got {other}")),
                }
            }
            other => return Err(format!("expected [ or . but got: {other}")),
        };
    }
    Ok(place)
}

/// A delimiter, a name in quotes or the text before the next delimiter; and the rest.
fn token(text: &str) -> (&str, &str) {
    let end = if text.starts_with(['.', '[', ']']) {
        1
    } else if text.starts_with('\'') {
        let ends = text.char_indices().skip(1).zip(text.chars());
        let mut ends = ends.filter(|((_, c), before)| *c == '\'' && *before != '\\');
        ends.next().map_or(text.len(), |((at, _), _)| at + 1)
    } else {
        text.find(['.', '[', ']']).unwrap_or(text.len())
    };
    text.split_at(end)
}

fn part<'a>(schema: &'a Value, name: &str) -> Result<&'a Value, String> {
    let given = |field: &str| schema.get(field).filter(|given| !given.is_null());
    match (given("properties"), given("additionalProperties")) {
        (Some(fields), _) => fields.get(name).ok_or_else(|| NOWHERE.to_owned()),
        (None, Some(values)) if values.is_object() => Ok(values),
        (None, Some(_)) => Ok(&Value::Null),
        (None, None) => Err(NOWHERE.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use shared_json::json;

    #[rstest]
    #[case(".a.b", true, Ok(json!({"type": "string"})))]
    #[case(".a['b']", true, Ok(json!({"type": "string"})))]
    #[case(".m['x.y']", true, Ok(json!({"type": "integer"})))]
    #[case(".any.x", true, Ok(Value::Null))]
    #[case(".a['b']", false, Err("array notation is not allowed"))]
    #[case(".a.c", true, Err(NOWHERE))]
    #[case(".a.b.c", true, Err(NOWHERE))]
    #[case("a", true, Err("expected [ or . but got: a"))]
    #[case(".a[0]", true, Err("expected single quoted string but got 0"))]
    #[case(".", true, Err(ENDS))]
    #[case(".a['b'", true, Err(ENDS))]
    fn paths_are_followed(#[case] path: &str, #[case] quoted: bool, #[case] expected: Result<Value, &str>) {
        let schema = json!({"properties": {
            "a": {"properties": {"b": {"type": "string"}}},
            "m": {"additionalProperties": {"type": "integer"}},
            "any": {"additionalProperties": true},
        }});
        let found = follow(path, &schema, quoted).cloned();
        assert_eq!(found, expected.map_err(str::to_owned));
    }
}
