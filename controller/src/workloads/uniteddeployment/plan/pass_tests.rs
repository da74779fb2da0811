//! Rows: the workloads that a pass makes, changes and deletes, and the status.

use std::sync::Arc;

use jiff::Timestamp;
use rstest::rstest;
use serde_json::{Value, json};

use super::super::adaptive::tests::waiting;
use super::super::test_world::{child, set};
use super::*;
use crate::api::labels;
use crate::api::v1alpha1::UnitedDeployment;
use crate::pods::test_pods::TestPod;
use crate::pods::{CachedPod, Revision};

const NOW: i64 = 100;

/// A workload from words such as `a:3/2`, its replicas and how many of them are ready. Behind them: `-` it has the old revision, `p1`
/// its partition, `~` it is being deleted, `w` the last pod waits for a node too long, `s` it was made a second later than others.
fn one(word: &str) -> Child {
    let (subset, rest) = word.split_once(':').unwrap();
    let end = rest
        .find(|c: char| !c.is_ascii_digit() && c != '/')
        .unwrap_or(rest.len());
    let (numbers, marks) = rest.split_at(end);
    let (replicas, ready) = numbers.split_once('/').unwrap();
    let revision = if marks.contains('-') { "u-old" } else { "u-new" };
    let mut child = child(subset, revision);
    child.spec.replicas = replicas.parse().unwrap();
    child.replicas = child.spec.replicas;
    child.ready = ready.parse().unwrap();
    child.is_ending = marks.contains('~');
    if let Some((_, partition)) = marks.split_once('p') {
        child.spec.partition = partition[..1].parse().unwrap();
    }
    if marks.contains('s') {
        child.created = Timestamp::from_second(1).ok();
        child.name = format!("u-{subset}-2");
    }
    let pods = (0..child.replicas).map(|number| {
        let name = format!("{}-{number}", child.name);
        let pod = match number < child.ready {
            true => TestPod::new(&name),
            false if marks.contains('w') => waiting(&name, 1),
            false => TestPod::new(&name).not_ready(),
        };
        Arc::new(CachedPod::from(
            pod.label(labels::SUBSET_REVISION, revision).build(),
        ))
    });
    child.pods = pods.collect();
    child
}

/// Subsets from words such as `a`, `b=2`, `c=0..2`.
fn subsets(words: &str) -> Value {
    let subset = |word: &str| {
        let (name, amount) = word.split_once('=').unwrap_or((word, ""));
        let number = |text: &str| text.parse::<i32>().map_or(Value::Null, |number| json!(number));
        match amount.split_once("..") {
            Some((min, max)) => {
                json!({ "name": name, "minReplicas": number(min), "maxReplicas": number(max) })
            }
            None => json!({ "name": name, "replicas": number(amount) }),
        }
    };
    words.split_whitespace().map(subset).collect()
}

/// A UnitedDeployment with so many replicas, these subsets and workloads, and changes of the whole object.
pub(in crate::workloads::uniteddeployment) fn observed(
    strategy: &str,
    replicas: i32,
    words: &str,
    children: &str,
    changes: Value,
) -> Observed {
    let mut object = serde_json::to_value(set(strategy)).unwrap();
    object["spec"]["replicas"] = json!(replicas);
    object["spec"]["topology"]["subsets"] = subsets(words);
    crate::kit::json::merge(&mut object, changes);
    let set: UnitedDeployment = serde_json::from_value(object).unwrap();
    Observed {
        set: Arc::new(set),
        kind: ChildKind::CloneSet,
        children: children.split_whitespace().map(one).collect(),
        others: Vec::new(),
        revisions: Vec::new(),
        now: Timestamp::from_second(NOW).unwrap(),
    }
}

/// The revisions: `u-new` is the update revision, the other one is the current one.
pub(in crate::workloads::uniteddeployment) fn revisions(current: &str) -> Revisions {
    let revision = |name: &str| Revision {
        name: name.to_owned(),
        template: Value::Null,
        claims: None,
    };
    Revisions {
        update: revision("u-new"),
        current: revision(current),
        all: vec![revision(current), revision("u-new")],
        collision_count: 0,
    }
}

/// `+` a workload is made, `~` changed, each with replicas and partition, and `u` how many pods may be unavailable; `-` one is deleted, `x`
/// one of another kind, `d` one too many; `l` a pod's label changes; `s` a pod is stuck; `!` the failure.
fn shown(plan: &Plan) -> String {
    let wanted = |wanted: &Wanted| {
        let partition = match wanted.partition {
            0 => String::new(),
            partition => format!("p{partition}"),
        };
        let unavailable = wanted.max_unavailable.map(|number| format!("u{number}"));
        format!(
            "{}{}{partition}{}",
            wanted.subset,
            wanted.replicas,
            unavailable.unwrap_or_default()
        )
    };
    let names = |mark: &'static str, children: &[Child]| -> Vec<String> {
        children
            .iter()
            .map(|child| format!("{mark}{}", child.name))
            .collect()
    };
    let mut parts = names("d", &plan.duplicates);
    let label = |(pod, is_reserved): &Labelled| format!("l{}={is_reserved}", pod.name);
    parts.extend(plan.labelled.iter().map(label));
    parts.extend(plan.create.iter().map(|new| format!("+{}", wanted(new))));
    parts.extend(names("-", &plan.delete));
    parts.extend(names("x", &plan.others));
    parts.extend(plan.update.iter().map(|(_, new)| format!("~{}", wanted(new))));
    parts.extend(plan.stuck.iter().map(|pod| format!("s{}", pod.name)));
    parts.extend(plan.failure.iter().map(|failure| format!("!{}", failure.error)));
    parts.join(" ")
}

