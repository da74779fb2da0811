//! `format`: texts with clauses such as `%s` and `%.2f` in them, as they are filled in and as they are checked beforehand.
//!
//! Numbers with a point are written as in English: groups of three by commas, powers of ten as such.

use kube_cel::cel::common::ast::{Expr, IdedExpr};
use kube_cel::cel::extractors::This;
use kube_cel::cel::objects::Key;
use kube_cel::cel::{Context, ExecutionError, Value};
use std::sync::Arc;

use super::library::{type_of, written};
use super::ty::Ty;

/// Digits behind the point where a clause names none.
const PRECISION: usize = 6;

/// One clause.
struct Clause {
    kind: char,
    precision: usize,
}

/// A piece of a format: text as it is, or a clause.
enum Piece<'a> {
    Text(&'a str),
    Clause(Clause),
}

/// Adds the function.
pub(super) fn add(context: &mut Context<'static>) {
    context.add_function("format", |This(format): This<Arc<String>>, args: Value| {
        let Value::List(args) = args else {
            return Err(ExecutionError::NoSuchOverload);
        };
        match filled(&format, &args) {
            Ok(text) => Ok(super::values::text(&text)),
            Err(why) => Err(ExecutionError::function_error("format", why)),
        }
    });
}

/// Reads the format piece by piece, as long as `take` takes them.
fn pieces<'a>(
    format: &'a str,
    count: usize,
    mut take: impl FnMut(Piece<'a>, usize) -> Result<(), String>,
) -> Result<usize, String> {
    let (mut rest, mut index) = (format, 0);
    while let Some(at) = rest.find('%') {
        let (before, after) = rest.split_at(at);
        take(Piece::Text(before), index)?;
        if let Some(after) = after.strip_prefix("%%") {
            take(Piece::Text("%"), index)?;
            rest = after;
            continue;
        }
        if index >= count {
            return Err(format!("index {index} out of range"));
        }
        let (clause, after) = clause(after.get(1..).unwrap_or_default())?;
        take(Piece::Clause(clause), index)?;
        index += 1;
        rest = after;
    }
    take(Piece::Text(rest), index)?;
    Ok(index)
}

fn clause(text: &str) -> Result<(Clause, &str), String> {
    if text.is_empty() {
        return Err("unexpected end of string".to_owned());
    }
    let wrong = |why: String| Err(format!("could not parse formatting clause: {why}"));
    let (mut precision, mut rest) = (PRECISION, text);
    if let Some(digits) = text.strip_prefix('.') {
        let Some(end) = digits.find(|c: char| !c.is_ascii_digit()) else {
            return wrong(
                "error while parsing precision: could not find end of precision specifier".to_owned(),
            );
        };
        let (number, after) = digits.split_at(end);
        let Ok(read) = number.parse() else {
            return wrong(format!(
                "error while parsing precision: error while converting precision to integer: strconv.Atoi: parsing \
                 {number:?}: invalid syntax"
            ));
        };
        (precision, rest) = (read, after);
    }
    let kind = rest.chars().next().unwrap_or(' ');
    if !"sdfebxXo".contains(kind) {
        return wrong(format!("unrecognized formatting clause \"{kind}\""));
    }
    Ok((Clause { kind, precision }, rest.get(1..).unwrap_or_default()))
}

/// The error for a value that a clause does not take.
fn refused(kind: char, given: &str) -> String {
    let takes = match kind {
        'd' => "decimal clause can only be used on integers",
        'f' => "fixed-point clause can only be used on doubles",
        'e' => "scientific clause can only be used on doubles",
        'b' => "only integers and bools can be formatted as binary",
        'x' | 'X' => "only integers, byte buffers, and strings can be formatted as hex",
        'o' => "octal clause can only be used on integers",
        _ => {
            "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and \
             timestamps"
        }
    };
    format!("error during formatting: {takes}, was given {given}")
}

fn filled(format: &str, args: &[Value]) -> Result<String, String> {
    let mut out = String::new();
    pieces(format, args.len(), |piece, index| {
        match piece {
            Piece::Text(text) => out.push_str(text),
            Piece::Clause(clause) => {
                let value = args.get(index).unwrap_or(&Value::Null);
                let made = one(&clause, value).ok_or_else(|| refused(clause.kind, type_of(value)))?;
                out.push_str(&made);
            }
        }
        Ok(())
    })?;
    Ok(out)
}

