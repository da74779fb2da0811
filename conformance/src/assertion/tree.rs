//! Assertion trees: the wanted form of an object.
//!
//! A plain field must be equal below; fields that the tree does not name do not matter. A key in parentheses is an
//! expression over the value at hand, and the tree below it is compared with the result; `~.` before it compares each
//! element of the result (`~name.` binds its index); `->name` after it binds the result below. A text in parentheses is an expression whose result is
//! the wanted value. A list must have as many elements, each as wanted.

use shared_json::Value;

use super::expression::{Bindings, evaluate, inner};

/// Compares; returns the differences, each with the field's path. Empty means that the value is as it should be.
#[must_use]
pub fn check(tree: &Value, value: &Value, bindings: &Bindings) -> Vec<String> {
    let mut problems = Vec::new();
    compare(tree, value, bindings, "", &mut problems);
    problems
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}

fn compare(tree: &Value, value: &Value, bindings: &Bindings, path: &str, problems: &mut Vec<String>) {
    match tree {
        Value::Object(fields) => {
            for (key, below) in fields {
                field(key, below, value, bindings, path, problems);
            }
        }
        Value::Array(wanted) => {
            let Some(items) = value.as_array() else {
                problems.push(format!("{path}: Invalid value: {value}: expected a list"));
                return;
            };
            if items.len() != wanted.len() {
                let (has, wants) = (items.len(), wanted.len());
                problems.push(format!(
                    "{path}: Invalid value: lengths of slices don't match: has {has}, expected {wants}"
                ));
                return;
            }
            for (index, (wanted, item)) in wanted.iter().zip(items).enumerate() {
                compare(wanted, item, bindings, &format!("{path}[{index}]"), problems);
            }
        }
        Value::String(text) => match inner(text) {
            Some(expression) => match evaluate(expression, value, bindings) {
                Ok(wanted) => equal(&wanted, value, path, problems),
                Err(error) => problems.push(format!("{path}: Internal error: {error}")),
            },
            None => equal(tree, value, path, problems),
        },
        scalar => equal(scalar, value, path, problems),
    }
}

fn equal(wanted: &Value, value: &Value, path: &str, problems: &mut Vec<String>) {
    let same = match (wanted, value) {
        // 1 and 1.0 are one number.
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        (one, other) => one == other,
    };
    if !same {
        problems.push(format!(
            "{path}: Invalid value: {value}: Expected value: {wanted}"
        ));
    }
}

fn field(
    key: &str,
    below: &Value,
    value: &Value,
    bindings: &Bindings,
    path: &str,
    problems: &mut Vec<String>,
) {
    let each = key.strip_prefix('~').and_then(|rest| rest.split_once('.'));
    let each = each.filter(|(name, _)| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'));
    let (each, rest) = each.map_or((None, key), |(name, rest)| (Some(name), rest));
    let (rest, bound) = match rest.rsplit_once("->") {
        Some((rest, name)) => (rest, Some(name)),
        None => (rest, None),
    };
    let here = join(path, key);
    let found = match inner(rest) {
        Some(expression) => match evaluate(expression, value, bindings) {
            Ok(found) => found,
            Err(error) => {
                problems.push(format!("{here}: Internal error: {error}"));
                return;
            }
        },
        None => {
            // A parenthesis that belongs to a field's name is written with a backslash.
            let name = rest
                .strip_prefix('\\')
                .and_then(|name| name.strip_suffix('\\'))
                .unwrap_or(rest);
            match value.get(name) {
                Some(found) => found.clone(),
                None if below.is_null() => return,
                None => {
                    problems.push(format!(
                        "{here}: Required value: field not found in the input object"
                    ));
                    return;
                }
            }
        }
    };
    let mut inner_bindings = bindings.clone();
    if let Some(name) = bound {
        inner_bindings.set(name, found.clone());
    }
    let Some(index_name) = each else {
        compare(below, &found, &inner_bindings, &here, problems);
        return;
    };
    let Some(items) = found.as_array() else {
        problems.push(format!("{here}: Invalid value: {found}: expected a list"));
        return;
    };
    for (index, item) in items.iter().enumerate() {
        if !index_name.is_empty() {
            inner_bindings.set(index_name, Value::from(index));
        }
        compare(
            below,
            item,
            &inner_bindings,
            &format!("{here}[{index}]"),
            problems,
        );
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use shared_json::json;

    use super::*;

    #[rstest]
    #[case::equal(json!({"spec": {"replicas": 3}}), 0)]
    #[case::other(json!({"spec": {"replicas": 4}}), 1)]
    #[case::absent(json!({"spec": {"paused": true}}), 1)]
    #[case::absent_as_wanted(json!({"spec": {"paused": null}}), 0)]
    #[case::expression_key(json!({"(spec.replicas > `2`)": true}), 0)]
    #[case::length(json!({"(length(list))": 2}), 0)]
    #[case::list(json!({"list": [{"a": 1}, {"a": 2}]}), 0)]
    #[case::list_too_short(json!({"list": [{"a": 1}]}), 1)]
    #[case::each(json!({"~.(list)": {"(a > `0`)": true}}), 0)]
    #[case::each_fails(json!({"~.(list)": {"(a > `1`)": true}}), 1)]
    #[case::each_index(json!({"~i.(list)": {"($i < a)": true}}), 0)]
    #[case::each_index_fails(json!({"~i.(list)": {"(a == $i)": true}}), 2)]
    #[case::each_of_a_field(json!({"~at.list": {"($at < a)": true}}), 0)]
    #[case::bound(json!({"(spec.replicas)->r": {"($r == `3`)": true}}), 0)]
    #[case::binding(json!({"spec": {"replicas": "($want)"}}), 0)]
    #[case::filter(json!({"(list[?b == 'x'])": [{"a": 2}]}), 0)]
    #[case::undefined(json!({"(spec.replicas == $nothing)": true}), 1)]
    #[case::broken(json!({"(spec[)": true}), 1)]
    #[case::function(json!({"(split(name, '-'))": ["cs", "demo"]}), 0)]
    #[case::in_two_places(json!({"spec": {"replicas": 1}, "name": "x"}), 2)]
    fn trees(#[case] tree: Value, #[case] problems: usize) {
        let value =
            json!({"name": "cs-demo", "spec": {"replicas": 3}, "list": [{"a": 1}, {"a": 2, "b": "x"}]});
        let mut bindings = Bindings::default();
        bindings.set("want", json!(3));
        let found = check(&tree, &value, &bindings);
        assert_eq!(found.len(), problems, "{found:?}");
    }
}
