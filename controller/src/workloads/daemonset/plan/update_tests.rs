//! Rows: updates.

use rstest::rstest;
use serde_json::{Value, json};

use crate::api::labels;
use crate::pods::PodAction;
use crate::workloads::daemonset::plan::Action;
use crate::workloads::daemonset::plan::test_world::{
    NEW, OLD, actions, check, held_by_label, planned, rolling, surging,
};

#[rstest]
#[case::row_20(rolling(json!({ "maxUnavailable": 1 })), "O O O O", "-n4a")]
#[case::row_21(rolling(json!({ "maxUnavailable": "30%" })), "O O O O O", "-n5a -n4a")]
#[case::row_22(rolling(json!({ "maxUnavailable": 2 })), "O o O O", "-n2a -n4a -n3a")]
#[case::row_23(rolling(json!({ "maxUnavailable": 1 })), "u O O O", "")]
#[case::row_24(rolling(json!({ "maxUnavailable": 2 })), "T O O O", "-n4a")]
#[case::row_25(rolling(json!({ "maxUnavailable": 4, "partition": 1 })), "O O O O", "-n4a -n3a -n2a")]
#[case::row_26(rolling(json!({ "maxUnavailable": 4, "partition": 1 })), "R O O O", "-n4a -n3a")]
#[case::row_27(rolling(json!({ "maxUnavailable": 4, "partition": "50%" })), "O O O O", "-n4a -n3a")]
#[case::row_28(rolling(json!({ "maxUnavailable": 4, "partition": "100%" })), "O O O O", "")]
#[case::row_29(rolling(json!({ "maxUnavailable": 4, "partition": "34%" })), "O O O", "-n3a -n2a")]
#[case::row_30(rolling(json!({ "maxUnavailable": 4, "selector": { "matchLabels": { "sel": "yes" } } })), "O L:O O O", "-n2a")]
#[case::row_31(
    rolling(json!({ "maxUnavailable": 4, "partition": 3, "selector": { "matchLabels": { "sel": "yes" } } })), "O L:O L:O O", "-n3a"
)]
#[case::row_32(rolling(json!({ "maxUnavailable": 4, "selector": {} })), "O O O O", "-n4a -n3a -n2a -n1a")]
#[case::selector_of_none(
    rolling(json!({ "maxUnavailable": 4, "selector": { "matchExpressions": [{ "key": "sel", "operator": "In" }] } })),
    "L:O O", ""
)]
#[case::selector_that_is_none(
    rolling(json!({ "selector": { "matchExpressions": [{ "key": "sel", "operator": "Like" }] } })), "O O",
    "fail: invalid spec.updateStrategy.rollingUpdate.selector: "
)]
#[case::default_of_one(json!({}), "O O", "-n2a")]
#[case::neither_may_be_zero(rolling(json!({ "maxUnavailable": 0, "maxSurge": 0 })), "O O", "-n2a")]
#[case::paused(rolling(json!({ "maxUnavailable": 2, "paused": true })), "O O", "")]
#[case::paused_makes_pods(rolling(json!({ "paused": true })), "O -", "+n2")]
#[case::on_delete(json!({ "updateStrategy": { "type": "OnDelete" } }), "O O", "")]
#[case::nothing_is_updated_where_a_pod_is_made(rolling(json!({ "maxUnavailable": 2 })), "O -", "+n2")]
#[case::new_by_the_number_of_the_template(rolling(json!({ "maxUnavailable": 2 })), "N O", "-n2a")]
#[case::where_a_pod_stays_but_none_would_run(rolling(json!({ "maxUnavailable": 1 })), "S:O R", "-n1a")]
#[case::on_a_node_that_is_gone(rolling(json!({ "maxUnavailable": 4 })), "R X:O", "")]
#[case::a_node_beyond_the_partition_does_not_count(rolling(json!({ "maxUnavailable": 1, "partition": 1 })), "o O O", "-n3a")]
#[case::burst(json!({ "burstReplicas": 1, "updateStrategy": { "rollingUpdate": { "maxUnavailable": 3 } } }), "O O O", "-n3a")]
fn pods_are_replaced(#[case] spec: Value, #[case] words: &str, #[case] expect: &str) {
    let got = actions(&planned(&spec, words, &[], &[OLD]));
    match expect.strip_prefix("fail: ") {
        Some(_) => assert!(got.starts_with(expect), "{got}"),
        None => assert_eq!(got, expect, "{spec} {words}"),
    }
}

