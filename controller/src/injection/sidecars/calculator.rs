//! The calculator of resources: expressions over `cpu` and `memory`, such as `max(cpu*50%, 50m)`.
//!
//! A value is a number or an amount with a unit. Sums and comparisons make an amount of a number; an amount times or by a number is
//! counted in thousandths, which are cut.

use pod_rules::quantity::Quantity;
use thiserror::Error;

/// How deep parentheses may be nested.
const DEPTH_MAX: usize = 100;
/// Thousandths in parts of 10^-9.
const MILLI: i128 = 1_000_000;
/// The units of amounts.
const UNITS: [&str; 11] = ["m", "k", "M", "G", "T", "P", "Ki", "Mi", "Gi", "Ti", "Pi"];

/// Why an expression has no value.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum CalculationError {
    /// It is no expression from this column on.
    #[error("parse error: syntax error at line 1, col {0}")]
    Syntax(usize),
    /// A variable that there is not.
    #[error("undefined variable: {0}")]
    Variable(String),
    /// A function that there is not.
    #[error("unknown function: {0}")]
    Function(String),
    /// A function with more or fewer arguments than two.
    #[error("{0} function requires exactly 2 arguments, got {1}")]
    Arguments(String, usize),
    /// An amount times an amount.
    #[error("multiplication of two quantities")]
    Product,
    /// Something by an amount.
    #[error("division by quantity")]
    ByQuantity,
    /// Something by nothing.
    #[error("division by zero")]
    ByZero,
    /// The value is less than zero.
    #[error("calculation result is negative: {0}")]
    Negative(String),
}

/// A value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Value {
    /// A plain number.
    Number(f64),
    /// An amount.
    Amount(Quantity),
}

use CalculationError as Error;

/// Evaluates an expression in which one variable has a value.
///
/// # Errors
/// If it has no value, or one that is less than zero.
pub(crate) fn evaluate(text: &str, variable: (&str, Value)) -> Result<Value, Error> {
    let mut parser = Parser {
        text,
        at: 0,
        depth: 0,
        variable,
    };
    let value = parser.sum()?;
    if parser.peek().is_some() {
        return Err(parser.syntax());
    }
    let negative = match value {
        Value::Number(number) => (number < 0.0).then(|| number.to_string()),
        Value::Amount(amount) => (amount.nanos() < 0).then(|| amount.canonical()),
    };
    negative.map_or(Ok(value), |shown| Err(Error::Negative(shown)))
}

/// The amount that a value stands for: a plain number counts as whole thousandths.
pub(crate) fn amount(value: Value) -> Quantity {
    match value {
        Value::Amount(amount) => amount,
        Value::Number(number) => of_milli(Quantity::count(0), number * 1000.0),
    }
}

/// So many thousandths, cut to whole ones, with the suffixes of `like`.
fn of_milli(like: Quantity, milli: f64) -> Quantity {
    #[expect(clippy::cast_possible_truncation, reason = "float to int casts saturate")]
    let milli = milli as i64;
    like.with_nanos(i128::from(milli) * MILLI)
}

fn add(one: Value, other: Value, sign: i128) -> Value {
    match (one, other) {
        #[expect(clippy::cast_precision_loss, reason = "the sign is 1 or -1")]
        (Value::Number(one), Value::Number(other)) => Value::Number(one + sign as f64 * other),
        (one, other) => {
            let (one, other) = (amount(one), amount(other));
            let like = if one.nanos() == 0 { other } else { one };
            let nanos = one.nanos().saturating_add(sign.saturating_mul(other.nanos()));
            Value::Amount(like.with_nanos(nanos))
        }
    }
}

fn scale(amount: Quantity, by: impl Fn(f64) -> f64) -> Value {
    #[expect(clippy::cast_precision_loss, reason = "Go counts in floats, too")]
    let milli = (amount.nanos() / MILLI) as f64;
    Value::Amount(of_milli(amount, by(milli)))
}

fn times(one: Value, other: Value) -> Result<Value, Error> {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => Ok(Value::Number(one * other)),
        (Value::Amount(amount), Value::Number(number)) | (Value::Number(number), Value::Amount(amount)) => {
            Ok(scale(amount, |milli| milli * number))
        }
        (Value::Amount(_), Value::Amount(_)) => Err(Error::Product),
    }
}

fn by(one: Value, other: Value) -> Result<Value, Error> {
    let Value::Number(divisor) = other else {
        return Err(Error::ByQuantity);
    };
    if divisor == 0.0 {
        return Err(Error::ByZero);
    }
    Ok(match one {
        Value::Number(number) => Value::Number(number / divisor),
        Value::Amount(amount) => scale(amount, |milli| milli / divisor),
    })
}