/// A value formatted by a clause; none if it does not take such values.
fn one(clause: &Clause, value: &Value) -> Option<String> {
    Some(match (clause.kind, value) {
        ('s', value) => shown(value)?,
        ('d', Value::Int(number)) => number.to_string(),
        ('d', Value::UInt(number)) => number.to_string(),
        ('f', value) => fixed(number(value)?, clause.precision),
        ('e', value) => scientific(number(value)?, clause.precision),
        ('b', Value::Int(number)) => signed(*number, |n| format!("{n:b}")),
        ('b', Value::UInt(number)) => format!("{number:b}"),
        ('b', Value::Bool(flag)) => u8::from(*flag).to_string(),
        ('o', Value::Int(number)) => signed(*number, |n| format!("{n:o}")),
        ('o', Value::UInt(number)) => format!("{number:o}"),
        ('x' | 'X', value) => {
            let low = match value {
                Value::Int(number) => signed(*number, |n| format!("{n:x}")),
                Value::UInt(number) => format!("{number:x}"),
                Value::String(text) => text.bytes().map(|byte| format!("{byte:02x}")).collect(),
                Value::Bytes(bytes) => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
                _ => return None,
            };
            if clause.kind == 'X' {
                low.to_uppercase()
            } else {
                low
            }
        }
        _ => return None,
    })
}

fn signed(number: i64, write: impl Fn(u64) -> String) -> String {
    let sign = if number < 0 { "-" } else { "" };
    format!("{sign}{}", write(number.unsigned_abs()))
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Float(number) => Some(*number),
        Value::String(text) => match text.as_str() {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    }
}

/// A number that is none, or has no end.
fn endless(number: f64) -> Option<String> {
    if number.is_nan() {
        return Some("NaN".to_owned());
    }
    number
        .is_infinite()
        .then(|| if number > 0.0 { "∞" } else { "-∞" }.to_owned())
}

fn fixed(number: f64, precision: usize) -> String {
    if let Some(text) = endless(number) {
        return text;
    }
    let plain = format!("{:.precision$}", number.abs());
    let (whole, part) = plain.split_once('.').unwrap_or((&plain, ""));
    let mut grouped = String::new();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    let sign = if number.is_sign_negative() { "-" } else { "" };
    let point = if part.is_empty() { "" } else { "." };
    format!("{sign}{grouped}{point}{part}")
}

fn scientific(number: f64, precision: usize) -> String {
    if let Some(text) = endless(number) {
        return text;
    }
    let plain = format!("{number:.precision$e}");
    let (mantissa, power) = plain.split_once('e').unwrap_or((&plain, "0"));
    let raised = |c: char| match c {
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        c => c
            .to_digit(10)
            .and_then(|digit| char::from_u32(0x2070 + digit))
            .unwrap_or(c),
    };
    let (sign, digits) = match power.strip_prefix('-') {
        Some(digits) => ("⁻", digits),
        None => ("", power),
    };
    let power: String = format!("{digits:0>2}").chars().map(raised).collect();
    format!("{mantissa}×10{sign}{power}")
}

/// A value as `%s` shows it.
fn shown(value: &Value) -> Option<String> {
    Some(match value {
        Value::List(_) | Value::Map(_) => nested(value)?,
        Value::Null => "null".to_owned(),
        Value::String(text) => type_name(text).unwrap_or(text).to_owned(),
        Value::Bytes(bytes) => String::from_utf8(bytes.to_vec()).ok()?,
        Value::Opaque(_) => return None,
        other => match written(other.clone()) {
            Value::String(text) => text.to_string(),
            Value::Int(number) => number.to_string(),
            Value::UInt(number) => number.to_string(),
            _ => return None,
        },
    })
}

/// The name in a value that stands for a type.
fn type_name(text: &str) -> Option<&str> {
    text.strip_prefix("type(")?.strip_suffix(')')
}

/// A value as it is shown within a list or map: as the language would write it.
fn nested(value: &Value) -> Option<String> {
    Some(match value {
        Value::List(items) => {
            let items: Option<Vec<String>> = items.iter().map(nested).collect();
            format!("[{}]", items?.join(", "))
        }
        Value::Map(map) => {
            let mut entries = Vec::new();
            for (key, value) in map.map.iter() {
                let key = match key {
                    Key::String(text) => format!("{text:?}"),
                    other => other.to_string(),
                };
                entries.push((key, nested(value)?));
            }
            entries.sort();
            let entries: Vec<String> = entries
                .into_iter()
                .map(|(key, value)| format!("{key}:{value}"))
                .collect();
            format!("{{{}}}", entries.join(", "))
        }
        Value::String(text) => match type_name(text) {
            Some(name) => name.to_owned(),
            None => format!("{:?}", text.as_str()),
        },
        Value::Bytes(_) => format!("b{:?}", shown(value)?),
        Value::Timestamp(_) => format!("timestamp({:?})", shown(value)?),
        Value::Duration(_) => format!("duration({:?})", shown(value)?),
        Value::Float(number) if number.is_finite() => format!("{number:.PRECISION$}"),
        Value::Float(number) => format!("{:?}", super::library::number_text(*number)),
        other => shown(other)?,
    })
}

