//! A pass, row by row.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::ControllerRevision;
use rstest::rstest;
use serde_json::{Value, json};

use super::pass::{Action, plan};
use super::revisions;
use crate::api::labels;
use crate::api::v1beta1::SidecarSet;
use crate::kit::Owner;
use crate::kit::json::merge;
use crate::pods::revision_plan::RevisionAction;
use crate::pods::test_pods::TestPod;
use crate::pods::{CachedPod, PodAction, Revision, Revisions, pod};
use crate::workloads::sidecarset::observe::Observed;

/// A set whose container `side` has the image `v2`.
fn set(strategy: &Value) -> SidecarSet {
    serde_json::from_value(json!({
        "metadata": { "name": "s", "uid": "u", "generation": 2, "resourceVersion": "77",
            "annotations": { labels::SIDECARS_HASH: "H2", labels::SIDECARS_HASH_WITHOUT_IMAGE: "w" } },
        "spec": { "containers": [{ "name": "side", "image": "v2" }], "updateStrategy": strategy },
    }))
    .unwrap()
}

/// A pod of the set, by a letter: ready or not in the old version (`r`, `n`), the same with a container between two images (`b`, or `m`
/// if that is not ready), with more than images to change (`x`), or in the new version: in service (`R`), not ready (`N`), with the old
/// image (`I`).
fn pod_of(letter: char, name: &str) -> TestPod {
    let updated = letter.is_ascii_uppercase();
    let (hash, plain) = (
        if updated { "H2" } else { "H1" },
        if letter == 'x' { "v" } else { "w" },
    );
    let record = |hash: &str| json!({ "s": { "hash": hash, "controllerRevision": "s-old" } }).to_string();
    let between = matches!(letter, 'b' | 'm' | 'I');
    let state = json!({ "s": { "revision": "H", "updateTimestamp": "t", "lastContainerStatuses": { "side": { "imageID": "X" } } } });
    let status = |container: &str, ready: bool| json!({ "name": container, "image": "docker.io/library/other:1", "imageID": "X", "ready": ready, "restartCount": 0 });
    let pod = TestPod::new(name)
        .set(
            "/spec/containers",
            json!([{ "name": "side", "image": "v1" }, { "name": "main", "image": "a:1" }]),
        )
        .set(
            "/status/containerStatuses",
            json!([status("side", letter != 'm'), status("main", true)]),
        )
        .annotation(labels::SIDECARS_HASH, &record(hash))
        .annotation(labels::SIDECARS_HASH_WITHOUT_IMAGE, &record(plain))
        .annotation(labels::SIDECARS_INJECTED, "s");
    let pod = if between {
        pod.annotation(labels::SIDECARS_IN_PLACE_STATE, &state.to_string())
    } else {
        pod
    };
    if matches!(letter, 'n' | 'N' | 'm') {
        pod.not_ready()
    } else {
        pod
    }
}

fn observed(set: SidecarSet, pods: Vec<TestPod>) -> Observed {
    Observed {
        set: Arc::new(set),
        pods: pods
            .into_iter()
            .map(|pod| Arc::new(CachedPod::from(pod.build())))
            .collect(),
        revisions: Vec::new(),
        now: Timestamp::UNIX_EPOCH,
    }
}

fn latest() -> Revisions {
    let update = Revision {
        name: "s-new".to_owned(),
        template: Value::Null,
        claims: None,
    };
    Revisions {
        current: update.clone(),
        update,
        all: Vec::new(),
        collision_count: 0,
    }
}

/// The actions in short: `!p0` and `+p0` for the condition false and true, `p0` for an upgrade, `0p0` for an emptied container, and the
/// event with its number.
fn short(actions: &[Action]) -> String {
    let words = actions.iter().map(|action| match action {
        Action::Set(PodAction::Event { message, .. }) => {
            message.split(' ').nth(4).unwrap_or_default().to_owned()
        }
        Action::Set(PodAction::Fail(message)) => message.clone(),
        Action::Pod { action, .. } => match action {
            PodAction::PatchPod { pod, .. } => pod.name.clone(),
            PodAction::PatchPodStatus { pod, patch } => {
                let patch = patch.value();
                let status = patch
                    .pointer("/status/conditions/0/status")
                    .and_then(Value::as_str);
                format!("{}{}", if status == Some("True") { '+' } else { '!' }, pod.name)
            }
            other => format!("{other:?}"),
        },
        Action::Empty { pod, .. } => format!("0{}", pod.name),
        other => format!("{other:?}"),
    });
    words.collect::<Vec<_>>().join(" ")
}

