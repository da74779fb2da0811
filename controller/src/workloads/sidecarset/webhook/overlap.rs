//! Whether two selectors may select the same object.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

/// One requirement of a selector.
struct Requirement<'a> {
    key: &'a str,
    operator: &'a str,
    values: BTreeSet<&'a str>,
}

fn requirements(selector: &LabelSelector) -> Vec<Requirement<'_>> {
    let labels = selector
        .match_labels
        .iter()
        .flatten()
        .map(|(key, value)| Requirement {
            key,
            operator: "In",
            values: BTreeSet::from([value.as_str()]),
        });
    let expressions = selector
        .match_expressions
        .iter()
        .flatten()
        .map(|expression| Requirement {
            key: &expression.key,
            operator: &expression.operator,
            values: expression.values.iter().flatten().map(String::as_str).collect(),
        });
    labels.chain(expressions).collect()
}

/// Whether an object may be selected by both. Selectors count as disjoint only where OpenKruise sees it.
pub(super) fn may_overlap(one: &LabelSelector, other: &LabelSelector) -> bool {
    let (one, other) = (requirements(one), requirements(other));
    !excludes(&one, &other) && !excludes(&other, &one)
}

/// Whether a requirement of the one excludes everything that the other selects.
fn excludes(one: &[Requirement<'_>], other: &[Requirement<'_>]) -> bool {
    one.iter().any(|requirement| {
        let same: Vec<&Requirement<'_>> = other
            .iter()
            .filter(|other| other.key == requirement.key)
            .collect();
        let demands = |other: &&Requirement<'_>| matches!(other.operator, "In" | "Exists");
        match requirement.operator {
            "In" => same
                .iter()
                .any(|other| other.operator == "In" && other.values.is_disjoint(&requirement.values)),
            "NotIn" => same
                .iter()
                .any(|other| other.operator == "In" && other.values.is_subset(&requirement.values)),
            "DoesNotExist" => same.iter().any(demands),
            // OpenKruise takes a selector that does not ask for the key to exclude it.
            "Exists" => !same.iter().any(demands),
            _ => false,
        }
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// `a=b`, `a in b,c`, `a notin b`, `a exists`, `a !exists`, with `;` between.
    fn selector(text: &str) -> LabelSelector {
        let expressions = text.split(';').map(|part| {
            let words: Vec<&str> = part.split(' ').collect();
            let (key, operator, values) = match words[..] {
                [pair] => {
                    let (key, value) = pair.split_once('=').unwrap();
                    (key, "In", value)
                }
                [key, "in", values] => (key, "In", values),
                [key, "notin", values] => (key, "NotIn", values),
                [key, "exists"] => (key, "Exists", ""),
                [key, _] => (key, "DoesNotExist", ""),
                _ => panic!("{part:?}"),
            };
            let values: Vec<&str> = values.split(',').filter(|value| !value.is_empty()).collect();
            serde_json::json!({ "key": key, "operator": operator, "values": values })
        });
        let expressions: Vec<serde_json::Value> = expressions.collect();
        serde_json::from_value(serde_json::json!({ "matchExpressions": expressions })).unwrap()
    }

    #[rstest]
    #[case::row_44("a=b", "a=c", false)]
    #[case::row_45("a=b", "c=d", true)]
    #[case::row_46("a in b,c", "a in c,d", true)]
    #[case::row_47("a notin b", "a=b", false)]
    #[case::row_48("a exists", "a=b", true)]
    #[case::row_49("a exists", "c=d", false)]
    #[case::row_50("a !exists", "a=b", false)]
    #[case::two_keys("a=b;c=d", "a=b;c=e", false)]
    #[case::part_of_the_values("a notin b", "a in b,c", true)]
    #[case::both_absent("a !exists", "a !exists", true)]
    #[case::absent_and_other("a !exists", "c=d", true)]
    fn selectors(#[case] one: &str, #[case] other: &str, #[case] want: bool) {
        assert_eq!(may_overlap(&selector(one), &selector(other)), want);
        assert_eq!(may_overlap(&selector(other), &selector(one)), want);
    }
}
