//! Rows: the status after a pass.

use rstest::rstest;
use serde_json::{Value, json};

use super::super::pass::plan;
use super::super::pass::tests::{observed, revisions};

/// The status after a pass, as JSON.
fn status(strategy: &str, subsets: &str, children: &str, before: Value, current: &str) -> Value {
    let before = json!({ "status": before });
    let observed = observed(strategy, 3, subsets, children, before);
    serde_json::to_value(plan(&observed, &revisions(current)).status).unwrap()
}

fn known(subsets: &[&str], current: &str) -> Value {
    let subsets: Value = subsets
        .iter()
        .map(|name| json!({ "name": name, "replicas": 9 }))
        .collect();
    json!({ "subsetStatuses": subsets, "currentRevision": current, "replicas": 0, "updatedReplicas": 0 })
}

fn conditions(status: &Value) -> String {
    let list = status["conditions"].as_array().unwrap().iter();
    let shown = |condition: &Value| {
        let field = |name: &str| condition[name].as_str().unwrap_or_default().to_owned();
        format!("{}={} {}", field("type"), field("status"), field("message"))
    };
    list.map(shown).collect::<Vec<_>>().join(", ")
}

#[test]
fn the_first_status_tells_what_is_to_be() {
    let mut status = status("", "b a=1", "", Value::Null, "u-new");
    let conditions = status.as_object_mut().unwrap().remove("conditions").unwrap();
    let kinds: Vec<&str> = conditions
        .as_array()
        .unwrap()
        .iter()
        .map(|condition| condition["type"].as_str().unwrap())
        .collect();
    assert_eq!(
        kinds,
        ["UnitedDeploymentUpdated", "SubsetProvisioned", "SubsetUpdated"]
    );
    assert_eq!(
        status,
        json!({
            "observedGeneration": 2, "replicas": 0, "updatedReplicas": 0, "currentRevision": "u-new", "labelSelector": "app=x",
            "subsetReplicas": { "a": 1, "b": 2 }, "subsetStatuses": [{ "name": "b" }, { "name": "a" }],
            "updateStatus": { "updatedRevision": "u-new", "currentPartitions": { "a": 0, "b": 0 } },
        })
    );
}

/// The workloads, and the sums: pods, ready ones, updated ones, those of them that are ready, reserved ones.
#[rstest]
#[case("", "a:1/1 b:2/1", [3, 2, 3, 2, 0])]
#[case::old_pods("", "a:1/1- b:2/1", [3, 2, 2, 1, 0])]
#[case::one_that_goes("", "a:1/1 b:2/1 c:2/2", [5, 4, 5, 4, 0])]
#[case::reserved("Reserve", "a:2/0w b:1/1", [1, 1, 3, 1, 2])]
fn sums(#[case] strategy: &str, #[case] children: &str, #[case] expect: [i64; 5]) {
    let status = status(strategy, "a b", children, Value::Null, "u-new");
    let fields = [
        "replicas",
        "readyReplicas",
        "updatedReplicas",
        "updatedReadyReplicas",
        "reservedPods",
    ];
    assert_eq!(fields.map(|field| status[field].as_i64().unwrap_or(0)), expect);
}

/// The current revision before, the workloads, and the current revision then.
#[rstest]
#[case::not_all_are_ready("u-old", "a:1/1 b:2/1", "u-old")]
#[case::all_that_there_are("u-old", "a:1/1 b:1/1", "u-new")]
#[case::none_at_all("u-old", "", "u-new")]
#[case::the_first("", "a:1/1- b:2/2-", "u-old")]
fn current_revisions(#[case] before: &str, #[case] children: &str, #[case] expect: &str) {
    let status = status("", "a b", children, known(&[], before), "u-old");
    assert_eq!(status["currentRevision"], expect);
}

/// The current revision, and the conditions when nothing is made or deleted.
#[rstest]
#[case(
    "u-new",
    "UnitedDeploymentUpdated=True updated to revision u-new, SubsetUpdated=True "
)]
#[case(
    "u-old",
    "UnitedDeploymentUpdated=False updating to revision u-new, SubsetUpdated=True "
)]
fn rollouts(#[case] current: &str, #[case] expect: &str) {
    let status = status("", "a b", "a:1/1 b:2/2", known(&["a", "b"], current), current);
    assert_eq!(conditions(&status), expect);
}

#[test]
fn a_rollout_to_yet_another_revision_began_with_the_first() {
    let condition = json!({ "type": "UnitedDeploymentUpdated", "status": "False", "reason": "UnitedDeploymentRevisionUpdating",
        "message": "updating to revision u-mid", "lastTransitionTime": "1970-01-01T00:00:07Z" });
    let mut before = known(&["a", "b"], "u-old");
    before["conditions"] = json!([condition]);
    let status = status("", "a b", "a:1/1- b:2/2-", before, "u-old");
    assert_eq!(status["conditions"][0]["message"], "updating to revision u-new");
    assert_eq!(
        status["conditions"][0]["lastTransitionTime"],
        "1970-01-01T00:00:07Z"
    );
}

/// The subsets of the status before, those of the spec, the workloads, and the subsets of the status then, with their pods.
#[rstest]
#[case::stays_in_its_place(&["b", "a"], "a b c", "a:1/1 b:1/1", "b1 a1 c0")]
#[case::gone(&["a", "c"], "a b", "a:1/1", "a1 b0")]
#[case::still_there(&["a", "c"], "a b", "a:1/1 c:2/2", "a1 c2 b0")]
fn entries(#[case] before: &[&str], #[case] subsets: &str, #[case] children: &str, #[case] expect: &str) {
    let status = status("", subsets, children, known(before, "u-new"), "u-new");
    let entries = status["subsetStatuses"].as_array().unwrap().iter();
    let shown: Vec<String> = entries
        .map(|entry| {
            let replicas = entry.get("replicas").and_then(Value::as_i64).unwrap_or(0);
            format!("{}{replicas}", entry["name"].as_str().unwrap())
        })
        .collect();
    assert_eq!(shown.join(" "), expect);
}

#[rstest]
#[case("Adaptive", "app=x")]
#[case("Reserve", "app=x,apps.kruise.io/united-deployment-reserved-pod=false")]
fn selectors(#[case] strategy: &str, #[case] expect: &str) {
    assert_eq!(
        status(strategy, "a", "", Value::Null, "u-new")["labelSelector"],
        expect
    );
}
