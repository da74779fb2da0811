//! JSON text as Go's `encoding/json` writes it.

use std::borrow::Cow;

use serde::Serialize;

/// The characters that Go's encoder writes as escapes although JSON does not ask for it. They occur in strings only.
const ESCAPED: [char; 5] = ['<', '>', '&', '\u{2028}', '\u{2029}'];

/// Writes a value as Go's encoder does: in one line, and `<`, `>`, `&`, U+2028 and U+2029 as `\u003c` and so on.
///
/// ```
/// let value = shared_json::json!({"when": "a < b"});
/// assert_eq!(shared_json::to_go_string(&value), r#"{"when":"a \u003c b"}"#);
/// ```
///
/// A value that serde_json cannot write (a map whose keys are no strings) gives an empty text.
#[must_use]
pub fn to_go_string(value: &(impl Serialize + ?Sized)) -> String {
    go_escape(serde_json::to_string(value).unwrap_or_default())
}

/// Puts Go's escapes into JSON text. Text that needs none is given back as it is.
#[must_use]
pub fn go_escape(json: String) -> String {
    match escaped(&json) {
        Cow::Borrowed(_) => json,
        Cow::Owned(escaped) => escaped,
    }
}

/// The same for bytes of JSON, from one place of a buffer on.
pub fn go_escape_from(json: &mut Vec<u8>, start: usize) {
    let escaped = match json.get(start..).map(std::str::from_utf8) {
        Some(Ok(text)) => match escaped(text) {
            Cow::Borrowed(_) => return,
            Cow::Owned(escaped) => escaped,
        },
        // JSON that this program has written is UTF-8.
        _ => return,
    };
    json.truncate(start);
    json.extend_from_slice(escaped.as_bytes());
}

/// Whether JSON bytes have a character that Go's encoder would have escaped.
#[must_use]
pub fn needs_go_escape(json: &[u8]) -> bool {
    memchr::memchr3(b'<', b'>', b'&', json).is_some()
        || memchr::memchr_iter(0xe2, json).any(|at| {
            let rest = json.get(at + 1..at + 3);
            matches!(rest, Some([0x80, 0xa8 | 0xa9]))
        })
}

fn escaped(json: &str) -> Cow<'_, str> {
    if !needs_go_escape(json.as_bytes()) {
        return Cow::Borrowed(json);
    }
    let mut escaped = String::with_capacity(json.len() + 64);
    let mut rest = json;
    while let Some(at) = rest.find(ESCAPED) {
        let (before, after) = rest.split_at(at);
        escaped.push_str(before);
        let mut characters = after.chars();
        if let Some(character) = characters.next() {
            escaped.push_str(&format!("\\u{:04x}", u32::from(character)));
        }
        rest = characters.as_str();
    }
    escaped.push_str(rest);
    Cow::Owned(escaped)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    #[test]
    fn escapes_like_go() {
        for (value, expected) in [
            (
                json!({"b": "1 < 2 && 3 > 2", "a": 1}),
                r#"{"a":1,"b":"1 \u003c 2 \u0026\u0026 3 \u003e 2"}"#,
            ),
            (
                json!({"<": ["\u{2028}", "\u{2029}", "\u{2027}"]}),
                "{\"\\u003c\":[\"\\u2028\",\"\\u2029\",\"\u{2027}\"]}",
            ),
            (json!("â€é"), "\"â€é\""),
            (json!(null), "null"),
        ] {
            assert_eq!(to_go_string(&value), expected);
            assert_eq!(serde_json::from_str::<crate::Value>(expected).unwrap(), value);
        }
    }

    #[test]
    fn the_start_of_a_buffer_is_left_alone() {
        let mut buffer = b"<\"<\"".to_vec();
        go_escape_from(&mut buffer, 1);
        assert_eq!(buffer, b"<\"\\u003c\"");
    }
}
