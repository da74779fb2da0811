//! Expressions and their values.

use rstest::rstest;

use super::*;

fn shown(result: Result<Value, Error>) -> String {
    match result {
        Ok(Value::Number(number)) => number.to_string(),
        Ok(Value::Amount(amount)) => amount.canonical(),
        Err(error) => error.to_string(),
    }
}

#[rstest]
#[case("cpu", "100m", "100m")]
#[case("CPU", "100m", "100m")]
#[case("cpu*50%", "150m", "75m")]
#[case("50%*cpu", "150m", "75m")]
#[case("10m", "100m", "10m")]
#[case("cpu/3", "100m", "33m")]
#[case("cpu+100m*2", "100m", "300m")]
#[case("(cpu+100m)*2", "100m", "400m")]
#[case("cpu-200m", "100m", "calculation result is negative: -100m")]
#[case("max(cpu-200m, 0)", "100m", "0")]
#[case("min(cpu, 2)", "3", "2")]
#[case("Max(cpu, 1)", "500m", "1")]
#[case("-cpu+1", "250m", "750m")]
#[case("cpu - -50m", "100m", "150m")]
#[case("1e-1*cpu", "1", "100m")]
#[case("cpu*1.5", "1", "1500m")]
#[case("10x", "1", "0")]
#[case("cpu*cpu", "1", "multiplication of two quantities")]
#[case("1/cpu", "1", "division by quantity")]
#[case("cpu/0", "1", "division by zero")]
#[case("gpu", "1", "undefined variable: gpu")]
#[case("avg(cpu,1)", "1", "unknown function: avg")]
#[case("max(cpu)", "1", "max function requires exactly 2 arguments, got 1")]
#[case("cpu*", "1", "parse error: syntax error at line 1, col 5")]
#[case("", "1", "parse error: syntax error at line 1, col 1")]
#[case("cpu)", "1", "parse error: syntax error at line 1, col 4")]
#[case("2-1", "1", "1")]
#[case("8-2-1", "1", "5")]
#[case("8/4/2", "1", "1")]
fn expressions(#[case] text: &str, #[case] cpu: &str, #[case] want: &str) {
    let cpu = Value::Amount(Quantity::parse(cpu).unwrap());
    assert_eq!(shown(evaluate(text, ("cpu", cpu))), want);
}

#[rstest]
#[case("min(memory, 100Mi)", "128Mi", "100Mi")]
#[case("memory*2", "128Mi", "256Mi")]
#[case("memory+1", "1Ki", "1025")]
#[case("0-100Mi", "1", "calculation result is negative: -100Mi")]
fn amounts_keep_their_units(#[case] text: &str, #[case] memory: &str, #[case] want: &str) {
    let memory = Value::Amount(Quantity::parse(memory).unwrap());
    assert_eq!(shown(evaluate(text, ("memory", memory))), want);
}

#[rstest]
#[case("cpu*cpu", "1")]
#[case("1/cpu", "1")]
#[case("cpu-2", "calculation result is negative: -1")]
#[case("cpu-200m", "800m")]
fn numbers(#[case] text: &str, #[case] want: &str) {
    assert_eq!(shown(evaluate(text, ("cpu", Value::Number(1.0)))), want);
}

#[test]
fn nesting_has_an_end() {
    let text = format!("{}1{}", "(".repeat(2000), ")".repeat(2000));
    assert_eq!(
        evaluate(&text, ("cpu", Value::Number(1.0))),
        Err(Error::Syntax(101))
    );
    let minus = "-".repeat(2000);
    assert!(evaluate(&minus, ("cpu", Value::Number(1.0))).is_err());
}
