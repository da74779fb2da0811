//! Passes over a set, described in words: the objects that there are, and the actions.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use rstest::rstest;
use serde_json::{Value, json};

use super::*;
use crate::api::labels;
use crate::api::v1alpha1::CloneSet;
use crate::pods::test_pods::TestPod;
use crate::workloads::cloneset::plan::revisions;

/// Seconds since the epoch at which everything happens.
const NOW_S: i64 = 100;

fn template(image: &str) -> Value {
    json!({ "metadata": { "labels": { "app": "x" } }, "spec": { "containers": [{ "name": "main", "image": image }] } })
}

fn set(spec: &Value) -> CloneSet {
    let mut object = json!({
        "apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet",
        "metadata": { "name": "sample", "namespace": "default", "uid": "set", "generation": 1 },
        "spec": { "replicas": 3, "selector": { "matchLabels": { "app": "x" } }, "template": template("v1"),
            "updateStrategy": { "maxUnavailable": 1 } },
    });
    crate::kit::json::merge(&mut object["spec"], spec.clone());
    serde_json::from_value(object).unwrap()
}

fn revision_name(set: &CloneSet, image: &str) -> String {
    let mut other = set.clone();
    other.spec.template["spec"]["containers"][0]["image"] = json!(image);
    let observed = observed(other, Vec::new());
    revisions::plan(&observed, 0).unwrap().revisions.update.name
}

fn observed(set: CloneSet, pods: Vec<TestPod>) -> Observed {
    Observed {
        set: Arc::new(set),
        pods: pods.into_iter().map(|pod| Arc::new(pod.build().into())).collect(),
        claims: Vec::new(),
        revisions: Vec::new(),
        jobs: Vec::new(),
        nodes: BTreeMap::new(),
        now: Timestamp::from_second(NOW_S).unwrap(),
    }
}

/// `name word…`: `new`/`old` (revision), `unready`, `pending`, `ready=SECOND`, `state=STATE`, `marked`, `held` (label
/// `hold`), `going`, `failed`, `out=KEY` (of service, for this reason).
fn pod(text: &str, set: &CloneSet) -> TestPod {
    let mut words = text.split(' ');
    let mut pod = TestPod::new(words.next().unwrap())
        .state("Normal")
        .revision(&revision_name(set, "v1"));
    for word in words {
        pod = match word.split_once('=') {
            Some(("ready", second)) => pod.ready_at(second.parse().unwrap()),
            Some(("state", state)) => pod.state(state),
            Some(("out", key)) => {
                let message = json!([{ "userAgent": "Lifecycle", "key": key }]).to_string();
                let gates = [labels::IN_PLACE_READY, labels::KRUISE_POD_READY]
                    .map(|gate| json!({ "conditionType": gate }));
                pod.set("/spec/readinessGates", json!(gates))
                    .condition(labels::KRUISE_POD_READY, "False")
                    .set("/status/conditions/4/message", json!(message))
            }
            _ => match word {
                "new" => pod,
                "old" => {
                    let image = json!([{ "name": "main", "image": "v0" }]);
                    pod.revision(&revision_name(set, "v0"))
                        .set("/spec/containers", image)
                }
                "unready" => pod.not_ready(),
                "pending" => pod.phase("Pending").node("").condition("PodScheduled", "False"),
                "marked" => pod.label(labels::SPECIFIED_DELETE, "true"),
                "held" => pod.label("hold", "1"),
                "going" => pod.set("/metadata/deletionTimestamp", json!("1970-01-01T00:01:00Z")),
                "failed" => pod.phase("Failed"),
                "unhashed" => pod.without_label(labels::TEMPLATE_HASH),
                other => panic!("{other}?"),
            },
        };
    }
    pod
}

