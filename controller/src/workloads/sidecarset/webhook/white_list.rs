//! The white list of annotations that sets may give to pods, which the ConfigMap `kruise-configuration` has.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::{Selector, SelectorExt};
use regex::Regex;
use serde::Deserialize;

use crate::api::v1beta1::SidecarSetPatchPodMetadata;
use crate::injection::sidecars::selection::Labels;

/// The key of the white list.
pub(super) const KEY: &str = "SidecarSet_PatchPodMetadata_WhiteList";

#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct WhiteList {
    rules: Vec<Rule>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Rule {
    /// The sets for which the rule counts; all without one.
    selector: Option<LabelSelector>,
    /// Regular expressions for keys.
    allowed_annotation_key_exprs: Vec<String>,
}

/// Why the annotations are not allowed for a set with these labels. Without a list, or a rule that counts, there are none, unless that
/// is the default.
pub(super) fn error(
    list: Option<&str>,
    allowed_by_default: bool,
    labels: &Labels,
    patches: &[SidecarSetPatchPodMetadata],
) -> Option<String> {
    if patches.is_empty() {
        return None;
    }
    let Some(list) = list else {
        return (!allowed_by_default).then(|| "SidecarSet patch metadata whitelist not found".to_owned());
    };
    let list: WhiteList = match serde_json::from_str(list) {
        Ok(list) => list,
        Err(error) => return Some(error.to_string()),
    };
    let expressions = match expressions(&list.rules, labels) {
        Ok(expressions) => expressions,
        Err(why) => return Some(why),
    };
    // Rules that count and have no expression say nothing.
    if expressions.is_empty() {
        return (!allowed_by_default)
            .then(|| "sidecarSet patch metadata annotation is not allowed".to_owned());
    }
    let mut keys = patches
        .iter()
        .flat_map(|patch| patch.annotations.iter().flatten())
        .map(|(key, _)| key);
    let refused = keys.find(|key| !expressions.iter().any(|expression| expression.is_match(key)))?;
    Some(format!(
        "sidecarSet patch metadata annotation({refused}) is not allowed"
    ))
}

/// The expressions of the rules that count for a set with these labels; or why one cannot be read.
fn expressions(rules: &[Rule], labels: &Labels) -> Result<Vec<Regex>, String> {
    let mut found = Vec::new();
    for rule in rules {
        if let Some(selector) = &rule.selector {
            let selector = Selector::try_from(selector.clone()).map_err(|error| error.to_string())?;
            if !selector.matches(labels) {
                continue;
            }
        }
        for expression in &rule.allowed_annotation_key_exprs {
            found.push(Regex::new(expression).map_err(|error| error.to_string())?);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    const LIST: &str = r#"{"rules":[{"selector":{"matchLabels":{"team":"blue"}},"allowedAnnotationKeyExprs":["^a$","log"]}]}"#;

    #[rstest]
    #[case::no_list(
        None,
        false,
        "blue",
        "a",
        Some("SidecarSet patch metadata whitelist not found")
    )]
    #[case::no_list_by_default(None, true, "blue", "a", None)]
    #[case::allowed(Some(LIST), false, "blue", "a", None)]
    #[case::not_anchored(Some(LIST), false, "blue", "my-logs", None)]
    #[case::not_in_the_list(
        Some(LIST),
        false,
        "blue",
        "ab",
        Some("sidecarSet patch metadata annotation(ab) is not allowed")
    )]
    #[case::not_in_the_list_by_default(
        Some(LIST),
        true,
        "blue",
        "ab",
        Some("sidecarSet patch metadata annotation(ab) is not allowed")
    )]
    #[case::no_rule_counts(
        Some(LIST),
        false,
        "red",
        "a",
        Some("sidecarSet patch metadata annotation is not allowed")
    )]
    #[case::no_rule_counts_by_default(Some(LIST), true, "red", "a", None)]
    #[case::no_expressions_by_default(
        Some(r#"{"rules":[{"annotationKeyExprs":["a"]}]}"#),
        true,
        "red",
        "a",
        None
    )]
    #[case::no_expressions(
        Some(r#"{"rules":[{}]}"#),
        false,
        "red",
        "a",
        Some("sidecarSet patch metadata annotation is not allowed")
    )]
    #[case::no_expression(
        Some(r#"{"rules":[{"allowedAnnotationKeyExprs":["[a"]}]}"#),
        true,
        "red",
        "a",
        Some("regex parse error:\n    [a\n    ^\nerror: unclosed character class")
    )]
    #[case::for_all(
        Some(r#"{"rules":[{"allowedAnnotationKeyExprs":["^a$"]}]}"#),
        false,
        "red",
        "a",
        None
    )]
    fn annotations(
        #[case] list: Option<&str>,
        #[case] allowed_by_default: bool,
        #[case] team: &str,
        #[case] key: &str,
        #[case] want: Option<&str>,
    ) {
        let labels = Labels::from([("team".to_owned(), team.to_owned())]);
        let patches = serde_json::from_value(json!([{ "annotations": { key: "1" } }])).unwrap();
        let patches: Vec<SidecarSetPatchPodMetadata> = patches;
        assert_eq!(
            error(list, allowed_by_default, &labels, &patches).as_deref(),
            want
        );
    }
}
