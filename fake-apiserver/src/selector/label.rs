//! Label selectors in their text form: `app=cs,tier!=db,env in (a,b),!gone`.

use serde_json::{Map, Value};

use crate::status::ApiError;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Requirement {
    Exists(String),
    Absent(String),
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Greater(String, i64),
    Less(String, i64),
}

/// A parsed label selector. The empty one matches everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LabelSelector(Vec<Requirement>);

impl LabelSelector {
    /// Parses the text of a `labelSelector` parameter.
    ///
    /// # Errors
    /// 400 for what is not a selector.
    pub(crate) fn parse(text: &str) -> Result<Self, ApiError> {
        let bad = |why: &str| ApiError::bad_request(format!("unable to parse requirement: {why}"));
        let mut requirements = Vec::new();
        for part in split_outside_parentheses(text) {
            let part = part.trim();
            if part.is_empty() {
                if text.trim().is_empty() {
                    continue;
                }
                return Err(bad("found '', expected: identifier after ','"));
            }
            requirements.push(requirement(part).map_err(|why| bad(&why))?);
        }
        Ok(Self(requirements))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether an object with these labels is selected.
    pub(crate) fn matches(&self, labels: &Map<String, Value>) -> bool {
        let get = |key: &str| labels.get(key).and_then(Value::as_str);
        self.0.iter().all(|requirement| match requirement {
            Requirement::Exists(key) => labels.contains_key(key),
            Requirement::Absent(key) => !labels.contains_key(key),
            Requirement::In(key, values) => get(key).is_some_and(|value| values.iter().any(|v| v == value)),
            Requirement::NotIn(key, values) => get(key).is_none_or(|value| values.iter().all(|v| v != value)),
            Requirement::Greater(key, bound) => get(key)
                .and_then(|value| value.parse::<i64>().ok())
                .is_some_and(|value| value > *bound),
            Requirement::Less(key, bound) => get(key)
                .and_then(|value| value.parse::<i64>().ok())
                .is_some_and(|value| value < *bound),
        })
    }
}

fn split_outside_parentheses(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0_usize, 0_usize);
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

fn key(text: &str) -> Result<String, String> {
    let text = text.trim();
    let valid = !text.is_empty()
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'/'))
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.ends_with(|c: char| c.is_ascii_alphanumeric());
    if valid {
        Ok(text.to_owned())
    } else {
        Err(format!(
            "<nil>: Invalid value: \"{text}\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
        ))
    }
}

fn requirement(text: &str) -> Result<Requirement, String> {
    if let Some(rest) = text.strip_prefix('!') {
        return Ok(Requirement::Absent(key(rest)?));
    }
    if let Some((left, right)) = text.split_once("!=") {
        return Ok(Requirement::NotIn(key(left)?, vec![right.trim().to_owned()]));
    }
    if let Some((left, right)) = text.split_once("==").or_else(|| text.split_once('=')) {
        return Ok(Requirement::In(key(left)?, vec![right.trim().to_owned()]));
    }
    for (operator, make) in [
        ('>', Requirement::Greater as fn(String, i64) -> Requirement),
        ('<', Requirement::Less),
    ] {
        if let Some((left, right)) = text.split_once(operator) {
            let bound = right
                .trim()
                .parse()
                .map_err(|_| "for 'Gt', 'Lt' operators, the value must be an integer".to_owned())?;
            return Ok(make(key(left)?, bound));
        }
    }
    let mut words = text.splitn(2, char::is_whitespace);
    let name = words.next().unwrap_or_default();
    let Some(rest) = words.next().map(str::trim) else {
        return Ok(Requirement::Exists(key(name)?));
    };
    let (operator, list) = match rest.find('(') {
        Some(at) => (rest[..at].trim(), &rest[at..]),
        None => (rest, ""),
    };
    let values = list
        .strip_prefix('(')
        .and_then(|list| list.strip_suffix(')'))
        .map(|list| {
            list.split(',')
                .map(|value| value.trim().to_owned())
                .collect::<Vec<_>>()
        });
    match (operator, values) {
        ("in", Some(values)) => Ok(Requirement::In(key(name)?, values)),
        ("notin", Some(values)) => Ok(Requirement::NotIn(key(name)?, values)),
        ("in" | "notin", None) => Err("found '', expected: '('".to_owned()),
        (other, _) => Err(format!("found '{other}', expected: in, notin, =, ==, !=, gt, lt")),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case("", true)]
    #[case("app=cs", true)]
    #[case("app==cs,tier!=db", true)]
    #[case("app = other", false)]
    #[case("app in (a, cs)", true)]
    #[case("app notin (a,b),env", false)]
    #[case("!env,app", true)]
    #[case("n>4,n<6", true)]
    #[case("n>5", false)]
    fn selects(#[case] text: &str, #[case] expected: bool) {
        let labels = json!({"app": "cs", "n": "5"});
        let labels = labels.as_object().expect("labels");
        assert_eq!(
            LabelSelector::parse(text).expect("a selector").matches(labels),
            expected,
            "{text}"
        );
    }

    #[rstest]
    #[case("a,,b")]
    #[case("app in a")]
    #[case("=x")]
    #[case("a frobs (b)")]
    fn refuses(#[case] text: &str) {
        assert_eq!(LabelSelector::parse(text).expect_err(text).code.as_u16(), 400);
    }
}