fn line(action: &Action) -> String {
    match action {
        Action::Pod(PodAction::Event { reason, message, .. }) => {
            format!("{reason}: {}", message.rsplit(", ").next().unwrap())
        }
        Action::CreatePods {
            count, of_current, ..
        } => format!("create {count}, {of_current} of the current revision"),
        Action::Pod(PodAction::DeletePod { pod, .. }) => format!("delete {}", pod.name),
        Action::Pod(PodAction::PatchPodStatus { pod, patch }) => {
            let condition = &patch.value()["status"]["conditions"][0];
            format!("{} {}={}", pod.name, condition["type"], condition["status"]).replace('"', "")
        }
        Action::Pod(PodAction::PatchPod { pod, patch }) => {
            let patch = patch.value();
            let state = patch["metadata"]["labels"][labels::LIFECYCLE_STATE].as_str();
            match (state, &patch["metadata"]["ownerReferences"]) {
                (Some(state), _) => format!("{} becomes {state}", pod.name),
                (None, Value::Array(_)) => format!("release {}", pod.name),
                _ => format!("patch {}", pod.name),
            }
        }
        Action::Pod(PodAction::UpdateInPlace { pod, .. }) => format!("update {} in place", pod.name),
        Action::Pod(PodAction::Recreate { pod, .. }) => format!("recreate {}", pod.name),
        Action::TrimPodsToDelete { keep } => format!("trim to {keep:?}"),
        Action::Pod(PodAction::Fail(message)) => format!("fail: {message}"),
        other => format!("{other:?}"),
    }
}

fn pass(spec: &Value, pods: &[&str]) -> Plan {
    let mut set = set(spec);
    let pods: Vec<TestPod> = pods.iter().map(|text| pod(text, &set)).collect();
    let old = crate::pods::revision::data_of(&template("v0")).unwrap();
    let mut old_revision = k8s_openapi::api::apps::v1::ControllerRevision::default();
    old_revision.metadata.name = Some(revision_name(&set, "v0"));
    old_revision.data = Some(k8s_openapi::apimachinery::pkg::runtime::RawExtension(old));
    old_revision.revision = 1;
    let current = revision_name(&set, "v0");
    set.status = Some(crate::api::v1alpha1::CloneSetStatus {
        current_revision: current,
        ..Default::default()
    });
    let mut observed = observed(set, pods);
    observed.revisions = vec![Arc::new(old_revision)];
    let revisions = revisions::plan(&observed, 0).unwrap().revisions;
    CloneSetPlanner::default().plan(&observed, &revisions)
}

#[rstest]
#[case::create(json!({}), &[], &["create 3, 0 of the current revision"])]
#[case::create_with_partition(json!({ "updateStrategy": { "partition": 2 } }), &[], &["create 3, 2 of the current revision"])]
#[case::nothing(json!({}), &["a", "b", "c"], &[])]
#[case::ended_ones_do_not_count(json!({}), &["a", "b failed", "c going"], &["create 2, 0 of the current revision"])]
#[case::scale_out_limited(json!({ "replicas": 5, "scaleStrategy": { "maxUnavailable": 1 } }), &["a", "b", "c"],
    &["ScaleUpLimited: limit: 1", "create 1, 0 of the current revision"])]
#[case::scale_out_held_back(json!({ "replicas": 5, "scaleStrategy": { "maxUnavailable": 1 } }), &["a", "b", "c", "d unready"],
    &["ScaleUpLimited: limit: 0"])]
#[case::held_back_yet_updating(json!({ "replicas": 4, "scaleStrategy": { "maxUnavailable": 0 }, "updateStrategy": { "type": "InPlaceIfPossible", "maxUnavailable": 2 } }),
    &["a old", "b", "c"], &["ScaleUpLimited: limit: 0", "update a in place"])]