/// The greater or the lesser of two values.
fn extreme(one: Value, other: Value, greater: bool) -> Value {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            Value::Number(if greater { one.max(other) } else { one.min(other) })
        }
        (one, other) => {
            let (one, other) = (amount(one), amount(other));
            let first = (one.nanos() > other.nanos()) == greater;
            Value::Amount(if first { one } else { other })
        }
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    variable: (&'a str, Value),
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// The next character that is no blank.
    fn peek(&mut self) -> Option<char> {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
        self.rest().chars().next()
    }

    fn syntax(&self) -> Error {
        Error::Syntax(self.at + 1)
    }

    /// Takes the next character if it is this one.
    fn take(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        if found {
            self.at += wanted.len_utf8();
        }
        found
    }

    /// Takes characters while they are of a kind.
    fn take_while(&mut self, is_part: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn sum(&mut self) -> Result<Value, Error> {
        let mut value = self.product()?;
        loop {
            if self.take('+') {
                value = add(value, self.product()?, 1);
            } else if self.take('-') {
                value = add(value, self.product()?, -1);
            } else {
                return Ok(value);
            }
        }
    }

    fn product(&mut self) -> Result<Value, Error> {
        let mut value = self.factor()?;
        loop {
            if self.take('*') {
                value = times(value, self.factor()?)?;
            } else if self.take('/') {
                value = by(value, self.factor()?)?;
            } else {
                return Ok(value);
            }
        }
    }

    fn factor(&mut self) -> Result<Value, Error> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(self.syntax());
        }
        let value = self.unnested()?;
        self.depth -= 1;
        Ok(value)
    }

    fn unnested(&mut self) -> Result<Value, Error> {
        match self.peek() {
            Some('-') => {
                self.at += 1;
                let value = self.factor()?;
                Ok(match value {
                    Value::Number(number) => Value::Number(-number),
                    Value::Amount(amount) => Value::Amount(amount.with_nanos(-amount.nanos())),
                })
            }
            Some('(') => {
                self.at += 1;
                let value = self.sum()?;
                if self.take(')') {
                    Ok(value)
                } else {
                    Err(self.syntax())
                }
            }
            Some(c) if c.is_ascii_digit() || c == '.' => self.number(),
            Some(c) if c.is_ascii_alphabetic() || c == '_' => self.word(),
            _ => Err(self.syntax()),
        }
    }

    /// A variable or a function.
    fn word(&mut self) -> Result<Value, Error> {
        let word = self.take_while(|c| c.is_ascii_alphanumeric() || c == '_');
        if !self.take('(') {
            let (name, value) = self.variable;
            return match word.eq_ignore_ascii_case(name) {
                true => Ok(value),
                false => Err(Error::Variable(word.to_owned())),
            };
        }
        let mut arguments = vec![self.sum()?];
        while self.take(',') {
            arguments.push(self.sum()?);
        }
        if !self.take(')') {
            return Err(self.syntax());
        }
        let name = word.to_ascii_lowercase();
        if !matches!(name.as_str(), "max" | "min") {
            return Err(Error::Function(word.to_owned()));
        }
        match arguments[..] {
            [one, other] => Ok(extreme(one, other, name == "max")),
            _ => Err(Error::Arguments(name, arguments.len())),
        }
    }

    fn number(&mut self) -> Result<Value, Error> {
        let start = self.at;
        self.take_while(|c| c.is_ascii_digit());
        if self.rest().starts_with('.') {
            self.at += 1;
            self.take_while(|c| c.is_ascii_digit());
        }
        self.exponent();
        let digits = &self.text[start..self.at];
        let Ok(number) = digits.parse::<f64>() else {
            self.at = start;
            return Err(self.syntax());
        };
        if self.rest().starts_with('%') {
            self.at += 1;
            return Ok(Value::Number(number / 100.0));
        }
        let unit = self.take_while(|c| c.is_ascii_alphabetic());
        if unit.is_empty() {
            return Ok(Value::Number(number));
        }
        // OpenKruise takes an amount with an unknown unit for nothing.
        let known = UNITS.contains(&unit);
        let parsed = known
            .then(|| Quantity::parse(&format!("{digits}{unit}")))
            .flatten();
        Ok(Value::Amount(parsed.unwrap_or(Quantity::count(0))))
    }

    /// Takes an exponent, if a number goes on with one.
    fn exponent(&mut self) {
        let rest = self.rest();
        let Some(after) = rest.strip_prefix(['e', 'E']) else {
            return;
        };
        let digits = after.strip_prefix(['+', '-']).unwrap_or(after);
        if digits.starts_with(|c: char| c.is_ascii_digit()) {
            self.at += rest.len() - digits.len();
            self.take_while(|c| c.is_ascii_digit());
        }
    }
}

#[cfg(test)]
#[path = "calculator_tests.rs"]
mod tests;
