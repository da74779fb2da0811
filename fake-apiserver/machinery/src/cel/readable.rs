//! Texts that functions parse, and the errors for those that do not parse: addresses, versions, and named formats.

use std::net::Ipv6Addr;
use std::sync::Arc;

use kube_cel::cel::extractors::This;
use kube_cel::cel::{Context, ExecutionError, Value};
use pod_rules::names;

use super::values;
use crate::types::fits_format;

type Problems = fn(&str) -> Vec<String>;

/// A format whose complaint is always the same.
macro_rules! plain {
    ($format:literal, $complaint:literal) => {
        |text| match fits_format($format, text) {
            true => Vec::new(),
            false => vec![$complaint.to_owned()],
        }
    };
}

/// The named formats.
const FORMATS: [(&str, Problems); 13] = [
    ("byte", plain!("byte", "invalid base64")),
    ("date", plain!("date", "invalid date")),
    ("datetime", plain!("datetime", "invalid datetime")),
    ("dns1035Label", names::old_label_problems),
    ("dns1035LabelPrefix", |text| {
        names::old_label_problems(&whole(text))
    }),
    ("dns1123Label", names::label_problems),
    ("dns1123LabelPrefix", |text| names::label_problems(&whole(text))),
    ("dns1123Subdomain", names::subdomain_problems),
    ("dns1123SubdomainPrefix", |text| {
        names::subdomain_problems(&whole(text))
    }),
    ("labelValue", names::label_value_problems),
    ("qualifiedName", names::qualified_problems),
    ("uri", uri),
    ("uuid", plain!("uuid", "does not match the UUID format")),
];

/// The form of a format as a value: this and its name.
const FORMAT: &str = "@format:";

/// Adds the functions.
pub(super) fn add(context: &mut Context<'static>) {
    context.add_function("@address", |text: Value| read("ip", text, address_problem));
    context.add_function("@network", |text: Value| read("cidr", text, network_problem));
    context.add_function("@version", |text: Value| {
        let text = read("semver", text, version_problem)?;
        // What a version was built from makes it no other version.
        Ok(match &text {
            Value::String(whole) => values::text(whole.split('+').next().unwrap_or_default()),
            _ => text,
        })
    });
    context.add_function("@anyAddress", |value: Value| match &value {
        // Asked of a network, this is no error of its own.
        Value::String(text) if address_problem(text).is_some() => Err(ExecutionError::NoSuchOverload),
        _ => Ok(value),
    });
    for (name, _) in FORMATS {
        let value = values::text(&format!("{FORMAT}{name}"));
        context.add_function(
            &format!("format.{name}"),
            move || -> Result<Value, ExecutionError> { Ok(value.clone()) },
        );
    }
    context.add_function(
        "format.named",
        |name: Arc<String>| -> Result<Value, ExecutionError> {
            let known = FORMATS.iter().any(|(known, _)| *known == name.as_str());
            let value = known.then(|| values::text(&format!("{FORMAT}{name}")));
            Ok(value.unwrap_or(Value::Null))
        },
    );
    context.add_function(
        "validate",
        |This(format): This<Arc<String>>, text: Arc<String>| {
            let name = format.strip_prefix(FORMAT).unwrap_or_default();
            let Some((_, problems)) = FORMATS.iter().find(|(known, _)| *known == name) else {
                return Err(ExecutionError::NoSuchOverload);
            };
            let problems: Vec<Value> = problems(&text)
                .iter()
                .map(|problem| values::text(problem))
                .collect();
            let found = (!problems.is_empty()).then(|| Value::List(Arc::new(problems)));
            Ok(values::optional(found))
        },
    );
}

fn read(function: &str, value: Value, problem: fn(&str) -> Option<String>) -> Result<Value, ExecutionError> {
    let said = match &value {
        Value::String(text) => problem(text),
        _ => None,
    };
    match said {
        Some(why) => Err(ExecutionError::function_error(function, why)),
        None => Ok(value),
    }
}

/// The name that a prefix may become.
fn whole(prefix: &str) -> String {
    match prefix.strip_suffix('-') {
        Some(before) => format!("{before}a"),
        None => prefix.to_owned(),
    }
}

fn uri(text: &str) -> Vec<String> {
    let said = |why: &str| vec![format!("parse {text:?}: {why}")];
    if text.is_empty() {
        return said("empty url");
    }
    if text.chars().any(|c| c.is_ascii_control()) {
        return said("net/url: invalid control character in URL");
    }
    if fits_format("uri", text) {
        return Vec::new();
    }
    said("invalid URI for request")
}

