//! Rows: workloads from templates.

use rstest::rstest;

use super::super::test_world::set;
use super::*;

fn wanted() -> Wanted {
    Wanted {
        subset: "a".to_owned(),
        revision: "u-1".to_owned(),
        replicas: 3,
        partition: 2,
        max_unavailable: None,
    }
}

/// A UnitedDeployment with this template and these fields of its subset.
fn with(kind: ChildKind, spec: Value, subset: Value) -> UnitedDeployment {
    let mut set = set("");
    let mut whole = json!({ "selector": { "matchLabels": { "app": "x" } }, "template": {
        "metadata": { "labels": { "app": "x" } }, "spec": { "containers": [{ "name": "main", "image": "v1" }] } } });
    crate::kit::json::merge(&mut whole, spec);
    let template = json!({ kind.field(): {
        "metadata": { "labels": { "app": "x", "l": "1" }, "annotations": { "n": "1" } }, "spec": whole } });
    set.spec.template = serde_json::from_value(template).unwrap();
    let mut fields = json!({ "name": "a" });
    crate::kit::json::merge(&mut fields, subset);
    set.spec.topology.subsets = vec![serde_json::from_value(fields).unwrap()];
    set
}

fn made(set: &UnitedDeployment, kind: ChildKind) -> Value {
    let mut object = Value::Null;
    apply(set, kind, &wanted(), &mut object).unwrap();
    object
}

#[rstest]
#[case(ChildKind::StatefulSet, "apps/v1 StatefulSet")]
#[case(ChildKind::AdvancedStatefulSet, "apps.kruise.io/v1beta1 StatefulSet")]
#[case(ChildKind::CloneSet, "apps.kruise.io/v1alpha1 CloneSet")]
#[case(ChildKind::Deployment, "apps/v1 Deployment")]
fn what_all_kinds_have(#[case] kind: ChildKind, #[case] name: &str) {
    let object = made(&with(kind, json!({}), json!({})), kind);
    let text = |field: &str| object[field].as_str().unwrap().to_owned();
    assert_eq!(format!("{} {}", text("apiVersion"), text("kind")), name);
    let metadata = &object["metadata"];
    assert_eq!(
        metadata["labels"],
        json!({ "app": "x", "l": "1", labels::SUBSET_NAME: "a", labels::SUBSET_REVISION: "u-1" })
    );
    assert_eq!(
        metadata["annotations"],
        json!({ "n": "1", labels::SUBSET_PATCH: "" })
    );
    assert_eq!(
        (&metadata["generateName"], &metadata["namespace"]),
        (&json!("u-a-"), &json!("default"))
    );
    assert_eq!(metadata["ownerReferences"][0]["kind"], "UnitedDeployment");
    let spec = &object["spec"];
    assert_eq!(spec["replicas"], 3);
    assert_eq!(
        spec["selector"],
        json!({ "matchLabels": { "app": "x", labels::SUBSET_NAME: "a" } })
    );
    assert_eq!(
        spec["template"]["metadata"]["labels"],
        json!({ "app": "x", labels::SUBSET_NAME: "a", labels::SUBSET_REVISION: "u-1" })
    );
}

/// The kind, the strategy of the template, the field of the strategy, and the strategy of the workload.
#[rstest]
#[case(ChildKind::CloneSet, json!(null), json!({ "partition": 2 }))]
#[case(ChildKind::CloneSet, json!({ "type": "InPlaceOnly", "partition": "50%" }), json!({ "type": "InPlaceOnly", "partition": 2 }))]
#[case(ChildKind::StatefulSet, json!(null), json!({ "type": "RollingUpdate", "rollingUpdate": { "partition": 2 } }))]
#[case(ChildKind::StatefulSet, json!({ "type": "OnDelete" }), json!({ "type": "OnDelete" }))]
#[case(ChildKind::AdvancedStatefulSet, json!({}), json!({ "rollingUpdate": { "partition": 2 } }))]
#[case(
    ChildKind::AdvancedStatefulSet, json!({ "type": "RollingUpdate", "rollingUpdate": { "maxUnavailable": 2 } }),
    json!({ "type": "RollingUpdate", "rollingUpdate": { "maxUnavailable": 2, "partition": 2 } })
)]
#[case(ChildKind::AdvancedStatefulSet, json!({ "type": "OnDelete" }), json!({ "type": "OnDelete" }))]
#[case(ChildKind::Deployment, json!({ "type": "Recreate" }), json!({ "type": "Recreate" }))]
fn partitions(#[case] kind: ChildKind, #[case] strategy: Value, #[case] want: Value) {
    let field = if kind == ChildKind::Deployment {
        "strategy"
    } else {
        "updateStrategy"
    };
    let object = made(&with(kind, json!({ field: strategy }), json!({})), kind);
    assert_eq!(object["spec"][field], want);
}

#[rstest]
#[case(ChildKind::CloneSet, json!({ "updateStrategy": { "maxUnavailable": 1 } }), "/updateStrategy/maxUnavailable", json!(4))]
#[case(ChildKind::Deployment, json!({}), "/strategy/rollingUpdate/maxUnavailable", json!(4))]
#[case(ChildKind::Deployment, json!({ "strategy": { "type": "Recreate" } }), "/strategy", json!({ "type": "Recreate" }))]
fn limits_of_updates(#[case] kind: ChildKind, #[case] spec: Value, #[case] at: &str, #[case] want: Value) {
    let set = with(kind, spec, json!({}));
    let mut object = Value::Null;
    let wanted = Wanted {
        max_unavailable: Some(4),
        ..wanted()
    };
    apply(&set, kind, &wanted, &mut object).unwrap();
    assert_eq!(object["spec"].pointer(at), Some(&want));
}

