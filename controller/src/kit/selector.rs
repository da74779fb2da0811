//! Label selectors in text form.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

/// A selector as Go prints it, sorted by key: `a=1,b in (x,y)`.
pub(crate) fn text(selector: &LabelSelector) -> String {
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
