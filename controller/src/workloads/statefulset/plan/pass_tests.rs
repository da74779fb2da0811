//! Rows: a set, its pods in a few words, and the actions of one pass.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use rstest::rstest;
use serde_json::{Value, json};

use super::*;
use crate::api::labels;
use crate::api::v1beta1::StatefulSet;
use crate::pods::test_pods::TestPod;
use crate::pods::{CachedPod, Revision};
use crate::workloads::statefulset::plan::Which;

const OLD: &str = "s-old";
const NEW: &str = "s-new";

fn revision(name: &str, image: &str) -> Revision {
    Revision {
        name: name.to_owned(),
        template: json!({ "metadata": { "labels": { "app": "x" } },
            "spec": { "containers": [{ "name": "main", "image": image }] } }),
        claims: None,
    }
}

fn revisions() -> Revisions {
    let (old, new) = (revision(OLD, "v1"), revision(NEW, "v2"));
    Revisions {
        update: new.clone(),
        current: old.clone(),
        all: vec![old, new],
        collision_count: 0,
    }
}

fn set(spec: &Value) -> Arc<StatefulSet> {
    let mut object = json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "StatefulSet",
        "metadata": { "name": "s", "namespace": "default", "uid": "u", "generation": 1 },
        "spec": { "selector": { "matchLabels": { "app": "x" } }, "template": {}, "podManagementPolicy": "Parallel",
            "updateStrategy": { "type": "RollingUpdate", "rollingUpdate": { "partition": 0, "maxUnavailable": 1 } } },
    });
    crate::kit::json::merge(&mut object, json!({ "spec": spec }));
    Arc::new(serde_json::from_value(object).unwrap())
}

/// A pod by a letter: `R` ready and updated, `O` ready and old, `u` and `o` the same and not ready, `F` failed, `T` old and
/// terminating, `S` and `s` as `R` and `u` with the mark of a deletion, `P` old and held before its update, `D` old and held
/// before its deletion, `H` the same by the label `hook`, `X` pending and old.
fn pod(ordinal: i32, letter: char) -> Arc<CachedPod> {
    let name = format!("s-{ordinal}");
    let pod = TestPod::new(&name)
        .label(labels::ORDINAL_NAME, &name)
        .state("Normal");
    let pod = match letter {
        'R' | 'u' | 'S' | 's' => pod.revision(NEW),
        _ => pod.revision(OLD),
    };
    let pod = match letter {
        'u' | 'o' | 's' => pod.not_ready(),
        'F' => pod.phase("Failed"),
        'X' => pod.phase("Pending"),
        'T' => pod.set("/metadata/deletionTimestamp", json!("1970-01-01T00:00:00Z")),
        'P' => pod.state("PreparingUpdate").label("hook", "true"),
        'D' => pod.state("PreparingDelete"),
        'H' => pod.state("PreparingDelete").label("hook", "true"),
        _ => pod,
    };
    let pod = match letter {
        'S' | 's' => pod.label(labels::SPECIFIED_DELETE, "true"),
        _ => pod,
    };
    Arc::new(CachedPod::from(pod.build()))
}

/// Pods by their letters, from ordinal 0 on; `-` is a gap.
fn pods(letters: &str) -> BTreeMap<i32, Arc<CachedPod>> {
    let letters = (0..).zip(letters.chars()).filter(|(_, letter)| *letter != '-');
    letters
        .map(|(ordinal, letter)| (ordinal, pod(ordinal, letter)))
        .collect()
}

fn planned(spec: &Value, pods: BTreeMap<i32, Arc<CachedPod>>) -> Plan {
    planned_with(spec, pods, BTreeMap::new())
}

fn planned_with(
    spec: &Value,
    pods: BTreeMap<i32, Arc<CachedPod>>,
    claims: BTreeMap<String, Arc<PersistentVolumeClaim>>,
) -> Plan {
    let on = [
        "StatefulSetStartOrdinal",
        "StatefulSetAutoDeletePVC",
        "StatefulSetAutoResizePVCGate",
    ];
    let observed = Observed {
        set: set(spec),
        pods,
        claims,
        revisions: Vec::new(),
        jobs: Vec::new(),
        now: Timestamp::from_second(1000).unwrap(),
    };
    plan(&observed, &revisions(), Gates::of(|gate| on.contains(&gate)))
}

