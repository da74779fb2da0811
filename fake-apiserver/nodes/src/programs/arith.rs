//! `$((…))`: integers with the operators of C, and assignments to variables.

use std::iter::Peekable;
use std::vec::IntoIter;

/// Levels of binary operators, loosest first.
const LEVELS: [&[&str]; 10] = [
    &["||"],
    &["&&"],
    &["|"],
    &["^"],
    &["&"],
    &["==", "!="],
    &["<=", ">=", "<", ">"],
    &["<<", ">>"],
    &["+", "-"],
    &["*", "/", "%"],
];
/// All operators, of those that begin alike the longer one first.
const OPERATORS: [&str; 38] = [
    "<<=", ">>=", "||", "&&", "==", "!=", "<=", ">=", "<<", ">>", "++", "--", "+=", "-=", "*=", "/=", "%=",
    "&=", "|=", "^=", "=", "<", ">", "+", "-", "*", "/", "%", "(", ")", "!", "~", "&", "|", "^", "?", ":",
    ",",
];
/// How many parts an expression may have.
const TOKENS_MAX: usize = 200;

/// The variables of an expression.
pub(super) trait Variables {
    /// A variable's text; nothing if it is not set.
    fn value(&self, name: &str) -> String;
    /// Sets a variable.
    fn assign(&mut self, name: &str, value: i64);
}

/// The value of an expression. None for an invalid one.
pub(super) fn evaluate(text: &str, variables: &mut dyn Variables) -> Option<i64> {
    let tokens = tokens(text)?;
    if tokens.is_empty() {
        return Some(0);
    }
    let mut reader = Reader {
        tokens: tokens.into_iter().peekable(),
        variables,
    };
    let value = reader.list()?;
    reader.tokens.next().is_none().then_some(value)
}

fn tokens(text: &str) -> Option<Vec<String>> {
    let (mut out, mut rest) = (Vec::new(), text.trim_start());
    while !rest.is_empty() {
        let end = rest
            .find(|c: char| !c.is_alphanumeric() && c != '_')
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
        out.push(token.to_owned());
        rest = tail.trim_start();
    }
    (out.len() < TOKENS_MAX).then_some(out)
}

struct Reader<'a> {
    tokens: Peekable<IntoIter<String>>,
    variables: &'a mut dyn Variables,
}

impl Reader<'_> {
    fn take(&mut self, operator: &str) -> bool {
        self.tokens.next_if(|token| token == operator).is_some()
    }

    fn list(&mut self) -> Option<i64> {
        let mut value = self.assignment()?;
        while self.take(",") {
            value = self.assignment()?;
        }
        Some(value)
    }

    fn assignment(&mut self) -> Option<i64> {
        let mut ahead = self.tokens.clone();
        let name = ahead.next().filter(|name| is_name(name));
        let operator = ahead.next().and_then(|operator| match operator.as_str() {
            "==" | "!=" | "<=" | ">=" => None,
            operator => operator.strip_suffix('=').map(str::to_owned),
        });
        let (Some(name), Some(operator)) = (name, operator) else {
            return self.choice();
        };
        self.tokens = ahead;
        let right = self.assignment()?;
        let value = if operator.is_empty() {
            right
        } else {
            apply(&operator, self.variable(&name)?, right)?
        };
        self.variables.assign(&name, value);
        Some(value)
    }

    fn choice(&mut self) -> Option<i64> {
        let condition = self.level(0)?;
        if !self.take("?") {
            return Some(condition);
        }
        let first = self.assignment()?;
        let second = self.take(":").then(|| self.assignment())??;
        Some(if condition == 0 { second } else { first })
    }

    fn level(&mut self, at: usize) -> Option<i64> {
        let Some(operators) = LEVELS.get(at) else {
            return self.operand();
        };
        let mut value = self.level(at + 1)?;
        while let Some(operator) = self.tokens.next_if(|token| operators.contains(&token.as_str())) {
            let right = self.level(at + 1)?;
            value = apply(&operator, value, right)?;
        }
        Some(value)
    }

    fn operand(&mut self) -> Option<i64> {
        let token = self.tokens.next()?;
        match token.as_str() {
            "(" => {
                let value = self.list()?;
                self.take(")").then_some(value)
            }
            "-" => self.operand().map(i64::wrapping_neg),
            "+" => self.operand(),
            "~" => self.operand().map(|value| !value),
            "!" => self.operand().map(|value| i64::from(value == 0)),
            "++" | "--" => {
                let name = self.tokens.next().filter(|name| is_name(name))?;
                self.step(&name, token == "++").map(|(_, after)| after)
            }
            text if text.starts_with(|c: char| c.is_ascii_digit()) => number(text),
            name if is_name(name) => {
                let up = self.take("++");
                if up || self.take("--") {
                    return self.step(name, up).map(|(before, _)| before);
                }
                self.variable(name)
            }
            _ => None,
        }
    }

    /// Counts a variable up or down; its value before and after.
    fn step(&mut self, name: &str, up: bool) -> Option<(i64, i64)> {
        let before = self.variable(name)?;
        let after = before.wrapping_add(if up { 1 } else { -1 });
        self.variables.assign(name, after);
        Some((before, after))
    }

    fn variable(&self, name: &str) -> Option<i64> {
        match self.variables.value(name).trim() {
            "" => Some(0),
            text => match text.strip_prefix('-') {
                Some(positive) => number(positive).map(i64::wrapping_neg),
                None => number(text),
            },
        }
    }
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// A number in decimal, in hexadecimal after `0x`, or in octal after `0`.
fn number(text: &str) -> Option<i64> {
    if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        return i64::from_str_radix(digits, 16).ok();
    }
    match text.strip_prefix('0') {
        Some(digits) if !digits.is_empty() => i64::from_str_radix(digits, 8).ok(),
        _ => text.parse().ok(),
    }
}

