//! The flags of subcommands, and the parameters of requests.

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http::header::CONTENT_TYPE;

/// The flags of a subcommand: `--name=value`, `--name value`, `-n value`.
pub(super) struct Flags {
    named: Vec<(String, String)>,
    pub operands: Vec<String>,
}

impl Flags {
    pub(super) fn read(arguments: &[String]) -> Self {
        let (mut flags, mut operands) = (Vec::new(), Vec::new());
        let mut rest = arguments.iter().peekable();
        while let Some(argument) = rest.next() {
            let Some(flag) = argument.strip_prefix('-').filter(|flag| !flag.is_empty()) else {
                operands.push(argument.clone());
                continue;
            };
            let flag = flag.strip_prefix('-').unwrap_or(flag);
            match flag.split_once('=') {
                Some((name, value)) => flags.push((name.to_owned(), value.to_owned())),
                None => {
                    let value = rest.next_if(|next| !next.starts_with('-') && !SWITCHES.contains(&flag));
                    flags.push((
                        flag.to_owned(),
                        value.cloned().unwrap_or_else(|| "true".to_owned()),
                    ));
                }
            }
        }
        Self {
            named: flags,
            operands,
        }
    }

    pub(super) fn text(&self, names: &[&str]) -> Option<&str> {
        let found = self
            .named
            .iter()
            .rev()
            .find(|(name, _)| names.contains(&name.as_str()));
        found.map(|(_, value)| value.as_str())
    }

    pub(super) fn port(&self, name: &str, default: u16) -> u16 {
        self.text(&[name])
            .and_then(|text| text.parse().ok())
            .unwrap_or(default)
    }

    /// A port that -1 switches off.
    pub(super) fn port_or_none(&self, name: &str, default: u16) -> Option<u16> {
        (self.text(&[name]) != Some("-1")).then(|| self.port(name, default))
    }

    pub(super) fn flag(&self, name: &str) -> bool {
        self.text(&[name])
            .is_some_and(|value| value != "false" && value != "0")
    }
}

/// Flags that have no value of their own.
const SWITCHES: [&str; 6] = [
    "tcp",
    "udp",
    "http",
    "close",
    "json-response",
    "break_on_expected_content",
];

/// A duration as Go writes them: `1m30s`, `500ms`.
pub(super) fn duration(text: &str) -> Option<Duration> {
    let mut total = Duration::ZERO;
    let mut rest = text;
    if rest == "0" {
        return Some(total);
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at_checked(digits)?;
        let unit = tail
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(tail.len());
        let (unit, after) = tail.split_at_checked(unit)?;
        let seconds = match unit {
            "h" => 3600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 0.001,
            "us" => 0.000_001,
            _ => return None,
        };
        let number: f64 = number.parse().ok()?;
        total = total.checked_add(Duration::try_from_secs_f64(number * seconds).ok()?)?;
        rest = after;
    }
    (!text.is_empty()).then_some(total)
}

/// The parameters of a request's query.
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    pub(super) fn of(request: &Request<Bytes>) -> Self {
        let mut pairs = Vec::new();
        let is_form = request
            .headers()
            .get(CONTENT_TYPE)
            .is_some_and(|kind| kind.as_bytes().starts_with(b"application/x-www-form-urlencoded"));
        if is_form {
            pairs.extend(form_urlencoded::parse(request.body()).into_owned());
        }
        let query = request.uri().query().unwrap_or_default();
        pairs.extend(form_urlencoded::parse(query.as_bytes()).into_owned());
        Self(pairs)
    }

    pub(super) fn text(&self, name: &str) -> &str {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("1s", Some(1_000))]
    #[case("1m30s", Some(90_000))]
    #[case("1.5s", Some(1_500))]
    #[case("10ms", Some(10))]
    #[case("0", Some(0))]
    #[case("5", None)]
    #[case("", None)]
    #[case("s", None)]
    fn durations(#[case] text: &str, #[case] expected_ms: Option<u128>) {
        assert_eq!(duration(text).map(|duration| duration.as_millis()), expected_ms);
    }
}
