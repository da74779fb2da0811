//! Label selectors: the labels that they select, and their text.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::{Selector, SelectorExt as _};
use pod_rules::field_error::{aggregate, go_quote};
use pod_rules::{FieldError, names};

use super::go_syntax;

/// Whether the selector selects the labels. One that selects everything counts as none.
///
/// # Errors
/// The text of a selector that cannot be read.
pub fn selects(selector: &LabelSelector, labels: &BTreeMap<String, String>) -> Result<bool, String> {
    if problem(selector).is_some() {
        return Err("the selector is not valid".to_owned());
    }
    let matcher = Selector::try_from(selector.clone()).map_err(|error| error.to_string())?;
    Ok(!matcher.selects_all() && matcher.matches(labels))
}

/// Why Go can make no selector of it: the first requirement that is none.
pub fn problem(selector: &LabelSelector) -> Option<String> {
    let labels = selector.match_labels.iter().flatten();
    let labels = labels.map(|(key, value)| (key.as_str(), "In", std::slice::from_ref(value)));
    let expressions = selector.match_expressions.iter().flatten().map(|expression| {
        let values = expression.values.as_deref().unwrap_or_default();
        (expression.key.as_str(), expression.operator.as_str(), values)
    });
    labels
        .chain(expressions)
        .find_map(|(key, operator, values)| requirement_error(key, operator, values))
}

fn requirement_error(key: &str, operator: &str, values: &[String]) -> Option<String> {
    let mut errors = Vec::new();
    let mut problems = |path: String, value: &str, problems: Vec<String>| {
        if !problems.is_empty() {
            errors.push(FieldError::invalid(path, value, problems.join("; ")));
        }
    };
    problems("key".to_owned(), key, names::qualified_problems(key));
    for (at, value) in values.iter().enumerate() {
        problems(
            format!("values[{at}][{key}]"),
            value,
            names::label_value_problems(value),
        );
    }
    let wrong_values = match operator {
        "In" | "NotIn" if values.is_empty() => Some("for 'in', 'notin' operators, values set can't be empty"),
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            Some("values set must be empty for exists and does not exist")
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => None,
        _ => {
            return Some(format!(
                "{} is not a valid label selector operator",
                go_quote(operator)
            ));
        }
    };
    if let Some(detail) = wrong_values {
        let at = errors.iter().take_while(|error| error.path == "key").count();
        errors.insert(
            at,
            FieldError::invalid_shown("values", go_syntax::texts(values), detail),
        );
    }
    (!errors.is_empty()).then(|| aggregate(&errors))
}

/// A selector as Go prints it, sorted by key: `a=1,b in (x,y)`.
pub fn text(selector: &LabelSelector) -> String {
    let mut parts: Vec<(String, String)> = Vec::new();
    for (key, value) in selector.match_labels.iter().flatten() {
        parts.push((key.clone(), format!("{key}={value}")));
    }
    for requirement in selector.match_expressions.iter().flatten() {
        let key = &requirement.key;
        let mut values = requirement.values.clone().unwrap_or_default();
        values.sort();
        let values = values.join(",");
        let text = match requirement.operator.as_str() {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "DoesNotExist" => format!("!{key}"),
            _ => key.clone(),
        };
        parts.push((key.clone(), text));
    }
    parts.sort_by(|one, other| one.0.cmp(&other.0));
    parts
        .into_iter()
        .map(|(_, text)| text)
        .collect::<Vec<_>>()
        .join(",")
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    #[rstest]
    #[case(json!({}), "")]
    #[case(json!({ "matchLabels": { "b": "2", "a": "1" } }), "a=1,b=2")]
    #[case(json!({ "matchLabels": { "z": "1" }, "matchExpressions": [{ "key": "b", "operator": "In", "values": ["y", "x"] }] }), "b in (x,y),z=1")]
    #[case(json!({ "matchExpressions": [{ "key": "b", "operator": "NotIn", "values": ["x"] }] }), "b notin (x)")]
    #[case(json!({ "matchExpressions": [{ "key": "b", "operator": "Exists" }, { "key": "a", "operator": "DoesNotExist" }] }), "!a,b")]
    fn texts(#[case] selector: Value, #[case] expected: &str) {
        assert_eq!(text(&serde_json::from_value(selector).unwrap()), expected);
    }
}