/// The pods `p0`, `p1`, … by letters; priorities fall with the number.
fn pods(letters: &str) -> Vec<TestPod> {
    let named = letters.chars().enumerate();
    named
        .map(|(at, letter)| pod_of(letter, &format!("p{at}")).label("o", &format!("{}", 99 - at)))
        .collect()
}

fn chosen(letters: &str, strategy: &Value) -> String {
    let plan = plan(&observed(set(strategy), pods(letters)), &latest());
    let all = short(&plan.actions);
    let words = all.split(' ').filter(|word| !word.starts_with('+'));
    words.collect::<Vec<_>>().join(" ")
}

#[rstest]
#[case::row_1("rrrr", json!({}), "p0")]
#[case::row_2("rrrr", json!({ "partition": 3, "maxUnavailable": 2 }), "p0")]
#[case::row_3("rrrR", json!({ "partition": "50%", "maxUnavailable": 2 }), "p0")]
#[case::row_4("rrRRRR", json!({ "partition": "50%", "maxUnavailable": 2 }), "")]
#[case::row_5("rrr", json!({ "partition": "99%", "maxUnavailable": "5%" }), "p0")]
#[case::row_6("r", json!({ "partition": "50%" }), "")]
#[case::row_7("rrr", json!({ "partition": "100%" }), "")]
#[case::row_8("nrr", json!({ "maxUnavailable": 0 }), "p0")]
#[case::row_9("Nrrrrrrrrr", json!({ "maxUnavailable": "20%" }), "p1")]
#[case::row_10("nnrrr", json!({ "maxUnavailable": 2 }), "p0 p1 p2 p3")]
#[case::row_11("NNnrr", json!({ "partition": 1 }), "p2")]
#[case::row_12("rnN", json!({ "priorityStrategy": { "orderPriority": [{ "orderedKey": "o" }] } }), "")]
#[case::not_ready_ones_first("rn", json!({}), "p1 p0")]
#[case::one_with_the_old_image_is_busy("Irr", json!({}), "")]
#[case::busy_ones_take_the_budget("INrr", json!({ "maxUnavailable": 3 }), "p2")]
#[case::all_are_updated("RR", json!({}), "")]
#[case::none_at_all("", json!({}), "")]
#[case::paused("rr", json!({ "paused": true }), "")]
#[case::not_to_be_updated("rr", json!({ "type": "NotUpdate" }), "")]
#[case::of_an_unknown_type("rr", json!({ "type": "Other" }), "p0")]
#[case::selected("rr", json!({ "selector": { "matchLabels": { "o": "98" } } }), "p1")]
#[case::none_selected("rr", json!({ "selector": { "matchLabels": { "o": "1" } } }), "")]
#[case::by_a_selector_that_is_none("rr", json!({ "selector": { "matchExpressions": [{ "key": "o", "operator": "Near" }] } }), "")]
#[case::by_priority("rrr", json!({ "priorityStrategy": { "weightPriority": [{ "weight": 5, "matchSelector": { "matchLabels": { "o": "97" } } }] } }), "p2")]
#[case::not_selected_pods_are_not_kept("rrr", json!({ "selector": { "matchLabels": { "o": "98" } }, "maxUnavailable": 3 }), "p1")]
#[case::bad_number("rr", json!({ "partition": "abc" }), "invalid type: string is not a percentage")]
fn upgrades_in_order_and_within_budget(#[case] letters: &str, #[case] strategy: Value, #[case] want: &str) {
    assert_eq!(chosen(letters, &strategy), want);
}

#[rstest]
#[case::row_13("r", "p0 +p0")]
#[case::row_14("b", "")]
#[case::row_15("m", "p0 +p0")]
#[case::row_16("x", "!p0 1")]
#[case::some_can("xr", "!p0 1 p1 +p1")]
#[case::two_cannot("xxR", "!p0 !p1 2")]
#[case::one_between_images_and_one_waiting("br", "p1 +p1")]
fn pods_have_classes(#[case] letters: &str, #[case] want: &str) {
    let plan = plan(&observed(set(&json!({})), pods(letters)), &latest());
    assert_eq!(short(&plan.actions), want);
}