fn shown(action: &Action) -> String {
    let one = |action: &PodAction| match action {
        PodAction::DeletePod { pod, .. } => format!("delete {}", &pod.name[2..]),
        PodAction::UpdateInPlace { pod, .. } => format!("update {}", &pod.name[2..]),
        PodAction::PatchPod { pod, patch } => {
            let patch = patch.value();
            let state = patch
                .pointer("/metadata/labels/lifecycle.apps.kruise.io~1state")
                .and_then(Value::as_str);
            format!("{} {}", state.unwrap_or("patch"), &pod.name[2..])
        }
        PodAction::PatchPodStatus { pod, .. } => format!("status {}", &pod.name[2..]),
        PodAction::Fail(message) => format!("fail: {message}"),
        PodAction::Event { message, .. } => message.clone(),
        other => format!("{other:?}"),
    };
    match action {
        Action::Pod(action) => one(action),
        Action::Create { ordinal, revision } => match revision {
            Which::Current => format!("create {ordinal} old"),
            Which::Update => format!("create {ordinal}"),
        },
        Action::CreateClaims { ordinal } => format!("claims {ordinal}"),
        Action::GrowClaim { claim, .. } => format!("grow {claim}"),
        Action::Identify { name, .. } => format!("identify {}", &name[2..]),
        Action::Batches(all) => {
            let all: Vec<String> = all
                .iter()
                .map(|actions| actions.iter().map(one).collect::<Vec<_>>().join("+"))
                .collect();
            format!("[{}]", all.join(", "))
        }
    }
}

fn check(spec: &Value, letters: &str, expect: &str) {
    let plan = planned(spec, pods(letters));
    let got: Vec<String> = plan.actions.iter().map(shown).collect();
    assert_eq!(got.join(", "), expect);
}

/// A rolling update with these details.
fn rolling(replicas: i32, details: Value) -> Value {
    json!({ "replicas": replicas, "updateStrategy": { "rollingUpdate": details } })
}

#[rstest]
#[case::row_9(rolling(5, json!({ "partition": 2 })), "", "create 0 old, create 1 old, create 2, create 3, create 4")]
#[case::row_10(
    json!({ "replicas": 4, "reserveOrdinals": ["0-1"], "updateStrategy": { "rollingUpdate": { "partition": 2 } } }),
    "", "create 2 old, create 3 old, create 4, create 5"
)]
#[case::row_11(
    rolling(4, json!({ "partition": 2, "unorderedUpdate": {} })),
    "", "create 0 old, create 1 old, create 2, create 3"
)]
#[case::row_12(rolling(4, json!({ "partition": 2, "unorderedUpdate": {} })), "OOR-", "create 3")]
#[case::row_13(rolling(4, json!({ "partition": 2, "unorderedUpdate": {} })), "ORR-", "create 3 old")]
#[case::row_14(json!({ "replicas": 1, "updateStrategy": { "type": "OnDelete", "rollingUpdate": null } }), "", "create 0")]
#[case::row_30(rolling(5, json!({ "partition": 7 })), "OOOO", "create 4 old")]
fn revisions_of_new_pods(#[case] spec: Value, #[case] letters: &str, #[case] expect: &str) {
    check(&spec, letters, expect);
}

