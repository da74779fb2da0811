//! Numbers of a spec that may be percentages, as Go reads them.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use thiserror::Error;

/// A text is no number and no percentage.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NumberError {
    /// As Go's `strconv.Atoi` says it.
    #[error(
        "invalid value for IntOrString: invalid value {0:?}: strconv.Atoi: parsing {1:?}: invalid syntax"
    )]
    Syntax(String, String),
    /// A number without `%` where only a percentage may be a text.
    #[error("invalid type: string is not a percentage")]
    NotAPercentage,
}

/// Which way fractions go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Round {
    /// To the next higher number.
    Up,
    /// To the next lower number.
    Down,
}

/// A number, or a percentage of `total`. A text without `%` counts as a percentage too, as OpenKruise reads most of its
/// fields.
pub fn scaled(value: &IntOrString, total: i32, round: Round) -> Result<i32, NumberError> {
    match value {
        IntOrString::Int(number) => Ok(*number),
        IntOrString::String(text) => {
            let digits = text.replacen('%', "", 1);
            let percent: i64 =
                parse(&digits).ok_or_else(|| NumberError::Syntax(text.clone(), digits.clone()))?;
            let product = percent.saturating_mul(i64::from(total));
            let hundredth = match round {
                Round::Up => product.div_euclid(100) + i64::from(product.rem_euclid(100) != 0),
                Round::Down => product.div_euclid(100),
            };
            Ok(clamp(hundredth))
        }
    }
}

/// Go's Atoi: an optional sign and digits.
fn parse(text: &str) -> Option<i64> {
    text.parse().ok()
}

fn clamp(number: i64) -> i32 {
    i32::try_from(number).unwrap_or(if number > 0 { i32::MAX } else { i32::MIN })
}

/// How many pods keep the old revision, between 0 and `replicas`. Percentages may have fractions; they round up, but as
/// long as there is more than one replica, less than `100%` leaves at least one pod to update.
pub fn partition(value: &IntOrString, replicas: i32) -> Result<i32, NumberError> {
    let number = match value {
        IntOrString::Int(number) => *number,
        IntOrString::String(text) => {
            let digits = text.strip_suffix('%').ok_or(NumberError::NotAPercentage)?;
            let percent: f64 = digits
                .parse()
                .ok()
                .filter(|percent: &f64| percent.is_finite())
                .ok_or_else(|| NumberError::Syntax(text.clone(), digits.to_owned()))?;
            #[expect(clippy::cast_possible_truncation, reason = "float to int casts saturate")]
            let number = (percent * f64::from(replicas) / 100.0).ceil() as i32;
            if replicas > 1 && number == replicas && text != "100%" {
                replicas - 1
            } else {
                number
            }
        }
    };
    Ok(number.clamp(0, replicas.max(0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn value(text: &str) -> IntOrString {
        text.parse().map_or_else(
            |_| IntOrString::String(text.trim_matches('\'').to_owned()),
            IntOrString::Int,
        )
    }

    #[rstest]
    #[case("3", 10, Ok(3))]
    #[case("-1", 10, Ok(-1))]
    #[case("20%", 4, Ok(1))]
    #[case("20%", 5, Ok(1))]
    #[case("20%", 6, Ok(2))]
    #[case("0%", 6, Ok(0))]
    #[case("101%", 100, Ok(101))]
    #[case("'50'", 4, Ok(2))]
    #[case(
        "abc",
        4,
        Err(
            "invalid value for IntOrString: invalid value \"abc\": strconv.Atoi: parsing \"abc\": invalid syntax"
        )
    )]
    #[case("99999999999%", 100, Ok(i32::MAX))]
    fn rounds_up(#[case] text: &str, #[case] total: i32, #[case] want: Result<i32, &str>) {
        let got = scaled(&value(text), total, Round::Up).map_err(|error| error.to_string());
        assert_eq!(got, want.map_err(str::to_owned));
    }

    #[rstest]
    #[case("20%", 4, 0)]
    #[case("20%", 5, 1)]
    #[case("20%", 9, 1)]
    #[case("2", 9, 2)]
    fn rounds_down(#[case] text: &str, #[case] total: i32, #[case] want: i32) {
        assert_eq!(scaled(&value(text), total, Round::Down), Ok(want));
    }

    #[rstest]
    #[case("0", 5, Ok(0))]
    #[case("3", 5, Ok(3))]
    #[case("7", 5, Ok(5))]
    #[case("-3", 5, Ok(0))]
    #[case("0%", 5, Ok(0))]
    #[case("50%", 5, Ok(3))]
    #[case("99%", 5, Ok(4))]
    #[case("99.5%", 1000, Ok(995))]
    #[case("99.95%", 1000, Ok(999))]
    #[case("100%", 5, Ok(5))]
    #[case("101%", 5, Ok(5))]
    #[case("99%", 1, Ok(1))]
    #[case("'3'", 5, Err("invalid type: string is not a percentage"))]
    #[case("abc", 5, Err("invalid type: string is not a percentage"))]
    #[case(
        "NaN%",
        5,
        Err(
            "invalid value for IntOrString: invalid value \"NaN%\": strconv.Atoi: parsing \"NaN\": invalid syntax"
        )
    )]
    fn partitions(#[case] text: &str, #[case] replicas: i32, #[case] want: Result<i32, &str>) {
        let got = partition(&value(text), replicas).map_err(|error| error.to_string());
        assert_eq!(got, want.map_err(str::to_owned));
    }
}
