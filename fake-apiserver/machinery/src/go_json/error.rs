//! Syntax errors of a JSON text, in the words of Go's `encoding/json`.

/// The state of the scanner: the tokens that may come next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expect {
    /// A value.
    Value,
    /// The first item of a list, or its end.
    ItemOrEnd,
    /// The first key of an object, or its end.
    KeyOrEnd,
    /// A key, after a comma.
    Key,
    /// `:`
    Colon,
    /// `,` or the closing bracket, after a value.
    Next,
}

/// The complaint about `text`; `None` if it is well-formed.
pub(crate) fn describe(text: &str) -> Option<String> {
    let mut chars = text.chars().peekable();
    let mut open = Vec::new();
    let mut expect = Expect::Value;
    while let Some(c) = chars.next() {
        if matches!(c, ' ' | '\t' | '\r' | '\n') {
            continue;
        }
        let next = match (expect, c) {
            (Expect::ItemOrEnd, ']') | (Expect::KeyOrEnd, '}') => {
                open.pop();
                Ok(Expect::Next)
            }
            (Expect::Value | Expect::ItemOrEnd, '{') => {
                open.push('{');
                Ok(Expect::KeyOrEnd)
            }
            (Expect::Value | Expect::ItemOrEnd, '[') => {
                open.push('[');
                Ok(Expect::ItemOrEnd)
            }
            (Expect::Value | Expect::ItemOrEnd, '"') => string(&mut chars).map(|()| Expect::Next),
            (Expect::Value | Expect::ItemOrEnd, 't') => word(&mut chars, "true").map(|()| Expect::Next),
            (Expect::Value | Expect::ItemOrEnd, 'f') => word(&mut chars, "false").map(|()| Expect::Next),
            (Expect::Value | Expect::ItemOrEnd, 'n') => word(&mut chars, "null").map(|()| Expect::Next),
            (Expect::Value | Expect::ItemOrEnd, '-' | '0'..='9') => {
                number(c, &mut chars).map(|()| Expect::Next)
            }
            (Expect::KeyOrEnd | Expect::Key, '"') => string(&mut chars).map(|()| Expect::Colon),
            (Expect::Colon, ':') => Ok(Expect::Value),
            (Expect::Next, _) => after_value(c, &mut open),
            _ => Err(unexpected(c, expected(expect))),
        };
        match next {
            Ok(next) => expect = next,
            Err(complaint) => return Some(complaint),
        }
    }
    let complete = expect == Expect::Next && open.is_empty();
    (!complete).then(|| END.to_owned())
}

const END: &str = "unexpected end of JSON input";

fn expected(expect: Expect) -> &'static str {
    match expect {
        Expect::Value | Expect::ItemOrEnd => "looking for beginning of value",
        Expect::KeyOrEnd | Expect::Key => "looking for beginning of object key string",
        Expect::Colon => "after object key",
        Expect::Next => "after top-level value",
    }
}

fn after_value(c: char, open: &mut Vec<char>) -> Result<Expect, String> {
    match (open.last(), c) {
        (Some('{'), ',') => Ok(Expect::Key),
        (Some('['), ',') => Ok(Expect::Value),
        (Some('{'), '}') | (Some('['), ']') => {
            open.pop();
            Ok(Expect::Next)
        }
        (Some('{'), _) => Err(unexpected(c, "after object key:value pair")),
        (Some(_), _) => Err(unexpected(c, "after array element")),
        (None, _) => Err(unexpected(c, "after top-level value")),
    }
}