#[case::scale_in(json!({ "replicas": 2 }), &["a ready=10", "b ready=30", "c ready=20"], &["delete b"])]
#[case::scale_in_unready_first(json!({ "replicas": 2 }), &["a ready=10", "b unready", "c ready=20"], &["delete b"])]
#[case::scale_in_old_first(json!({ "replicas": 2 }), &["a ready=50", "b old ready=1", "c ready=20"], &["delete b"])]
#[case::scale_in_keeps_the_partition(json!({ "replicas": 2, "updateStrategy": { "partition": 1 } }), &["a ready=50", "b old ready=1", "c ready=20"], &["delete a"])]
#[case::by_name(json!({ "scaleStrategy": { "podsToDelete": ["b", "gone"] } }), &["a", "b", "c"], &["delete b", "trim to [\"b\"]"])]
#[case::by_label(json!({}), &["a", "b marked", "c"], &["delete b"])]
#[case::by_label_at_the_limit(json!({}), &["a unready", "b marked", "c"], &[])]
#[case::by_label_unready_always(json!({}), &["a unready", "b marked unready", "c"], &["delete b"])]
#[case::by_label_beside_an_unready_one(json!({}), &["a marked unready", "b marked", "c"], &["delete a"])]
#[case::by_label_all_unready(json!({}), &["a marked unready", "b marked unready", "c"], &["delete a", "delete b"])]
#[case::by_label_not_available_yet(json!({ "minReadySeconds": 3600 }), &["a", "b marked", "c"], &[])]
#[case::by_label_never_available(json!({ "minReadySeconds": 3600, "updateStrategy": { "maxUnavailable": 3 } }), &["a", "b marked", "c"], &["delete b"])]
#[case::held_back_by_one_that_may_go(json!({ "replicas": 5, "scaleStrategy": { "maxUnavailable": 1 }, "lifecycle": { "preDelete": { "markPodNotReady": true, "labelsHandler": { "hold": "1" } } } }),
    &["a", "b state=PreparingDelete", "c"], &["ScaleUpLimited: limit: 0", "delete b"])]
#[case::by_label_with_surge(json!({ "updateStrategy": { "maxUnavailable": 0, "maxSurge": 1 } }), &["a", "b marked", "c"], &["create 1, 0 of the current revision"])]
#[case::no_scale_in_while_one_is_marked(json!({ "replicas": 1, "updateStrategy": { "maxUnavailable": 0 } }), &["a unready", "b marked", "c"], &["delete b"])]
#[case::pre_delete_hook(json!({ "replicas": 2, "lifecycle": { "preDelete": { "labelsHandler": { "hold": "1" } } } }), &["a ready=9", "b held ready=10", "c"], &["b becomes PreparingDelete"])]
#[case::pre_delete_hook_not_ready(json!({ "replicas": 2, "lifecycle": { "preDelete": { "markPodNotReady": true, "labelsHandler": { "hold": "1" } } } }), &["a", "b held ready=10", "c"], &["b becomes PreparingDelete"])]
#[case::pre_delete_hook_gone(json!({ "replicas": 2, "lifecycle": { "preDelete": { "labelsHandler": { "hold": "1" } } } }), &["a", "b state=PreparingDelete", "c"], &["delete b"])]
#[case::regret(json!({ "lifecycle": { "preDelete": { "labelsHandler": { "hold": "1" } } } }), &["a", "b held state=PreparingDelete", "c"], &["b becomes PreparingNormal"])]
#[case::no_regret_when_marked_not_ready(json!({ "lifecycle": { "preDelete": { "markPodNotReady": true, "labelsHandler": { "hold": "1" } } } }), &["a", "b held state=PreparingDelete", "c"], &[])]
#[case::stray(json!({ "selector": { "matchLabels": { "app": "y" } } }), &["a"], &["release a", "create 3, 0 of the current revision"])]
fn scaling(#[case] spec: Value, #[case] pods: &[&str], #[case] want: &[&str]) {
    check(&spec, pods, want);
}

#[rstest]
#[case::recreate(json!({}), &["a old ready=10", "b old ready=20", "c old ready=15"], &["recreate b"])]
#[case::recreate_waits(json!({}), &["a old", "b old", "c unready"], &[])]
#[case::unready_old_costs_nothing(json!({}), &["a old unready", "b old", "c"], &["recreate a"])]
#[case::two_at_a_time(json!({ "updateStrategy": { "maxUnavailable": 2 } }), &["a old ready=1", "b old ready=2", "c old ready=3"], &["recreate c", "recreate b"])]
#[case::surge_first(json!({ "updateStrategy": { "maxUnavailable": 0, "maxSurge": 1 } }), &["a old", "b old", "c old"], &["create 1, 0 of the current revision"])]
#[case::after_the_surge(json!({ "updateStrategy": { "maxUnavailable": 0, "maxSurge": 1 } }), &["a old ready=1", "b old ready=2", "c old ready=3", "d"], &["recreate c"])]
#[case::in_place(json!({ "updateStrategy": { "type": "InPlaceIfPossible" } }), &["a old ready=10", "b old ready=20", "c old ready=15"], &["update b in place"])]
#[case::in_place_only(json!({ "updateStrategy": { "type": "InPlaceOnly" } }), &["a old ready=10", "b", "c"], &["update a in place"])]
#[case::in_place_impossible(json!({ "template": { "spec": { "hostNetwork": true } }, "updateStrategy": { "type": "InPlaceOnly" } }), &["a old", "b", "c"],
    &["fail: find Pod a update strategy is InPlaceOnly but can not update in-place"])]
