//! Texts of a case that say more than themselves: read with the case, so that a wrong one is an error there.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use regex::Regex;
use serde::Deserialize;

/// A regular expression.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "String")]
pub struct Expression(Regex);

impl TryFrom<String> for Expression {
    type Error = regex::Error;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Regex::new(&text).map(Self)
    }
}

impl Expression {
    /// Whether it occurs in a text.
    pub(super) fn is_in(&self, text: &str) -> bool {
        self.0.is_match(text)
    }

    /// The text with `by` wherever the expression occurs.
    pub(super) fn replaced(&self, text: &str, by: &str) -> String {
        self.0.replace_all(text, groups(by).as_str()).into_owned()
    }
}

/// A replacement with its groups as the regex crate writes them: `${1}` for `\1`.
fn groups(by: &str) -> String {
    let mut out = String::new();
    let mut rest = by.chars().peekable();
    while let Some(letter) = rest.next() {
        match (letter, rest.peek().and_then(|next| next.to_digit(10))) {
            ('\\', Some(group)) => {
                rest.next();
                out.push_str(&format!("${{{group}}}"));
            }
            ('$', _) => out.push_str("$$"),
            _ => out.push(letter),
        }
    }
    out
}

/// Bytes, written in base64.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "String")]
pub struct Base64(Vec<u8>);

impl TryFrom<String> for Base64 {
    type Error = base64::DecodeError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        STANDARD.decode(text).map(Self)
    }
}

impl Base64 {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use shared_json::{Value, json};

    use super::Expression;
    use crate::apidiff::Case;

    #[rstest]
    #[case("j-0-x7", r"\1-\2P", "j-0-P")]
    #[case("j-x7", r"\1-\2P", "j-P")]
    #[case("j-x7", "$1", "$1")]
    fn groups_are_put_in(#[case] text: &str, #[case] by: &str, #[case] expected: &str) {
        let expression = Expression::try_from(r"\b(j)-([0-9]+-)?x7".to_owned()).expect("an expression");
        assert_eq!(expression.replaced(text, by), expected);
    }

    #[rstest]
    #[case::fine(json!({"rawB64": "AAE=", "until": {"text": "^a"}, "view": {"lines": "b$"}}), None)]
    #[case(json!({"rawB64": "A"}), Some("Invalid"))]
    #[case(json!({"until": {"text": "("}}), Some("unclosed group"))]
    #[case(json!({"until": {"ptr": "/a", "matches": "["}}), Some("unclosed character class"))]
    fn wrong_ones_are_errors_of_the_case(#[case] step: Value, #[case] expected: Option<&str>) {
        let case = json!({"name": "n", "group": "g", "steps": [step]});
        let error = shared_json::from_value::<Case>(case)
            .err()
            .map(|error| error.to_string());
        match (&error, expected) {
            (None, None) => {}
            (Some(error), Some(part)) => assert!(error.contains(part), "{error}"),
            _ => panic!("{error:?} is not {expected:?}"),
        }
    }
}