fn apply(operator: &str, left: i64, right: i64) -> Option<i64> {
    let bits = || u32::try_from(right).ok();
    Some(match operator {
        "||" => i64::from(left != 0 || right != 0),
        "&&" => i64::from(left != 0 && right != 0),
        "|" => left | right,
        "^" => left ^ right,
        "&" => left & right,
        "==" => i64::from(left == right),
        "!=" => i64::from(left != right),
        "<=" => i64::from(left <= right),
        ">=" => i64::from(left >= right),
        "<" => i64::from(left < right),
        ">" => i64::from(left > right),
        "<<" => left.wrapping_shl(bits()?),
        ">>" => left.wrapping_shr(bits()?),
        "+" => left.wrapping_add(right),
        "-" => left.wrapping_sub(right),
        "*" => left.wrapping_mul(right),
        "/" => left.checked_div(right)?,
        _ => left.checked_rem(right)?,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use rstest::rstest;

    use super::*;

    impl Variables for BTreeMap<String, String> {
        fn value(&self, name: &str) -> String {
            self.get(name).cloned().unwrap_or_default()
        }

        fn assign(&mut self, name: &str, value: i64) {
            self.insert(name.to_owned(), value.to_string());
        }
    }

    #[rstest]
    #[case("i+1", Some(8), "7")]
    #[case("i * (2 - 5)", Some(-21), "7")]
    #[case("i % 4 == 3 && 1 < 2", Some(1), "7")]
    #[case("1 / 0", None, "7")]
    #[case("1 +", None, "7")]
    #[case("", Some(0), "7")]
    #[case("unset", Some(0), "7")]
    #[case("-i", Some(-7), "7")]
    #[case("!i || 0", Some(0), "7")]
    #[case("i++ + i", Some(15), "8")]
    #[case("--i", Some(6), "6")]
    #[case("i += 2 * 3", Some(13), "13")]
    #[case("j = i <<= 1, j", Some(14), "14")]
    #[case("i > 5 ? 10 : 20", Some(10), "7")]
    #[case("i == 5 ? 10 : i = 3", Some(3), "3")]
    #[case("0x1f & ~1 | 1", Some(31), "7")]
    #[case("010 + 1", Some(9), "7")]
    #[case("5 = i", None, "7")]
    #[case("1 >> 99", Some(0), "7")]
    fn values(#[case] text: &str, #[case] expected: Option<i64>, #[case] after: &str) {
        let mut variables = BTreeMap::from([("i".to_owned(), "7".to_owned())]);
        assert_eq!(evaluate(text, &mut variables), expected);
        assert_eq!(variables["i"], after);
    }
}