#[rstest]
#[case::row_15(rolling(3, json!({})), "OOO", "delete 2")]
#[case::row_16(rolling(5, json!({ "maxUnavailable": 2 })), "OOOOO", "delete 4, delete 3")]
#[case::row_17(rolling(5, json!({ "maxUnavailable": "50%" })), "OOOOO", "delete 4, delete 3")]
#[case::row_18(rolling(3, json!({ "maxUnavailable": "30%" })), "OOO", "delete 2")]
#[case::row_19(rolling(3, json!({ "maxUnavailable": "100%" })), "OOO", "delete 2, delete 1, delete 0")]
#[case::row_20(rolling(5, json!({ "maxUnavailable": 7 })), "OOOOO", "delete 4, delete 3, delete 2, delete 1, delete 0")]
#[case::row_21(rolling(3, json!({})), "OOu", "")]
#[case::row_22(rolling(3, json!({})), "ooO", "")]
#[case::row_23(rolling(3, json!({})), "OOo", "delete 2")]
#[case::row_24(rolling(3, json!({})), "Ooo", "delete 2, delete 1")]
#[case::row_25(rolling(3, json!({})), "oRR", "delete 0")]
#[case::row_26(rolling(3, json!({ "partition": 3 })), "OOO", "")]
#[case::row_27(rolling(4, json!({ "partition": 3, "maxUnavailable": 2 })), "OOOO", "delete 3")]
#[case::row_28(
    json!({ "replicas": 4, "reserveOrdinals": [1, 4], "updateStrategy": { "rollingUpdate": { "partition": 3, "maxUnavailable": 4 } } }),
    "O-OO-O", "delete 5"
)]
#[case::row_29(
    json!({ "replicas": 4, "reserveOrdinals": [1, 4], "updateStrategy": { "rollingUpdate": { "partition": 1, "maxUnavailable": 4 } } }),
    "O-OO-O", "delete 5, delete 3, delete 2"
)]
#[case::row_31(rolling(3, json!({ "paused": true })), "OOO", "")]
#[case::row_34(rolling(4, json!({ "partition": 2, "maxUnavailable": 4, "unorderedUpdate": {} })), "OORO", "delete 3")]
#[case::one_that_terminates_takes_the_budget(rolling(3, json!({})), "OOT", "")]
#[case::one_that_terminates_is_left_alone(rolling(3, json!({ "maxUnavailable": 2 })), "OOT", "delete 1")]
#[case::on_delete(json!({ "replicas": 2, "updateStrategy": { "type": "OnDelete", "rollingUpdate": null } }), "OO", "")]
#[case::done(rolling(2, json!({})), "RR", "")]
fn updates(#[case] spec: Value, #[case] letters: &str, #[case] expect: &str) {
    check(&spec, letters, expect);
}

#[rstest]
#[case::row_35(rolling(4, json!({ "maxUnavailable": 2 })), "SSRS", "delete 3, delete 1")]
#[case::row_36(rolling(5, json!({ "maxUnavailable": 3 })), "RsuSS", "delete 4, delete 1")]
fn marked_pods(#[case] spec: Value, #[case] letters: &str, #[case] expect: &str) {
    check(&spec, letters, expect);
}

#[rstest]
#[case::row_37(6, json!("50%"), "R", "create 1, create 2, create 3")]
#[case::row_37_later(6, json!("50%"), "RRuu", "create 4")]
// The real one breaks before it deletes the pod, and never does.
#[case::row_38(2, json!(1), "RF", "delete 1")]
#[case::a_failed_pod_takes_the_budget(4, json!(1), "RF", "delete 1")]
#[case::pods_that_are_not_available_take_it(4, json!(2), "uu", "")]
fn growing_within_a_budget(
    #[case] replicas: i32,
    #[case] budget: Value,
    #[case] letters: &str,
    #[case] expect: &str,
) {
    let spec = json!({ "replicas": replicas, "scaleStrategy": { "maxUnavailable": budget } });
    check(&spec, letters, expect);
}

#[rstest]
#[case::row_39(3, "R", "create 1")]
#[case::after_one_that_is_not_ready(3, "u", "")]
#[case::row_41(2, "RRRR", "delete 3")]
#[case::row_41_later(2, "RRR", "delete 2")]
#[case::row_42(1, "RuR", "delete 2")]
#[case::row_42_later(1, "Ru", "delete 1")]
#[case::not_before_the_slots_are_available(2, "uRR", "")]
#[case::one_that_terminates_is_waited_for(1, "RT", "")]
#[case::failed(2, "FR", "delete 0")]
#[case::an_update_waits_for_all(3, "OOu", "")]
#[case::an_update(3, "OOO", "delete 2")]
#[case::none(0, "R", "delete 0")]
fn one_by_one(#[case] replicas: i32, #[case] letters: &str, #[case] expect: &str) {
    let spec = json!({ "replicas": replicas, "podManagementPolicy": "OrderedReady" });
    check(&spec, letters, expect);
}

#[rstest]
#[case::row_40(json!({ "replicas": 2 }), "RRRRRR", "[delete 5, delete 4, delete 3, delete 2]")]
#[case::those_that_terminate_are_left_alone(json!({ "replicas": 1 }), "RRT", "[delete 1]")]
#[case::reserved(json!({ "replicas": 3, "reserveOrdinals": [1] }), "RRR", "create 3, [delete 1]")]
#[case::start(json!({ "replicas": 2, "ordinals": { "start": 2 } }), "RR", "create 2, create 3, [delete 1, delete 0]")]
fn all_at_once(#[case] spec: Value, #[case] letters: &str, #[case] expect: &str) {
    check(&spec, letters, expect);
}

