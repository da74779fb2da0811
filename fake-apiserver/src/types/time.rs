//! Times as Kubernetes writes them: in UTC, in whole seconds or in microseconds.

use jiff::Timestamp;

/// RFC 3339 in, `2006-01-02T15:04:05Z` out, the fraction cut off; none if it is no time.
pub(crate) fn seconds(text: &str) -> Option<String> {
    parse(text).map(|time| time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}

/// RFC 3339 in, `2006-01-02T15:04:05.000000Z` out; none if it is no time.
pub(crate) fn microseconds(text: &str) -> Option<String> {
    parse(text).map(|time| time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string())
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
        assert_eq!(seconds(text).as_deref(), whole);
        assert_eq!(microseconds(text).as_deref(), micro);
    }
}
