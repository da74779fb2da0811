//! The text formats that custom resources may ask for. Formats that the real server does not know are not checked.

use base64::Engine;
use regex::Regex;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use pod_rules::durations::check_duration;

use super::mailbox;

/// Whether the text is of the format; true for formats that are not checked.
pub fn fits(format: &str, text: &str) -> bool {
    match format {
        "date-time" | "datetime" => is_date_time(text),
        "date" => is_date(text),
        "duration" => is_duration(text),
        "ipv4" => is_ipv4(text),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => is_cidr(text),
        "byte" => !text.is_empty() && base64::engine::general_purpose::STANDARD.decode(text).is_ok(),
        "ssn" => is_social_security_number(text),
        "uuid" => is_uuid(text, None),
        "uuid3" => is_uuid(text, Some('3')),
        "uuid4" => is_uuid(text, Some('4')),
        "uuid5" => is_uuid(text, Some('5')),
        "mac" => is_mac(text),
        "hostname" => is_hostname(text),
        "email" => mailbox::is_one(text),
        "uri" => text.starts_with('/') || text.split_once(':').is_some_and(|(scheme, _)| is_scheme(scheme)),
        "hexcolor" => {
            let digits = text.strip_prefix('#').unwrap_or(text);
            matches!(digits.len(), 3 | 6) && digits.chars().all(|c| c.is_ascii_hexdigit())
        }
        "rgbcolor" => is_rgb(text),
        "isbn" => is_isbn(text, 10) || is_isbn(text, 13),
        "isbn10" => is_isbn(text, 10),
        "isbn13" => is_isbn(text, 13),
        "creditcard" => is_card(text),
        "k8s-short-name" => pod_rules::names::label_problems(text).is_empty(),
        "k8s-long-name" => pod_rules::names::subdomain_problems(text).is_empty(),
        "bsonobjectid" => text.len() == 24 && text.chars().all(|c| c.is_ascii_hexdigit()),
        _ => true,
    }
}

fn is_date(text: &str) -> bool {
    text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok()
}

/// A date, and a time of which only the form and the bounds of its numbers are looked at.
fn is_date_time(text: &str) -> bool {
    let lower = text.to_lowercase();
    let mut parts = lower.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else {
        return false;
    };
    let is_number = |text: &str, most: &str| {
        text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit()) && text <= most
    };
    let mut clock = time.splitn(3, ':');
    let (Some(hour), Some(minute), Some(rest)) = (clock.next(), clock.next(), clock.next()) else {
        return false;
    };
    let Some((second, rest)) = rest.split_at_checked(2) else {
        return false;
    };
    let after_fraction = {
        let mut characters = rest.chars();
        characters.next();
        characters
            .as_str()
            .trim_start_matches(|c: char| c.is_ascii_digit())
    };
    let is_zone = |zone: &str| {
        let numbers = zone
            .strip_prefix(['+', '-'])
            .and_then(|zone| zone.split_once(':'));
        zone == "z"
            || numbers.is_some_and(|(hours, minutes)| is_number(hours, "99") && is_number(minutes, "99"))
    };
    is_date(date)
        && is_number(hour, "23")
        && is_number(minute, "59")
        && is_number(second, "59")
        && (is_zone(rest) || after_fraction.len() + 1 < rest.len() && is_zone(after_fraction))
}

/// Four numbers, which zeros may precede.
fn is_ipv4(text: &str) -> bool {
    let without_zeros = |part: &str| match part.trim_start_matches('0') {
        "" if !part.is_empty() => "0".to_owned(),
        part => part.to_owned(),
    };
    let parts: Vec<String> = text.split('.').map(without_zeros).collect();
    let is_mapped = || {
        text.contains('.')
            && text
                .parse::<Ipv6Addr>()
                .is_ok_and(|address| address.to_ipv4_mapped().is_some())
    };
    parts.join(".").parse::<Ipv4Addr>().is_ok() || is_mapped()
}

