//! Numbers as they are written: Go looks at their text where it wants a whole number, and shows it.

/// The number literals of a JSON text: where each begins, and its text.
fn literals(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let bytes = text.as_bytes();
    let mut at = 0;
    let mut quoted = false;
    std::iter::from_fn(move || {
        while let Some(&byte) = bytes.get(at) {
            match byte {
                b'\\' if quoted => at += 1,
                b'"' => quoted = !quoted,
                b'-' | b'0'..=b'9' if !quoted => {
                    let is_part = |byte: &&u8| matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9');
                    let length = bytes.iter().skip(at).take_while(is_part).count();
                    let found = (at, text.get(at..at + length)?);
                    at += length;
                    return Some(found);
                }
                _ => {}
            }
            at += 1;
        }
        None
    })
}

/// The text with every number that no float holds brought to the largest one that does.
pub(crate) fn within_range(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut written = 0;
    for (at, literal) in literals(text) {
        if literal.parse::<f64>().is_ok_and(f64::is_infinite) {
            out.push_str(text.get(written..at).unwrap_or_default());
            out.push_str(if literal.starts_with('-') { "-" } else { "" });
            out.push_str("1.7976931348623157e308");
            written = at + literal.len();
        }
    }
    out.push_str(text.get(written..).unwrap_or_default());
    out
}

/// How a document writes a number that is no whole one: the first that is equal to it.
pub(crate) fn as_written(document: &str, shown: &str) -> Option<String> {
    let wanted = shown.parse::<f64>().ok()?;
    let is_it = |literal: &str| {
        let value = literal.parse::<f64>().unwrap_or_default();
        literal.parse::<i64>().is_err()
            && (value == wanted || value.is_infinite() && wanted.abs() == f64::MAX)
    };
    literals(document)
        .map(|(_, literal)| literal)
        .find(|literal| is_it(literal))
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case(
        r#"{"a\"1e999":1e999,"b":[-1e400,2]}"#,
        r#"{"a\"1e999":1.7976931348623157e308,"b":[-1.7976931348623157e308,2]}"#
    )]
    #[case(r#"[1.5]"#, r#"[1.5]"#)]
    fn brings_numbers_into_range(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(within_range(text), expected);
    }

    #[rstest]
    #[case(r#"{"a":10,"b":1e1}"#, "10.0", Some("1e1"))]
    #[case(r#"{"b":1e400}"#, "1.7976931348623157e308", Some("1e400"))]
    #[case(r#"{"b":99999999999999999999}"#, "1e20", Some("99999999999999999999"))]
    #[case(r#"{"b":5}"#, "5", None)]
    fn finds_what_was_written(#[case] text: &str, #[case] shown: &str, #[case] expected: Option<&str>) {
        assert_eq!(as_written(text, shown).as_deref(), expected);
    }
}
