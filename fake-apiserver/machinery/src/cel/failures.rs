//! Why an expression has no value, in the real server's words.

use kube_cel::cel::{ExecutionError, Value};

use super::library::TIME_OVERFLOW;

/// The error for a text that is no quantity.
const NO_QUANTITY: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

/// Conversions of texts, and their target types.
const CONVERSIONS: [(&str, &str); 6] = [
    ("int", "int"),
    ("uint", "uint"),
    ("double", "double"),
    ("bool", "bool"),
    ("timestamp", "google.protobuf.Timestamp"),
    ("duration", "google.protobuf.Duration"),
];

pub(super) fn describe(error: &ExecutionError) -> String {
    match error {
        ExecutionError::DivisionByZero(_) => "division by zero".to_owned(),
        ExecutionError::RemainderByZero(_) => "modulus by zero".to_owned(),
        ExecutionError::NoSuchKey(key) => format!("no such key: {key}"),
        ExecutionError::IndexOutOfBounds(Value::Int(index)) => format!("index out of bounds: {index}"),
        ExecutionError::Overflow(_, left, _) => match left {
            Value::Timestamp(_) => "timestamp overflow",
            Value::Duration(_) => "duration overflow",
            Value::UInt(_) => "unsigned integer overflow",
            _ => "integer overflow",
        }
        .to_owned(),
        ExecutionError::NoSuchOverload
        | ExecutionError::UnsupportedBinaryOperator(..)
        | ExecutionError::UnsupportedUnaryOperator(..)
        | ExecutionError::ValuesNotComparable(..) => "no such overload".to_owned(),
        ExecutionError::UndeclaredReference(name) => format!("no such attribute(s): {name}"),
        ExecutionError::FunctionError { function, message } => of_function(function, message),
        other => other.to_string(),
    }
}

/// A function's error about its arguments.
fn of_function(function: &str, message: &str) -> String {
    if message == "quantity is not an integer" {
        return "cannot convert value to integer".to_owned();
    }
    if let Some((pattern, _)) = message.split_once("' not a valid regex:") {
        let pattern = pattern.strip_prefix('\'').unwrap_or(pattern);
        return crate::pattern::problem(pattern).unwrap_or_else(|| message.to_owned());
    }
    if message.starts_with("no numeric value in ") || message.starts_with("unknown quantity suffix") {
        return NO_QUANTITY.to_owned();
    }
    let is_conversion = match function {
        "timestamp" if message == TIME_OVERFLOW => false,
        "timestamp" | "duration" => !message.contains("range") && !message.contains("time zone"),
        _ => message.contains("parse error") || message.contains("strconv.Parse"),
    };
    if let Some((_, to)) = CONVERSIONS
        .iter()
        .find(|(name, _)| *name == function && is_conversion)
    {
        return format!("type conversion error from 'string' to '{to}'");
    }
    out_of_range(message).map_or_else(
        || message.to_owned(),
        |index| format!("index out of range: {index}"),
    )
}

/// The index of `start index 7 out of range for string of length 3`.
fn out_of_range(message: &str) -> Option<&str> {
    let (before, _) = message
        .split_once(" out of range for string")
        .or_else(|| Some((message.strip_prefix("end ")?.strip_suffix(" out of range")?, "")))?;
    let (_, index) = before.rsplit_once("index ")?;
    Some(index)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(
        "int",
        "string parse error: invalid digit found in string",
        "type conversion error from 'string' to 'int'"
    )]
    #[case(
        "timestamp",
        "premature end of input",
        "type conversion error from 'string' to 'google.protobuf.Timestamp'"
    )]
    #[case(
        "duration",
        "Parsing Error: x",
        "type conversion error from 'string' to 'google.protobuf.Duration'"
    )]
    #[case(
        "bool",
        "strconv.ParseBool: parsing \"abc\": invalid syntax",
        "type conversion error from 'string' to 'bool'"
    )]
    #[case(
        "substring",
        "start index 7 out of range for string of length 3",
        "index out of range: 7"
    )]
    #[case("quantity", "no numeric value in 'bad'", NO_QUANTITY)]
    #[case("f", "something else", "something else")]
    fn words(#[case] function: &str, #[case] message: &str, #[case] expected: &str) {
        assert_eq!(of_function(function, message), expected);
    }
}