#[test]
fn a_condition_that_is_there_is_not_written_again() {
    let condition =
        json!([{ "type": labels::SIDECARS_UPGRADABLE, "status": "False", "message": r#"{"s":false}"# }]);
    let pod = pod_of('x', "p0").set("/status/conditions", condition);
    let plan = plan(&observed(set(&json!({})), vec![pod]), &latest());
    assert_eq!(short(&plan.actions), "1", "the event comes with every pass");
}

#[rstest]
#[case("", (0, 0, 0, 0))]
#[case("rRnN", (4, 2, 2, 1))]
#[case("xbI", (3, 1, 1, 0))]
#[case("RR", (2, 2, 2, 2))]
fn statuses_count(#[case] letters: &str, #[case] want: (i32, i32, i32, i32)) {
    let status = plan(
        &observed(set(&json!({ "paused": true })), pods(letters)),
        &latest(),
    )
    .status;
    let got = (
        status.matched_pods,
        status.updated_pods,
        status.ready_pods,
        status.updated_ready_pods,
    );
    assert_eq!(got, want);
    assert_eq!(
        (status.observed_generation, status.latest_revision.as_str()),
        (2, "s-new")
    );
}

/// The patch of the only pod that the plan upgrades or empties.
fn patch_of(actions: &[Action]) -> Value {
    let patches = actions.iter().filter_map(|action| match action {
        Action::Pod {
            action: PodAction::PatchPod { patch, .. },
            ..
        } => Some(patch.value()),
        Action::Empty { patch, .. } => Some(patch.value()),
        _ => None,
    });
    let patches: Vec<Value> = patches.collect();
    assert!(patches.len() <= 1, "{patches:?}");
    patches.into_iter().next().unwrap_or_default()
}

#[rstest]
#[case::first(None, json!({ "s": { "revision": "H2", "updateTimestamp": "1970-01-01T00:00:00Z", "lastContainerStatuses": { "side": { "imageID": "X" } } } }))]
#[case::again(
    Some(json!({ "s": { "revision": "H1", "updateTimestamp": "then", "lastContainerStatuses": { "side": { "imageID": "W" }, "gone": { "imageID": "G" } } } })),
    json!({ "s": { "revision": "H1", "updateTimestamp": "then", "lastContainerStatuses": { "gone": { "imageID": "G" }, "side": { "imageID": "X" } } } })
)]
#[case::beside_another(
    Some(json!({ "a": { "revision": "A", "updateTimestamp": "then", "lastContainerStatuses": null } })),
    json!({ "a": { "revision": "A", "updateTimestamp": "then", "lastContainerStatuses": null },
        "s": { "revision": "H2", "updateTimestamp": "1970-01-01T00:00:00Z", "lastContainerStatuses": { "side": { "imageID": "X" } } } })
)]
fn an_upgrade_is_recorded(#[case] before: Option<Value>, #[case] want: Value) {
    let mut pod = pod_of('n', "p0");
    if let Some(before) = before {
        pod = pod.annotation(labels::SIDECARS_IN_PLACE_STATE, &before.to_string());
    }
    let mut set = set(&json!({}));
    set.spec.patch_pod_metadata = serde_json::from_value(json!([{ "annotations": { "k": "1" } }])).unwrap();
    let patch = patch_of(&plan(&observed(set, vec![pod]), &latest()).actions);
    assert_eq!(
        patch["spec"],
        json!({ "containers": [{ "name": "side", "image": "v2" }] })
    );
    let notes = &patch["metadata"]["annotations"];
    let state: Value =
        serde_json::from_str(notes[labels::SIDECARS_IN_PLACE_STATE].as_str().unwrap()).unwrap();
    assert_eq!(state, want);
    assert_eq!(
        notes[labels::SIDECARS_HASH],
        r#"{"s":{"updateTimestamp":"1970-01-01T00:00:00Z","hash":"H2","sidecarSetName":"s","sidecarList":["side"],"controllerRevision":"s-new"}}"#
    );
    assert_eq!(
        (&notes["k"], notes.get(labels::SIDECARS_HASH_WITHOUT_IMAGE)),
        (&json!("1"), None)
    );
}

/// A pod with a pair: the images and whether each is ready, and the one that works.
fn pair(images: [&str; 2], ready: [bool; 2], working: &str, updated: bool) -> TestPod {
    let status = |number: usize| {
        json!({ "name": format!("side-{}", number + 1), "image": images[number], "imageID": format!("id-{}", images[number]),
            "ready": ready[number], "restartCount": 0 })
    };
    let container =
        |number: usize| json!({ "name": format!("side-{}", number + 1), "image": images[number] });
    let versions = [("side-1", "1", "0"), ("side-2", "0", "1")];
    let pod = pod_of(if updated { 'R' } else { 'r' }, "p0")
        .set("/spec/containers", json!([container(0), container(1)]))
        .set("/status/containerStatuses", json!([status(0), status(1)]))
        .annotation(labels::SIDECARS_WORKING, &json!({ "side": working }).to_string());
    versions.into_iter().fold(pod, |pod, (name, version, alternate)| {
        pod.annotation(&format!("version.sidecarset.kruise.io/{name}"), version)
            .annotation(&format!("versionalt.sidecarset.kruise.io/{name}"), alternate)
    })
}

