//! Limits of numbers, as the real server's validator reads them: whole numbers are judged by the whole part of a limit, in whole
//! numbers, and where only whole numbers are allowed, a limit with a fraction refuses every value. A number that is written with
//! a fraction (`1.0`) is no whole number.

use pod_rules::field_error::FieldError;
use shared_json::{Number, Value};

use super::schema::{Kind, Limits, Schema};
use super::validate::NO_FIELD;

/// One of the limits of a schema.
struct Bound {
    limit: f64,
    /// The name of a limit that does not fit the schema.
    called: &'static str,
    /// Whether a number (first) keeps a limit.
    keeps: fn(f64, f64) -> bool,
    /// The same for whole numbers, which may be larger than a float tells apart.
    keeps_whole: fn(i64, i64) -> bool,
    /// The complaint about a number outside of the limit.
    words: &'static str,
}

/// Whether a number is a multiple as the real server computes it, which forgives the rounding of floats.
fn is_multiple(number: f64, step: f64) -> bool {
    let times = match step < 1.0 {
        true => 1.0 / step * number,
        false => number / step,
    };
    let (whole, rest) = (times.trunc(), times.fract());
    rest == 0.0 || whole > 0.0 && rest / (times + whole) < RELATIVE_ERROR
}

/// How far a quotient may be from a whole number, relative to both.
const RELATIVE_ERROR: f64 = 1e-9;

const MULTIPLE: &str = "MultipleOf";

/// Whether a whole number is a multiple.
fn is_whole_multiple(number: i64, step: i64) -> bool {
    number.checked_rem(step).is_none_or(|rest| rest == 0)
}

