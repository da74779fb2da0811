//! Numbers of pods that a subset says: a number, or a percentage of all.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use thiserror::Error;

/// Why a number of pods is none. The texts are OpenKruise's.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(super) enum AmountError {
    /// It is negative.
    #[error("subset replicas ({0}) should not be less than 0")]
    Negative(i32),
    /// It is a percentage of nothing.
    #[error("subsetReplicas ({0}) should not be string when unitedDeployment replicas is empty")]
    OfNothing(String),
    /// It is a text that is no percentage.
    #[error("subset replicas ({0}) only support integer value or percentage value with a suffix '%'")]
    NotAPercentage(String),
    /// The text before the `%` is no number.
    #[error(
        "subset replicas ({0}) should be correct percentage integer: strconv.ParseInt: parsing {1:?}: {2}"
    )]
    Syntax(String, String, &'static str),
    /// It is more than all.
    #[error("subset replicas ({0}) should be in range [0, 100]")]
    OutOfRange(String),
}

/// The number of pods that `value` says of `all`. Percentages are rounded half up.
///
/// # Errors
/// Why it is none.
pub(super) fn parse(value: &IntOrString, all: Option<i32>) -> Result<i32, AmountError> {
    let text = match value {
        IntOrString::Int(number) if *number < 0 => return Err(AmountError::Negative(*number)),
        IntOrString::Int(number) => return Ok(*number),
        IntOrString::String(text) => text,
    };
    let Some(all) = all.filter(|all| *all >= 0) else {
        return Err(AmountError::OfNothing(text.clone()));
    };
    let Some(digits) = text.strip_suffix('%') else {
        return Err(AmountError::NotAPercentage(text.clone()));
    };
    let percent: i32 = digits.parse().map_err(|_| {
        let unsigned = digits.strip_prefix(['+', '-']).unwrap_or(digits);
        let is_number = !unsigned.is_empty() && unsigned.bytes().all(|byte| byte.is_ascii_digit());
        let why = if is_number {
            "value out of range"
        } else {
            "invalid syntax"
        };
        AmountError::Syntax(text.clone(), digits.to_owned(), why)
    })?;
    if !(0..=100).contains(&percent) {
        return Err(AmountError::OutOfRange(text.clone()));
    }
    let rounded = (i64::from(all) * i64::from(percent) + 50) / 100;
    Ok(i32::try_from(rounded).unwrap_or(i32::MAX))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn value(text: &str) -> IntOrString {
        text.parse()
            .map_or_else(|_| IntOrString::String(text.to_owned()), IntOrString::Int)
    }

    /// A value, the number of all pods, and the number that the value means.
    #[rstest]
    #[case("3", Some(2), Ok(3))]
    #[case("0", None, Ok(0))]
    #[case("50%", Some(6), Ok(3))]
    #[case("50%", Some(9), Ok(5))]
    #[case("10%", Some(5), Ok(1))]
    #[case("10%", Some(4), Ok(0))]
    #[case("25%", Some(7), Ok(2))]
    #[case("100%", Some(i32::MAX), Ok(i32::MAX))]
    #[case("+5%", Some(100), Ok(5))]
    #[case("-1", Some(2), Err("subset replicas (-1) should not be less than 0"))]
    #[case(
        "50%",
        None,
        Err("subsetReplicas (50%) should not be string when unitedDeployment replicas is empty")
    )]
    #[case(
        "abc",
        Some(2),
        Err("subset replicas (abc) only support integer value or percentage value with a suffix '%'")
    )]
    #[case(
        "",
        Some(2),
        Err("subset replicas () only support integer value or percentage value with a suffix '%'")
    )]
    #[case(
        "1.5%",
        Some(2),
        Err(
            "subset replicas (1.5%) should be correct percentage integer: strconv.ParseInt: parsing \"1.5\": invalid syntax"
        )
    )]
    #[case(
        "%",
        Some(2),
        Err(
            "subset replicas (%) should be correct percentage integer: strconv.ParseInt: parsing \"\": invalid syntax"
        )
    )]
    #[case(
        "99999999999%",
        Some(2),
        Err(
            "subset replicas (99999999999%) should be correct percentage integer: strconv.ParseInt: parsing \"99999999999\": value \
             out of range"
        )
    )]
    #[case("101%", Some(2), Err("subset replicas (101%) should be in range [0, 100]"))]
    #[case("-1%", Some(2), Err("subset replicas (-1%) should be in range [0, 100]"))]
    fn amounts(#[case] text: &str, #[case] all: Option<i32>, #[case] want: Result<i32, &str>) {
        let got = parse(&value(text), all).map_err(|error| error.to_string());
        assert_eq!(got, want.map_err(str::to_owned));
    }
}