fn hot_set(image: &str) -> SidecarSet {
    let mut set = set(&json!({}));
    set.spec.containers = serde_json::from_value(json!([{ "name": "side", "image": image,
        "upgradeStrategy": { "upgradeType": "HotUpgrade", "hotUpgradeEmptyImage": "e" } }]))
    .unwrap();
    set
}

const BOTH: [bool; 2] = [true, true];

#[rstest]
#[case::row_36(["v1", "e"], BOTH, "side-1", false, "v2", "side-2=v2 working=side-2 version-2=77 alt-1=77 alt-2=1")]
#[case::row_37(["v1", "v2"], BOTH, "side-2", true, "v2", "side-1=e version-1=0 alt-2=0")]
#[case::row_38(["v1", "v2"], [true, false], "side-2", false, "v3", "side-2=v3 working=side-2 version-2=77 alt-1=77 alt-2=1")]
#[case::row_39(["e", "v2"], BOTH, "side-2", false, "v3", "side-1=v3 working=side-1 version-1=77 alt-2=77 alt-1=0")]
#[case::row_40(["v1", "v2"], [true, false], "side-2", false, "v1", "")]
#[case::not_yet_ready(["v1", "v2"], [true, false], "side-2", true, "v2", "none")]
#[case::nothing_to_do(["e", "v2"], BOTH, "side-2", true, "v2", "none")]
fn pairs_are_upgraded_hot(
    #[case] images: [&str; 2],
    #[case] ready: [bool; 2],
    #[case] working: &str,
    #[case] updated: bool,
    #[case] image: &str,
    #[case] want: &str,
) {
    let mut pod = pair(images, ready, working, updated);
    if ready != BOTH {
        pod = pod.not_ready();
    }
    let patch = patch_of(&plan(&observed(hot_set(image), vec![pod]), &latest()).actions);
    if want == "none" {
        return assert_eq!(patch, Value::Null);
    }
    let mut words = Vec::new();
    for container in patch
        .pointer("/spec/containers")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        words.push(format!(
            "{}={}",
            container["name"].as_str().unwrap(),
            container["image"].as_str().unwrap()
        ));
    }
    let notes = &patch["metadata"]["annotations"];
    let text = |key: &str| notes.get(key).and_then(Value::as_str);
    if let Some(map) = text(labels::SIDECARS_WORKING) {
        words.push(format!(
            "working={}",
            serde_json::from_str::<Value>(map).unwrap()["side"]
                .as_str()
                .unwrap()
        ));
    } else if want.contains("working") {
        words.push(format!("working={working}"));
    }
    for (short, long) in [("version", "version"), ("alt", "versionalt")] {
        for number in [1, 2] {
            if let Some(value) = text(&format!("{long}.sidecarset.kruise.io/side-{number}")) {
                words.push(format!("{short}-{number}={value}"));
            }
        }
    }
    let mut wanted: Vec<&str> = want.split_whitespace().collect();
    wanted.sort_unstable();
    words.sort_unstable();
    // A value that stays is not written.
    words.extend(
        (wanted.contains(&"alt-2=1") && text("versionalt.sidecarset.kruise.io/side-2").is_none())
            .then(|| "alt-2=1".to_owned()),
    );
    words.extend(
        (wanted.contains(&"alt-1=0") && text("versionalt.sidecarset.kruise.io/side-1").is_none())
            .then(|| "alt-1=0".to_owned()),
    );
    words.sort_unstable();
    assert_eq!(words, wanted);
}

fn revision(number: i64, name: &str, version: Option<&str>) -> Arc<ControllerRevision> {
    let labels = version.map(|version| json!({ labels::SIDECARS_CUSTOM_VERSION: version }));
    let object = json!({ "metadata": { "name": name, "labels": labels }, "revision": number });
    Arc::new(serde_json::from_value(object).unwrap())
}