/// A fraction as Go prints it: the fewest digits that identify it, with an exponent from a million on and below a ten-thousandth.
pub(crate) fn go_float(float: f64) -> String {
    const EXPONENTS: std::ops::Range<i32> = -4..6;
    let text = format!("{float:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if EXPONENTS.contains(&exponent) {
        return float.to_string();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

/// The limits, in the order of the complaints.
fn bounds(limits: &Limits) -> impl Iterator<Item = Bound> {
    type Keeps = (fn(f64, f64) -> bool, fn(i64, i64) -> bool);
    let bound = |limit: Option<f64>, called, (keeps, keeps_whole): Keeps, words| {
        limit.map(|limit| Bound {
            limit,
            called,
            keeps,
            keeps_whole,
            words,
        })
    };
    let multiple = bound(
        limits.multiple_of,
        MULTIPLE,
        (is_multiple, is_whole_multiple),
        "should be a multiple of",
    );
    let (keeps, words): (Keeps, _) = match limits.exclusive_minimum {
        true => (
            (|number, least| number > least, |number, least| number > least),
            "should be greater than",
        ),
        false => (
            (|number, least| number >= least, |number, least| number >= least),
            "should be greater than or equal to",
        ),
    };
    let minimum = bound(limits.minimum, "Minimum boundary", keeps, words);
    let (keeps, words): (Keeps, _) = match limits.exclusive_maximum {
        true => (
            (|number, most| number < most, |number, most| number < most),
            "should be less than",
        ),
        false => (
            (|number, most| number <= most, |number, most| number <= most),
            "should be less than or equal to",
        ),
    };
    let maximum = bound(limits.maximum, "Maximum boundary", keeps, words);
    [multiple, minimum, maximum].into_iter().flatten()
}

/// Complains about a number out of its limits.
pub(super) fn check(
    schema: &Schema,
    limits: &Limits,
    number: &Number,
    path: &str,
    errors: &mut Vec<FieldError>,
) {
    let float = number.as_f64().unwrap_or(f64::NAN);
    for bound in bounds(limits) {
        let unfit = matches!(schema.kind, Kind::Integer)
            .then(|| unfit(schema, bound.limit))
            .flatten();
        if let Some(wanted) = unfit {
            let detail = format!(
                "{} value must be of type integer {wanted} in {path}",
                bound.called
            );
            errors.push(FieldError::invalid(NO_FIELD, "", detail));
        }
        let whole = number.as_i64().filter(|_| unfit.is_none());
        // A fraction is cut off.
        let whole = whole.map(|number| (number, bound.limit as i64));
        let (keeps, factor, limit) = match whole {
            Some((number, limit)) => (
                (bound.keeps_whole)(number, limit),
                Value::from(limit),
                limit.to_string(),
            ),
            None => (
                (bound.keeps)(float, bound.limit),
                shown(bound.limit),
                go_float(bound.limit),
            ),
        };
        let is_positive = whole.map_or(bound.limit > 0.0, |(_, limit)| limit > 0);
        if bound.called == MULTIPLE && !is_positive {
            let detail = format!("factor MultipleOf declared for {path} must be positive: {limit}");
            errors.push(FieldError::invalid(path, factor, detail));
        } else if !keeps {
            let detail = format!("{path} in body {} {limit}", bound.words);
            let value = match number.is_f64() {
                true => shown(float),
                false => Value::Number(number.clone()),
            };
            errors.push(FieldError::invalid(path, value, detail));
        }
    }
}

/// From here on Go prints floats with an exponent.
const PRINTED_WHOLE: f64 = 1e6;

/// A number with a fraction for a complaint: Go prints no fraction of zeros.
fn shown(number: f64) -> Value {
    match number.fract() == 0.0 && number.abs() < PRINTED_WHOLE {
        true => Value::from(number as i64),
        false => Value::from(number),
    }
}

impl Schema {
    /// Whether any limit in it has a fraction: such a limit judges `1.0` otherwise than `1`.
    pub fn has_fractional_limits(&self) -> bool {
        if self.name.is_some() {
            return false;
        }
        let below = match &self.kind {
            Kind::Object(object) => {
                object
                    .fields
                    .values()
                    .any(|field| field.schema.has_fractional_limits())
                    || object
                        .additional
                        .as_ref()
                        .is_some_and(|values| values.has_fractional_limits())
            }
            Kind::Array(array) => array.items.has_fractional_limits(),
            _ => false,
        };
        below || self.is_limited_by_fractions()
    }

    /// Whether a limit of this value has a fraction.
    fn is_limited_by_fractions(&self) -> bool {
        let limits = self.limits.as_deref();
        let limits = limits.map(|limits| [limits.minimum, limits.maximum, limits.multiple_of]);
        let logic = self.logic.as_deref();
        let parts = logic.map(|logic| [&logic.all_of, &logic.any_of, &logic.one_of]);
        let mut parts = parts.into_iter().flatten().flatten();
        limits
            .into_iter()
            .flatten()
            .flatten()
            .any(|limit| limit.fract() != 0.0)
            || parts.any(Self::is_limited_by_fractions)
            || logic.is_some_and(|logic| logic.not.as_ref().is_some_and(Self::is_limited_by_fractions))
    }

    /// Gives whole numbers the fraction of zeros with which they were written, where a limit has a fraction.
    pub fn restore_fractions(&self, value: &mut Value, written: &Value) {
        if self.name.is_some() {
            return;
        }
        match (&self.kind, &mut *value, written) {
            (Kind::Object(object), Value::Object(map), Value::Object(written)) => {
                for (name, value) in map.iter_mut() {
                    let field = object.fields.get(name).map(|field| &field.schema);
                    let schema = field.or(object.additional.as_ref());
                    if let (Some(schema), Some(written)) = (schema, written.get(name)) {
                        schema.restore_fractions(value, written);
                    }
                }
            }
            (Kind::Array(array), Value::Array(items), Value::Array(written)) => {
                for (item, written) in items.iter_mut().zip(written.iter()) {
                    array.items.restore_fractions(item, written);
                }
            }
            (_, Value::Number(number), Value::Number(other)) => {
                let is_same = other.is_f64() && number.as_f64() == other.as_f64();
                if number.is_i64() && is_same && self.is_limited_by_fractions() {
                    *value = Value::Number(other.clone());
                }
            }
            _ => {}
        }
    }
}

/// The requirement that a limit of whole numbers does not meet.
fn unfit(schema: &Schema, limit: f64) -> Option<&'static str> {
    let is_whole = limit.fract() == 0.0;
    match schema.format.as_deref() {
        Some("int32") => {
            let fits = is_whole && limit >= f64::from(i32::MIN) && limit <= f64::from(i32::MAX);
            (!fits).then_some("with format int32")
        }
        Some("int64") => (!is_whole).then_some("with format int64"),
        _ => (!is_whole).then_some("(default format)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use shared_json::json;

    #[rstest]
    #[case::whole_number_beside_a_fraction(json!({"type": "number", "minimum": 1.5}), json!(1), &[])]
    #[case::what_is_whole_of_it(json!({"type": "number", "minimum": 1.5}), json!(0), &["a in body should be greater than or equal to 1"])]
    #[case::a_fraction(json!({"type": "number", "minimum": 1.5}), json!(1.25), &["a in body should be greater than or equal to 1.5"])]
    #[case::nothing_is_right(json!({"type": "integer", "minimum": 1.5}), json!(3), &["Minimum boundary value must be of type integer (default format) in a"])]
    #[case::nor_below(json!({"type": "integer", "maximum": 1.5, "format": "int32"}), json!(3), &[
        "Maximum boundary value must be of type integer with format int32 in a",
        "a in body should be less than or equal to 1.5",
    ])]
    #[case::multiples(json!({"type": "number", "multipleOf": 1.5}), json!(2), &[])]
    #[case::multiples_of_a_part(json!({"type": "number", "multipleOf": 0.1}), json!(0.3), &[])]
    #[case::a_fraction_of_none(json!({"type": "number", "minimum": 1.5}), json!(1.0), &["a in body should be greater than or equal to 1.5"])]
    #[case::a_fraction_of_none_is_a_multiple(json!({"type": "number", "multipleOf": 0.5}), json!(1.0), &[])]
    #[case::a_part_of_what_is_whole(json!({"type": "number", "multipleOf": 0.5}), json!(1), &["factor MultipleOf declared for a must be positive: 0"])]
    #[case::multiples_of_much(json!({"type": "integer", "multipleOf": 1_000_000_000}), json!(1_000_000_001), &["a in body should be a multiple of 1000000000"])]
    #[case::fractions_of_much(json!({"type": "number", "multipleOf": 1_000_000_000}), json!(1.5), &["a in body should be a multiple of 1e+09"])]
    #[case::large_multiples(json!({"type": "integer", "multipleOf": 3_000_000_000_i64}), json!(9_000_000_000_i64), &[])]
    #[case::above_the_floats(json!({"type": "integer", "maximum": 9_007_199_254_740_992_i64}), json!(9_007_199_254_740_993_i64), &["a in body should be less than or equal to 9007199254740992"])]
    #[case::multiples_of_nothing(json!({"type": "integer", "multipleOf": -1}), json!(1), &["factor MultipleOf declared for a must be positive: -1"])]
    fn limits(#[case] schema: Value, #[case] value: Value, #[case] expected: &[&str]) {
        let schema =
            Schema::from_openapi_v3_unchecked(&json!({"type": "object", "properties": {"a": schema}}));
        let found = schema.validate(&json!({"a": value}));
        let found: Vec<&str> = found.iter().map(|error| error.detail.as_str()).collect();
        assert_eq!(found, expected);
    }
}
