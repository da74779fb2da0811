//! Go's durations: `1m30s`, `500ms`.

use std::time::Duration;

use serde::{Deserialize, Deserializer};

/// Reads a duration as Go writes it; `None` if it is not one.
#[must_use]
pub fn parse(text: &str) -> Option<Duration> {
    if text == "0" {
        return Some(Duration::ZERO);
    }
    let mut rest = text;
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let digits = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .filter(|end| *end > 0)?;
        let number: f64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let unit_end = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let seconds = match &rest[..unit_end] {
            "h" => 3600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 0.001,
            "us" | "µs" => 0.000_001,
            "ns" => 0.000_000_001,
            _ => return None,
        };
        total = total.checked_add(Duration::try_from_secs_f64(number * seconds).ok()?)?;
        rest = &rest[unit_end..];
    }
    (!text.is_empty()).then_some(total)
}

/// A field that holds a duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GoDuration(pub Duration);

impl<'de> Deserialize<'de> for GoDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        parse(&text).map(Self).ok_or_else(|| {
            serde::de::Error::custom(format!("\"{text}\" is not a duration such as 30s or 1m30s"))
        })
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("30s", Some(30_000))]
    #[case("1m30s", Some(90_000))]
    #[case("500ms", Some(500))]
    #[case("1.5s", Some(1_500))]
    #[case("0", Some(0))]
    #[case("", None)]
    #[case("s", None)]
    #[case("5", None)]
    #[case("5 s", None)]
    fn reads(#[case] text: &str, #[case] ms: Option<u64>) {
        assert_eq!(parse(text), ms.map(Duration::from_millis));
    }
}
