//! The text formats that custom resources may ask for. Formats that the real server does not know are not checked.

use super::time;
use base64::Engine;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether the text is of the format; true for formats that are not checked.
pub(super) fn fits(format: &str, text: &str) -> bool {
    match format {
        "date-time" | "datetime" => time::seconds(text).is_some(),
        "date" => text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok(),
        "duration" => is_duration(text),
        "ipv4" => text.parse::<Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => is_cidr(text),
        "byte" => base64::engine::general_purpose::STANDARD.decode(text).is_ok(),
        "uuid" => is_uuid(text, None),
        "uuid3" => is_uuid(text, Some('3')),
        "uuid4" => is_uuid(text, Some('4')),
        "uuid5" => is_uuid(text, Some('5')),
        "mac" => is_mac(text),
        "hostname" => is_hostname(text),
        "email" => text
            .split_once('@')
            .is_some_and(|(user, host)| !user.is_empty() && is_hostname(host)),
        "uri" => text.starts_with('/') || text.split_once(':').is_some_and(|(scheme, _)| is_scheme(scheme)),
        "hexcolor" => {
            let digits = text.strip_prefix('#').unwrap_or(text);
            matches!(digits.len(), 3 | 6) && digits.chars().all(|c| c.is_ascii_hexdigit())
        }
        "bsonobjectid" => text.len() == 24 && text.chars().all(|c| c.is_ascii_hexdigit()),
        _ => true,
    }
}

/// Go's duration (`1h30m`, `1.5s`, `0`), or a number of days, weeks and so on in words.
fn is_duration(text: &str) -> bool {
    const UNITS: [&str; 18] = [
        "ns", "us", "µs", "μs", "ms", "s", "m", "h", "d", "w", "sec", "min", "hr", "day", "days", "week",
        "weeks", "hours",
    ];
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text).trim();
    if rest == "0" {
        return true;
    }
    if rest.is_empty() {
        return false;
    }
    while !rest.is_empty() {
        let digits = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        let Some((number, tail)) = rest.split_at_checked(digits) else {
            return false;
        };
        let tail = tail.trim_start();
        let letters = tail
            .find(|c: char| c.is_ascii_digit() || c == ' ')
            .unwrap_or(tail.len());
        let Some((unit, tail)) = tail.split_at_checked(letters) else {
            return false;
        };
        if number.parse::<f64>().is_err() || !UNITS.contains(&unit) {
            return false;
        }
        rest = tail.trim_start();
    }
    true
}

fn is_cidr(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else {
        return false;
    };
    let max = match address.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    length.parse::<u8>().is_ok_and(|length| length <= max)
}

fn is_uuid(text: &str, version: Option<char>) -> bool {
    let compact: String = text.chars().filter(|c| *c != '-').collect();
    compact.len() == 32
        && compact.chars().all(|c| c.is_ascii_hexdigit())
        && version.is_none_or(|version| compact.chars().nth(12) == Some(version))
}

fn is_mac(text: &str) -> bool {
    let parts: Vec<&str> = text.split([':', '-']).collect();
    matches!(parts.len(), 6 | 8 | 20)
        && parts
            .iter()
            .all(|part| part.len() == 2 && part.chars().all(|c| c.is_ascii_hexdigit()))
}

fn is_hostname(text: &str) -> bool {
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    text.len() <= 253 && text.strip_suffix('.').unwrap_or(text).split('.').all(label)
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("date-time", "2026-01-02T03:04:05Z", "2026-01-02")]
    #[case("date", "2026-01-02", "2026-13-02")]
    #[case("duration", "1h30m", "soon")]
    #[case("duration", "1.5s", "5")]
    #[case("ipv4", "10.0.0.1", "::1")]
    #[case("ipv6", "::1", "10.0.0.1")]
    #[case("cidr", "10.0.0.0/8", "10.0.0.0/33")]
    #[case("byte", "aGk=", "%%%")]
    #[case("uuid", "123e4567-e89b-12d3-a456-426614174000", "123e4567")]
    #[case(
        "uuid4",
        "123e4567-e89b-42d3-a456-426614174000",
        "123e4567-e89b-12d3-a456-426614174000"
    )]
    #[case("mac", "00:11:22:33:44:55", "00:11")]
    #[case("hostname", "a-b.example.com", "-a")]
    #[case("email", "a@example.com", "example.com")]
    #[case("uri", "https://example.com/x", "no scheme")]
    #[case("hexcolor", "#ffaa00", "#ff")]
    fn takes_one_and_refuses_the_other(#[case] format: &str, #[case] good: &str, #[case] bad: &str) {
        assert!(fits(format, good));
        assert!(!fits(format, bad));
        assert!(fits("something-else", bad));
    }
}