/// The claims of ordinals: `c` is there and asks for 1Gi, `d` is being deleted, `g` asks for 2Gi and has 1Gi, `f` as well but
/// for its file system, `G` has 2Gi, `o` is of another class, `-` is not there.
fn claims(letters: &str) -> BTreeMap<String, Arc<PersistentVolumeClaim>> {
    let mut out = BTreeMap::new();
    for (ordinal, letter) in letters.chars().enumerate() {
        let name = format!("data-s-{ordinal}");
        let mut claim = json!({ "metadata": { "name": name, "namespace": "default" }, "spec": {} });
        let (asks, has) = match letter {
            'g' | 'f' => ("2Gi", "1Gi"),
            'G' => ("2Gi", "2Gi"),
            _ => ("1Gi", "1Gi"),
        };
        let class = if letter == 'o' { "slow" } else { "disks" };
        claim["spec"] =
            json!({ "storageClassName": class, "resources": { "requests": { "storage": asks } } });
        claim["status"] = json!({ "capacity": { "storage": has } });
        match letter {
            'c' | 'g' | 'G' | 'o' => {}
            'f' => {
                claim["status"]["conditions"] =
                    json!([{ "type": "FileSystemResizePending", "status": "True" }]);
            }
            'd' => claim["metadata"]["deletionTimestamp"] = json!("1970-01-01T00:00:00Z"),
            _ => continue,
        }
        out.insert(name, Arc::new(serde_json::from_value(claim).unwrap()));
    }
    out
}

#[rstest]
#[case::there("XX", "cc", "")]
#[case::not_there("XX", "c-", "claims 1")]
#[case::being_deleted("XX", "cd", "claims 1")]
#[case::of_a_pod_that_runs("OX", "dc", "")]
fn claims_of_a_pending_pod(#[case] letters: &str, #[case] of: &str, #[case] expect: &str) {
    let spec = json!({ "replicas": 2, "volumeClaimTemplates": [{ "metadata": { "name": "data" }, "spec": {} }],
        "updateStrategy": { "rollingUpdate": { "partition": 2 } } });
    let plan = planned_with(&spec, pods(letters), claims(of));
    let got: Vec<String> = plan.actions.iter().map(shown).collect();
    assert_eq!(got.join(", "), expect);
}

/// Pods `O`, `R` and so on with claims whose template asks for 2Gi.
#[rstest]
#[case::first_the_claim("OO", "cc", 1, "grow data-s-1")]
#[case::as_many_as_the_budget_has("OOO", "ccc", 2, "grow data-s-2, grow data-s-1")]
#[case::a_claim_that_waits_takes_the_budget("OO", "cg", 1, "")]
#[case::then_the_pod("OO", "cG", 1, "delete 1")]
#[case::or_when_only_the_file_system_has_to_grow("OO", "cf", 1, "delete 1")]
#[case::updated_pods_are_not_restarted("RR", "cc", 1, "grow data-s-1")]
#[case::then_the_next_claim("RR", "cG", 1, "grow data-s-0")]
#[case::all_is_done("RR", "GG", 1, "")]
#[case::a_claim_that_is_being_deleted_does_not_count("OO", "cd", 1, "delete 1")]
#[case::of_another_class(
    "OO",
    "co",
    1,
    "failed to update pvc data-s-1: contains diff other than spec resource, wait pvc to be deleted, \
     fail: can not patch pvc data-s-1: contains diff other than spec resource, wait pvc to be deleted"
)]
fn claims_that_grow(
    #[case] letters: &str,
    #[case] of: &str,
    #[case] max_unavailable: i32,
    #[case] expect: &str,
) {
    let template = json!({ "metadata": { "name": "data" },
        "spec": { "storageClassName": "disks", "resources": { "requests": { "storage": "2Gi" } } } });
    let mut spec = rolling(
        i32::try_from(letters.len()).unwrap(),
        json!({ "maxUnavailable": max_unavailable }),
    );
    spec["volumeClaimTemplates"] = json!([template]);
    let check = |kind: &str, expect: &str| {
        let mut spec = spec.clone();
        spec["volumeClaimUpdateStrategy"] = json!({ "type": kind });
        let plan = planned_with(&spec, pods(letters), claims(of));
        let got: Vec<String> = plan.actions.iter().map(shown).collect();
        assert_eq!(got.join(", "), expect, "{kind}");
    };
    check("OnPodRollingUpdate", expect);
    if letters.starts_with('R') {
        check("OnDelete", "");
    }
}

