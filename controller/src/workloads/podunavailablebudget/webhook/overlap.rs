//! Whether two selectors are taken to select the same pods.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

/// A requirement of a key: its operator and its values.
type Requirement<'a> = (&'a str, BTreeSet<&'a str>);

/// The requirements by key. A label hides an expression on the same key.
fn requirements(selector: &LabelSelector) -> BTreeMap<&str, Requirement<'_>> {
    let expressions = selector.match_expressions.iter().flatten().map(|expression| {
        let values = expression.values.iter().flatten().map(String::as_str).collect();
        (expression.key.as_str(), (expression.operator.as_str(), values))
    });
    let labels = selector.match_labels.iter().flatten();
    let labels = labels.map(|(key, value)| (key.as_str(), ("In", BTreeSet::from([value.as_str()]))));
    expressions.chain(labels).collect()
}

/// Whether OpenKruise takes both to select the same pods: they ask for the same keys, and no key keeps them apart.
pub(super) fn overlap(one: &LabelSelector, other: &LabelSelector) -> bool {
    let (one, other) = (requirements(one), requirements(other));
    one.keys().eq(other.keys())
        && one
            .values()
            .zip(other.values())
            .all(|(one, other)| may_both_hold(one, other) || may_both_hold(other, one))
}

fn may_both_hold((one, values): &Requirement<'_>, (other, others): &Requirement<'_>) -> bool {
    match (*one, *other) {
        ("In", "In") => !values.is_disjoint(others),
        ("In", "NotIn") => !values.is_subset(others),
        ("Exists", "In" | "NotIn" | "Exists")
        | ("NotIn", "NotIn" | "DoesNotExist")
        | ("DoesNotExist", "DoesNotExist") => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    fn labels(labels: Value) -> Value {
        json!({ "matchLabels": labels })
    }

    fn expression(operator: &str, values: &[&str]) -> Value {
        json!({ "matchExpressions": [{ "key": "app", "operator": operator, "values": values }] })
    }

    #[rstest]
    #[case::row_40(labels(json!({ "app": "a" })), labels(json!({ "app": "a", "tier": "b" })), false)]
    #[case::row_40_again(labels(json!({ "app": "a" })), labels(json!({ "app": "a" })), true)]
    #[case(labels(json!({ "app": "a" })), labels(json!({ "app": "b" })), false)]
    #[case(expression("In", &["a", "b"]), expression("In", &["b", "c"]), true)]
    #[case(expression("In", &["a", "b"]), expression("NotIn", &["a"]), true)]
    #[case(expression("In", &["a"]), expression("NotIn", &["a", "b"]), false)]
    #[case(expression("Exists", &[]), expression("NotIn", &["a"]), true)]
    #[case(expression("Exists", &[]), expression("DoesNotExist", &[]), false)]
    #[case(expression("NotIn", &["a"]), expression("NotIn", &["a"]), true)]
    #[case(expression("NotIn", &["a"]), expression("DoesNotExist", &[]), true)]
    #[case(expression("In", &["a"]), expression("DoesNotExist", &[]), false)]
    #[case::hidden(
        json!({ "matchLabels": { "app": "a" }, "matchExpressions": [{ "key": "app", "operator": "DoesNotExist" }] }),
        labels(json!({ "app": "a" })),
        true
    )]
    fn selectors(#[case] one: Value, #[case] other: Value, #[case] want: bool) {
        let [one, other] = [one, other].map(|selector| serde_json::from_value(selector).unwrap());
        assert_eq!(overlap(&one, &other), want);
        assert_eq!(overlap(&other, &one), want);
    }
}