/// The error of a call whose format and arguments are literals: its node, and the reason.
pub(super) fn problem<'a>(
    call: u64,
    format: &str,
    args: &[IdedExpr],
    type_at: &dyn Fn(u64) -> Ty<'a>,
) -> Option<(u64, String)> {
    let mut place = call;
    let outcome = pieces(format, args.len(), |piece, index| {
        let (Piece::Clause(clause), Some(arg)) = (piece, args.get(index)) else {
            return Ok(());
        };
        match unfit(clause.kind, arg, type_at) {
            None => Ok(()),
            Some((id, given)) => {
                place = id;
                Err(refused(clause.kind, &given))
            }
        }
    });
    match outcome {
        Err(why) => Some((place, why)),
        Ok(used) if used < args.len() => Some((
            call,
            format!(
                "too many arguments supplied to string.format (expected {used}, got {})",
                args.len()
            ),
        )),
        Ok(_) => None,
    }
}

/// The argument, or the part of it, that a clause does not take, and its type.
fn unfit<'a>(kind: char, arg: &IdedExpr, type_at: &dyn Fn(u64) -> Ty<'a>) -> Option<(u64, String)> {
    let ty = type_at(arg.id);
    let fits = ty.is_open()
        || match kind {
            'd' | 'o' => matches!(ty, Ty::Int | Ty::Uint),
            'f' | 'e' => matches!(ty, Ty::Double | Ty::Text),
            'b' => matches!(ty, Ty::Int | Ty::Uint | Ty::Bool),
            'x' | 'X' => matches!(ty, Ty::Int | Ty::Uint | Ty::Text | Ty::Bytes),
            _ => !matches!(ty, Ty::Optional(_) | Ty::Object(_) | Ty::Named(_)),
        };
    if !fits {
        return Some((arg.id, type_name_of(&ty)));
    }
    match &arg.expr {
        Expr::List(list) if kind == 's' => list
            .elements
            .iter()
            .find_map(|element| unfit(kind, element, type_at)),
        _ => None,
    }
}

/// The name of a type without its parameters.
fn type_name_of(ty: &Ty<'_>) -> String {
    match ty {
        Ty::Timestamp => "google.protobuf.Timestamp".to_owned(),
        Ty::Duration => "google.protobuf.Duration".to_owned(),
        Ty::Null => "null_type".to_owned(),
        other => {
            let text = other.to_string();
            text.split('(').next().unwrap_or_default().to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::super::{Expression, Scope};

    #[rstest]
    #[case(
        "'%.2f %e %x %X %o %b %s'.format([1234.5, 1000.0, 255, 'hi', 8, 5, [1, 2]])",
        "1,234.50 1.000000×10⁰³ ff 6869 10 101 [1, 2]"
    )]
    #[case(
        "'%s %s %s %s'.format([duration('90s'), timestamp('2024-01-01T00:00:00Z'), b'ab', 1.0])",
        "90s 2024-01-01T00:00:00Z ab 1"
    )]
    #[case(
        "'%s %s'.format([type(1), {'a': 1, 'b': [true, null, 'x', 0.5]}])",
        r#"int {"a":1, "b":[true, null, "x", 0.500000]}"#
    )]
    #[case("'%d%% %x %.1e'.format([-5, -255, 0.00015])", "-5% -ff 1.5×10⁻⁰⁴")]
    fn texts(#[case] expression: &str, #[case] expected: &str) {
        let read = Expression::read(expression).expect("an expression");
        let value = read.value(&Scope::new(), &[]).expect("a value");
        assert_eq!(value, super::super::values::text(expected));
    }

    #[rstest]
    #[case(
        "'%d'.format([dyn('x')])",
        "error during formatting: decimal clause can only be used on integers, was given string"
    )]
    #[case("'%s %s'.format([1])", "index 1 out of range")]
    #[case(
        "'%z'.format([1])",
        "could not parse formatting clause: unrecognized formatting clause \"z\""
    )]
    fn refusals(#[case] expression: &str, #[case] expected: &str) {
        let read = Expression::read(expression).expect("an expression");
        let failure = read.value(&Scope::new(), &[]).expect_err("no value");
        assert_eq!(failure.text, expected);
    }
}