/// Go's error for a text that is no address.
fn parse_problem(text: &str) -> Option<String> {
    let said = |why: &str| Some(format!("ParseAddr({text:?}): {why}"));
    let near = |why: &str, at: &str| Some(format!("ParseAddr({text:?}): {why} (at {at:?})"));
    match text.find(['.', ':', '%']).and_then(|at| text.as_bytes().get(at)) {
        None => said("unable to parse IP"),
        Some(b'%') => said("missing IPv6 address"),
        Some(b'.') => {
            let (mut fields, mut digits, mut value, mut zero) = (0, 0, 0_u32, false);
            for (at, c) in text.char_indices() {
                let rest = text.get(at..).unwrap_or_default();
                if let Some(digit) = c.to_digit(10) {
                    if digits == 1 && zero {
                        return said("IPv4 field has octet with leading zero");
                    }
                    zero = digits == 0 && digit == 0;
                    value = value * 10 + digit;
                    digits += 1;
                    if value > 255 {
                        return said("IPv4 field has value >255");
                    }
                } else if c == '.' {
                    if digits == 0 || rest.len() == 1 {
                        return near("IPv4 field must have at least one digit", rest);
                    }
                    if fields == 3 {
                        return said("IPv4 address too long");
                    }
                    (fields, digits, value) = (fields + 1, 0, 0);
                } else {
                    return near("unexpected character", rest);
                }
            }
            if fields < 3 {
                return said("IPv4 address too short");
            }
            None
        }
        Some(_) => {
            let address = text.split('%').next().unwrap_or_default();
            if address.parse::<Ipv6Addr>().is_ok() {
                return None;
            }
            if address.matches("::").count() > 1 {
                return said("multiple :: in address");
            }
            let odd = address.find(|c: char| !c.is_ascii_hexdigit() && c != ':' && c != '.');
            match odd.and_then(|at| text.get(at..)) {
                Some(rest) => near("unexpected character, want colon", rest),
                None => said("address string too short"),
            }
        }
    }
}

fn address_problem(text: &str) -> Option<String> {
    if let Some(problem) = parse_problem(text) {
        return Some(format!(
            "IP Address {text:?} parse error during conversion from string: {problem}"
        ));
    }
    if text.contains('%') {
        return Some(format!("IP address {text:?} with zone value is not allowed"));
    }
    let mapped = text.parse::<Ipv6Addr>().ok()?.to_ipv4_mapped();
    mapped.map(|_| format!("IPv4-mapped IPv6 address {text:?} is not allowed"))
}

fn network_problem(text: &str) -> Option<String> {
    const WHY: &str = "network address parse error during conversion from string";
    let said = |why: String| Some(format!("{WHY}: {WHY}: netip.ParsePrefix({text:?}): {why}"));
    let Some((address, bits)) = text.rsplit_once('/') else {
        return said("no '/'".to_owned());
    };
    if let Some(problem) = parse_problem(address) {
        return said(problem);
    }
    let most = if address.contains(':') { 128 } else { 32 };
    let is_plain = bits.bytes().all(|b| b.is_ascii_digit()) && (bits.len() < 2 || !bits.starts_with('0'));
    match bits.parse::<u32>().ok().filter(|_| is_plain) {
        None => said(format!("bad bits after slash: {bits:?}")),
        Some(bits) if bits > most => said("prefix length out of range".to_owned()),
        Some(_) => None,
    }
}

pub(super) fn version_problem(text: &str) -> Option<String> {
    if text.is_empty() {
        return Some("Version string empty".to_owned());
    }
    let parts: Vec<&str> = text.splitn(3, '.').collect();
    let [major, minor, rest] = parts.as_slice() else {
        return Some("No Major.Minor.Patch elements found".to_owned());
    };
    let patch = rest.split(['-', '+']).next().unwrap_or_default();
    for (name, number) in [("major", major), ("minor", minor), ("patch", &patch)] {
        if number.bytes().any(|b| !b.is_ascii_digit()) {
            return Some(format!("Invalid character(s) found in {name} number {number:?}"));
        }
        if number.len() > 1 && number.starts_with('0') {
            let first = name.get(..1).unwrap_or_default().to_uppercase();
            let name = name.get(1..).unwrap_or_default();
            return Some(format!(
                "{first}{name} number must not contain leading zeroes {number:?}"
            ));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("1.2.3", Some("IPv4 address too short"))]
    #[case("1.2.3.4.5", Some("IPv4 address too long"))]
    #[case("1.2.3.04", Some("IPv4 field has octet with leading zero"))]
    #[case("1.2.3.256", Some("IPv4 field has value >255"))]
    #[case("1..3.4", Some("IPv4 field must have at least one digit (at \".3.4\")"))]
    #[case("1.2.3.x", Some("unexpected character (at \"x\")"))]
    #[case("bogus", Some("unable to parse IP"))]
    #[case("1.2.3.4", None)]
    #[case("::1", None)]
    fn addresses(#[case] text: &str, #[case] expected: Option<&str>) {
        let expected = expected.map(|why| format!("ParseAddr({text:?}): {why}"));
        assert_eq!(parse_problem(text), expected);
    }

    #[rstest]
    #[case("1.2", Some("No Major.Minor.Patch elements found"))]
    #[case("v1.2.3", Some("Invalid character(s) found in major number \"v1\""))]
    #[case("1.02.3", Some("Minor number must not contain leading zeroes \"02\""))]
    #[case("1.2.3-a.b+c", None)]
    fn versions(#[case] text: &str, #[case] expected: Option<&str>) {
        assert_eq!(version_problem(text).as_deref(), expected);
    }
}