#[rstest]
#[case::row_33(json!({}), "O O O D", "")]
#[case::row_33_with_room(rolling(json!({ "maxUnavailable": 2 })), "O O O D", "-n3a")]
#[case::a_new_one_that_is_held(rolling(json!({ "maxUnavailable": 1 })), "E O", "")]
#[case::a_new_one_that_is_held_beside_an_old_one(
    rolling(json!({ "maxSurge": 1, "maxUnavailable": 0 })), "OE O", ""
)]
fn held_pods_take_room(#[case] spec: Value, #[case] words: &str, #[case] expect: &str) {
    let mut spec = spec;
    crate::kit::json::merge(&mut spec, held_by_label());
    check(&spec, words, expect);
}

#[rstest]
#[case::row_34(surging(), "O O O", "+n3")]
#[case::row_35(rolling(json!({ "maxSurge": "50%", "maxUnavailable": 0 })), "O O O", "+n3 +n2")]
#[case::row_36(surging(), "o O O", "+n1 +n3")]
#[case::row_37(surging(), "OR", "-n1a")]
#[case::row_38(surging(), "Ou O", "")]
#[case::the_next_one(surging(), "R O O", "+n3")]
#[case::partition(rolling(json!({ "maxSurge": 3, "maxUnavailable": 0, "partition": 2 })), "O O O", "+n3")]
#[case::selector(
    rolling(json!({ "maxSurge": 3, "maxUnavailable": 0, "selector": { "matchLabels": { "sel": "yes" } } })), "L:O O O", "+n1"
)]
#[case::paused(rolling(json!({ "maxSurge": 3, "maxUnavailable": 0, "paused": true })), "O O O", "")]
fn new_pods_come_beside_old_ones(#[case] spec: Value, #[case] words: &str, #[case] expect: &str) {
    check(&spec, words, expect);
}

#[rstest]
#[case::row_39(json!({ "maxUnavailable": 1 }), "O O", "~n2a")]
#[case::row_39_the_next(json!({ "maxUnavailable": 1 }), "O R", "~n1a")]
#[case::row_39_not_before_the_first_serves(json!({ "maxUnavailable": 1 }), "O u", "")]
#[case::one_that_was_taken_out_of_service_takes_room(json!({ "maxUnavailable": 1 }), "O i", "status n2a ~n2a")]
#[case::one_that_does_not_serve_by_itself_does_not(json!({ "maxUnavailable": 1 }), "O o", "~n2a ~n1a")]
#[case::row_40(json!({ "maxUnavailable": 1 }), "R g", "-n2a")]
#[case::both(json!({ "maxUnavailable": 2 }), "g O", "~n2a -n1a")]
#[case::all_at_once(json!({ "maxUnavailable": "100%" }), "O O", "~n2a ~n1a")]
fn pods_are_updated_in_place(#[case] details: Value, #[case] words: &str, #[case] expect: &str) {
    let mut details = details;
    details["rollingUpdateType"] = json!("InPlaceIfPossible");
    check(&rolling(details), words, expect);
}

#[test]
fn an_unknown_old_revision_is_replaced() {
    let spec = rolling(json!({ "rollingUpdateType": "InPlaceIfPossible" }));
    assert_eq!(actions(&planned(&spec, "O", &[], &[])), "-n1a");
}

#[test]
fn a_burst_limits_updates_in_place() {
    let spec = json!({ "burstReplicas": 1,
        "updateStrategy": { "rollingUpdate": { "rollingUpdateType": "InPlaceIfPossible", "maxUnavailable": 2 } } });
    check(&spec, "O O", "~n2a");
}

/// The state of a pod and its label name the hash alone.
#[test]
fn an_update_in_place_names_the_hash() {
    let spec = rolling(json!({ "rollingUpdateType": "InPlaceIfPossible" }));
    let plan = planned(&spec, "O", &[], &[OLD]);
    let Some(Action::Together(all)) = plan.actions.first() else {
        panic!("{plan:?}");
    };
    let [PodAction::UpdateInPlace { patch, revision, .. }] = all.as_slice() else {
        panic!("{all:?}");
    };
    let metadata = &patch.value()["metadata"];
    assert_eq!(revision, NEW);
    assert_eq!(metadata["labels"], json!({ labels::REVISION_HASH: "new" }));
    let state = metadata["annotations"][labels::IN_PLACE_STATE].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(state).unwrap()["revision"], "new");
}