#[case::in_place_impossible_recreates(json!({ "template": { "spec": { "hostNetwork": true } }, "updateStrategy": { "type": "InPlaceIfPossible" } }), &["a old", "b", "c"], &["recreate a"])]
#[case::partition(json!({ "updateStrategy": { "partition": 2 } }), &["a old", "b old", "c"], &[])]
#[case::percent_partition_updates_one(json!({ "updateStrategy": { "partition": "99%" } }), &["a old ready=9", "b old", "c old"], &["recreate a"])]
#[case::paused(json!({ "updateStrategy": { "paused": true } }), &["a old", "b old", "c"], &[])]
#[case::on_delete(json!({ "updateStrategy": { "type": "OnDelete" } }), &["a old", "b old", "c"], &[])]
#[case::hooked(json!({ "updateStrategy": { "type": "InPlaceIfPossible" }, "lifecycle": { "inPlaceUpdate": { "labelsHandler": { "hold": "1" } } } }), &["a old held", "b", "c"], &["a becomes PreparingUpdate"])]
#[case::hooked_waits(json!({ "updateStrategy": { "type": "InPlaceIfPossible" }, "lifecycle": { "inPlaceUpdate": { "labelsHandler": { "hold": "1" } } } }), &["a old held state=PreparingUpdate", "b", "c"], &[])]
#[case::hook_gone(json!({ "updateStrategy": { "type": "InPlaceIfPossible" }, "lifecycle": { "inPlaceUpdate": { "labelsHandler": { "hold": "1" } } } }), &["a old state=PreparingUpdate", "b", "c"], &["update a in place"])]
#[case::held_ones_first(json!({ "updateStrategy": { "type": "InPlaceIfPossible" } }), &["a old ready=90", "b old state=PreparingUpdate", "c"], &["update b in place"])]
#[case::held_before_deletion_is_left(json!({ "lifecycle": { "preDelete": { "labelsHandler": { "hold": "1" } } }, "replicas": 2 }), &["a old held state=PreparingDelete", "b", "c"], &[])]
fn updating(#[case] spec: Value, #[case] pods: &[&str], #[case] want: &[&str]) {
    check(&spec, pods, want);
}

#[rstest]
#[case::scheduled(json!({}), &["a state=PreparingNormal", "b", "c"], &["a becomes Normal"])]
#[case::not_scheduled(json!({}), &["a pending state=PreparingNormal", "b", "c"], &[])]
#[case::pre_normal_hook(json!({ "lifecycle": { "preNormal": { "labelsHandler": { "hold": "1" } } } }), &["a state=PreparingNormal", "b held state=PreparingNormal", "c"], &["b becomes Normal"])]
#[case::even_when_paused(json!({ "updateStrategy": { "paused": true } }), &["a state=PreparingNormal", "b old", "c"], &["a becomes Normal"])]
#[case::refresh_ends_the_pass(json!({}), &["a state=PreparingNormal", "b old", "c"], &["a becomes Normal"])]
#[case::updated_without_state(json!({}), &["a state=Updating", "b", "c"], &["a becomes Normal"])]
#[case::updated_and_hook_is_off(json!({ "lifecycle": { "inPlaceUpdate": { "labelsHandler": { "hold": "1" } } } }), &["a state=Updating", "b held state=Updated", "c"], &["a becomes Updated", "b becomes Normal"])]
#[case::rolled_back_while_held(json!({}), &["a state=PreparingUpdate", "b", "c"], &["a becomes Normal"])]
#[case::back_in_service(json!({}), &["a state=Updating out=preUpdateHook", "b", "c"], &["a KruisePodReady=True", "a becomes Normal"])]
#[case::back_after_the_update(json!({ "lifecycle": { "inPlaceUpdate": { "markPodNotReady": true, "labelsHandler": { "hold": "1" } } } }), &["a state=Updating out=preUpdateHook", "b", "c"], &["a KruisePodReady=True", "a becomes Updated"])]
#[case::out_after_a_rollback(json!({ "lifecycle": { "inPlaceUpdate": { "markPodNotReady": true, "labelsHandler": { "hold": "1" } } } }), &["a held state=PreparingUpdate out=preUpdateHook", "b", "c"], &["a becomes Normal"])]
#[case::back_when_the_hook_is_gone(json!({}), &["a state=PreparingUpdate out=preUpdateHook", "b", "c"], &["a KruisePodReady=True", "a becomes Normal"])]
#[case::left_behind_by_another(json!({}), &["a out=preUpdateHook", "b out=preDeleteHook", "c"], &["a KruisePodReady=True", "b KruisePodReady=True"])]
#[case::out_for_another_reason(json!({}), &["a out=somethingElse", "b", "c"], &[])]
#[case::out_while_held(json!({ "lifecycle": { "preDelete": { "markPodNotReady": true, "labelsHandler": { "hold": "1" } } } }), &["a held state=PreparingDelete out=preDeleteHook", "b", "c"], &[])]
#[case::hash_of_an_old_pod(json!({}), &["a unhashed", "b", "c"], &["patch a"])]
fn refreshing(#[case] spec: Value, #[case] pods: &[&str], #[case] want: &[&str]) {
    check(&spec, pods, want);
}

