//! JSON as Go's `encoding/json` writes it.

use serde_json::Value;

/// Encodes `value` with sorted keys and with Go's escapes: `<`, `>`, `&` and the two Unicode line separators, which can
/// occur in strings only, become `\u003c` and so on.
pub(crate) fn to_go_json(value: &Value) -> String {
    go_escape(value.to_string())
}

/// Puts Go's escapes into JSON text.
pub(crate) fn go_escape(plain: String) -> String {
    if !plain.contains(['<', '>', '&', '\u{2028}', '\u{2029}']) {
        return plain;
    }
    let mut escaped = String::with_capacity(plain.len() + 16);
    for character in plain.chars() {
        match character {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                escaped.push_str(&format!("\\u{:04x}", u32::from(character)));
            }
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn escapes_like_go() {
        assert_eq!(
            to_go_json(&json!({ "b": "1 < 2 && 3 > 2", "a": 1 })),
            r#"{"a":1,"b":"1 \u003c 2 \u0026\u0026 3 \u003e 2"}"#
        );
    }
}
