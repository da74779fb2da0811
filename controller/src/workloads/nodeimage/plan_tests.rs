//! Rows of a node's list.

use std::sync::Arc;

use jiff::Timestamp;
use rstest::rstest;
use serde_json::{Value, json};

use super::*;
use crate::api::v1beta1::{NodeImage, ReferenceObject};
use crate::pods::CachedNode;

const NOW: i64 = 10_000;

fn time(seconds: i64) -> String {
    Timestamp::from_second(NOW + seconds).unwrap().to_string()
}

fn node(labels: &Value) -> Arc<CachedNode> {
    let labels: shared_json::Value = serde_json::from_value(labels.clone()).unwrap();
    Arc::new(CachedNode::from(
        shared_json::json!({ "metadata": { "name": "n", "labels": labels } }),
    ))
}

/// The list of a node with the label `l=1`, whose image `nginx` has these tags.
fn image(tags: &Value, statuses: &Value) -> NodeImage {
    let mut image = json!({ "metadata": { "name": "n", "labels": { "l": "1" } }, "spec": {},
        "status": { "desired": 0 } });
    if !tags.as_array().unwrap().is_empty() {
        image["spec"] = json!({ "images": { "nginx": { "tags": tags } } });
    }
    if !statuses.as_array().unwrap().is_empty() {
        image["status"]["imageStatuses"] = json!({ "nginx": { "tags": statuses } });
    }
    serde_json::from_value(image).unwrap()
}

fn owner(uid: &str, kind: &str) -> Value {
    json!({ "apiVersion": "apps.kruise.io/v1beta1", "kind": kind, "namespace": "d", "name": uid, "uid": uid })
}

fn observed(image: NodeImage) -> Observed {
    Observed {
        node: Some(node(&json!({ "l": "1" }))),
        image: Some(Arc::new(image)),
        jobs: Some(["a".to_owned()].into()),
        missing_secrets: Vec::new(),
        rest: Duration::from_millis(3500),
        now: Timestamp::from_second(NOW).unwrap(),
    }
}

/// The tags of a list after a pass, as `tag[owners]`, where the job `a` is there.
#[rstest]
#[case::owned(json!([{ "tag": "1", "createdAt": time(0), "ownerReferences": [owner("a", "ImagePullJob")] }]), "1[a]")]
#[case::of_a_job_that_is_gone(json!([{ "tag": "1", "createdAt": time(0), "ownerReferences": [owner("b", "ImagePullJob")] }]), "")]
#[case::of_two_jobs(
    json!([{ "tag": "1", "createdAt": time(0), "ownerReferences": [owner("a", "ImagePullJob"), owner("b", "ImagePullJob")] }]),
    "1[a]"
)]
#[case::of_another_kind(json!([{ "tag": "1", "createdAt": time(0), "ownerReferences": [owner("b", "Robot")] }]), "1[b]")]
#[case::never_owned(json!([{ "tag": "1", "createdAt": time(0) }]), "1[]")]
#[case::of_no_time(json!([{ "tag": "1" }, { "tag": "2", "createdAt": time(0) }]), "2[]")]
fn tags_that_stay(#[case] tags: Value, #[case] expect: &str) {
    let observed = observed(image(&tags, &json!([])));
    let spec = match plan(&observed) {
        Plan::Write { spec, .. } => spec,
        Plan::Nothing(_) => observed.image.unwrap().spec.clone(),
        other => panic!("{other:?}"),
    };
    let tags = spec.images.values().flat_map(|image| &image.tags);
    let shown = tags.map(|tag| {
        let owners: Vec<&str> = tag
            .owner_references
            .iter()
            .filter_map(|owner| owner.name.as_deref())
            .collect();
        format!("{}[{}]", tag.tag, owners.join(" "))
    });
    assert_eq!(shown.collect::<Vec<_>>().join(" "), expect);
}

/// A tag of version 1 that stays for 60 seconds after its end: the version of its status, when it ended, and when it goes.
#[rstest]
#[case::over_for_long(1, Some(-60), "goes")]
#[case::over_for_less(1, Some(-50), "in 10s")]
#[case::nearly(1, Some(-58), "in 3.5s")]
#[case::of_the_version_before(0, Some(-60), "in 600s")]
#[case::not_over(1, None, "stays")]
fn tags_go_after_their_time(#[case] version: i64, #[case] end: Option<i64>, #[case] expect: &str) {
    let tags = json!([{ "tag": "1", "version": 1, "createdAt": time(0), "pullPolicy": { "ttlSecondsAfterFinished": 60 } }]);
    let status =
        json!([{ "tag": "1", "phase": "Succeeded", "version": version, "completionTime": end.map(time) }]);
    let shown = match plan(&observed(image(&tags, &status))) {
        Plan::Write { spec, .. } if spec.images.is_empty() => "goes".to_owned(),
        Plan::Nothing(Some(next)) => format!("in {}s", next.as_secs_f64()),
        Plan::Nothing(None) => "stays".to_owned(),
        other => panic!("{other:?}"),
    };
    assert_eq!(shown, expect);
}