/// The pull jobs for the images of a new revision, and the mark of that revision, with the gate on.
#[rstest]
#[case::pulled_early(4, json!({ "podUpdatePolicy": "InPlaceIfPossible" }), "pull s-new-main, created")]
#[case::of_few_pods(3, json!({ "podUpdatePolicy": "InPlaceIfPossible" }), "ignored")]
#[case::of_pods_that_are_recreated(4, json!({}), "ignored")]
#[case::of_all_pods_at_once(4, json!({ "podUpdatePolicy": "InPlaceOnly", "maxUnavailable": "100%" }), "ignored")]
#[case::of_all_but_those_of_the_partition(
    4, json!({ "podUpdatePolicy": "InPlaceOnly", "maxUnavailable": "100%", "partition": 1 }), "pull s-new-main, created"
)]
fn images_of_a_new_revision(#[case] replicas: i32, #[case] details: Value, #[case] expect: &str) {
    let observed = Observed {
        set: set(&rolling(replicas, details)),
        pods: pods(&"O".repeat(usize::try_from(replicas).unwrap())),
        claims: BTreeMap::new(),
        revisions: Vec::new(),
        jobs: Vec::new(),
        now: Timestamp::from_second(1000).unwrap(),
    };
    let gates = Gates::of(|gate| gate == "PreDownloadImageForInPlaceUpdate");
    let plan = plan(&observed, &revisions(), gates);
    let got: Vec<String> = plan
        .actions
        .iter()
        .filter_map(|action| match action {
            Action::Pod(PodAction::CreatePullJob { object, .. }) => {
                Some(format!("pull {}", object["metadata"]["name"].as_str()?))
            }
            Action::Pod(PodAction::MarkRevision { label, .. }) => match *label {
                labels::PREDOWNLOAD_CREATED => Some("created".to_owned()),
                labels::PREDOWNLOAD_IGNORED => Some("ignored".to_owned()),
                other => Some(other.to_owned()),
            },
            _ => None,
        })
        .collect();
    assert_eq!(got.join(", "), expect);
}

/// A hook by the label `hook`.
fn hooked(spec: Value, hook: &str) -> Value {
    let mut spec = spec;
    crate::kit::json::merge(
        &mut spec,
        json!({ "lifecycle": { hook: { "labelsHandler": { "hook": "true" } } } }),
    );
    spec
}

#[rstest]
#[case::in_place(rolling(2, json!({ "podUpdatePolicy": "InPlaceIfPossible" })), "OO", "update 1")]
#[case::in_place_only(rolling(2, json!({ "podUpdatePolicy": "InPlaceOnly" })), "OO", "update 1")]
#[case::of_a_revision_that_nobody_knows(
    rolling(1, json!({ "podUpdatePolicy": "InPlaceOnly" })), "?",
    "fail: find strategy is InPlaceOnly but Pod s-0 can not update in-place"
)]
#[case::held_before_its_update(
    hooked(rolling(1, json!({ "podUpdatePolicy": "InPlaceOnly" })), "inPlaceUpdate"), "P", ""
)]
#[case::not_held_any_more(rolling(1, json!({ "podUpdatePolicy": "InPlaceOnly" })), "P", "update 0")]
#[case::held_before_its_deletion(
    hooked(rolling(1, json!({ "podUpdatePolicy": "InPlaceOnly" })), "preDelete"), "H", ""
)]
#[case::not_held_before_its_deletion_any_more(
    rolling(1, json!({ "podUpdatePolicy": "InPlaceOnly" })), "D", "delete 0"
)]
#[case::begun_below_others(rolling(3, json!({})), "POO", "delete 0")]
#[case::held_below_others(rolling(3, json!({})), "DOO", "delete 0")]
#[case::still_held_below_others(hooked(rolling(3, json!({})), "preDelete"), "HOO", "")]
#[case::not_others_that_serve_not(rolling(3, json!({})), "oOO", "")]
#[case::recreated_after_its_hook(hooked(rolling(1, json!({})), "preDelete"), "P", "PreparingDelete 0")]
#[case::free_to_be_recreated(hooked(rolling(1, json!({})), "preDelete"), "O", "delete 0")]
fn policies_and_hooks(#[case] spec: Value, #[case] letters: &str, #[case] expect: &str) {
    let mut all = pods(&letters.replace('?', "O"));
    if letters == "?" {
        let pod = TestPod::new("s-0").label(labels::ORDINAL_NAME, "s-0");
        let pod = pod.state("Normal").revision("s-unknown").build();
        all.insert(0, Arc::new(CachedPod::from(pod)));
    }
    let plan = planned(&spec, all);
    let got: Vec<String> = plan.actions.iter().map(shown).collect();
    assert_eq!(got.join(", "), expect);
}

