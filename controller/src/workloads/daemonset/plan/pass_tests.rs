//! Rows: when a pass is repeated, its status, the history, and images that are pulled early.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use rstest::rstest;
use serde_json::{Value, json};

use super::*;
use crate::api::labels;
use crate::workloads::daemonset::plan::test_world::{
    OLD, actions, gates, planned, revisions, rolling, set, world,
};

/// The nodes whose failed pods stay and for how long, and when the set is looked at again.
#[rstest]
#[case::row_18(
    json!({ "minReadySeconds": 5, "updateStrategy": { "rollingUpdate": { "maxSurge": 1 } } }), "Oy R", &[], Some(3001)
)]
#[case::row_19_at_once_again(json!({}), "f R", &[("n1", 1)], Some(1000))]
#[case::the_shortest(json!({}), "f f", &[("n1", 4), ("n2", 2)], Some(2000))]
#[case::not_yet_available(json!({ "minReadySeconds": 60 }), "y R", &[], Some(60_000))]
#[case::nothing_changes_by_itself(json!({}), "u R", &[], None)]
fn looks_again(
    #[case] spec: Value,
    #[case] words: &str,
    #[case] held: &[(&str, u64)],
    #[case] expect_ms: Option<u128>,
) {
    let plan = planned(&spec, words, held, &[OLD]);
    assert_eq!(actions(&plan), "");
    assert_eq!(plan.requeue.map(|wait| wait.as_millis()), expect_ms);
}

/// Desired, current, ready, available, updated and misscheduled, and the generation that has been seen to its end.
#[rstest]
#[case::all_well(json!({}), "R R", [2, 2, 2, 2, 2, 0], 7)]
#[case::a_pod_is_made(json!({}), "R -", [2, 1, 1, 1, 1, 0], 6)]
#[case::old_and_not_ready(rolling(json!({ "paused": true })), "O u", [2, 2, 1, 1, 1, 0], 7)]
#[case::row_10(json!({}), "S:R R", [1, 1, 1, 1, 1, 1], 7)]
#[case::not_yet_available(json!({ "minReadySeconds": 60 }), "y R", [2, 2, 2, 1, 2, 0], 7)]
#[case::the_first_pod_counts_be_it_on_its_way_out(json!({}), "TR R", [2, 2, 2, 2, 1, 0], 7)]
#[case::new_by_the_number_of_the_template(json!({}), "N R", [2, 2, 2, 2, 2, 0], 7)]
#[case::on_a_node_that_is_gone(json!({}), "R X:R", [1, 1, 1, 1, 1, 0], 7)]
fn counts(#[case] spec: Value, #[case] words: &str, #[case] expect: [i32; 6], #[case] generation: i64) {
    let status = planned(&spec, words, &[], &[OLD]).status;
    let got = [
        status.desired_number_scheduled,
        status.current_number_scheduled,
        status.number_ready,
        status.number_available,
        status.updated_number_scheduled,
        status.number_misscheduled,
    ];
    assert_eq!((got, status.observed_generation), (expect, generation));
    assert_eq!(status.number_unavailable, got[0] - got[3]);
    assert_eq!(status.update_revision, "new");
}

/// Old revisions, oldest first; `s-old` has a pod.
#[rstest]
#[case::row_41(1, &["s-r1", "s-old"], &["s-r1"])]
#[case::row_42(1, &["s-old", "s-r2"], &["s-r2"])]
#[case::within_the_limit(2, &["s-r1", "s-old"], &[])]
#[case::none_is_kept(0, &["s-r1", "s-old", "s-r2"], &["s-r1", "s-r2"])]
#[case::lowest_first(2, &["s-r1", "s-r2", "s-r3"], &["s-r1"])]
fn old_revisions_go(#[case] limit: i32, #[case] older: &[&str], #[case] expect: &[&str]) {
    let spec = json!({ "revisionHistoryLimit": limit, "updateStrategy": { "type": "OnDelete" } });
    assert_eq!(planned(&spec, "O R", &[], older).history, expect);
}

