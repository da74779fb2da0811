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
    context.add_function("isCIDR", |text: Arc<String>| {
        Ok::<_, ExecutionError>(Value::Bool(network_problem(&text).is_none()))
    });
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

/// A complaint about an address, and the part of it that is wrong; empty for the whole.
type Problem<'a> = (&'static str, &'a str);

/// Go's error for a text that is no address.
pub(super) fn parse_problem(text: &str) -> Option<String> {
    let first = text.find(['.', ':', '%']).and_then(|at| text.as_bytes().get(at));
    let (why, at) = match first {
        None => ("unable to parse IP", ""),
        Some(b'%') => ("missing IPv6 address", ""),
        Some(b'.') => old_address_problem(text)?,
        Some(_) => new_address_problem(text)?,
    };
    Some(match at {
        "" => format!("ParseAddr({text:?}): {why}"),
        at => format!("ParseAddr({text:?}): {why} (at {at:?})"),
    })
}

/// The error in an address of four numbers.
fn old_address_problem(text: &str) -> Option<Problem<'_>> {
    let (mut fields, mut digits, mut value, mut zero) = (0, 0, 0_u32, false);
    for (at, c) in text.char_indices() {
        let rest = text.get(at..).unwrap_or_default();
        if let Some(digit) = c.to_digit(10) {
            if digits == 1 && zero {
                return Some(("IPv4 field has octet with leading zero", ""));
            }
            zero = digits == 0 && digit == 0;
            value = value * 10 + digit;
            digits += 1;
            if value > 255 {
                return Some(("IPv4 field has value >255", ""));
            }
        } else if c == '.' {
            if digits == 0 || rest.len() == 1 {
                return Some(("IPv4 field must have at least one digit", rest));
            }
            if fields == 3 {
                return Some(("IPv4 address too long", ""));
            }
            (fields, digits, value) = (fields + 1, 0, 0);
        } else {
            return Some(("unexpected character", rest));
        }
    }
    (fields < 3).then_some(("IPv4 address too short", ""))
}

/// The number of groups in an address with colons.
const GROUPS: usize = 8;

