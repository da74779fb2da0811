//! Rows: the steps of the webhook of new pods.

use rstest::rstest;

use super::*;
use crate::api::v1alpha1::{PodUnavailableBudget, WorkloadSpread};
use crate::gates::FeatureGates;
use crate::kit::WebhookCaches;
use crate::kit::admission::Surroundings;
use crate::test_admission::admit_whole;

#[rstest]
#[case("", "apps.kruise.io/v1alpha1", json!([{ "conditionType": "InPlaceUpdateReady" }]), 2)]
#[case("", "apps.kruise.io/v1alpha1", json!([{ "conditionType": "KruisePodReady" }]), 1)]
#[case("", "apps.kruise.io/v1alpha1", Value::Null, 1)]
#[case("", "apps/v1", json!([]), 0)]
#[case("KruisePodReadinessGate=true", "apps/v1", json!([]), 1)]
#[tokio::test]
async fn pods_of_openkruises_workloads_get_the_gate(
    #[case] feature_gates: &str,
    #[case] api_version: &str,
    #[case] gates: Value,
    #[case] want: usize,
) {
    let pod = json!({
        "metadata": { "ownerReferences": [{ "apiVersion": api_version, "controller": true }] },
        "spec": { "readinessGates": gates },
    });
    let surroundings = Surroundings::alone(FeatureGates::parse(feature_gates).unwrap());
    let webhooks = [&crate::injection::WEBHOOKS[0]];
    let pod = admit_whole(&webhooks, &pod, None, &surroundings).await.unwrap();
    assert_eq!(pod["spec"]["readinessGates"].as_array().unwrap().len(), want);
}

/// A subset gives the pod a label, by which a budget selects it.
#[tokio::test]
async fn budgets_select_the_labels_of_subsets() {
    let spread: WorkloadSpread = serde_json::from_value(json!({
        "metadata": { "name": "ws", "namespace": "default", "uid": "w" },
        "spec": {
            "targetRef": { "apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet", "name": "c" },
            "subsets": [{ "name": "a", "patch": { "metadata": { "labels": { "tier": "gold" } } } }],
        },
    }))
    .unwrap();
    let budget: PodUnavailableBudget = serde_json::from_value(json!({
        "metadata": { "name": "gold", "namespace": "default", "uid": "b" },
        "spec": { "selector": { "matchLabels": { "tier": "gold" } }, "maxUnavailable": 1 },
    }))
    .unwrap();
    let surroundings = Surroundings {
        caches: WebhookCaches::default().with(vec![spread]).with(vec![budget]),
        ..Surroundings::alone(FeatureGates::default())
    };
    let owner = json!({
        "apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet", "name": "c", "uid": "c", "controller": true,
    });
    let pod = json!({
        "metadata": { "name": "p", "namespace": "default", "labels": { "app": "x" }, "ownerReferences": [owner] },
        "spec": { "containers": [{ "name": "main", "image": "i" }] },
    });
    let webhooks: Vec<_> = crate::injection::WEBHOOKS.iter().collect();
    let pod = admit_whole(&webhooks, &pod, None, &surroundings).await.unwrap();
    assert_eq!(pod["metadata"]["labels"]["tier"], "gold");
    assert_eq!(pod["metadata"]["annotations"][labels::RELATED_BUDGET], "gold");
}