fn partitions(numbers: &Value) -> Value {
    json!({ "spec": { "updateStrategy": { "manualUpdate": { "partitions": numbers } } } })
}

/// The number of replicas, the subsets, the workloads, changes of the object, and the actions.
#[rstest]
#[case::all_new(6, "c a=1 b=3", "", json!({}), "+a1 +b3 +c2")]
#[case::as_wanted(3, "a b", "a:1/1 b:2/2", json!({}), "")]
#[case::more(5, "a b", "a:1/1 b:2/2", json!({}), "~a2 ~b3")]
#[case::fewer(1, "a b", "a:1/1 b:2/2", json!({}), "~a0 ~b1")]
#[case::a_new_revision(3, "a b", "a:1/1- b:2/2", json!({}), "~a1")]
#[case::a_partition(3, "a b", "a:1/1 b:2/2", partitions(&json!({ "b": 1 })), "~b2p1")]
#[case::a_partition_is_no_more_than_all(5, "a=3 b", "a:3/3 b:2/2p2", partitions(&json!({ "a": 5, "b": 2 })), "~a3p3")]
#[case::no_partition_any_more(3, "a b", "a:1/1 b:2/2p1", json!({}), "~b2")]
#[case::partitions_of_another_strategy(
    3, "a b", "a:1/1 b:2/2", json!({ "spec": { "updateStrategy": { "type": "Bogus", "manualUpdate": { "partitions": { "b": 1 } } } } }), ""
)]
#[case::negative_partition(3, "a b", "a:1/1 b:2/2", partitions(&json!({ "b": -1 })), "~b2p-1")]
#[case::a_subset_goes(3, "a", "a:1/1 b:2/2", json!({}), "-u-b-1 ~a3")]
#[case::one_that_goes_is_not_deleted_again(3, "a", "a:3/3 b:2/2~", json!({}), "")]
#[case::one_that_goes_is_not_changed(3, "a", "a:1/1~", json!({}), "")]
#[case::two_of_one_subset(3, "a", "a:1/1s a:3/3", json!({}), "du-a-2")]
#[case::no_subsets(0, "", "a:1/1", json!({}), "-u-a-1")]
#[case::numbers_that_do_not_fit(
    3, "a=1 b=1", "a:1/1 b:1/1", json!({}), "!specified subsets' replica (2) is less than UnitedDeployment replica (3)"
)]
fn work(
    #[case] replicas: i32,
    #[case] subsets: &str,
    #[case] children: &str,
    #[case] changes: Value,
    #[case] expect: &str,
) {
    let observed = observed("", replicas, subsets, children, changes);
    assert_eq!(shown(&plan(&observed, &revisions("u-new"))), expect);
}

#[rstest]
#[case::none(json!({}), "", true)]
#[case::changed(json!({ "spec": { "x": 1 } }), r#"{"spec":{"x":2}}"#, false)]
#[case::same(json!({ "spec": { "x": 1 } }), r#"{"spec":{"x":1}}"#, true)]
#[case::gone(Value::Null, r#"{"spec":{"x":1}}"#, false)]
fn patches(#[case] patch: Value, #[case] known: &str, #[case] is_same: bool) {
    let patch = if patch == json!({}) { Value::Null } else { patch };
    let changes = json!({ "spec": { "topology": { "subsets": [{ "name": "a", "patch": patch }] } } });
    let mut observed = observed("", 1, "", "a:1/1", changes);
    known.clone_into(&mut observed.children[0].patch);
    assert_eq!(plan(&observed, &revisions("u-new")).update.is_empty(), is_same);
}

#[test]
fn workloads_of_other_kinds_go() {
    let mut observed = observed("", 1, "a", "", json!({}));
    let mut others: Vec<Child> = ["a:1/1", "b:1/1~"].into_iter().map(one).collect();
    for other in &mut others {
        other.kind = ChildKind::Deployment;
    }
    observed.others = others;
    assert_eq!(shown(&plan(&observed, &revisions("u-new"))), "+a1 xu-a-1");
}