#[rstest]
#[case::row_41("s-1 s-2 s-new", json!({ "revisionHistoryLimit": 2 }), "s-2", "s-1")]
#[case::row_42("s-1 s-2 s-3 s-new", json!({ "revisionHistoryLimit": 2 }), "s-1", "s-2 s-3")]
#[case::row_43("s-1 s-2 s-new", json!({ "revisionHistoryLimit": 0 }), "", "s-1 s-2")]
#[case::row_43_negative("s-1 s-2 s-new", json!({ "revisionHistoryLimit": -3 }), "", "s-1 s-2")]
#[case::ten_by_default("s-1 s-2 s-new", json!({}), "", "")]
#[case::injected_by_name("s-1 s-2 s-new", json!({ "revisionHistoryLimit": 1, "injectionStrategy": { "revision": { "revisionName": "s-1" } } }), "", "s-2")]
#[case::injected_by_version("s-1@v s-2@v s-new", json!({ "revisionHistoryLimit": 1, "injectionStrategy": { "revision": { "customVersion": "v" } } }), "", "s-1")]
fn old_revisions_go(#[case] names: &str, #[case] spec: Value, #[case] used: &str, #[case] want: &str) {
    let mut set = serde_json::to_value(self::set(&json!({}))).unwrap();
    merge(&mut set["spec"], spec);
    let record = json!({ "s": { "hash": "H2", "controllerRevision": used } }).to_string();
    let pod = pod_of('R', "p0").annotation(labels::SIDECARS_HASH, &record);
    let mut observed = observed(serde_json::from_value(set).unwrap(), vec![pod]);
    observed.revisions = (1..)
        .zip(names.split(' '))
        .map(|(number, name)| match name.split_once('@') {
            Some((name, version)) => revision(number, name, Some(version)),
            None => revision(number, name, None),
        })
        .collect();
    assert_eq!(plan(&observed, &latest()).history.join(" "), want);
}

#[test]
fn a_revision_has_the_sets_labels_and_version() {
    let mut set = set(&json!({}));
    set.spec.custom_version = Some("v1".to_owned());
    set.metadata.labels = Some([("team".to_owned(), "blue".to_owned())].into());
    let observed = observed(set, Vec::new());
    let owner = Owner::of(observed.set.as_ref()).in_namespace("kruise-system");
    let plan = revisions::plan(&observed, &owner, 0);
    let Some(RevisionAction::Create(new)) = plan.action else {
        panic!("{:?}", plan.action);
    };
    let labels = new.metadata.labels.unwrap();
    let of = |key: &str| labels.get(key).map(String::as_str);
    assert_eq!(
        (
            of("team"),
            of(labels::SIDECARS_NAME),
            of(labels::SIDECARS_CUSTOM_VERSION)
        ),
        (Some("blue"), Some("s"), Some("v1"))
    );
    assert_eq!(new.metadata.namespace.as_deref(), Some("kruise-system"));
    assert_eq!(new.metadata.annotations.unwrap()[labels::SIDECARS_HASH], "H2");
    assert!(plan.revisions.update.name.starts_with("s-"));
}

#[test]
fn pods_have_the_containers_of_their_sets() {
    let set = hot_set("v1");
    let sidecars = crate::workloads::sidecarset::sidecars::Sidecars::of(&set);
    let with_pair = pair(["v1", "e"], BOTH, "side-1", true).build();
    assert!(sidecars.has(&with_pair));
    assert!(!sidecars.has(&pod_of('R', "p0").build()), "without the pair");
    let no_list = pair(["v1", "e"], BOTH, "side-1", true)
        .annotation(labels::SIDECARS_INJECTED, "other")
        .build();
    assert!(!sidecars.has(&no_list));
    assert_eq!(pod::name(&with_pair), "p0");
}

#[test]
fn containers_are_changed_in_the_order_of_the_pod() {
    let mut set = set(&json!({}));
    set.spec = serde_json::from_value(json!({
        "containers": [{ "name": "side", "image": "v2" }, { "name": "other", "image": "v2" }],
    }))
    .unwrap();
    let status =
        |name: &str| json!({ "name": name, "image": "x", "imageID": "X", "ready": true, "restartCount": 0 });
    let pod = pod_of('r', "p")
        .set(
            "/spec/containers",
            json!([{ "name": "side", "image": "v1" }, { "name": "other", "image": "v1" }, { "name": "main", "image": "a:1" }]),
        )
        .set(
            "/status/containerStatuses",
            json!([status("main"), status("other"), status("side")]),
        );
    let plan = plan(&observed(set, vec![pod]), &latest());
    let patched = plan.actions.iter().find_map(|action| match action {
        Action::Pod {
            action: PodAction::PatchPod { patch, .. },
            ..
        } => Some(patch.value()["spec"]["containers"].clone()),
        _ => None,
    });
    let expected = json!([{ "name": "side", "image": "v2" }, { "name": "other", "image": "v2" }]);
    assert_eq!(patched, Some(expected));
}