/// The error in an address with colons, which may end with four numbers, and name a zone.
fn new_address_problem(text: &str) -> Option<Problem<'_>> {
    let (mut rest, zone) = text
        .split_once('%')
        .map_or((text, None), |(rest, zone)| (rest, Some(zone)));
    if zone == Some("") {
        return Some(("zone must be a non-empty string", ""));
    }
    let (mut groups, mut shortened) = (0, false);
    if let Some(after) = rest.strip_prefix("::") {
        (rest, shortened) = (after, true);
    }
    while groups < GROUPS && !(rest.is_empty() && shortened) {
        let digits = rest.bytes().take_while(u8::is_ascii_hexdigit).count();
        let after = rest.get(digits..).unwrap_or_default();
        match digits {
            0 => return Some(("each colon-separated field must have at least one digit", rest)),
            5.. => return Some(("each group must have 4 or less digits", rest)),
            _ => {}
        }
        if after.starts_with('.') {
            if !shortened && groups != GROUPS - 2 {
                let why = "embedded IPv4 address must replace the final 2 fields of the address";
                return Some((why, rest));
            }
            if groups > GROUPS - 2 {
                let why = "too many hex fields to fit an embedded IPv4 at the end of the address";
                return Some((why, rest));
            }
            if let Some(problem) = old_address_problem(rest) {
                return Some(problem);
            }
            (rest, groups) = ("", groups + 2);
            break;
        }
        groups += 1;
        rest = after;
        match after.strip_prefix(':') {
            None if after.is_empty() => break,
            None => return Some(("unexpected character, want colon", after)),
            Some("") => return Some(("colon must be followed by more characters", after)),
            Some(next) => rest = next,
        }
        if let Some(next) = rest.strip_prefix(':') {
            if shortened {
                return Some(("multiple :: in address", rest));
            }
            (rest, shortened) = (next, true);
        }
    }
    if !rest.is_empty() {
        return Some(("trailing garbage after address", rest));
    }
    match (groups < GROUPS, shortened) {
        (true, false) => Some(("address string too short", "")),
        (false, true) => Some(("the :: must expand to at least one field of zeros", "")),
        _ => None,
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
    if address.contains('%') {
        return said("IPv6 zones cannot be present in a prefix".to_owned());
    }
    let most = if address.contains(':') { 128 } else { 32 };
    let is_plain = bits.bytes().all(|b| b.is_ascii_digit()) && (bits.len() < 2 || !bits.starts_with('0'));
    match bits.parse::<i64>().ok().filter(|_| is_plain) {
        None => return said(format!("bad bits after slash: {bits:?}")),
        Some(bits) if bits > most => return said("prefix length out of range".to_owned()),
        Some(_) => {}
    }
    let mapped = address.parse::<Ipv6Addr>().ok()?.to_ipv4_mapped();
    mapped.map(|_| format!("{WHY}: IPv4-mapped IPv6 address {text:?} is not allowed"))
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
    #[case("1::2::3", Some("multiple :: in address (at \":3\")"))]
    #[case("1:2:3:4:5:6:7:8:9", Some("trailing garbage after address (at \"9\")"))]
    #[case("1:2:3:4:5:6:7", Some("address string too short"))]
    #[case(
        "1:2:3:4:5:6:7:",
        Some("colon must be followed by more characters (at \":\")")
    )]
    #[case(
        "1:g::",
        Some("each colon-separated field must have at least one digit (at \"g::\")")
    )]
    #[case("1:12345::", Some("each group must have 4 or less digits (at \"12345::\")"))]
    #[case("1::2:3:4:5:6:7:8", Some("the :: must expand to at least one field of zeros"))]
    #[case(
        "1:2.3.4.5::",
        Some("embedded IPv4 address must replace the final 2 fields of the address (at \"2.3.4.5::\")")
    )]
    #[case("::1.2.3", Some("IPv4 address too short"))]
    #[case("fe80::1%", Some("zone must be a non-empty string"))]
    #[case("fe80::1%eth0", None)]
    #[case("::ffff:1.2.3.4", None)]
    #[case("::", None)]
    fn addresses(#[case] text: &str, #[case] expected: Option<&str>) {
        let expected = expected.map(|why| format!("ParseAddr({text:?}): {why}"));
        assert_eq!(parse_problem(text), expected);
    }

    #[rstest]
    #[case("10.0.0.0/8", None)]
    #[case(
        "01.2.3.4/8",
        Some(
            "netip.ParsePrefix(\"01.2.3.4/8\"): ParseAddr(\"01.2.3.4\"): IPv4 field has octet with leading zero"
        )
    )]
    #[case(
        "10.0.0.0/08",
        Some("netip.ParsePrefix(\"10.0.0.0/08\"): bad bits after slash: \"08\"")
    )]
    #[case(
        "10.0.0.0/",
        Some("netip.ParsePrefix(\"10.0.0.0/\"): bad bits after slash: \"\"")
    )]
    #[case(
        "10.0.0.0/33",
        Some("netip.ParsePrefix(\"10.0.0.0/33\"): prefix length out of range")
    )]
    #[case(
        "fe80::1%a/8",
        Some("netip.ParsePrefix(\"fe80::1%a/8\"): IPv6 zones cannot be present in a prefix")
    )]
    #[case(
        "::ffff:1.2.3.4/96",
        Some("IPv4-mapped IPv6 address \"::ffff:1.2.3.4/96\" is not allowed")
    )]
    fn networks(#[case] text: &str, #[case] expected: Option<&str>) {
        let problem = network_problem(text);
        assert_eq!(problem.is_some(), expected.is_some());
        assert!(
            problem
                .unwrap_or_default()
                .ends_with(expected.unwrap_or_default())
        );
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
