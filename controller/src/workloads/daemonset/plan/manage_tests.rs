//! Rows: a pod for each node that fits.

use rstest::rstest;
use serde_json::{Value, json};

use crate::workloads::daemonset::plan::test_world::{check, held_by_label, progressive, rolling, surging};

#[rstest]
#[case::row_1(json!({}), "- - -", "+n1 +n2 +n3")]
#[case::row_2(rolling(json!({ "partition": 1 })), "- - -", "+n1 +n2 +n3")]
#[case::row_3(progressive(json!(1)), "- - -", "+n1 +n2")]
#[case::row_4_by_the_nodes_there_are(progressive(json!("50%")), "- - -", "+n1 +n2")]
#[case::row_5(progressive(json!("50%")), "R - -", "+n2")]
#[case::row_6(progressive(json!(5)), "- - -", "")]
#[case::progressive_and_all(progressive(json!(0)), "- - -", "+n1 +n2 +n3")]
#[case::progressive_on_delete(
    json!({ "scaleStrategy": { "partitionedScaling": true }, "updateStrategy": { "type": "OnDelete" } }), "- -", "+n1 +n2"
)]
#[case::progressive_counts_new_pods_alone(progressive(json!(1)), "O - -", "+n2 +n3")]
#[case::row_7(json!({ "burstReplicas": 1 }), "- - -", "+n1")]
#[case::row_8(json!({ "burstReplicas": "50%" }), "- - - - -", "+n1 +n2")]
#[case::row_9_one_at_least(json!({ "burstReplicas": "10%" }), "- - - - -", "+n1")]
#[case::burst_of_deletions(json!({ "burstReplicas": 1 }), "E:R E:R -", "+n3 -n1a")]
#[case::row_10(json!({}), "S:R R", "")]
#[case::row_10_without_a_pod(json!({}), "S:- R", "")]
#[case::row_11(json!({}), "E:R R", "-n1a")]
#[case::row_12(json!({}), "C:- R", "+n1")]
#[case::row_13(json!({}), "T R", "")]
#[case::row_14(surging(), "T R", "+n1")]
#[case::row_14_where_none_may_run(surging(), "S:T R", "")]
#[case::row_15(json!({}), "RR R", "-n1b")]
#[case::row_16(json!({}), "PR R", "-n1a")]
#[case::row_17(surging(), "ou R", "-n1a")]
#[case::row_18(
    json!({ "minReadySeconds": 5, "updateStrategy": { "rollingUpdate": { "maxSurge": 1, "maxUnavailable": 0 } } }), "Oy R", ""
)]
#[case::surge_old_goes_when_the_new_serves(surging(), "OR R", "-n1a")]
#[case::surge_keeps_the_oldest_of_each(surging(), "OOuu R", "-n1b -n1d")]
#[case::surge_of_one_kind(surging(), "RR R", "-n1b")]
#[case::surge_is_off_for_on_delete(
    json!({ "updateStrategy": { "type": "OnDelete", "rollingUpdate": { "maxSurge": 1 } } }), "T OR", "-n2b"
)]
#[case::row_19(json!({}), "F R", "!n1 -n1a")]
#[case::failed_beside_a_running_one(json!({}), "FR R", "!n1 -n1a")]
#[case::failed_with_surge(surging(), "F R", "!n1 +n1 -n1a")]
#[case::one_failed_pod_of_a_node_at_a_time(json!({}), "FF R", "!n1 -n1a")]
#[case::failed_where_none_may_stay(json!({}), "E:F R", "-n1a")]
#[case::on_its_way_to_a_node_that_is_gone(json!({}), "R X:P", "-n2a")]
#[case::on_a_node_that_is_gone(json!({}), "R X:R", "")]
#[case::on_its_way(rolling(json!({ "paused": true })), "P R", "")]
#[case::held_before_its_deletion(held_by_label(), "E:D R", "")]
#[case::let_go_by_the_hook(held_by_label(), "d R", "-n1a")]
#[case::the_hook_is_gone(json!({}), "D R", "-n1a")]
fn a_pod_for_each_node_that_fits(#[case] spec: Value, #[case] words: &str, #[case] expect: &str) {
    check(&spec, words, expect);
}

#[rstest]
#[case::by_label(json!({ "labelsHandler": { "app": "x" } }), "E:R R", "hold n1a")]
#[case::not_this_one(json!({ "labelsHandler": { "app": "y" } }), "E:R R", "-n1a")]
#[case::replaced(json!({ "labelsHandler": { "app": "x" } }), "O O", "hold n2a")]
fn a_hook_holds_pods_before_their_deletion(#[case] hook: Value, #[case] words: &str, #[case] expect: &str) {
    check(&json!({ "lifecycle": { "preDelete": hook } }), words, expect);
}