#[test]
fn the_label_of_the_name_is_put_back() {
    let pod = TestPod::new("s-0").revision(NEW).state("Normal").build();
    let pods = BTreeMap::from([(0, Arc::new(CachedPod::from(pod)))]);
    let plan = planned(&json!({ "replicas": 1 }), pods);
    let got: Vec<String> = plan.actions.iter().map(shown).collect();
    assert_eq!(got, ["identify 0"]);
}

/// The counts `replicas ready current updated`, and whether the current revision has become the update revision.
#[rstest]
#[case::row_43(3, "RRT", [3, 3, 0, 2], false)]
#[case::row_44(0, "", [0, 0, 0, 0], true)]
#[case::all_updated(2, "RR", [2, 2, 2, 2], true)]
#[case::one_not_ready(2, "Ru", [2, 1, 0, 2], false)]
#[case::one_is_deleted_by_the_pass(2, "OO", [2, 2, 1, 0], false)]
#[case::one_that_was_held_is_deleted(2, "OD", [2, 2, 1, 0], false)]
fn counts(#[case] replicas: i32, #[case] letters: &str, #[case] expect: [i32; 4], #[case] complete: bool) {
    let status = planned(&json!({ "replicas": replicas }), pods(letters)).status;
    let got = [
        status.replicas,
        status.ready_replicas,
        status.current_replicas,
        status.updated_replicas,
    ];
    assert_eq!((got, status.current_revision == NEW), (expect, complete));
}

#[test]
fn priorities_go_before_ordinals() {
    // Row 32: the heavier pods first, then by ordinal.
    let strategy = json!({ "unorderedUpdate": { "priorityStrategy": { "weightPriority": [
        { "weight": 50, "matchSelector": { "matchLabels": { "tier": "gold" } } }] } } });
    let mut order = Vec::new();
    let mut all: BTreeMap<i32, Arc<CachedPod>> = (0..5)
        .map(|ordinal| {
            let mut whole = TestPod::new(&format!("s-{ordinal}"))
                .label(labels::ORDINAL_NAME, &format!("s-{ordinal}"))
                .state("Normal")
                .revision(OLD);
            if matches!(ordinal, 1 | 3) {
                whole = whole.label("tier", "gold");
            }
            (ordinal, Arc::new(CachedPod::from(whole.build())))
        })
        .collect();
    for _ in 0..5 {
        let plan = planned(&rolling(5, strategy.clone()), all.clone());
        let [Action::Pod(PodAction::DeletePod { pod: gone, .. })] = plan.actions.as_slice() else {
            panic!("{:?}", plan.actions);
        };
        let ordinal: i32 = gone.name[2..].parse().unwrap();
        order.push(ordinal);
        all.insert(ordinal, pod(ordinal, 'R'));
    }
    assert_eq!(order, [3, 1, 4, 2, 0]);
}

#[test]
fn a_set_that_is_deleted_does_nothing() {
    let mut object = StatefulSet::clone(&set(&json!({ "replicas": 3 })));
    object.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(
        Timestamp::from_second(1).unwrap(),
    ));
    let observed = Observed {
        set: Arc::new(object),
        pods: pods("O"),
        claims: BTreeMap::new(),
        revisions: Vec::new(),
        jobs: Vec::new(),
        now: Timestamp::from_second(1000).unwrap(),
    };
    let plan = plan(&observed, &revisions(), Gates::of(|_| false));
    assert_eq!((plan.actions, plan.status.replicas), (Vec::new(), 1));
}
