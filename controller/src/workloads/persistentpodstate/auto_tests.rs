//! Rows: the PersistentPodStates that annotations ask for.

use rstest::rstest;
use serde_json::{Value, json};

use super::*;

fn workload() -> TargetReference {
    TargetReference {
        api_version: "apps/v1".to_owned(),
        kind: "StatefulSet".to_owned(),
        name: "web".to_owned(),
    }
}

/// The metadata of a set with annotations by a word each: `required=a,b`.
fn metadata(words: &str) -> ObjectMeta {
    let key = |short: &str| match short {
        "auto" => ASKS,
        "required" => REQUIRED,
        "preferred" => PREFERRED,
        "notes" => ANNOTATIONS,
        other => panic!("{other}"),
    };
    let one = |word: &str| {
        let (short, value) = word.split_once('=').unwrap();
        (key(short).to_owned(), json!(value))
    };
    let annotations: Value = words.split_whitespace().map(one).collect();
    serde_json::from_value(json!({ "name": "web", "namespace": "n", "uid": "u", "annotations": annotations }))
        .unwrap()
}

/// A PersistentPodState of the set's name, with this controller.
fn known(spec: &Value, controller: &str) -> PersistentPodState {
    let owner = json!({ "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": controller, "controller": true });
    let owners = if controller.is_empty() {
        json!([])
    } else {
        json!([owner])
    };
    let mut object = json!({ "metadata": { "name": "web", "namespace": "n", "ownerReferences": owners },
        "spec": { "targetRef": { "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web" } } });
    crate::kit::json::merge(&mut object, json!({ "spec": spec }));
    serde_json::from_value(object).unwrap()
}

/// A step and the spec in it, without the reference.
fn shown(step: &Step) -> (&'static str, Value) {
    let spec = |state: &PersistentPodState| {
        let mut spec = serde_json::to_value(&state.spec).unwrap();
        spec.as_object_mut().unwrap().remove("targetRef");
        spec
    };
    match step {
        Step::Nothing => ("nothing", Value::Null),
        Step::Create(state) => ("create", spec(state)),
        Step::Replace(state) => ("replace", spec(state)),
        Step::Delete => ("delete", Value::Null),
    }
}

fn required(keys: &[&str]) -> Value {
    json!({ "requiredPersistentTopology": { "nodeTopologyKeys": keys } })
}

/// The set's annotations, the spec of a known PersistentPodState and its controller, and the step.
#[rstest]
#[case::required("auto=true required=a,b", None, ("create", required(&["a", "b"])))]
#[case::preferred("auto=true preferred=a", None, ("create",
    json!({ "preferredPersistentTopology": [{ "weight": 100, "preference": { "nodeTopologyKeys": ["a"] } }] })))]
#[case::both_and_annotations("auto=true required=a preferred=b,c notes=x,y", None, ("create",
    json!({ "requiredPersistentTopology": { "nodeTopologyKeys": ["a"] },
        "preferredPersistentTopology": [{ "weight": 100, "preference": { "nodeTopologyKeys": ["b", "c"] } }],
        "persistentPodAnnotations": [{ "key": "x" }, { "key": "y" }] })))]
#[case::no_topology("auto=true notes=x", None, ("nothing", Value::Null))]
#[case::empty_lists("auto=true required=,", None, ("nothing", Value::Null))]
#[case::not_asked("required=a", None, ("nothing", Value::Null))]
#[case::asked_for_in_another_word("auto=yes required=a", None, ("nothing", Value::Null))]
#[case::as_it_is("auto=true required=a", Some((required(&["a"]), "u")), ("nothing", Value::Null))]
#[case::other_keys("auto=true required=b", Some((required(&["a"]), "u")), ("replace", required(&["b"])))]
#[case::annotations_alone_change("auto=true required=a notes=x", Some((required(&["a"]), "u")), ("replace",
    json!({ "requiredPersistentTopology": { "nodeTopologyKeys": ["a"] }, "persistentPodAnnotations": [{ "key": "x" }] })))]
#[case::made_by_hand_before("auto=true required=b", Some((required(&["a"]), "")), ("replace", required(&["b"])))]
#[case::not_asked_for_any_more("required=a", Some((required(&["a"]), "u")), ("delete", Value::Null))]
#[case::made_by_hand("required=a", Some((required(&["a"]), "")), ("nothing", Value::Null))]
#[case::of_an_older_set_of_the_name("required=a", Some((required(&["a"]), "v")), ("nothing", Value::Null))]
fn steps(
    #[case] annotations: &str,
    #[case] state: Option<(Value, &str)>,
    #[case] expect: (&'static str, Value),
) {
    let state = state.map(|(spec, controller)| known(&spec, controller));
    let step = step(&workload(), &metadata(annotations), state.as_ref());
    assert_eq!(shown(&step), expect);
}

#[test]
fn it_goes_with_its_workload() {
    let Step::Create(state) = step(&workload(), &metadata("auto=true required=a"), None) else {
        panic!()
    };
    let owner = controller_of(&state.metadata).unwrap();
    assert_eq!((owner.kind.as_str(), owner.uid.as_str()), ("StatefulSet", "u"));
    assert_eq!(state.metadata.namespace.as_deref(), Some("n"));
    assert_eq!(state.spec.target_ref, workload());
}

#[test]
fn a_workload_that_goes_asks_for_nothing() {
    let mut metadata = metadata("auto=true required=a");
    metadata.deletion_timestamp = serde_json::from_value(json!("1970-01-01T00:00:00Z")).unwrap();
    assert_eq!(step(&workload(), &metadata, None), Step::Nothing);
}
