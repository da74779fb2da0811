//! Values in Go's own syntax, as `%#v` prints them.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use pod_rules::field_error::go_quote;
use serde_json::{Map, Value};

/// A JSON value as Go holds it in an `interface {}`; the keys of objects are sorted.
pub fn any(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) => go_quote(text),
        Value::Array(list) => {
            let items: Vec<String> = list.iter().map(any).collect();
            format!("[]interface {{}}{{{}}}", items.join(", "))
        }
        Value::Object(map) => {
            let mut fields: Vec<(&String, &Value)> = map.iter().collect();
            fields.sort_by_key(|(key, _)| *key);
            let fields: Vec<String> = fields
                .into_iter()
                .map(|(key, value)| format!("{}:{}", go_quote(key), any(value)))
                .collect();
            format!("map[string]interface {{}}{{{}}}", fields.join(", "))
        }
    }
}

/// A list of texts; one without an item is nil.
pub fn texts(list: &[String]) -> String {
    if list.is_empty() {
        return "[]string(nil)".to_owned();
    }
    let quoted: Vec<String> = list.iter().map(|text| go_quote(text)).collect();
    format!("[]string{{{}}}", quoted.join(", "))
}

/// A map of texts, whose keys are sorted. Values that are no texts are left out.
pub fn text_map(map: Option<&Map<String, Value>>) -> String {
    let Some(map) = map else {
        return "map[string]string(nil)".to_owned();
    };
    let texts: BTreeMap<&String, &str> = map
        .iter()
        .filter_map(|(key, value)| Some((key, value.as_str()?)))
        .collect();
    let pairs: Vec<String> = texts
        .into_iter()
        .map(|(key, value)| format!("{}:{}", go_quote(key), go_quote(value)))
        .collect();
    format!("map[string]string{{{}}}", pairs.join(", "))
}

/// A number or a text as Go's `%#v` prints it.
pub fn int_or_string(value: &IntOrString) -> String {
    match value {
        IntOrString::Int(number) => format!("intstr.IntOrString{{Type:0, IntVal:{number}, StrVal:\"\"}}"),
        IntOrString::String(text) => format!("intstr.IntOrString{{Type:1, IntVal:0, StrVal:{text:?}}}"),
    }
}

/// A selector as Go's `%#v` prints it.
pub fn selector(selector: &LabelSelector) -> String {
    let labels = match &selector.match_labels {
        Some(labels) if !labels.is_empty() => {
            let pairs: Vec<String> = labels
                .iter()
                .map(|(key, value)| format!("{key:?}:{value:?}"))
                .collect();
            format!("map[string]string{{{}}}", pairs.join(", "))
        }
        _ => "map[string]string(nil)".to_owned(),
    };
    let expressions = match selector.match_expressions.as_deref() {
        Some(list) if !list.is_empty() => {
            let list: Vec<String> = list
                .iter()
                .map(|requirement| {
                    let values: Vec<String> = requirement
                        .values
                        .iter()
                        .flatten()
                        .map(|v| format!("{v:?}"))
                        .collect();
                    let values = match &requirement.values {
                        Some(_) => format!("[]string{{{}}}", values.join(", ")),
                        None => "[]string(nil)".to_owned(),
                    };
                    let (key, operator) = (&requirement.key, &requirement.operator);
                    format!(
                        "v1.LabelSelectorRequirement{{Key:{key:?}, Operator:{operator:?}, Values:{values}}}"
                    )
                })
                .collect();
            format!("[]v1.LabelSelectorRequirement{{{}}}", list.join(", "))
        }
        _ => "[]v1.LabelSelectorRequirement(nil)".to_owned(),
    };
    format!("v1.LabelSelector{{MatchLabels:{labels}, MatchExpressions:{expressions}}}")
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case(json!(null), "interface {}(nil)")]
    #[case(json!(true), "true")]
    #[case(json!(3), "3")]
    #[case(json!("a\"b"), r#""a\"b""#)]
    #[case(json!({}), "map[string]interface {}{}")]
    #[case(json!({ "b": [1, "x"], "a": {} }), r#"map[string]interface {}{"a":map[string]interface {}{}, "b":[]interface {}{1, "x"}}"#)]
    fn values(#[case] value: Value, #[case] expected: &str) {
        assert_eq!(any(&value), expected);
    }

    #[rstest]
    #[case(&[], "[]string(nil)")]
    #[case(&["a", "b"], r#"[]string{"a", "b"}"#)]
    fn lists(#[case] list: &[&str], #[case] expected: &str) {
        let list: Vec<String> = list.iter().map(|text| (*text).to_owned()).collect();
        assert_eq!(texts(&list), expected);
    }
}
