//! Every recorded admission of a WorkloadSpread (OpenKruise 1.9.0), and the rules that no recording has.

use rstest::rstest;
use serde_json::{Value, json};

use super::VALIDATING;
use crate::api::v1alpha1::WorkloadSpread;
use crate::gates::FeatureGates;
use crate::kit::WebhookCaches;
use crate::kit::admission::Surroundings;
use crate::test_admission::{admit, recorded};

/// Refused by the server itself: the webhook is not asked.
const NOT_THE_WEBHOOKS: [&str; 3] = [
    "07-invalid-no-target",
    "14-invalid-subset-no-name",
    "22-invalid-schedule-type",
];

fn alone() -> Surroundings {
    Surroundings::alone(FeatureGates::default())
}

#[tokio::test]
async fn answers_as_recorded() {
    let rows = recorded(include_str!("../../../../tests/data/workloadspread.jsonl"));
    let mut compared = 0;
    for row in rows.iter().filter(|row| !NOT_THE_WEBHOOKS.contains(&&*row.name)) {
        let got = admit(&[&VALIDATING], &row.object, row.old.as_ref(), &alone()).await;
        assert_eq!(got, row.expected, "{}", row.name);
        compared += 1;
    }
    assert_eq!(compared, 16);
}

fn spread(name: &str, kind: &str, subsets: Value) -> Value {
    let group = match kind {
        "Deployment" | "ReplicaSet" => "apps/v1",
        "Job" => "batch/v1",
        _ => "apps.kruise.io/v1alpha1",
    };
    json!({ "apiVersion": "apps.kruise.io/v1alpha1", "kind": "WorkloadSpread", "metadata": { "name": name, "namespace": "" },
        "spec": { "targetRef": { "apiVersion": group, "kind": kind, "name": "web" }, "subsets": subsets } })
}

async fn refusal(new: &Value, surroundings: &Surroundings) -> Option<(u64, String)> {
    let refused = admit(&[&VALIDATING], new, None, surroundings).await.err();
    let prefix = "admission webhook \"vworkloadspread.kb.io\" denied the request: ";
    refused.map(|(code, text)| (code, text.strip_prefix(prefix).unwrap_or(&text).to_owned()))
}

/// The limits of subsets `0`, `1`, …; the place of the error, and its detail.
#[rstest]
#[case(json!(["60%", "60%"]), Some((1, "the sum of all subset's maxReplicas exceeds 100% is no permitted")))]
#[case(json!(["40%", "40%"]), Some((0, "maxReplicas sum of all subsets must equal 100% when type is specified as percent")))]
#[case(json!(["40%", null]), None)]
#[case(json!(["40%", "60%"]), None)]
#[case(json!(["33.5%"]), Some((0, "maxReplicas is not valid for subset")))]
#[case::refused_here(json!(["5"]), Some((0, "maxReplicas is not valid for subset")))]
#[case(json!([1, "50%"]), Some((1, "the maxReplicas type of all subsets must be the same")))]
#[case(json!([1, 2, null]), None)]
#[tokio::test]
async fn numbers(#[case] limits: Value, #[case] want: Option<(usize, &str)>) {
    let subsets = limits.as_array().unwrap().iter().enumerate();
    let subsets: Vec<Value> = subsets
        .map(|(at, limit)| json!({ "name": at.to_string(), "maxReplicas": limit }))
        .collect();
    let refused = refusal(&spread("ws", "CloneSet", json!(subsets)), &alone()).await;
    match want {
        None => assert_eq!(refused, None),
        Some((at, detail)) => {
            let text = refused.unwrap().1;
            assert!(
                text.starts_with(&format!("spec.subsets[{at}].maxReplicas: Invalid value: ")),
                "{text}"
            );
            assert!(text.ends_with(detail), "{text}");
        }
    }
}

#[rstest]
#[case::stateful("StatefulSet", json!([{ "name": "a", "maxReplicas": "50%" }]), "the maxReplicas type must be Int for StatefulSet")]
#[case::duplicate("CloneSet", json!([{ "name": "a" }, { "name": "a" }]), "spec.subsets[1].name: Invalid value: \"a\": duplicated subset name a")]
#[case::none("CloneSet", json!([]), "spec.subsets: Required value: subsets number must >= 1 in WorkloadSpread")]
#[case::weight(
    "CloneSet",
    json!([{ "name": "a", "preferredNodeSelectorTerms": [{ "weight": 101, "preference": {} }] }]),
    "spec.subsets[0].preferredSchedulingTerms[0].weight: Invalid value: 101: must be in the range 1-100"
)]
#[tokio::test]
async fn lists(#[case] kind: &str, #[case] subsets: Value, #[case] end: &str) {
    let (code, text) = refusal(&spread("ws", kind, subsets), &alone()).await.unwrap();
    assert!(code == 400 && text.ends_with(end), "{text}");
}

#[rstest]
#[case("CloneSet", true)]
#[case("Deployment", true)]
#[case("ReplicaSet", true)]
#[case("Job", true)]
#[case("StatefulSet", true)]
#[case("DaemonSet", false)]
#[tokio::test]
async fn kinds(#[case] kind: &str, #[case] taken: bool) {
    let refused = refusal(&spread("ws", kind, json!([{ "name": "a" }])), &alone()).await;
    assert_eq!(refused.is_none(), taken);
}

#[rstest]
#[case("new", true)]
#[case("old", false)]
#[tokio::test]
async fn two_spreads_over_one_workload(#[case] name: &str, #[case] conflicts: bool) {
    let object = |name: &str| spread(name, "CloneSet", json!([{ "name": "a" }]));
    let old: WorkloadSpread = serde_json::from_value(object("old")).unwrap();
    let surroundings = Surroundings {
        caches: WebhookCaches::default().with(vec![old]),
        ..alone()
    };
    let refused = refusal(&object(name), &surroundings).await;
    assert_eq!(refused.is_some(), conflicts);
    if let Some((_, text)) = refused {
        assert!(
            text.ends_with("ws.spec.targetRef is in conflict with other WorkloadSpread old"),
            "{text}"
        );
    }
}

#[tokio::test]
async fn a_filter_that_cannot_be_read_is_refused() {
    let mut object = spread("ws", "CloneSet", json!([{ "name": "a" }]));
    object["spec"]["targetFilter"] =
        json!({ "selector": { "matchExpressions": [{ "key": "a", "operator": "Near" }] } });
    let (_, text) = refusal(&object, &alone()).await.unwrap();
    assert!(
        text.starts_with("spec.targetFilter.selector: Invalid value: v1.LabelSelector{"),
        "{text}"
    );
    assert!(
        text.ends_with("\"Near\" is not a valid label selector operator"),
        "{text}"
    );
}

#[tokio::test]
async fn without_the_gate_nothing_is_taken() {
    let gates = FeatureGates::parse("WorkloadSpread=false").unwrap();
    let object = spread("ws", "CloneSet", json!([{ "name": "a" }]));
    let refused = refusal(&object, &Surroundings::alone(gates)).await;
    assert_eq!(
        refused,
        Some((403, "feature-gate WorkloadSpread is not enabled".to_owned()))
    );
}
