//! `$((…))`: integers with the usual operators.

use std::iter::Peekable;
use std::vec::IntoIter;

/// Levels of binary operators, loosest first.
const LEVELS: [&[&str]; 6] = [
    &["||"],
    &["&&"],
    &["==", "!="],
    &["<=", ">=", "<", ">"],
    &["+", "-"],
    &["*", "/", "%"],
];

/// The value of an expression; names are looked up with `variable`. None for an invalid expression.
pub(super) fn evaluate(text: &str, variable: &dyn Fn(&str) -> String) -> Option<i64> {
    let mut tokens = tokens(text)?.into_iter().peekable();
    let value = level(&mut tokens, 0, variable)?;
    tokens.next().is_none().then_some(value)
}

fn tokens(text: &str) -> Option<Vec<String>> {
    const OPERATORS: [&str; 16] = [
        "||", "&&", "==", "!=", "<=", ">=", "<", ">", "+", "-", "*", "/", "%", "(", ")", "!",
    ];
    let (mut out, mut rest) = (Vec::new(), text.trim_start());
    while !rest.is_empty() {
        let end = rest
            .find(|c: char| !c.is_alphanumeric() && c != '_' && c != '$')
            .unwrap_or(rest.len());
        let length = if end > 0 {
            end
        } else {
            OPERATORS
                .iter()
                .find(|operator| rest.starts_with(**operator))?
                .len()
        };
        let (token, tail) = rest.split_at(length);
        out.push(token.trim_start_matches('$').to_owned());
        rest = tail.trim_start();
    }
    (out.len() < 200).then_some(out)
}

type Tokens = Peekable<IntoIter<String>>;

fn level(tokens: &mut Tokens, at: usize, variable: &dyn Fn(&str) -> String) -> Option<i64> {
    let Some(operators) = LEVELS.get(at) else {
        return operand(tokens, variable);
    };
    let mut value = level(tokens, at + 1, variable)?;
    while let Some(operator) = tokens.next_if(|token| operators.contains(&token.as_str())) {
        let right = level(tokens, at + 1, variable)?;
        value = match operator.as_str() {
            "||" => i64::from(value != 0 || right != 0),
            "&&" => i64::from(value != 0 && right != 0),
            "==" => i64::from(value == right),
            "!=" => i64::from(value != right),
            "<=" => i64::from(value <= right),
            ">=" => i64::from(value >= right),
            "<" => i64::from(value < right),
            ">" => i64::from(value > right),
            "+" => value.wrapping_add(right),
            "-" => value.wrapping_sub(right),
            "*" => value.wrapping_mul(right),
            "/" => value.checked_div(right)?,
            _ => value.checked_rem(right)?,
        };
    }
    Some(value)
}

fn operand(tokens: &mut Tokens, variable: &dyn Fn(&str) -> String) -> Option<i64> {
    let token = tokens.next()?;
    match token.as_str() {
        "(" => {
            let value = level(tokens, 0, variable)?;
            (tokens.next()? == ")").then_some(value)
        }
        "-" => operand(tokens, variable).map(i64::wrapping_neg),
        "+" => operand(tokens, variable),
        "!" => operand(tokens, variable).map(|value| i64::from(value == 0)),
        text if text.starts_with(|c: char| c.is_ascii_digit()) => text.parse().ok(),
        name => match variable(name).trim() {
            "" => Some(0),
            text => text.parse().ok(),
        },
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("i+1", Some(8))]
    #[case("$i * (2 - 5)", Some(-21))]
    #[case("i % 4 == 3 && 1 < 2", Some(1))]
    #[case("1 / 0", None)]
    #[case("1 +", None)]
    #[case("unset", Some(0))]
    #[case("-i", Some(-7))]
    #[case("!i || 0", Some(0))]
    fn values(#[case] text: &str, #[case] expected: Option<i64>) {
        let variable = |name: &str| {
            if name == "i" {
                "7".to_owned()
            } else {
                String::new()
            }
        };
        assert_eq!(evaluate(text, &variable), expected);
    }
}
