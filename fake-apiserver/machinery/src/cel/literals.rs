//! Quotes and backslashes in literals, which the parser takes for the end of the literal, or keeps where it should not.
//!
//! They are replaced by private characters before the parser sees the text, and put back into its tree. The length of the text
//! stays, so places in errors do, too.

use kube_cel::cel::common::ast::{Expr, IdedExpr, LiteralValue};

use super::objects::parts;

/// The stand-ins, and the characters for which they stand.
const STAND_INS: [(char, &str); 5] = [
    ('\u{10fff0}', "'"),
    ('\u{10fff1}', "\""),
    ('\u{10fff2}', "\\"),
    // A line's end in bytes of triple quotes.
    ('\u{10fff4}', "\n"),
    // The backslash of an escape that is none any more.
    ('\u{10fff3}', ""),
];
const NOTHING: char = '\u{10fff3}';

/// The words before a quote that make a literal one without escapes, in any case.
const RAW: [&str; 2] = ["r", "br"];

/// The words before a quote that make a literal bytes, in any case.
const BYTES: [&str; 2] = ["b", "br"];

fn stand_in(c: char) -> Option<char> {
    let mut all = STAND_INS.iter();
    all.find(|(_, text)| text.chars().eq([c]))
        .map(|(stand_in, _)| *stand_in)
}

/// The text with stand-ins; none if the parser reads it as it is.
pub(super) fn mask(text: &str) -> Option<String> {
    let raw_bytes = |part: &[u8]| matches!(part, [b'b' | b'B', b'r' | b'R', b'\'' | b'"']);
    let is_plain = !text.as_bytes().windows(3).any(raw_bytes)
        && ["'''", "\"\"\"", "\\'", "\\\""]
            .iter()
            .all(|odd| !text.contains(odd));
    if is_plain {
        return None;
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(length);
        let taken = if after.starts_with(['\'', '"']) {
            length + mask_literal(word, after, &mut out)?
        } else if rest.starts_with("//") {
            let end = rest.find('\n').unwrap_or(rest.len());
            out.push_str(rest.get(..end)?);
            end
        } else {
            let taken = length.max(first.len_utf8());
            out.push_str(rest.get(..taken)?);
            taken
        };
        rest = rest.get(taken..)?;
    }
    Some(out)
}

/// Copies a literal and the word before it; gives the length without the word. None for one that has no end.
///
/// The parser knows no bytes in triple quotes, and no raw ones: they become plain ones, with spaces in place of the omitted letters.
fn mask_literal(word: &str, text: &str, out: &mut String) -> Option<usize> {
    let is = |words: &[&str]| words.iter().any(|prefix| word.eq_ignore_ascii_case(prefix));
    let quote = text.get(..1)?;
    let triple = quote.repeat(3);
    let mark = if text.starts_with(&triple) {
        triple.as_str()
    } else {
        quote
    };
    let (raw, is_triple) = (is(&RAW), mark.len() > 1);
    let plain = is(&BYTES) && (raw || is_triple);
    let spaces = |count: usize| " ".repeat(count);
    match plain {
        true => out.extend([spaces(word.len() + mark.len() - 2).as_str(), "b", quote]),
        false => out.extend([word, mark]),
    }
    let mut at = mark.len();
    loop {
        let rest = text.get(at..)?;
        if rest.starts_with(mark) {
            match plain {
                true => out.extend([quote, spaces(mark.len() - 1).as_str()]),
                false => out.push_str(mark),
            }
            return Some(at + mark.len());
        }
        let mut characters = rest.chars();
        let c = characters.next()?;
        at += c.len_utf8();
        if c != '\\' || raw {
            // A quote of the other kind is read as it is.
            let kept = c == '\n' && !(plain && is_triple);
            out.push(stand_in(c).filter(|_| !kept).unwrap_or(c));
            continue;
        }
        let escaped = characters.next()?;
        at += escaped.len_utf8();
        match escaped {
            '\'' | '"' => out.extend([NOTHING, stand_in(escaped)?]),
            other => out.extend([c, other]),
        }
    }
}

/// A text without stand-ins.
pub(super) fn unmasked(text: &str) -> String {
    let mut out = text.to_owned();
    for (stand_in, original) in STAND_INS {
        if out.contains(stand_in) {
            out = out.replace(stand_in, original);
        }
    }
    out
}

/// The same of bytes, which may be no text.
fn unmasked_bytes(mut bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    while let Some(first) = bytes.first() {
        let found = STAND_INS.iter().find_map(|(stand_in, original)| {
            let rest = bytes.strip_prefix(stand_in.encode_utf8(&mut [0; 4]).as_bytes())?;
            Some((rest, original))
        });
        match found {
            Some((rest, original)) => {
                out.extend_from_slice(original.as_bytes());
                bytes = rest;
            }
            None => {
                out.push(*first);
                bytes = bytes.get(1..).unwrap_or_default();
            }
        }
    }
    out
}

/// Puts the characters back into the literals of an expression.
pub(super) fn unmask(expression: &mut IdedExpr) {
    match &mut expression.expr {
        Expr::Literal(LiteralValue::String(text)) => {
            *text = unmasked(text.inner()).as_str().into();
        }
        Expr::Literal(LiteralValue::Bytes(bytes)) => {
            *bytes = unmasked_bytes(bytes.inner()).into();
        }
        _ => {}
    }
    for part in parts(&mut expression.expr) {
        unmask(part);
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::super::{Expression, Scope, values};

    #[rstest]
    #[case(r#"'''it's'''"#, "it's")]
    #[case(r#"'''a "b" 'c' '''"#, "a \"b\" 'c' ")]
    #[case(r#""""say "a", 'b'""""#, "say \"a\", 'b'")]
    #[case(r#"'a\"b'"#, "a\"b")]
    #[case(r#""a\'b""#, "a'b")]
    #[case(r#"'a\'b'"#, "a'b")]
    #[case(r#"r'a\' + 'b'"#, "a\\b")]
    #[case(r#"r"a\'b""#, "a\\'b")]
    #[case(r#"r'''a\n'b'''"#, "a\\n'b")]
    #[case(r#"'''''' + 'a'"#, "a")]
    #[case(
        r#"'a' // it's
        + '''b'''"#,
        "ab"
    )]
    #[case(
        r#"'''a
b'''"#,
        "a\nb"
    )]
    #[case(r#"string(b'''it's''')"#, "it's")]
    #[case(r#"string(B"""say "a".""" + b'')"#, "say \"a\".")]
    #[case(r#"string(br'''a\n'b''')"#, "a\\n'b")]
    #[case(
        r#"string(b"""a
b""")"#,
        "a\nb"
    )]
    #[case(r#"string(b'''\'\101''')"#, "'A")]
    #[case(r#"string(br'a\n"b' + Br"'")"#, "a\\n\"b'")]
    fn literals(#[case] text: &str, #[case] expected: &str) {
        let read = Expression::read(text).expect("an expression");
        let value = read.value(&Scope::new(), &[]).expect("a value");
        assert_eq!(value, values::text(expected));
    }

    #[test]
    fn places_are_those_of_the_text() {
        let error = Expression::read("'''it's''' +").expect_err("no expression");
        assert!(error.starts_with("ERROR: <input>:1:13: Syntax error"), "{error}");
        assert!(error.contains("| '''it's''' +"), "{error}");
    }
}