const SILENT: &str = "node has not responded for a long time";
const LATE: &str = "pulling exceeds the activeDeadlineSeconds";

/// A tag of version 1 with a deadline: when it was asked for, the version of its status, and the message of its failure.
#[rstest]
#[case::no_answer(None, -600, None, Some(SILENT))]
#[case::no_answer_yet(None, -599, None, None)]
#[case::an_answer_about_the_version_before(None, -600, Some(0), Some(SILENT))]
#[case::without_a_deadline(None, -100_000, Some(1), None)]
#[case::within_the_deadline(Some(40), -639, Some(1), None)]
#[case::beyond_the_deadline(Some(40), -640, Some(1), Some(LATE))]
fn tags_that_fail(
    #[case] deadline: Option<i64>,
    #[case] created: i64,
    #[case] version: Option<i64>,
    #[case] expect: Option<&str>,
) {
    let tags = json!([{ "tag": "1", "version": 1, "createdAt": time(created),
        "pullPolicy": { "activeDeadlineSeconds": deadline }, "ownerReferences": [owner("a", "ImagePullJob")] }]);
    let statuses: Vec<Value> = version
        .map(|version| json!({ "tag": "1", "phase": "Pulling", "version": version }))
        .into_iter()
        .collect();
    match plan(&observed(image(&tags, &json!(statuses)))) {
        Plan::Fail { status, failed, .. } => {
            assert_eq!(Some(failed[0].message), expect);
            assert_eq!((failed[0].image.as_str(), failed[0].owners.len()), ("nginx:1", 1));
            assert_eq!((status.desired, status.failed, status.pulling), (1, 1, 0));
            assert_eq!(status.image_statuses["nginx"].tags[0].version, 1);
        }
        Plan::Nothing(_) => assert_eq!(None, expect),
        other => panic!("{other:?}"),
    }
}

/// Whether there is a node, the labels of the list, and the plan.
#[rstest]
#[case::alike(true, json!({ "l": "1" }), "Nothing(None)")]
#[case::other_labels(true, json!({ "l": "2", "m": "3" }), "Write {")]
#[case::no_node(false, json!({ "l": "1" }), "Delete")]
#[case::no_node_and_none_needed(false, json!({ "apps.kruise.io/fake-nodeimage": "" }), "Nothing(None)")]
fn lists_follow_their_node(#[case] node: bool, #[case] labels: Value, #[case] expect: &str) {
    let mut image = image(&json!([]), &json!([]));
    image.metadata.labels = serde_json::from_value(labels).unwrap();
    let mut observed = observed(image);
    observed.node = observed.node.filter(|_| node);
    let plan = plan(&observed);
    assert!(format!("{plan:?}").starts_with(expect), "{plan:?}");
    if let Plan::Write { labels, .. } = plan {
        assert_eq!(json!(labels), json!({ "l": "1" }));
    }
}

#[test]
fn a_node_without_a_list_gets_one() {
    let mut observed = observed(image(&json!([]), &json!([])));
    observed.image = None;
    assert_eq!(plan(&observed), Plan::Create);
    observed.node = None;
    assert_eq!(plan(&observed), Plan::Nothing(None));
}

#[test]
fn secrets_that_are_gone_are_dropped() {
    let mut image = image(&json!([{ "tag": "1", "createdAt": time(0) }]), &json!([]));
    let secret = |name: &str| ReferenceObject {
        namespace: "d".to_owned(),
        name: name.to_owned(),
        mode: String::new(),
    };
    image.spec.images.get_mut("nginx").unwrap().pull_secrets = vec![secret("a"), secret("b")];
    let mut observed = observed(image);
    observed.missing_secrets = vec![secret("a")];
    let Plan::Write { spec, .. } = plan(&observed) else {
        panic!()
    };
    assert_eq!(spec.images["nginx"].pull_secrets, [secret("b")]);
}
