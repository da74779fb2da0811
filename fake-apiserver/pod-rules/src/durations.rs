//! Durations as Go writes them: `1h30m`, `1.5s`, `-10ms`, `0`.

/// Nanoseconds of each unit; micro has two characters.
const UNITS: [(&str, u128); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("\u{b5}s", 1_000),
    ("\u{3bc}s", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// So many nanoseconds below zero a duration has at most; above it is one less.
const LIMIT: u128 = 1 << 63;

/// So many digits after a point are read.
const FRACTION_DIGITS: usize = 18;

/// Whether a text is a duration.
///
/// # Errors
/// The error of Go's `time.ParseDuration`.
pub fn check_duration(text: &str) -> Result<(), String> {
    nanoseconds(text).map(|_| ())
}

/// The nanoseconds of a duration.
///
/// # Errors
/// The error of Go's `time.ParseDuration`.
///
/// ```
/// use pod_rules::durations::nanoseconds;
///
/// assert_eq!(nanoseconds("-1.5s"), Ok(-1_500_000_000));
/// assert!(nanoseconds("1d").is_err());
/// ```
pub fn nanoseconds(text: &str) -> Result<i64, String> {
    let invalid = || format!("time: invalid duration {}", quote(text));
    let is_negative = text.starts_with('-');
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut total = 0;
    while !rest.is_empty() {
        let (whole, after) = digits(rest);
        let (fraction, after) = after.strip_prefix('.').map_or(("", after), digits);
        if whole.is_empty() && fraction.is_empty() {
            return Err(invalid());
        }
        let whole = number(whole)
            .filter(|whole| *whole <= LIMIT)
            .ok_or_else(invalid)?;
        let is_amount = |c: char| c == '.' || c.is_ascii_digit();
        let (unit, after) = after.split_at(after.find(is_amount).unwrap_or(after.len()));
        if unit.is_empty() {
            return Err(format!("time: missing unit in duration {}", quote(text)));
        }
        let Some((_, nanos)) = UNITS.iter().find(|(name, _)| *name == unit) else {
            let (unit, text) = (quote(unit), quote(text));
            return Err(format!("time: unknown unit {unit} in duration {text}"));
        };
        let mut part = fraction
            .get(..FRACTION_DIGITS)
            .and_then(number)
            .or_else(|| number(fraction))
            .unwrap_or_default()
            * nanos;
        for _ in 0..fraction.len().min(FRACTION_DIGITS) {
            part /= 10;
        }
        total += whole * nanos + part;
        if total > LIMIT {
            return Err(invalid());
        }
        rest = after;
    }
    let total = i128::try_from(total).unwrap_or(i128::MAX);
    i64::try_from(if is_negative { -total } else { total }).map_err(|_| invalid())
}

/// The leading digits of a text, and the rest.
fn digits(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit());
    text.split_at(end.unwrap_or(text.len()))
}

/// No digits are none; too many are no number.
fn number(digits: &str) -> Option<u128> {
    if digits.is_empty() {
        return Some(0);
    }
    digits.parse().ok()
}

/// Quotes as Go's package `time` does: characters outside of ASCII byte by byte.
fn quote(text: &str) -> String {
    let mut out = String::from("\"");
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => out.extend(['\\', char::from(byte)]),
            b' '..0x80 => out.push(char::from(byte)),
            _ => out.push_str(&format!("\\x{byte:02x}")),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("0", "")]
    #[case("-0", "")]
    #[case("1s", "")]
    #[case("+2s", "")]
    #[case("-1.5h", "")]
    #[case("1h30m5s", "")]
    #[case(".5s", "")]
    #[case("5.s", "")]
    #[case("1µs2μs", "")]
    #[case("2562047h47m16.854775807s", "")]
    #[case("-9223372036854775808ns", "")]
    #[case("0.3333333333333333333h", "")]
    #[case("", "invalid duration \"\"")]
    #[case("-", "invalid duration \"-\"")]
    #[case("x", "invalid duration \"x\"")]
    #[case(".s", "invalid duration \".s\"")]
    #[case(" 2s", "invalid duration \" 2s\"")]
    #[case("\"", "invalid duration \"\\\"\"")]
    #[case("µ", "invalid duration \"\\xc2\\xb5\"")]
    #[case("5", "missing unit in duration \"5\"")]
    #[case("1h2", "missing unit in duration \"1h2\"")]
    #[case("1.2.3s", "missing unit in duration \"1.2.3s\"")]
    #[case("1d", "unknown unit \"d\" in duration \"1d\"")]
    #[case("1e3s", "unknown unit \"e\" in duration \"1e3s\"")]
    #[case("1h1x", "unknown unit \"x\" in duration \"1h1x\"")]
    #[case("9999999999999h", "invalid duration \"9999999999999h\"")]
    #[case("9223372036854775808ns", "invalid duration \"9223372036854775808ns\"")]
    #[case("99999999999999999999x", "invalid duration \"99999999999999999999x\"")]
    fn durations(#[case] text: &str, #[case] refusal: &str) {
        let expected = match refusal {
            "" => Ok(()),
            refusal => Err(format!("time: {refusal}")),
        };
        assert_eq!(check_duration(text), expected);
    }
}