/// The affinity and the tolerations of the template, those of the subset, and those of the pods.
#[rstest]
#[case::no_term(json!(null), json!([]), json!([["b"]]), json!(["b", "s"]))]
#[case::every_term(json!([["x"], ["y"]]), json!(["t"]), json!([["x", "b"], ["y", "b"]]), json!(["t", "b", "s"]))]
#[case::empty_list(json!([]), json!([]), json!([["b"]]), json!(["b", "s"]))]
fn nodes(#[case] terms: Value, #[case] tolerations: Value, #[case] want: Value, #[case] tolerated: Value) {
    let expression = |key: &Value| json!({ "key": key, "operator": "Exists" });
    let each = |list: &Value| -> Vec<Value> { list.as_array().unwrap().iter().map(expression).collect() };
    let mut spec = json!({ "tolerations": each(&tolerations) });
    if let Some(terms) = terms.as_array() {
        let terms: Vec<Value> = terms
            .iter()
            .map(|keys| json!({ "matchExpressions": each(keys) }))
            .collect();
        let [affinity, node, required, field] = TERMS;
        spec[affinity] = json!({ node: { required: { field: terms } } });
    }
    let subset = json!({ "nodeSelectorTerm": { "matchExpressions": each(&json!(["b"])), "matchFields": each(&json!(["f"])) },
        "tolerations": each(&json!(["b", "s"])) });
    let object = made(
        &with(
            ChildKind::CloneSet,
            json!({ "template": { "spec": spec } }),
            subset,
        ),
        ChildKind::CloneSet,
    );
    let pod = &object["spec"]["template"]["spec"];
    let keys = |list: &Value| -> Value {
        list.as_array()
            .unwrap()
            .iter()
            .map(|item| item["key"].clone())
            .collect()
    };
    let [affinity, node, required, field] = TERMS;
    let terms = pod[affinity][node][required][field].as_array().unwrap();
    let terms: Value = terms.iter().map(|term| keys(&term["matchExpressions"])).collect();
    assert_eq!((terms, keys(&pod["tolerations"])), (want, tolerated));
}

#[test]
fn the_patch_comes_last() {
    let patch = json!({ "metadata": { "labels": { "app": "y" } }, "spec": {
        "containers": [{ "name": "main", "env": [{ "name": "E", "value": "<1>" }] }], "tolerations": null } });
    let subset = json!({ "patch": patch, "tolerations": [{ "key": "t", "operator": "Exists" }] });
    let object = made(&with(ChildKind::CloneSet, json!({}), subset), ChildKind::CloneSet);
    let pod = &object["spec"]["template"];
    assert_eq!(pod["metadata"]["labels"]["app"], "y");
    assert_eq!(
        pod["spec"],
        json!({ "containers": [{ "name": "main", "image": "v1", "env": [{ "name": "E", "value": "<1>" }] }] })
    );
    assert_eq!(
        object["metadata"]["annotations"][labels::SUBSET_PATCH],
        r#"{"metadata":{"labels":{"app":"y"}},"spec":{"containers":[{"env":[{"name":"E","value":"\u003c1\u003e"}],"name":"main"}],"tolerations":null}}"#
    );
}

#[test]
fn a_bad_patch_is_an_error() {
    let set = with(
        ChildKind::CloneSet,
        json!({}),
        json!({ "patch": { "spec": { "$patch": "nonsense" } } }),
    );
    let error = apply(&set, ChildKind::CloneSet, &wanted(), &mut Value::Null).unwrap_err();
    assert!(error.contains("nonsense"), "{error}");
}

#[test]
fn what_others_wrote_stays_but_for_the_spec() {
    let set = with(ChildKind::CloneSet, json!({}), json!({}));
    let mut object = json!({
        "metadata": { "name": "u-a-x", "uid": "1", "labels": { "mine": "1" }, "annotations": { "mine": "1" },
            "ownerReferences": [{ "uid": "other" }] },
        "spec": { "replicas": 1, "minReadySeconds": 9 }, "status": { "replicas": 1 },
    });
    apply(&set, ChildKind::CloneSet, &wanted(), &mut object).unwrap();
    assert_eq!(object["metadata"]["labels"]["mine"], "1");
    assert_eq!(object["metadata"]["annotations"]["mine"], "1");
    assert_eq!(object["metadata"]["ownerReferences"].as_array().unwrap().len(), 2);
    assert_eq!(
        (&object["metadata"]["name"], &object["status"]["replicas"]),
        (&json!("u-a-x"), &json!(1))
    );
    assert!(object["spec"].get("minReadySeconds").is_none());
    let again = object.clone();
    apply(&set, ChildKind::CloneSet, &wanted(), &mut object).unwrap();
    assert_eq!(object, again, "idempotent");
}

#[test]
fn a_selector_without_labels_gets_the_subset() {
    let mut set = with(ChildKind::CloneSet, json!({}), json!({}));
    let expression = json!({ "matchExpressions": [{ "key": "app", "operator": "Exists" }] });
    set.spec.selector = serde_json::from_value(expression).unwrap();
    let object = made(&set, ChildKind::CloneSet);
    assert_eq!(
        object["spec"]["selector"]["matchLabels"],
        json!({ labels::SUBSET_NAME: "a" })
    );
}

#[rstest]
#[case("u", "a", "u-a-")]
#[case("u", "A", "u-")]
#[case(&"u".repeat(230), &"a".repeat(40), &format!("{}-", "u".repeat(230)))]
fn beginnings_of_names(#[case] name: &str, #[case] subset: &str, #[case] want: &str) {
    let mut set = set("");
    set.metadata.name = Some(name.to_owned());
    assert_eq!(prefix(&set, subset), want);
    assert!(cut(&prefix(&set, subset)).len() <= 58);
}
