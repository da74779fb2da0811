//! Rows: the marks of a pod by the results of its probes.

use rstest::rstest;
use serde_json::{Value, json};

use super::*;
use crate::pods::test_pods::TestPod;

const UP: &str = "game.io/up";

/// A marker `m` with one probe `p`, whose marks are `up=true` and `up=false`, or those of one state.
fn marker(name: &str, policies: &Value) -> (ObjectKey, Arc<PodProbeMarker>) {
    let probe = json!({ "name": "p", "containerName": "main", "probe": {}, "podConditionType": UP, "markerPolicy": policies });
    let object = json!({ "metadata": { "name": name, "namespace": "default" },
        "spec": { "selector": {}, "probes": [probe] } });
    (
        ObjectKey::new("default", name),
        Arc::new(serde_json::from_value(object).unwrap()),
    )
}

fn both() -> Value {
    json!([{ "state": "Succeeded", "labels": { "up": "true" } }, { "state": "Failed", "labels": { "up": "false" } }])
}

fn success_alone() -> Value {
    json!([{ "state": "Succeeded", "labels": { "up": "true" } }])
}

fn results(states: &Value) -> PodProbeStatus {
    serde_json::from_value(
        json!({ "name": "a", "namespace": "default", "uid": "uid-a", "probeStates": states }),
    )
    .unwrap()
}

/// The labels that change (`-` takes it away), and the condition that is written.
fn shown(marks: Option<&Marks>) -> (String, String) {
    let Some(marks) = marks else {
        return (String::new(), String::new());
    };
    let labels = marks.labels.iter();
    let labels: Vec<String> = labels
        .map(|(key, value)| {
            value
                .as_ref()
                .map_or(format!("-{key}"), |value| format!("{key}={value}"))
        })
        .collect();
    let conditions = marks.conditions.iter();
    let conditions: Vec<String> = conditions
        .map(|condition| {
            format!("{} {}", condition.status, condition.message)
                .trim_end()
                .to_owned()
        })
        .collect();
    (labels.join(" "), conditions.join(", "))
}

/// The policies, the pod's label `up` and condition, the result, and the change of labels and condition.
#[rstest]
#[case::succeeds(both(), None, None, "Succeeded", "ok", ("up=true", "true ok"))]
#[case::is_unknown(both(), Some("true"), Some(("True", "ok")), "Unknown", "", ("-up", "false"))]
#[case::fails(both(), None, Some(("False", "")), "Failed", "404", ("up=false", "false 404"))]
#[case::no_result(both(), Some("false"), Some(("False", "404")), "", "", ("", ""))]
#[case::fails_without_a_policy(success_alone(), Some("true"), Some(("True", "")), "Failed", "", ("-up", "false"))]
#[case::is_unknown_without_a_policy(success_alone(), None, None, "Unknown", "", ("", "false"))]
#[case::as_it_is(both(), Some("true"), Some(("True", "ok")), "Succeeded", "ok", ("", ""))]
#[case::another_message(both(), Some("true"), Some(("True", "ok")), "Succeeded", "fine", ("", "true fine"))]
#[case::label_was_changed_by_hand(both(), Some("maybe"), Some(("True", "ok")), "Succeeded", "ok", ("up=true", ""))]
fn rows(
    #[case] policies: Value,
    #[case] label: Option<&str>,
    #[case] condition: Option<(&str, &str)>,
    #[case] state: &str,
    #[case] message: &str,
    #[case] expect: (&str, &str),
) {
    let mut pod = TestPod::new("a");
    if let Some(label) = label {
        pod = pod.label("up", label);
    }
    if let Some((status, message)) = condition {
        let condition = json!({ "type": UP, "status": status, "message": message });
        pod = pod.set("/status/conditions", json!([condition]));
    }
    let results = results(&json!([{ "name": "m#p", "state": state, "message": message }]));
    let marks = marks(&pod.build(), &results, &BTreeMap::from([marker("m", &policies)]));
    let found = shown(marks.as_ref());
    assert_eq!((found.0.as_str(), found.1.as_str()), expect);
}

/// Two markers for one condition and one label: the first condition counts, and the last label.
#[test]
fn two_markers_for_one_mark() {
    let markers = BTreeMap::from([marker("m", &both()), marker("n", &both())]);
    let results = results(&json!([
        { "name": "m#p", "state": "Succeeded", "message": "m" }, { "name": "n#p", "state": "Failed", "message": "n" }]));
    let marks = marks(&TestPod::new("a").build(), &results, &markers);
    assert_eq!(
        shown(marks.as_ref()),
        ("up=false".to_owned(), "true m".to_owned())
    );
}

/// Results of markers and probes that are not there, or of a marker that is being deleted.
#[rstest]
#[case("z#p", false)]
#[case("m#z", false)]
#[case("m", false)]
#[case("m#p", true)]
fn results_that_do_not_count(#[case] name: &str, #[case] goes: bool) {
    let (key, marker) = marker("m", &both());
    let mut marker = PodProbeMarker::clone(&marker);
    if goes {
        marker.metadata.deletion_timestamp = serde_json::from_value(json!("1970-01-01T00:00:00Z")).unwrap();
    }
    let results = results(&json!([{ "name": name, "state": "Succeeded" }]));
    let markers = BTreeMap::from([(key, Arc::new(marker))]);
    assert_eq!(marks(&TestPod::new("a").build(), &results, &markers), None);
}

/// Times are those of the result.
#[test]
fn times_are_those_of_the_result() {
    let results = results(&json!([{ "name": "m#p", "state": "Succeeded",
        "lastProbeTime": "1970-01-01T00:00:02Z", "lastTransitionTime": "1970-01-01T00:00:01Z" }]));
    let marks = marks(
        &TestPod::new("a").build(),
        &results,
        &BTreeMap::from([marker("m", &both())]),
    )
    .unwrap();
    let times = [
        &marks.conditions[0].last_probe_time,
        &marks.conditions[0].last_transition_time,
    ];
    let times = times.map(|time| time.as_ref().unwrap().0.as_second());
    assert_eq!(times, [2, 1]);
}
