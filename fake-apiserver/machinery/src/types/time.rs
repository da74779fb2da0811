//! Times as Kubernetes writes them: in UTC, in whole seconds or in microseconds.

use jiff::Timestamp;

/// A time as Kubernetes writes it: `2026-11-20T11:56:51Z`, without a fraction.
pub fn rfc3339(time: Timestamp) -> String {
    format!("{time:.0}")
}

/// RFC 3339 in, `2006-01-02T15:04:05Z` out, the fraction cut off; none if it is no time.
pub fn seconds(text: &str) -> Option<String> {
    parse(text).map(rfc3339)
}

/// Whether a time already has the form that [`seconds`] gives it.
pub(crate) fn is_in_seconds(text: &str) -> bool {
    const FORM: &[u8; 20] = b"0000-00-00T00:00:00Z";
    let fits = |(byte, form): (u8, &u8)| {
        if *form == b'0' {
            byte.is_ascii_digit()
        } else {
            byte == *form
        }
    };
    text.len() == FORM.len() && text.bytes().zip(FORM).all(fits)
}

/// RFC 3339 in, `2006-01-02T15:04:05.000000Z` out; none if it is no time.
pub(crate) fn microseconds(text: &str) -> Option<String> {
    parse(text).map(|time| format!("{time:.6}"))
}

/// Seconds since 1970 of an RFC 3339 time.
pub(crate) fn unix_seconds(text: &str) -> Option<i64> {
    parse(text).map(Timestamp::as_second)
}

fn parse(text: &str) -> Option<Timestamp> {
    // Go's RFC 3339 wants the `T`; jiff alone would take a space.
    if text.as_bytes().get(10) != Some(&b'T') {
        return None;
    }
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case(
        "2026-01-02T03:04:05Z",
        Some("2026-01-02T03:04:05Z"),
        Some("2026-01-02T03:04:05.000000Z")
    )]
    #[case(
        "2026-01-02T03:04:05.9876543+01:00",
        Some("2026-01-02T02:04:05Z"),
        Some("2026-01-02T02:04:05.987654Z")
    )]
    #[case("2026-01-02 03:04:05Z", None, None)]
    #[case("yesterday", None, None)]
    fn one_form(#[case] text: &str, #[case] whole: Option<&str>, #[case] micro: Option<&str>) {
        assert_eq!(is_in_seconds(text), whole == Some(text));
        assert_eq!(seconds(text).as_deref(), whole);
        assert_eq!(microseconds(text).as_deref(), micro);
    }
}
