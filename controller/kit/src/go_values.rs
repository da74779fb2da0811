//! Truth values, numbers and times as Go's `strconv` and `time` packages read them.

use pod_rules::durations::nanoseconds;

/// A truth value (`strconv.ParseBool`).
pub fn truth(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Some(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(false),
        _ => None,
    }
}

/// A whole number of 64 bits with the base that its prefix names (`strconv.ParseInt` with base 0, without underscores).
pub fn integer(text: &str) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix(['+', '-']) {
        Some(digits) => (text.starts_with('-'), digits),
        None => (false, text),
    };
    let magnitude = i128::from(unsigned(digits)?);
    i64::try_from(if negative { -magnitude } else { magnitude }).ok()
}

/// The same without a sign (`strconv.ParseUint` with base 0).
pub fn unsigned(text: &str) -> Option<u64> {
    let lower = text.to_ascii_lowercase();
    let bases = [("0x", 16), ("0b", 2), ("0o", 8)];
    let (digits, base) = bases
        .into_iter()
        .find_map(|(prefix, base)| Some((lower.strip_prefix(prefix)?, base)))
        .or_else(|| {
            let octal = lower.strip_prefix('0').filter(|rest| !rest.is_empty());
            octal.map(|digits| (digits, 8))
        })
        .unwrap_or((lower.as_str(), 10));
    // Rust would take a second sign here.
    let signed = digits.starts_with(['+', '-']);
    u64::from_str_radix(digits, base).ok().filter(|_| !signed)
}

/// A time in nanoseconds (`time.ParseDuration`).
pub fn duration(text: &str) -> Option<i64> {
    nanoseconds(text).ok()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("15s", Some(15_000_000_000))]
    #[case("1h30m", Some(5_400_000_000_000))]
    #[case("5m0s", Some(300_000_000_000))]
    #[case("16m40s", Some(1_000_000_000_000))]
    #[case("5ms", Some(5_000_000))]
    #[case("1.5s", Some(1_500_000_000))]
    #[case(".5s", Some(500_000_000))]
    #[case("5.s", Some(5_000_000_000))]
    #[case("0.1m", Some(6_000_000_000))]
    #[case("1us2ns", Some(1_002))]
    #[case("1\u{b5}s", Some(1_000))]
    #[case("1.9ns", Some(1))]
    #[case("-2s", Some(-2_000_000_000))]
    #[case("+2s", Some(2_000_000_000))]
    #[case("0", Some(0))]
    #[case("-0", Some(0))]
    #[case("", None)]
    #[case("-", None)]
    #[case(".s", None)]
    #[case("1.2.3s", None)]
    #[case("5", None)]
    #[case("5x", None)]
    #[case("s", None)]
    #[case("99999999999999999999s", None)]
    #[case("9999999999h", None)]
    fn durations(#[case] text: &str, #[case] ns: Option<i64>) {
        assert_eq!(duration(text), ns);
    }

    #[rstest]
    #[case("3", Some(3))]
    #[case("-1", Some(-1))]
    #[case("+7", Some(7))]
    #[case("0", Some(0))]
    #[case("0x10", Some(16))]
    #[case("010", Some(8))]
    #[case("0b11", Some(3))]
    #[case("0o17", Some(15))]
    #[case("9223372036854775807", Some(i64::MAX))]
    #[case("9223372036854775808", None)]
    #[case("-9223372036854775808", Some(i64::MIN))]
    #[case("", None)]
    #[case("--1", None)]
    #[case("0x", None)]
    #[case("0x-1", None)]
    #[case("08", None)]
    #[case("many", None)]
    #[case("1.5", None)]
    fn integers(#[case] text: &str, #[case] number: Option<i64>) {
        assert_eq!(integer(text), number);
    }
}
