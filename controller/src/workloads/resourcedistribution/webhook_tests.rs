//! Every recorded admission of a ResourceDistribution (OpenKruise 1.9.0), and the rules that no recording has.

use rstest::rstest;

use super::*;
use crate::gates::FeatureGates;
use crate::test_admission::{admit, recorded, refuses_to_create};

/// The API server's own refusals: the webhook is not asked.
const NOT_THE_WEBHOOKS: [&str; 4] = [
    "03-invalid-resource-missing",
    "04-invalid-resource-empty",
    "08-invalid-targets-missing",
    "17-invalid-bad-name",
];
/// The API server's error when the webhook tries the resource out.
const TRIED_OUT: (&str, &str) = (
    "06-invalid-resource-no-name",
    "ConfigMap \"\" is invalid: metadata.name: Required value: name or generateName is required",
);

fn surroundings(gates: &str) -> Surroundings {
    Surroundings {
        namespace: "kruise-system".to_owned(),
        ..Surroundings::alone(FeatureGates::parse(gates).unwrap())
    }
}

fn on() -> Surroundings {
    surroundings("ResourceDistributionGate=true")
}

#[tokio::test]
async fn answers_as_recorded() {
    let rows = recorded(include_str!("../../../tests/data/resourcedistribution.jsonl"));
    let mut compared = 0;
    for row in rows.iter().filter(|row| !NOT_THE_WEBHOOKS.contains(&&*row.name)) {
        let mut surroundings = on();
        if row.name == TRIED_OUT.0 {
            surroundings.client = Some(refuses_to_create(TRIED_OUT.1));
        }
        let got = admit(&[&VALIDATING], &row.object, row.old.as_ref(), &surroundings).await;
        assert_eq!(got, row.expected, "{}", row.name);
        compared += 1;
    }
    assert_eq!(compared, 12);
}

fn distribution(resource: Value, targets: Value) -> Value {
    json!({
        "apiVersion": "apps.kruise.io/v1alpha1", "kind": "ResourceDistribution", "metadata": { "name": "rd" },
        "spec": { "resource": resource, "targets": targets },
    })
}

fn config_map() -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "conf" } })
}

async fn check(new: &Value, old: Option<&Value>, surroundings: &Surroundings) -> Option<(u64, String)> {
    let refused = admit(&[&VALIDATING], new, old, surroundings).await.err();
    let prefix = "admission webhook \"vresourcedistribution.kb.io\" denied the request: ";
    refused.map(|(code, text)| (code, text.strip_prefix(prefix).unwrap_or(&text).to_owned()))
}

#[tokio::test]
async fn without_the_gate_nothing_is_taken() {
    let object = distribution(config_map(), json!({}));
    let refused = Some((
        403,
        "feature-gate ResourceDistributionGate is not enabled".to_owned(),
    ));
    assert_eq!(check(&object, None, &surroundings("")).await, refused);
    assert_eq!(check(&object, Some(&object), &surroundings("")).await, refused);
    assert_eq!(check(&object, None, &on()).await, None);
}

/// The API server refuses both by the definition's schema before it asks.
#[rstest]
#[case::left_out(
    Value::Null,
    "spec: Invalid value: runtime.RawExtension{Raw:[]uint8(nil), Object:runtime.Object(nil)}: empty resource is not allowed"
)]
#[case::without_a_kind(
    json!({ "a": 1 }),
    "spec: Internal error: failed to deserialize resource, please check your spec.resource, err Object 'Kind' is missing in '{\"a\":1}'"
)]
#[tokio::test]
async fn a_resource_without_a_kind_is_refused(#[case] resource: Value, #[case] expected: &str) {
    let refused = check(&distribution(resource, json!({})), None, &on()).await;
    assert_eq!(refused, Some((422, expected.to_owned())));
}

