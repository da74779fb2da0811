//! The path of a field as rules give it (`.a.b['c']`), read along a schema.

use crate::types::{Kind, Schema};

/// The path as complaints print it, or `None` if there is no such field.
pub(super) fn read(path: &str, schema: &Schema) -> Option<String> {
    let mut out = String::new();
    let (mut rest, mut place) = (path, schema.clone());
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let name;
        if let Some(after) = rest.strip_prefix('.') {
            let end = after.find(['.', '[', ']']).unwrap_or(after.len());
            let (found, left) = after.split_at(end);
            (name, rest) = (found.to_owned(), left);
        } else {
            let after = rest.strip_prefix("['")?;
            let end = closing_quote(after)?;
            let (found, left) = (after.get(..end)?, after.get(end + 1..)?);
            name = found.replace("\\'", "'").replace("\\\\", "\\");
            rest = left.strip_prefix(']')?;
        }
        if name.is_empty() {
            return None;
        }
        let Kind::Object(object) = &place.kind else {
            return None;
        };
        let next = match (&object.additional, object.fields.get(name.as_str())) {
            (_, Some(field)) => {
                if !out.is_empty() {
                    out.push('.');
                }
                out.push_str(&name);
                field.schema.shared()
            }
            (Some(values), None) if object.fields.is_empty() => {
                out.push_str(&format!("[{name}]"));
                values.shared()
            }
            _ => return None,
        };
        place = (*next).clone();
    }
    Some(out)
}

fn closing_quote(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.char_indices().find_map(|(at, c)| {
        let ends = c == '\'' && !escaped;
        escaped = c == '\\' && !escaped;
        ends.then_some(at)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared_json::json;

    #[test]
    fn paths_are_read_along_the_schema() {
        let schema = Schema::from_openapi_v3(&json!({"type": "object", "properties": {
            "spec": {"type": "object", "properties": {"a.b": {"type": "string"}, "m": {"type": "object",
                "additionalProperties": {"type": "string"}}}},
        }}))
        .unwrap();
        assert_eq!(read(".spec['a.b']", &schema).as_deref(), Some("spec.a.b"));
        assert_eq!(read(".spec.m['k']", &schema).as_deref(), Some("spec.m[k]"));
        for wrong in ["", "spec", ".spec.zz", ".spec.", ".spec['m'", ".spec[m]"] {
            assert_eq!(read(wrong, &schema), None, "{wrong}");
        }
    }
}