fn unexpected(c: char, place: &str) -> String {
    // Go scans bytes and prints the byte as if it were a character.
    let mut bytes = [0; 4];
    let first = c.encode_utf8(&mut bytes).bytes().next().unwrap_or_default();
    let quoted = match char::from(first) {
        '\'' => r"'\''".to_owned(),
        '"' => "'\"'".to_owned(),
        '\\' => r"'\\'".to_owned(),
        '\n' => r"'\n'".to_owned(),
        '\t' => r"'\t'".to_owned(),
        '\r' => r"'\r'".to_owned(),
        c if c < ' ' || c == '\u{7f}' => format!("'\\x{:02x}'", u32::from(c)),
        c if ('\u{80}'..='\u{a0}').contains(&c) || c == '\u{ad}' => format!("'\\u{:04x}'", u32::from(c)),
        c => format!("'{c}'"),
    };
    format!("invalid character {quoted} {place}")
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// The rest of a string, after its opening quote.
fn string(chars: &mut Chars<'_>) -> Result<(), String> {
    while let Some(c) = chars.next() {
        match c {
            '"' => return Ok(()),
            '\\' => match chars.next() {
                Some('b' | 'f' | 'n' | 'r' | 't' | '\\' | '/' | '"') => {}
                Some('u') => {
                    for _ in 0..4 {
                        match chars.next() {
                            Some(c) if c.is_ascii_hexdigit() => {}
                            Some(c) => return Err(unexpected(c, "in \\u hexadecimal character escape")),
                            None => return Err(END.to_owned()),
                        }
                    }
                }
                Some(c) => return Err(unexpected(c, "in string escape code")),
                None => return Err(END.to_owned()),
            },
            c if c < ' ' => return Err(unexpected(c, "in string literal")),
            _ => {}
        }
    }
    Err(END.to_owned())
}

/// The rest of `true`, `false` or `null`, after the first letter.
fn word(chars: &mut Chars<'_>, word: &str) -> Result<(), String> {
    for wanted in word.chars().skip(1) {
        match chars.next() {
            Some(c) if c == wanted => {}
            Some(c) => {
                return Err(unexpected(
                    c,
                    &format!("in literal {word} (expecting '{wanted}')"),
                ));
            }
            None => return Err(END.to_owned()),
        }
    }
    Ok(())
}

fn digits(chars: &mut Chars<'_>) -> bool {
    let mut any = false;
    while chars.next_if(char::is_ascii_digit).is_some() {
        any = true;
    }
    any
}

/// The rest of a number, after its first character.
fn number(first: char, chars: &mut Chars<'_>) -> Result<(), String> {
    let need = |chars: &mut Chars<'_>, place: &str| match chars.peek() {
        Some(c) => Err(unexpected(*c, place)),
        None => Err(END.to_owned()),
    };
    let leading = if first == '-' {
        match chars.next_if(char::is_ascii_digit) {
            Some(digit) => digit,
            None => return need(chars, "in numeric literal"),
        }
    } else {
        first
    };
    if leading != '0' {
        digits(chars);
    }
    if chars.next_if_eq(&'.').is_some() && !digits(chars) {
        return need(chars, "after decimal point in numeric literal");
    }
    if chars.next_if(|c| matches!(c, 'e' | 'E')).is_some() {
        let _sign = chars.next_if(|c| matches!(c, '+' | '-'));
        if !digits(chars) {
            return need(chars, "in exponent of numeric literal");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("", END)]
    #[case("   ", END)]
    #[case(r#"{"a":"#, END)]
    #[case(r#"{"a":1"#, END)]
    #[case(
        "{'a':1}",
        r"invalid character '\'' looking for beginning of object key string"
    )]
    #[case(
        r#"{"a":1,}"#,
        "invalid character '}' looking for beginning of object key string"
    )]
    #[case(r#"{"a" 1}"#, "invalid character '1' after object key")]
    #[case(r#"{"a":1 "b":2}"#, "invalid character '\"' after object key:value pair")]
    #[case("[1 2]", "invalid character '2' after array element")]
    #[case("{} trailing", "invalid character 't' after top-level value")]
    #[case("nul", END)]
    #[case("nulL", "invalid character 'L' in literal null (expecting 'l')")]
    #[case("01", "invalid character '1' after top-level value")]
    #[case("1.x", "invalid character 'x' after decimal point in numeric literal")]
    #[case("-", END)]
    #[case("\u{feff}{}", "invalid character 'ï' looking for beginning of value")]
    #[case("\"a\nb\"", r"invalid character '\n' in string literal")]
    fn complains_as_go_does(#[case] text: &str, #[case] complaint: &str) {
        assert_eq!(describe(text).as_deref(), Some(complaint));
    }

    #[rstest]
    #[case("{}")]
    #[case(r#"[{"a": [1, -2.5e+3, true, null, "\u00e9\""]}, {}, []]"#)]
    fn accepts(#[case] text: &str) {
        assert_eq!(describe(text), None);
    }
}
