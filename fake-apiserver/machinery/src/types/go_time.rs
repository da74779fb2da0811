//! The error of Go's `time.Parse` for a text that is no RFC 3339 time.

/// A part of the layout: its text in the layout, and the function that takes it off a value.
type Part = (&'static str, fn(&str) -> Taken<'_>);

/// The rest after a part.
enum Taken<'a> {
    Rest(&'a str),
    /// The number has the right form and makes no sense: which one.
    Range(&'static str),
    /// The part is not there.
    Missing,
}

const SECONDS_LAYOUT: &str = "2006-01-02T15:04:05Z07:00";
const MICROSECONDS_LAYOUT: &str = "2006-01-02T15:04:05.000000Z07:00";

/// The complaint about `text`; `None` if it is a time. `micro` is for times that are written with six digits of the
/// second's fraction: these Go reads with exactly six digits only.
pub(super) fn complaint(text: &str, micro: bool) -> Option<String> {
    let layout = if micro {
        MICROSECONDS_LAYOUT
    } else {
        SECONDS_LAYOUT
    };
    let mut rest = text;
    let mut out_of_range = None;
    let fraction: Part = if micro {
        (".000000", six_digits)
    } else {
        ("", any_fraction)
    };
    let parts: [Part; 13] = [
        ("2006", year),
        ("-", |rest| literal(rest, '-')),
        ("01", |rest| number(rest, 1..=12, "month")),
        ("-", |rest| literal(rest, '-')),
        ("02", |rest| number(rest, 1..=31, "day")),
        ("T", |rest| literal(rest, 'T')),
        ("15", |rest| number(rest, 0..=23, "hour")),
        (":", |rest| literal(rest, ':')),
        ("04", |rest| number(rest, 0..=59, "minute")),
        (":", |rest| literal(rest, ':')),
        ("05", |rest| number(rest, 0..=59, "second")),
        fraction,
        ("Z07:00", zone),
    ];
    for (name, take) in parts {
        match take(rest) {
            Taken::Rest(left) => rest = left,
            Taken::Range(what) => {
                out_of_range = Some(what);
                break;
            }
            Taken::Missing => {
                return Some(format!(
                    "parsing time {text:?} as \"{layout}\": cannot parse {rest:?} as {name:?}"
                ));
            }
        }
    }
    if let Some(what) = out_of_range {
        return Some(format!("parsing time {text:?}: {what} out of range"));
    }
    if !rest.is_empty() {
        return Some(format!("parsing time {text:?}: extra text: {rest:?}"));
    }
    (!has_day(text)).then(|| format!("parsing time {text:?}: day out of range"))
}

/// Whether the month has as many days.
fn has_day(text: &str) -> bool {
    let number = |at: std::ops::Range<usize>| text.get(at).and_then(|digits| digits.parse::<i16>().ok());
    let date = || {
        let small = |at| number(at).and_then(|number| i8::try_from(number).ok());
        jiff::civil::Date::new(number(0..4)?, small(5..7)?, small(8..10)?).ok()
    };
    date().is_some()
}

fn digits(text: &str, count: usize) -> Option<(u32, &str)> {
    let (head, rest) = text.split_at_checked(count)?;
    if !head.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some((head.parse().ok()?, rest))
}

fn year(text: &str) -> Taken<'_> {
    digits(text, 4).map_or(Taken::Missing, |(_, rest)| Taken::Rest(rest))
}

fn number<'a>(text: &'a str, range: std::ops::RangeInclusive<u32>, what: &'static str) -> Taken<'a> {
    match digits(text, 2) {
        None => Taken::Missing,
        Some((value, _)) if !range.contains(&value) => Taken::Range(what),
        Some((_, rest)) => Taken::Rest(rest),
    }
}

fn literal(text: &str, wanted: char) -> Taken<'_> {
    text.strip_prefix(wanted).map_or(Taken::Missing, Taken::Rest)
}

fn six_digits(text: &str) -> Taken<'_> {
    match text.strip_prefix(['.', ',']).and_then(|rest| digits(rest, 6)) {
        Some((_, rest)) => Taken::Rest(rest),
        None => Taken::Missing,
    }
}

/// A fraction that the layout does not ask for is taken all the same.
fn any_fraction(text: &str) -> Taken<'_> {
    let Some(after) = text.strip_prefix(['.', ',']) else {
        return Taken::Rest(text);
    };
    let rest = after.trim_start_matches(|c: char| c.is_ascii_digit());
    Taken::Rest(if rest.len() == after.len() { text } else { rest })
}

fn zone(text: &str) -> Taken<'_> {
    if let Some(rest) = text.strip_prefix('Z') {
        return Taken::Rest(rest);
    }
    let parse = || {
        let (hours, rest) = digits(text.strip_prefix(['+', '-'])?, 2)?;
        let (minutes, rest) = digits(rest.strip_prefix(':')?, 2)?;
        Some((hours, minutes, rest))
    };
    match parse() {
        None => Taken::Missing,
        Some((hours, _, _)) if hours > 24 => Taken::Range("time zone offset hour"),
        Some((_, minutes, _)) if minutes > 60 => Taken::Range("time zone offset minute"),
        Some((_, _, rest)) => Taken::Rest(rest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("2026-01-02T03:04:05Z", false, "")]
    #[case("2026-01-02T03:04:05.5+02:00", false, "")]
    #[case("2026-01-02T03:04:05.500000Z", true, "")]
    #[case(
        "yesterday",
        false,
        r#"parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": cannot parse "yesterday" as "2006""#
    )]
    #[case(
        "",
        false,
        r#"parsing time "" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "2006""#
    )]
    #[case(
        "2026-01-02",
        false,
        r#"parsing time "2026-01-02" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "T""#
    )]
    #[case(
        "2026-01-02T03:04:06.5Z",
        true,
        r#"parsing time "2026-01-02T03:04:06.5Z" as "2006-01-02T15:04:05.000000Z07:00": cannot parse ".5Z" as ".000000""#
    )]
    #[case(
        "2026-01-02T03:04:07.123456789+02:00",
        true,
        r#"parsing time "2026-01-02T03:04:07.123456789+02:00" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "789+02:00" as "Z07:00""#
    )]
    #[case(
        "2026-13-02T03:04:05Z",
        false,
        r#"parsing time "2026-13-02T03:04:05Z": month out of range"#
    )]
    #[case(
        "2026-02-30T03:04:05Z",
        false,
        r#"parsing time "2026-02-30T03:04:05Z": day out of range"#
    )]
    #[case(
        "2026-01-02T03:04:05Zx",
        false,
        r#"parsing time "2026-01-02T03:04:05Zx": extra text: "x""#
    )]
    fn as_go_says_it(#[case] text: &str, #[case] micro: bool, #[case] expected: &str) {
        assert_eq!(complaint(text, micro).unwrap_or_default(), expected);
    }
}