#[rstest]
#[case::none(None, "no label apps.kruise.io/subset-name found")]
#[case::empty(Some(""), "label apps.kruise.io/subset-name has an empty value")]
fn a_workload_without_a_subset(#[case] label: Option<&str>, #[case] why: &str) {
    let mut observed = observed("", 1, "a", "a:1/1", json!({}));
    observed.children[0].labels.remove(labels::SUBSET_NAME);
    let label = label.map(|label| (labels::SUBSET_NAME.to_owned(), label.to_owned()));
    observed.children[0].labels.extend(label);
    let failure = plan(&observed, &revisions("u-new")).failure.unwrap();
    let inner = format!("fail to get subSet name from label of subset default/u-a-1: {why}");
    let outer = format!("fail to get all Subsets for UnitedDeployment default/u: {inner}");
    assert_eq!(
        failure.events,
        [
            ("FailedFindSubsets", inner),
            ("Failed FindSubsets", outer.clone())
        ]
    );
    assert_eq!(failure.error, outer);
}

/// Pods of a StatefulSet: the revision, whether it is ready, the partition, whether pods are updated by being deleted.
#[rstest]
#[case::stuck("u-old", false, 0, false, true)]
#[case::ready("u-old", true, 0, false, false)]
#[case::new("u-new", false, 0, false, false)]
#[case::kept("u-old", false, 1, false, false)]
#[case::on_delete("u-old", false, 0, true, false)]
fn stuck_pods(
    #[case] revision: &str,
    #[case] is_ready: bool,
    #[case] partition: i32,
    #[case] on_delete: bool,
    #[case] expect: bool,
) {
    let mut observed = observed("", 1, "a", "a:1/1", partitions(&json!({ "a": partition })));
    observed.kind = ChildKind::StatefulSet;
    let child = &mut observed.children[0];
    child.kind = ChildKind::StatefulSet;
    child.spec.on_delete = on_delete;
    let pod = TestPod::new("u-a-1-0").label(labels::SUBSET_REVISION, revision);
    let pod = if is_ready { pod } else { pod.not_ready() };
    child.pods = vec![Arc::new(CachedPod::from(pod.build()))];
    assert_eq!(
        plan(&observed, &revisions("u-new")).stuck.len(),
        usize::from(expect)
    );
}

/// The workloads before, the actions, the subset out of room with the reason, and the seconds until the next look.
#[rstest]
#[case::new("", "+a2 +b1", "", Some(5))]
#[case::healthy("a:2/2 b:1/1", "", "", None)]
#[case::moves_on("a:2/0w b:1/1", "~a0 ~b3", "a reschedule", Some(5))]
fn pods_move_on(
    #[case] children: &str,
    #[case] expect: &str,
    #[case] out: &str,
    #[case] requeue_s: Option<u64>,
) {
    let observed = observed("Adaptive", 3, "a=0..2 b=0..", children, json!({}));
    let plan = plan(&observed, &revisions("u-new"));
    assert_eq!(shown(&plan), expect);
    assert_eq!(out_of_room(&plan), out);
    assert_eq!(plan.requeue.map(|wait| wait.as_secs()), requeue_s);
}

fn out_of_room(plan: &Plan) -> String {
    let out = plan.status.subset_statuses.iter().filter_map(|subset| {
        let condition = conditions::schedulable(subset).filter(|condition| condition.status == "False")?;
        Some(format!("{} {}", subset.name, condition.reason))
    });
    out.collect::<Vec<_>>().join(", ")
}

fn known(names: &str, out: &str) -> Value {
    let subset = |name: &str| {
        let condition =
            json!({ "type": "Schedulable", "status": "False", "lastTransitionTime": "1970-01-01T00:01:30Z" });
        let conditions = if out.contains(name) {
            json!([condition])
        } else {
            json!([])
        };
        json!({ "name": name, "conditions": conditions })
    };
    let all: Value = names.split_whitespace().map(subset).collect();
    json!({ "status": { "subsetStatuses": all, "replicas": 0, "updatedReplicas": 0, "currentRevision": "u-new" } })
}

/// The known subsets, those that were out of room, the workloads, the actions, and the subsets that are out of room then.
#[rstest]
#[case::first("", "", "", "+a2 +b1", "")]
#[case::one_is_added(
    "b",
    "",
    "b:3/3",
    "lu-b-1-0=false lu-b-1-1=false lu-b-1-2=false +a2 ~b1",
    "a created"
)]
#[case::others_stand_in(
    "a b",
    "",
    "a:2/0w b:1/1",
    "lu-a-1-0=true lu-a-1-1=true lu-b-1-0=false ~b3",
    "a reschedule"
)]
#[case::old_ones_without_an_update(
    "a b",
    "",
    "a:2/0w- b:1/1",
    "lu-a-1-0=false lu-a-1-1=false lu-b-1-0=false ~a2",
    ""
)]
#[case::updated_at_once_when_out_of_room(
    "a b",
    "a",
    "a:2/1-p1 b:1/1",
    "lu-a-1-0=true lu-a-1-1=true lu-b-1-0=false ~a2u1 ~b3",
    "a reschedule"
)]
fn pods_stay(
    #[case] names: &str,
    #[case] out_before: &str,
    #[case] children: &str,
    #[case] expect: &str,
    #[case] out: &str,
) {
    let observed = observed("Reserve", 3, "a=0..2 b=0..", children, known(names, out_before));
    let plan = plan(&observed, &revisions("u-new"));
    assert_eq!(shown(&plan), expect);
    assert_eq!(out_of_room(&plan), out);
}
