//! Limits of numbers, as the real server's validator reads them: whole numbers are judged by the whole part of a limit, and
//! where only whole numbers are allowed, a limit with a fraction refuses every value.

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

/// A limit as a number that Go prints alike.
fn shown(limit: f64) -> Value {
    match limit.fract() == 0.0 {
        true => Value::from(limit as i64),
        false => Value::from(limit),
    }
}

/// The limits, in the order of the complaints.
fn bounds(limits: &Limits) -> impl Iterator<Item = Bound> {
    let bound = |limit: Option<f64>, called, keeps: fn(f64, f64) -> bool, words| {
        limit.map(|limit| Bound {
            limit,
            called,
            keeps,
            words,
        })
    };
    let multiple = bound(
        limits.multiple_of,
        MULTIPLE,
        is_multiple,
        "should be a multiple of",
    );
    let minimum = match limits.exclusive_minimum {
        true => bound(
            limits.minimum,
            "Minimum boundary",
            |number, least| number > least,
            "should be greater than",
        ),
        false => bound(
            limits.minimum,
            "Minimum boundary",
            |number, least| number >= least,
            "should be greater than or equal to",
        ),
    };
    let maximum = match limits.exclusive_maximum {
        true => bound(
            limits.maximum,
            "Maximum boundary",
            |number, most| number < most,
            "should be less than",
        ),
        false => bound(
            limits.maximum,
            "Maximum boundary",
            |number, most| number <= most,
            "should be less than or equal to",
        ),
    };
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
        let limit = match unfit {
            None if number.as_i64().is_some() => bound.limit.trunc(),
            _ => bound.limit,
        };
        if bound.called == MULTIPLE && limit <= 0.0 {
            let detail = format!("factor MultipleOf declared for {path} must be positive: {limit}");
            errors.push(FieldError::invalid(path, shown(limit), detail));
        } else if !(bound.keeps)(float, limit) {
            let detail = format!("{path} in body {} {limit}", bound.words);
            errors.push(FieldError::invalid(path, Value::Number(number.clone()), detail));
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
    #[case::multiples_of_nothing(json!({"type": "integer", "multipleOf": -1}), json!(1), &["factor MultipleOf declared for a must be positive: -1"])]
    fn limits(#[case] schema: Value, #[case] value: Value, #[case] expected: &[&str]) {
        let schema =
            Schema::from_openapi_v3_unchecked(&json!({"type": "object", "properties": {"a": schema}}));
        let found = schema.validate(&json!({"a": value}));
        let found: Vec<&str> = found.iter().map(|error| error.detail.as_str()).collect();
        assert_eq!(found, expected);
    }
}
