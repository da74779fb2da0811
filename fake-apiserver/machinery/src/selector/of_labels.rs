//! `metav1.LabelSelector`: the selector of a workload.

use shared_json::{Array, Map, Value};

/// Whether labels match a `LabelSelector` value; none matches nothing, an empty one everything.
pub fn matches_selector(selector: Option<&Value>, labels: &Map) -> bool {
    let Some(selector) = selector.filter(|selector| !selector.is_null()) else {
        return false;
    };
    let equal = selector.get("matchLabels").and_then(Value::as_object);
    let expressions = selector.get("matchExpressions").and_then(Value::as_array);
    equal
        .into_iter()
        .flatten()
        .all(|(key, value)| labels.get(key) == Some(value))
        && expressions.into_iter().flatten().all(|expression| {
            let text = |field: &str| expression.get(field).and_then(Value::as_str).unwrap_or_default();
            let label = labels.get(text("key"));
            let values = expression
                .get("values")
                .and_then(Value::as_array)
                .map(Array::as_slice)
                .unwrap_or_default();
            match text("operator") {
                "In" => label.is_some_and(|label| values.contains(label)),
                "NotIn" => label.is_none_or(|label| !values.contains(label)),
                "Exists" => label.is_some(),
                "DoesNotExist" => label.is_none(),
                _ => false,
            }
        })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use shared_json::json;

    use super::*;

    #[rstest]
    #[case(json!(null), false)]
    #[case(json!({}), true)]
    #[case(json!({"matchLabels": {"a": "1"}}), true)]
    #[case(json!({"matchLabels": {"a": "2"}}), false)]
    #[case(json!({"matchExpressions": [{"key": "a", "operator": "In", "values": ["1", "2"]}]}), true)]
    #[case(json!({"matchExpressions": [{"key": "b", "operator": "NotIn", "values": ["1"]}]}), true)]
    #[case(json!({"matchExpressions": [{"key": "b", "operator": "Exists"}]}), false)]
    #[case(json!({"matchExpressions": [{"key": "b", "operator": "DoesNotExist"}]}), true)]
    #[case(json!({"matchExpressions": [{"key": "a", "operator": "Odd"}]}), false)]
    fn selects(#[case] selector: Value, #[case] expected: bool) {
        let labels = json!({"a": "1"});
        assert_eq!(
            matches_selector(Some(&selector), labels.as_object().expect("labels")),
            expected
        );
    }
}
