//! Every recorded admission of a PodUnavailableBudget (OpenKruise 1.9.0), and the rules that no recording has.

use rstest::rstest;
use serde_json::{Value, json};

use super::VALIDATING;
use crate::api::v1alpha1::PodUnavailableBudget;
use crate::gates::FeatureGates;
use crate::kit::WebhookCaches;
use crate::kit::admission::Surroundings;
use crate::test_admission::{admit, recorded};

fn alone() -> Surroundings {
    Surroundings::alone(FeatureGates::default())
}

#[tokio::test]
async fn answers_as_recorded() {
    let rows = recorded(include_str!("../../../../tests/data/podunavailablebudget.jsonl"));
    for row in &rows {
        let got = admit(&[&VALIDATING], &row.object, row.old.as_ref(), &alone()).await;
        assert_eq!(got, row.expected, "{}", row.name);
    }
    assert_eq!(rows.len(), 18);
}

fn budget(name: &str, spec: Value) -> Value {
    json!({ "apiVersion": "policy.kruise.io/v1alpha1", "kind": "PodUnavailableBudget",
        "metadata": { "name": name, "namespace": "" }, "spec": spec })
}

async fn refusal(new: &Value, old: Option<&Value>, surroundings: &Surroundings) -> Option<(u64, String)> {
    let refused = admit(&[&VALIDATING], new, old, surroundings).await.err();
    let prefix = "admission webhook \"vpodunavailablebudget.kb.io\" denied the request: ";
    refused.map(|(code, text)| (code, text.strip_prefix(prefix).unwrap_or(&text).to_owned()))
}

const BY_LABEL: fn() -> Value =
    || json!({ "selector": { "matchLabels": { "app": "a" } }, "maxUnavailable": 1 });
const BY_TARGET: fn() -> Value = || json!({ "targetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "web" }, "maxUnavailable": 1 });

#[rstest]
#[case::both(
    json!({ "selector": { "matchLabels": { "app": "a" } }, "targetRef": { "apiVersion": "v1", "kind": "k", "name": "n" }, "maxUnavailable": 1 }),
    "spec.selector, targetRef: Required value: selector and targetRef are mutually exclusive"
)]
#[case::group(
    json!({ "targetRef": { "apiVersion": "a/b/c", "kind": "k", "name": "n" }, "maxUnavailable": 1 }),
    r#"spec.TargetReference: Invalid value: v1alpha1.TargetReference{APIVersion:"a/b/c", Kind:"k", Name:"n"}: unexpected GroupVersion string: a/b/c"#
)]
#[case::empty_selector(
    json!({ "selector": {}, "maxUnavailable": 1 }),
    "spec.selector: Invalid value: v1.LabelSelector{MatchLabels:map[string]string(nil), MatchExpressions:[]v1.LabelSelectorRequirement(nil)}: empty selector is not valid for PodUnavailableBudget."
)]
#[case::negative(
    json!({ "selector": { "matchLabels": { "app": "a" } }, "minAvailable": -1 }),
    r#"spec.minAvailable: Invalid value: intstr.IntOrString{Type:0, IntVal:-1, StrVal:""}: must be greater than or equal to 0"#
)]
#[case::many_digits(
    json!({ "selector": { "matchLabels": { "app": "a" } }, "minAvailable": "99999999999%" }),
    r#"spec.minAvailable: Invalid value: intstr.IntOrString{Type:1, IntVal:0, StrVal:"99999999999%"}: must not be greater than 100%"#
)]
#[tokio::test]
async fn specs_are_refused(#[case] spec: Value, #[case] expected: &str) {
    let refused = refusal(&budget("pub", spec), None, &alone()).await;
    assert_eq!(refused, Some((400, expected.to_owned())));
}

#[rstest]
#[case("DELETE", true)]
#[case("DELETE,EVICT,UPDATE,RESIZE", true)]
#[case("DELETE, EVICT", false)]
#[case("", false)]
#[tokio::test]
async fn operations_have_names(#[case] operations: &str, #[case] taken: bool) {
    let mut object = budget("pub", BY_LABEL());
    object["metadata"]["annotations"] = json!({ "kruise.io/pub-protect-operations": operations });
    assert_eq!(refusal(&object, None, &alone()).await.is_none(), taken);
}

#[rstest]
#[case(json!({ "selector": { "matchLabels": { "app": "a" } }, "minAvailable": "5%" }), true)]
#[case(json!({ "selector": { "matchLabels": { "app": "b" } }, "maxUnavailable": 1 }), false)]
#[tokio::test]
async fn the_pods_stay_the_same(#[case] spec: Value, #[case] taken: bool) {
    let refused = refusal(&budget("pub", spec), Some(&budget("pub", BY_LABEL())), &alone()).await;
    let expected = "spec.selector, targetRef: Required value: selector and targetRef cannot be modified";
    assert_eq!(refused, (!taken).then(|| (400, expected.to_owned())));
}

/// A budget that is there, and a new one.
#[rstest]
#[case::the_same_labels(
    BY_LABEL(),
    "new",
    BY_LABEL(),
    Some("pub.spec.selector is in conflict with other PodUnavailableBudget old")
)]
#[case::the_same_target(
    BY_TARGET(),
    "new",
    BY_TARGET(),
    Some("pub.spec.targetReference is in conflict with other PodUnavailableBudget old")
)]
#[case::labels_and_target(BY_LABEL(), "new", BY_TARGET(), None)]
#[case::itself(BY_LABEL(), "old", BY_LABEL(), None)]
#[tokio::test]
async fn budgets_may_conflict(
    #[case] old: Value,
    #[case] name: &str,
    #[case] new: Value,
    #[case] expected: Option<&str>,
) {
    let old: PodUnavailableBudget = serde_json::from_value(budget("old", old)).unwrap();
    let surroundings = Surroundings {
        caches: WebhookCaches::default().with(vec![old]),
        ..alone()
    };
    let refused = refusal(&budget(name, new), None, &surroundings).await;
    match expected {
        Some(expected) => assert!(refused.unwrap().1.ends_with(expected)),
        None => assert_eq!(refused, None),
    }
}

#[tokio::test]
async fn without_gates_nothing_is_taken() {
    let gates = FeatureGates::parse("PodUnavailableBudgetDeleteGate=false").unwrap();
    let refused = refusal(&budget("pub", BY_LABEL()), None, &Surroundings::alone(gates)).await;
    let expected = "feature PodUnavailableBudget is invalid, please open via \
                    feature-gate(PodUnavailableBudgetDeleteGate, PodUnavailableBudgetUpdateGate)";
    assert_eq!(refused, Some((400, expected.to_owned())));
}