/// Of several revisions of the present template the newest is kept, and all pods get its label.
#[test]
fn revisions_of_the_same_template_become_one() {
    let (nodes, pods) = world("R O -");
    let observed = Observed {
        set: set(&json!({}), &json!({ "observedGeneration": 6 })),
        nodes,
        pods,
        revisions: Vec::new(),
        jobs: Vec::new(),
        held: BTreeMap::new(),
        now: Timestamp::from_second(1000).unwrap(),
    };
    let mut revisions = revisions(&["s-r1", OLD]);
    revisions.all[1].template = revisions.update.template.clone();
    let plan = plan(&observed, &revisions, gates());
    assert_eq!(actions(&plan), "hold n2a forget s-old");
    assert_eq!(plan.status.observed_generation, 6);
}

/// The status of a pass that waits for its caches belongs to the generation that was seen before.
#[test]
fn a_pass_that_waits_writes_the_numbers_alone() {
    let (nodes, pods) = world("R -");
    let observed = Observed {
        set: set(&json!({}), &json!({ "observedGeneration": 6 })),
        nodes,
        pods,
        revisions: Vec::new(),
        jobs: Vec::new(),
        held: BTreeMap::new(),
        now: Timestamp::from_second(1000).unwrap(),
    };
    let plan = status_alone(&observed, &revisions(&[]), gates());
    assert_eq!(plan.actions, []);
    let status = plan.status;
    assert_eq!((status.observed_generation, status.number_ready), (6, 1));
}

/// The status's desired and updated number and its hash, and the jobs that are made (`container image`), `ignored` or `deleted`.
#[rstest]
#[case::of_a_new_revision(json!({ "partition": 1 }), [3, 3], "old", &["main v2"])]
#[case::on_its_way(json!({ "partition": 1 }), [3, 1], "new", &["main v2"])]
#[case::done(json!({ "partition": 1 }), [3, 3], "new", &["deleted"])]
#[case::all_at_once(json!({ "maxUnavailable": "100%" }), [3, 0], "old", &["ignored"])]
#[case::one_by_one(json!({ "maxUnavailable": 1 }), [3, 0], "old", &["main v2"])]
#[case::the_first_of_all(json!({ "maxUnavailable": 1 }), [0, 0], "", &["ignored"])]
#[case::the_first_of_all_with_a_partition(json!({ "partition": 1 }), [0, 0], "", &["main v2"])]
fn images_are_pulled_early(
    #[case] details: Value,
    #[case] counts: [i32; 2],
    #[case] hash: &str,
    #[case] expect: &[&str],
) {
    let (nodes, pods) = world("O O O");
    let status = json!({ "desiredNumberScheduled": counts[0], "updatedNumberScheduled": counts[1], "updateRevision": hash });
    let job = json!({ "metadata": { "name": "job" }, "spec": { "image": "v2", "completionPolicy": {} } });
    let observed = Observed {
        set: set(&rolling(details), &status),
        nodes,
        pods,
        revisions: Vec::new(),
        jobs: vec![Arc::new(serde_json::from_value(job).unwrap())],
        held: BTreeMap::new(),
        now: Timestamp::from_second(1000).unwrap(),
    };
    let plan = plan(&observed, &revisions(&[OLD]), Gates::of(|_| true));
    let early = plan.actions.iter().filter_map(|action| match action {
        Action::Pod(PodAction::CreatePullJob { object, image }) => {
            let name = object["metadata"]["name"].as_str().unwrap();
            Some(format!("{} {image}", name.strip_prefix("s-new-").unwrap()))
        }
        Action::Pod(PodAction::MarkRevision { label, .. }) if *label == labels::PREDOWNLOAD_IGNORED => {
            Some("ignored".to_owned())
        }
        Action::Pod(PodAction::DeletePullJob { .. }) => Some("deleted".to_owned()),
        _ => None,
    });
    assert_eq!(early.collect::<Vec<_>>(), expect);
}

#[test]
fn a_set_without_updates_pulls_nothing_early() {
    let (nodes, pods) = world("O");
    let spec = json!({ "updateStrategy": { "type": "OnDelete", "rollingUpdate": null } });
    let observed = Observed {
        set: set(&spec, &json!({})),
        nodes,
        pods,
        revisions: Vec::new(),
        jobs: Vec::new(),
        held: BTreeMap::new(),
        now: Timestamp::from_second(1000).unwrap(),
    };
    let plan = plan(&observed, &revisions(&[OLD]), Gates::of(|_| true));
    let [Action::Pod(PodAction::MarkRevision { label, .. })] = plan.actions.as_slice() else {
        panic!("{plan:?}");
    };
    assert_eq!(*label, labels::PREDOWNLOAD_IGNORED);
}