fn check(spec: &Value, pods: &[&str], want: &[&str]) {
    let plan = pass(spec, pods);
    let got: Vec<String> = plan
        .prepare
        .iter()
        .chain(&plan.sync)
        .chain(&plan.finish)
        .map(line)
        .collect();
    assert_eq!(got, want);
    assert_eq!(pass(spec, pods), plan, "the same input gives the same plan");
}

#[rstest]
#[case::all_new(json!({}), &["a", "b", "c"], [3, 3, 3, 3, 3, 3, 3], "new")]
#[case::mixed(json!({}), &["a old", "b", "c unready"], [3, 2, 2, 2, 1, 1, 3], "old")]
#[case::min_ready(json!({ "minReadySeconds": 30 }), &["a ready=80", "b ready=69", "c ready=70"], [3, 3, 1, 3, 3, 1, 3], "new")]
#[case::states_other_than_normal(json!({}), &["a state=Updated", "b state=PreparingDelete", "c"], [3, 3, 1, 3, 3, 1, 3], "new")]
#[case::fewer_than_wanted(json!({ "replicas": 5 }), &["a", "b", "c"], [3, 3, 3, 3, 3, 3, 5], "old")]
#[case::partition(json!({ "updateStrategy": { "partition": 1 } }), &["a old", "b", "c"], [3, 3, 3, 2, 2, 2, 2], "old")]
fn status(#[case] spec: Value, #[case] pods: &[&str], #[case] want: [i32; 7], #[case] current: &str) {
    let status = pass(&spec, pods).status;
    let got = [
        status.replicas,
        status.ready_replicas,
        status.available_replicas,
        status.updated_replicas,
        status.updated_ready_replicas,
        status.updated_available_replicas,
        status.expected_updated_replicas,
    ];
    assert_eq!(got, want);
    let current_is = if status.current_revision == status.update_revision {
        "new"
    } else {
        "old"
    };
    assert_eq!(current_is, current);
    assert_eq!(status.label_selector, "app=x");
}

#[test]
fn a_failure_is_forgotten_by_a_pass_that_fails_at_nothing() {
    use crate::workloads::cloneset::plan::status::{FAILED_SCALE, FAILED_UPDATE, add_failure, differs};
    let mut set = set(&json!({}));
    let mut before = crate::api::v1alpha1::CloneSetStatus::default();
    let now = Timestamp::from_second(NOW_S - 1).unwrap();
    for kind in [FAILED_SCALE, FAILED_UPDATE] {
        add_failure(&mut before, &Default::default(), kind, "quota exceeded", now);
    }
    set.status = Some(before.clone());
    let observed = observed(set, Vec::new());
    let revisions = revisions::plan(&observed, 0).unwrap().revisions;
    let status = CloneSetPlanner::default().plan(&observed, &revisions).status;
    assert_eq!(before.conditions.len(), 2);
    assert_eq!(status.conditions, []);
    assert!(differs(&status, &before), "so it is written");
}

