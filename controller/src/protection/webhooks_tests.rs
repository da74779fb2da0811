//! The rows of deletions.

use rstest::rstest;
use serde_json::{Value, json};

use crate::gates::FeatureGates;
use crate::kit::admission::Surroundings;
use crate::webhook::review;

const CLONE_SET: &str = "/validate-apps-kruise-io-v1alpha1-cloneset";
const ADVANCED: &str = "/validate-apps-kruise-io-statefulset";
const ON: &str = "ResourcesDeletionProtection=true";
const ON_FOR_DEFINITIONS: &str =
    "ResourcesDeletionProtection=true,DeletionProtectionForCRDCascadingGate=true";

fn object(label: &str, replicas: Option<i32>) -> Value {
    json!({ "kind": "Thing", "metadata": { "name": "x", "namespace": "default", "labels": { "policy.kruise.io/delete-protection": label } },
        "spec": { "replicas": replicas } })
}

fn request(old: &Value) -> Value {
    json!({ "request": { "uid": "u", "operation": "DELETE", "name": "x", "userInfo": { "username": "jane" }, "oldObject": old } })
}

/// The gates, the path, the label, the replicas, and the end of the refusal.
#[rstest]
#[case::row_1(ON, CLONE_SET, "Always", Some(0), Some("=Always"))]
#[case::row_2(ON, CLONE_SET, "Cascading", Some(1), Some("=Cascading and replicas 1>0"))]
#[case::row_3(ON, CLONE_SET, "Cascading", Some(0), None)]
#[case::row_4(ON, CLONE_SET, "always", Some(3), None)]
#[case::row_6(ON, ADVANCED, "Cascading", Some(1), Some("=Cascading and replicas 1>0"))]
#[case::row_7(
    ON,
    "/validate-apps-deployment",
    "Cascading",
    Some(1),
    Some("=Cascading and replicas 1>0")
)]
#[case::row_8(ON, "/validate-apps-statefulset", "Cascading", Some(0), None)]
#[case::a_replica_set(
    ON,
    "/validate-apps-replicaset",
    "Cascading",
    Some(2),
    Some("=Cascading and replicas 2>0")
)]
#[case::unknown_replicas(ON, "/validate-apps-replicaset", "Cascading", None, None)]
#[case::row_9(
    ON,
    "/validate-apps-kruise-io-v1alpha1-uniteddeployment",
    "Cascading",
    Some(2),
    Some("=Cascading and replicas 2>0")
)]
#[case::row_15(ON, "/validate-namespace", "Always", None, Some("=Always"))]
#[case::row_16(ON, "/validate-customresourcedefinition", "Always", None, Some("=Always"))]
#[case::row_17(
    ON,
    "/validate-customresourcedefinition",
    "Cascading",
    None,
    Some("feature-gate DeletionProtectionForCRDCascadingGate is not enabled")
)]
#[case::without_objects(
    ON_FOR_DEFINITIONS,
    "/validate-customresourcedefinition",
    "Cascading",
    None,
    None
)]
#[case::row_20(ON, "/validate-service", "Always", None, Some("=Always"))]
#[case::row_21(ON, "/validate-service", "Cascading", None, None)]
#[case::row_22(ON, "/validate-ingress", "Always", None, Some("=Always"))]
#[case::row_24("", CLONE_SET, "Always", Some(3), None)]
#[case::row_24_of_a_namespace("", "/validate-namespace", "Always", None, None)]
#[tokio::test]
async fn deletions(
    #[case] gates: &str,
    #[case] path: &str,
    #[case] label: &str,
    #[case] replicas: Option<i32>,
    #[case] expected: Option<&str>,
) {
    let surroundings = Surroundings::alone(FeatureGates::parse(gates).unwrap());
    let answer = review(path, &request(&object(label, replicas)), &surroundings).await;
    let response = &answer["response"];
    match expected {
        None => assert_eq!(response["allowed"], true, "{response}"),
        Some(end) => {
            let status = &response["status"];
            assert_eq!(
                (&response["allowed"], &status["code"]),
                (&json!(false), &json!(403))
            );
            let text = status["message"].as_str().unwrap();
            assert!(text.ends_with(end), "{text}");
            let known = "forbidden by ResourcesProtectionDeletion for policy.kruise.io/delete-protection=";
            assert!(
                text.starts_with(known) || text.starts_with("feature-gate "),
                "{text}"
            );
        }
    }
}

/// Row 23: no webhook is asked about the deletion of a DaemonSet, of either group.
#[test]
fn daemon_sets_are_not_protected() {
    let asked = crate::webhook::rules()
        .filter(|rule| rule.operations.contains(&"DELETE"))
        .flat_map(|rule| rule.resources);
    let asked: Vec<&str> = asked.copied().collect();
    assert!(
        asked.contains(&"statefulsets") && !asked.contains(&"daemonsets"),
        "{asked:?}"
    );
}

/// Row 26.
#[tokio::test]
async fn a_dry_run_is_refused_too() {
    let surroundings = Surroundings::alone(FeatureGates::parse(ON).unwrap());
    let mut request = request(&object("Always", Some(1)));
    request["request"]["dryRun"] = json!(true);
    request["request"]["options"] = json!({ "dryRun": ["All"] });
    let answer = review(CLONE_SET, &request, &surroundings).await;
    assert_eq!(answer["response"]["status"]["code"], 403, "{answer}");
}

/// Rows 5 and 25: an object that terminates, or has no label, goes.
#[rstest]
#[case(json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z", "labels": { "policy.kruise.io/delete-protection": "Always" } } }))]
#[case(json!({ "metadata": { "labels": {} } }))]
#[case(json!({ "metadata": {} }))]
#[tokio::test]
async fn unprotected_objects_go(#[case] object: Value) {
    let surroundings = Surroundings::alone(FeatureGates::parse(ON).unwrap());
    for path in [CLONE_SET, "/validate-namespace", "/validate-service"] {
        let answer = review(path, &request(&object), &surroundings).await;
        assert_eq!(answer["response"]["allowed"], true);
    }
}

#[rstest]
#[case(
    CLONE_SET,
    "workload_deletion_protection{kind_namespace_name=\"Thing_default_x\",username=\"jane\"} 1"
)]
#[case(
    "/validate-namespace",
    "namespace_deletion_protection{name=\"x\",username=\"jane\"} 1"
)]
#[case(
    "/validate-customresourcedefinition",
    "crd_deletion_protection{name=\"x\",username=\"jane\"} 1"
)]
#[tokio::test]
async fn refusals_are_counted(#[case] path: &str, #[case] line: &str) {
    let surroundings = Surroundings::alone(FeatureGates::parse(ON).unwrap());
    review(path, &request(&object("Always", Some(1))), &surroundings).await;
    let text = surroundings.metrics.text(super::METRICS);
    assert!(text.lines().any(|known| known == line), "{text}");
}