/// Three, two and four digits, which a hyphen or a space may keep apart.
fn is_social_security_number(text: &str) -> bool {
    let mut rest = text;
    for (index, count) in [3, 2, 4].into_iter().enumerate() {
        if index > 0 {
            rest = rest.strip_prefix(['-', ' ']).unwrap_or(rest);
        }
        match rest.split_at_checked(count) {
            Some((digits, after)) if digits.bytes().all(|byte| byte.is_ascii_digit()) => rest = after,
            _ => return false,
        }
    }
    rest.is_empty()
}

/// Go's duration (`1h30m`, `1.5s`, `0`), or some text with a number of days, weeks and so on in it.
fn is_duration(text: &str) -> bool {
    check_duration(text).is_ok() || {
        let mut numbers = text.match_indices(|c: char| c.is_ascii_digit());
        numbers.any(|(at, _)| {
            let rest = text.get(at..).unwrap_or_default();
            is_unit(rest.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start())
        })
    }
}

/// Whether a text begins with a unit of time.
fn is_unit(text: &str) -> bool {
    const SHORT: [&str; 11] = ["ns", "us", "µs", "ms", "s", "m", "h", "hr", "d", "w", "wk"];
    const LONG: [&str; 8] = ["nano", "micro", "milli", "sec", "min", "hour", "day", "week"];
    let end = text
        .find(|c: char| !c.is_ascii_alphabetic() && c != 'µ')
        .unwrap_or(text.len());
    let unit = text.get(..end).unwrap_or_default().to_lowercase();
    SHORT.contains(&&*unit) || LONG.iter().any(|long| unit.starts_with(long))
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

/// 6, 8 or 20 bytes: in pairs of digits with colons or hyphens between them, or in fours with dots, or without anything between.
fn is_mac(text: &str) -> bool {
    let separator = text.chars().find(|c| !c.is_ascii_hexdigit());
    let (parts, digits): (Vec<&str>, usize) = match separator {
        None => (vec![text], text.len()),
        Some(separator @ (':' | '-')) => (text.split(separator).collect(), 2),
        Some('.') => (text.split('.').collect(), 4),
        Some(_) => return false,
    };
    let is_part = |part: &&str| part.len() == digits && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    matches!(parts.len() * digits, 12 | 16 | 40) && parts.iter().all(is_part)
}

/// One name, or several of which the last is a word of at least two letters. Symbols count as letters, but not in the last. A name
/// alone may have a hyphen in its second place only: so go-openapi has it.
fn is_hostname(text: &str) -> bool {
    static WHOLE: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let (letter, symbol) = (r"a-zA-Z\p{L}", r"0-9\p{S}");
        let alone = format!("[{letter}{symbol}](-?[{letter}{symbol}]{{0,62}})?");
        let label = format!(r"[{letter}{symbol}]([-{letter}{symbol}]{{0,61}}[{letter}{symbol}])?");
        Regex::new(&format!(r"^({alone}|({label}\.)+[{letter}]{{2,63}})$")).ok()
    });
    let is_whole = WHOLE.as_ref().is_some_and(|whole| whole.is_match(text));
    is_whole && text.len() <= 255 && text.split('.').all(|part| part.len() <= 63)
}

/// `rgb(r,g,b)` with numbers up to 255.
fn is_rgb(text: &str) -> bool {
    let parts = text.strip_prefix("rgb(").and_then(|rest| rest.strip_suffix(')'));
    parts.is_some_and(|parts| {
        let parts: Vec<&str> = parts.split(',').map(str::trim).collect();
        parts.len() == 3 && parts.iter().all(|part| part.parse::<u8>().is_ok())
    })
}

/// The digits of an ISBN, of which the last checks the others.
fn is_isbn(text: &str, length: usize) -> bool {
    let compact: String = text.chars().filter(|c| !matches!(c, '-' | ' ')).collect();
    let mut sum = 0;
    for (index, character) in compact.chars().enumerate() {
        let place = u32::try_from(index).unwrap_or_default();
        let digit = match (character, length, index) {
            ('X' | 'x', 10, 9) => 10,
            _ => match character.to_digit(10) {
                Some(digit) => digit,
                None => return false,
            },
        };
        sum += match length {
            10 => (place + 1) * digit,
            _ if index % 2 == 1 => 3 * digit,
            _ => digit,
        };
    }
    let modulus = if length == 10 { 11 } else { 10 };
    compact.chars().count() == length && sum.is_multiple_of(modulus)
}