#[rstest]
#[case::nothing_to_wait_for(json!({}), &["a", "b", "c"], None)]
#[case::the_first_to_become_available(json!({ "minReadySeconds": 30 }), &["a ready=90", "b ready=75", "c ready=1"], Some(5_001))]
#[case::exactly_now(json!({ "minReadySeconds": 30 }), &["a ready=70", "b", "c"], Some(1))]
#[case::grace_period(json!({ "updateStrategy": { "type": "InPlaceIfPossible", "inPlaceUpdateStrategy": { "gracePeriodSeconds": 3 } } }), &["a old", "b", "c"], Some(3_000))]
fn requeues(#[case] spec: Value, #[case] pods: &[&str], #[case] want_ms: Option<u128>) {
    assert_eq!(pass(&spec, pods).requeue.map(|delay| delay.as_millis()), want_ms);
}

#[test]
fn an_update_in_place_is_patched_as_recorded() {
    let spec = json!({ "updateStrategy": { "type": "InPlaceIfPossible" } });
    let plan = pass(&spec, &["a old", "b", "c"]);
    let [
        Action::Pod(PodAction::UpdateInPlace {
            status_patch,
            patch,
            revision,
            ..
        }),
    ] = plan.sync.as_slice()
    else {
        panic!("{:?}", plan.sync)
    };
    assert_eq!(
        status_patch.as_ref().unwrap().value()["status"]["conditions"],
        json!([
            { "type": "InPlaceUpdateReady", "status": "False", "reason": "StartInPlaceUpdate", "lastTransitionTime": "1970-01-01T00:01:40Z" },
            { "type": "Ready", "status": "False", "reason": "ReadinessGatesNotReady", "lastTransitionTime": "1970-01-01T00:01:40Z",
              "message": "the status of pod readiness gate \"InPlaceUpdateReady\" is not \"True\", but False" },
        ])
    );
    let state = format!(
        "{{\"revision\":\"{revision}\",\"updateTimestamp\":\"1970-01-01T00:01:40Z\",\"lastContainerStatuses\":{{\"main\":{{\"imageID\":\"id-v1\"}}}},\
         \"updateImages\":true,\"containerBatchesRecord\":[{{\"timestamp\":\"1970-01-01T00:01:40Z\",\"containers\":[\"main\"]}}]}}"
    );
    assert_eq!(
        patch.value(),
        json!({
            "metadata": {
                "labels": { "controller-revision-hash": revision, "pod-template-hash": revision.strip_prefix("sample-").unwrap(),
                    "lifecycle.apps.kruise.io/state": "Updating" },
                "annotations": { "apps.kruise.io/inplace-update-state": state,
                    "lifecycle.apps.kruise.io/timestamp": "1970-01-01T00:01:40Z" },
            },
            "spec": { "containers": [{ "name": "main", "image": "v1" }] },
        })
    );
}

/// A claim whose pod has ended and stays is not free; one whose pod goes is.
#[test]
fn names_that_are_taken_are_not_asked_for() {
    use k8s_openapi::api::core::v1::PersistentVolumeClaim;
    let set = set(&json!({}));
    let id = |pod: TestPod, id: &str| pod.label(labels::INSTANCE_ID, id);
    let pods = vec![
        id(pod("a failed", &set), "aaaaa"),
        id(pod("b going", &set), "bbbbb"),
        id(pod("c", &set), "ccccc"),
    ];
    let mut observed = observed(set, pods);
    for id in ["aaaaa", "bbbbb", "ccccc"] {
        let mut claim = PersistentVolumeClaim::default();
        claim.metadata.name = Some(format!("data-{id}"));
        claim.metadata.labels = Some(BTreeMap::from([(labels::INSTANCE_ID.to_owned(), id.to_owned())]));
        observed.claims.push(Arc::new(claim));
    }
    let revisions = revisions::plan(&observed, 0).unwrap().revisions;
    let plan = CloneSetPlanner::default().plan(&observed, &revisions);
    let Some(Action::CreatePods {
        reuse_ids, taken_ids, ..
    }) = plan.sync.first()
    else {
        panic!("{:?}", plan.sync)
    };
    assert_eq!(
        (reuse_ids.join(" "), taken_ids.join(" ")),
        ("bbbbb".to_owned(), "aaaaa ccccc".to_owned())
    );
}
