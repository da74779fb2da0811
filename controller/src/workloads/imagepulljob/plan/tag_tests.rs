//! Rows of the tags that a job writes into the list of a node.

use std::sync::Arc;

use client_kit::Seed;
use jiff::Timestamp;
use rstest::rstest;
use serde_json::{Value, json};

use super::*;
use crate::api::v1beta1::NodeImage;
use crate::images::ImageReference;

const NOW: i64 = 1000;

fn wish(uid: &str, image: &str, spec: &Value, draw: u64) -> Wish {
    let mut job = json!({ "metadata": { "name": uid, "namespace": "d", "uid": uid },
        "spec": { "image": image, "completionPolicy": { "type": "Always" } } });
    crate::test_admission::merge_patch(&mut job["spec"], spec);
    let observed = Observed {
        job: Arc::new(serde_json::from_value(job).unwrap()),
        image: ImageReference::parse(image).unwrap(),
        nodes: Vec::new(),
        secrets: Vec::new(),
        now: Timestamp::from_second(NOW).unwrap(),
    };
    Wish::of(&observed, 300, &mut Seed(draw).random())
}

fn node(tags: &[Value], left_over: Option<i64>) -> NodeImage {
    let mut node = json!({ "metadata": { "name": "n" }, "spec": {}, "status": { "desired": 0 } });
    if !tags.is_empty() {
        node["spec"] = json!({ "images": { "nginx": { "tags": tags } } });
    }
    if let Some(version) = left_over {
        let tags = json!([{ "tag": "1", "phase": "Succeeded", "version": version }]);
        node["status"]["imageStatuses"] = json!({ "nginx": { "tags": tags } });
    }
    serde_json::from_value(node).unwrap()
}

fn tag(tag: &str, version: i64, owner: &str) -> Value {
    json!({ "tag": tag, "version": version, "imagePullPolicy": "IfNotPresent", "createdAt": "1970-01-01T00:00:01Z",
        "pullPolicy": { "timeoutSeconds": 7 }, "ownerReferences": [{ "name": owner, "uid": owner }] })
}

/// The tags of the list, the version of a status that is there, the job and its image; the tags after that, as
/// `tag version [owners] policy timeout created`, or nothing where the list stays.
#[rstest]
#[case::no_image(&[], None, "A", "nginx:1", Some("1 v0 [A] Always 600 1000"))]
#[case::a_status_is_left(&[], Some(4), "A", "nginx:1", Some("1 v5 [A] Always 600 1000"))]
#[case::is_there(&[tag("1", 0, "A")], None, "A", "nginx:1", None)]
#[case::of_another_job(&[tag("1", 0, "A")], None, "B", "nginx:1", Some("1 v1 [A B] Always 7 1000"))]
#[case::in_order(
    &[tag("1.18", 0, "A"), tag("1.9", 0, "A")], None, "A", "nginx:1.20",
    Some("1.18 v0 [A] IfNotPresent 7 1, 1.20 v0 [A] Always 600 1000, 1.9 v0 [A] IfNotPresent 7 1")
)]
fn lists(
    #[case] tags: &[Value],
    #[case] left_over: Option<i64>,
    #[case] job: &str,
    #[case] image: &str,
    #[case] expect: Option<&str>,
) {
    let wish = wish(job, image, &json!({ "imagePullPolicy": "Always" }), 0);
    let node = put(&node(tags, left_over), &wish);
    let shown = node.map(|node| {
        let tags = node.spec.images["nginx"].tags.iter().map(|tag| {
            let owners: Vec<&str> = tag
                .owner_references
                .iter()
                .filter_map(|owner| owner.name.as_deref())
                .collect();
            let timeout = tag.pull_policy.as_ref().unwrap().timeout_seconds.unwrap();
            let created = tag.created_at.as_ref().unwrap().0.as_second();
            format!(
                "{} v{} [{}] {} {timeout} {created}",
                tag.tag,
                tag.version,
                owners.join(" "),
                tag.image_pull_policy
            )
        });
        tags.collect::<Vec<_>>().join(", ")
    });
    assert_eq!(shown.as_deref(), expect);
}

/// The spec of a job, the seconds for which its tag stays, at least and at most, and the deadline of the tag.
#[rstest]
#[case::defaults(json!({}), (2100, 2399), None)]
#[case::with_a_deadline(
    json!({ "completionPolicy": { "activeDeadlineSeconds": 40 }, "pullPolicy": { "timeoutSeconds": 5, "backoffLimit": 1 } }),
    (340, 639), Some(40)
)]
#[case::with_both(
    json!({ "completionPolicy": { "activeDeadlineSeconds": 700, "ttlSecondsAfterFinished": 12 } }), (312, 611), Some(700)
)]
#[case::of_a_workload(
    json!({ "completionPolicy": { "ttlSecondsAfterFinished": 600 }, "pullPolicy": { "timeoutSeconds": 300, "backoffLimit": 1 } }),
    (900, 1199), None
)]
#[case::never_over(json!({ "completionPolicy": { "type": "Never" } }), (85_800, 86_999), Some(1800))]
#[case::never_over_with_a_long_timeout(
    json!({ "completionPolicy": { "type": "Never" }, "pullPolicy": { "timeoutSeconds": 3600 } }), (85_800, 86_999), Some(3600)
)]
fn policies(#[case] spec: Value, #[case] (least, most): (i32, i32), #[case] deadline: Option<i64>) {
    let mut drawn = Vec::new();
    for draw in 0..200 {
        let node = put(&node(&[], None), &wish("A", "nginx:1", &spec, draw)).unwrap();
        let policy = node.spec.images["nginx"].tags[0].pull_policy.clone().unwrap();
        assert_eq!(policy.active_deadline_seconds, deadline);
        drawn.push(policy.ttl_seconds_after_finished.unwrap());
    }
    drawn.sort_unstable();
    assert!(drawn[0] >= least && drawn[199] <= most, "{drawn:?}");
    assert!(drawn[199] - drawn[0] > (most - least) / 2, "it is not drawn");
}

#[test]
fn a_sandbox_is_the_last_jobs() {
    let spec = json!({ "sandboxConfig": { "labels": { "a": "b" } } });
    let first = put(&node(&[], None), &wish("A", "nginx:1", &spec, 0)).unwrap();
    assert!(first.spec.images["nginx"].sandbox_config.is_some());
    let second = put(&first, &wish("B", "nginx:1", &json!({}), 0)).unwrap();
    assert_eq!(second.spec.images["nginx"].sandbox_config, None);
}