/// A number of a credit card by the check digit of Luhn.
fn is_card(text: &str) -> bool {
    let digits: Vec<u32> = text.chars().filter_map(|c| c.to_digit(10)).collect();
    let others = text
        .chars()
        .any(|c| !c.is_ascii_digit() && !matches!(c, '-' | ' '));
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(index, digit)| match index % 2 {
            0 => *digit,
            _ => (digit * 2) / 10 + (digit * 2) % 10,
        })
        .sum();
    !others && (12..=19).contains(&digits.len()) && sum.is_multiple_of(10)
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

    /// The results of go-openapi.
    #[rstest]
    #[case("hostname", "host", true)]
    #[case("hostname", "a-b", true)]
    #[case("hostname", "ab-c", false)]
    #[case("hostname", "a.b", false)]
    #[case("hostname", "a.bc", true)]
    #[case("hostname", "a-b-c.example.com", true)]
    #[case("hostname", "a.b2", false)]
    #[case("hostname", "1.2.3.4", false)]
    #[case("hostname", "ä.de", true)]
    #[case("hostname", "example.com.", false)]
    #[case("hostname", "-a", false)]
    #[case("hostname", "a_b.com", false)]
    #[case("hostname", "☺.com", true)]
    #[case("hostname", "a-", true)]
    #[case("hostname", "a--b.com", true)]
    #[case("hostname", "x.y-z", false)]
    #[case("hostname", "", false)]
    #[case("mac", "00:11:22:33:44:55", true)]
    #[case("mac", "0011.2233.4455", true)]
    #[case("mac", "00-11-22-33-44-55", true)]
    #[case("mac", "00:11-22:33:44:55", false)]
    #[case("mac", "001122334455", true)]
    #[case("mac", "0011.2233.4455.6677", true)]
    #[case("mac", "00:11:22:33:44:55:66:77", true)]
    #[case("mac", "0011.2233", false)]
    fn fits_as_in_go(#[case] format: &str, #[case] text: &str, #[case] expected: bool) {
        assert_eq!(fits(format, text), expected);
    }

    #[rstest]
    #[case("date-time", "2026-01-02T03:04:05Z", "2026-01-02")]
    #[case("date", "2026-01-02", "2026-13-02")]
    #[case("duration", "1h30m", "soon")]
    #[case("duration", "1.5s", "5")]
    #[case("duration", "P1D", "1x")]
    #[case("duration", "2 Weeks", "-")]
    #[case("date-time", "2026-01-02t03:04:05.5+25:00", "2026-01-02T03:04:60Z")]
    #[case("ipv4", "010.0.0.01", "1.2.3")]
    #[case("email", "A B <a@example.com>", "<a>")]
    #[case("ssn", "111-11 1111", "111-11-111")]
    #[case("byte", "aGk=", "")]
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
    #[case("hostname", "host", "a.b")]
    #[case("rgbcolor", "rgb(0, 10, 255)", "rgb(0,0)")]
    #[case("isbn", "978-3-16-148410-0", "978-3-16-148410-1")]
    #[case("isbn10", "3-16-148410-X", "3-16-148410-0")]
    #[case("creditcard", "4111 1111 1111 1111", "4111 1111 1111 1112")]
    #[case("k8s-short-name", "a-b", "a.b")]
    #[case("k8s-long-name", "a.b", "A")]
    #[case("hexcolor", "#ffaa00", "#ff")]
    fn takes_one_and_refuses_the_other(#[case] format: &str, #[case] good: &str, #[case] bad: &str) {
        assert!(fits(format, good));
        assert!(!fits(format, bad));
        assert!(fits("something-else", bad));
    }
}