#[rstest]
#[case::both(
    json!({ "includedNamespaces": { "list": [{ "name": "a" }, { "name": "b" }] },
        "excludedNamespaces": { "list": [{ "name": "b" }, { "name": "a" }] } }),
    r#"spec.targets: Invalid value: v1alpha1.ResourceDistributionTargets{AllNamespaces:false, ExcludedNamespaces:v1alpha1.ResourceDistributionTargetNamespaces{List:[]v1alpha1.ResourceDistributionNamespace{v1alpha1.ResourceDistributionNamespace{Name:"b"}, v1alpha1.ResourceDistributionNamespace{Name:"a"}}}, IncludedNamespaces:v1alpha1.ResourceDistributionTargetNamespaces{List:[]v1alpha1.ResourceDistributionNamespace{v1alpha1.ResourceDistributionNamespace{Name:"a"}, v1alpha1.ResourceDistributionNamespace{Name:"b"}}}, NamespaceLabelSelector:v1.LabelSelector{MatchLabels:map[string]string(nil), MatchExpressions:[]v1.LabelSelectorRequirement(nil)}}: ambiguous targets because namespace [b a] is in both IncludedNamespaces.List and ExcludedNamespaces.List"#
)]
#[case::excluded_name(
    json!({ "excludedNamespaces": { "list": [{ "name": "a.b" }] } }),
    r#"spec.targets.excludedNamespaces: Invalid value: v1alpha1.ResourceDistributionTargetNamespaces{List:[]v1alpha1.ResourceDistributionNamespace{v1alpha1.ResourceDistributionNamespace{Name:"a.b"}}}: must not contain dots"#
)]
#[case::operator(
    json!({ "namespaceLabelSelector": { "matchExpressions": [{ "key": "a", "operator": "Near" }] } }),
    r#"spec.targets.namespaceLabelSelector: Invalid value: v1.LabelSelector{MatchLabels:map[string]string(nil), MatchExpressions:[]v1.LabelSelectorRequirement{v1.LabelSelectorRequirement{Key:"a", Operator:"Near", Values:[]string(nil)}}}: labelSelectorAsSelector error: "Near" is not a valid label selector operator"#
)]
#[case::values_of_exists(
    json!({ "namespaceLabelSelector": { "matchExpressions": [{ "key": "a", "operator": "Exists", "values": ["b"] }] } }),
    r#"spec.targets.namespaceLabelSelector: Invalid value: v1.LabelSelector{MatchLabels:map[string]string(nil), MatchExpressions:[]v1.LabelSelectorRequirement{v1.LabelSelectorRequirement{Key:"a", Operator:"Exists", Values:[]string{"b"}}}}: labelSelectorAsSelector error: values: Invalid value: []string{"b"}: values set must be empty for exists and does not exist"#
)]
#[tokio::test]
async fn targets_are_refused(#[case] targets: Value, #[case] expected: &str) {
    let refused = check(&distribution(config_map(), targets), None, &on()).await;
    assert_eq!(refused, Some((422, expected.to_owned())));
}

#[rstest]
#[case::empty(json!({}))]
#[case::all_but(json!({ "allNamespaces": true, "excludedNamespaces": { "list": [{ "name": "c" }] } }))]
#[case::all_and_names(json!({ "allNamespaces": true, "includedNamespaces": { "list": [{ "name": "z" }] } }))]
#[case::selector(json!({ "namespaceLabelSelector": { "matchLabels": { "x": "1" } } }))]
#[tokio::test]
async fn targets_are_taken(#[case] targets: Value) {
    assert_eq!(
        check(&distribution(config_map(), targets), None, &on()).await,
        None
    );
}

#[rstest]
#[case::data(json!({ "data": { "a": "2" } }), true)]
#[case::labels(json!({ "metadata": { "name": "conf", "labels": { "l": "1" } } }), true)]
#[case::name(json!({ "metadata": { "name": "other" } }), false)]
#[case::kind(json!({ "kind": "Secret" }), false)]
#[case::version(json!({ "apiVersion": "v2" }), false)]
#[tokio::test]
async fn a_resource_stays_the_same_object(#[case] change: Value, #[case] taken: bool) {
    let old = distribution(config_map(), json!({}));
    let mut resource = config_map();
    for (field, value) in change.as_object().unwrap() {
        resource[field] = value.clone();
    }
    let refused = check(&distribution(resource, json!({})), Some(&old), &on()).await;
    let expected =
        "spec.resource: Invalid value: \"null\": resource apiVersion, kind, and name are immutable";
    assert_eq!(refused, (!taken).then(|| (422, expected.to_owned())));
}

#[rstest]
#[case(json!({ "apiVersion": "v1", "kind": "Service" }))]
#[case(json!({ "apiVersion": "example.com/v1", "kind": "ConfigMap" }))]
#[tokio::test]
async fn only_secrets_and_config_maps_are_copied(#[case] resource: Value) {
    let refused = check(&distribution(resource, json!({})), None, &on()).await;
    let (code, text) = refused.unwrap();
    let expected = "unknown or unsupported resource GroupKind, only support [Secret ConfigMap]";
    assert!(code == 422 && text.ends_with(expected), "{text}");
}
