//! Request policies for the capacity of shared devices.

use machinery::types::Quantity;
use shared_json::Value;

use super::super::amounts::shown;
use super::super::errors::Errors;
use super::super::fields::{Fields, NOTHING};
use super::super::path::Path;
use super::each;

const VALUES_MAX: usize = 10;

/// The policy for requests of a capacity.
pub(super) fn policy(capacity: &Value, policy: &Value, path: &Path<'_>, errors: &mut Errors) {
    let most = capacity.part("value").unwrap_or(&NOTHING);
    let (values, range) = (policy.list("validValues"), policy.part("validRange"));
    let default = policy.part("default");
    match (values.is_empty(), range) {
        (false, Some(_)) => errors.forbidden(
            path,
            "exactly one policy can be specified, cannot specify \"validValues\" and \"validRange\" at the same time",
        ),
        (false, None) => match default {
            None => errors.required(&path.field("default"), "required when validValues is defined"),
            Some(default) => one_of(values, default, most, &path.field("validValues"), errors),
        },
        (true, Some(range)) => match default {
            None => errors.required(&path.field("default"), "required when validRange is defined"),
            Some(default) => in_range(range, default, most, &path.field("validRange"), errors),
        },
        (true, None) => {}
    }
}

fn nanos(value: &Value) -> i128 {
    Quantity::of(value).nanos()
}

fn text(value: &Value) -> String {
    Quantity::of(value).canonical()
}

fn one_of(values: &[Value], default: &Value, most: &Value, path: &Path<'_>, errors: &mut Errors) {
    for (index, pair) in values.windows(2).enumerate() {
        if let [before, after] = pair
            && nanos(before) > nanos(after)
        {
            let at = path.index(index + 1);
            errors.invalid(&at, shown(after), "values must be sorted in ascending order");
        }
    }
    let mut is_default = false;
    each(values, VALUES_MAX, path, errors, |value, at, errors| {
        if nanos(value) > nanos(most) {
            let detail = format!("option is larger than capacity value: {}", text(most));
            errors.invalid(at, shown(value), detail);
        }
        is_default |= nanos(value) == nanos(default);
    });
    if values.len() <= VALUES_MAX {
        // They are told apart as whole units.
        let units = |value: &Value| Quantity::of(value).units();
        for (index, value) in values.iter().enumerate() {
            if values
                .iter()
                .take(index)
                .any(|other| units(other) == units(value))
            {
                errors.duplicate(&path.index(index), units(value).to_string());
            }
        }
    }
    if !is_default {
        let detail = "default value is not valid according to the requestPolicy";
        errors.invalid(path, shown(default), detail);
    }
}

fn in_range(range: &Value, default: &Value, most: &Value, path: &Path<'_>, errors: &mut Errors) {
    let at = path.field("min");
    let Some(min) = range.part("min") else {
        return errors.required(&at, "required when validRange is defined");
    };
    if nanos(min) > nanos(most) {
        let detail = format!("min is larger than capacity value: {}", text(most));
        errors.invalid(&at, shown(min), detail);
    }
    if nanos(default) < nanos(min) {
        errors.invalid(
            &at,
            shown(default),
            format!("default is less than min: {}", text(min)),
        );
    }
    let max = range.part("max");
    if let Some(max) = max {
        let at = path.field("max");
        if nanos(min) > nanos(max) {
            errors.invalid(&at, shown(min), format!("min is larger than max: {}", text(max)));
        }
        if nanos(max) > nanos(most) {
            let detail = format!("max is larger than capacity value: {}", text(most));
            errors.invalid(&at, shown(max), detail);
        }
        if nanos(default) > nanos(max) {
            errors.invalid(
                &at,
                shown(default),
                format!("default is more than max: {}", text(max)),
            );
        }
    }
    let Some(step) = range.part("step") else { return };
    let at = path.field("step");
    let first = Quantity::of(min).plus(Quantity::of(step));
    if first.nanos() > nanos(most) {
        let (first, most) = (first.canonical(), text(most));
        let detail = format!("one step {first} is larger than capacity value: {most}");
        errors.invalid(&at, shown(step), detail);
    }
    for value in [Some(default), max].into_iter().flatten() {
        let units = |value: &Value| Quantity::of(value).units();
        let rest = (units(value) - units(min)).checked_rem(units(step));
        if rest != Some(0) {
            let (step, min) = (text(step), text(min));
            let detail = format!("value is not a multiple of a given step ({step}) from ({min})");
            errors.invalid(&at, shown(value), detail);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use shared_json::json;

    #[rstest]
    #[case(json!({"default": "1", "validValues": ["1", "2"]}), &[])]
    #[case(json!({"default": "3", "validValues": ["2", "1"]}), &[
        "p.validValues[1]: Invalid value: \"1\": values must be sorted in ascending order",
        "p.validValues: Invalid value: \"3\": default value is not valid according to the requestPolicy",
    ])]
    #[case(json!({"default": "3", "validRange": {"min": "1", "max": "3", "step": "2"}}), &[])]
    #[case(json!({"default": "2", "validRange": {"min": "1", "step": "9"}}), &[
        "p.validRange.step: Invalid value: \"9\": one step 10 is larger than capacity value: 4",
        "p.validRange.step: Invalid value: \"2\": value is not a multiple of a given step (9) from (1)",
    ])]
    #[case(json!({"validRange": {"min": "1"}}), &["p.default: Required value: required when validRange is defined"])]
    fn policies(#[case] given: Value, #[case] expected: &[&str]) {
        let mut errors = Errors::default();
        policy(&json!({"value": "4"}), &given, &Path::new("p"), &mut errors);
        let said: Vec<String> = errors.into_vec().iter().map(ToString::to_string).collect();
        assert_eq!(said, expected);
    }
}
