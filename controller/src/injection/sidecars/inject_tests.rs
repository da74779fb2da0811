//! Injection, row by row.

use jiff::Timestamp;
use rstest::rstest;
use serde_json::{Value, json};

use super::inject::{Ways, inject};
use crate::api::labels;
use crate::api::v1beta1::SidecarSet;

/// A set of this name and spec, with hashes that say so.
fn set(name: &str, spec: &Value) -> SidecarSet {
    serde_json::from_value(json!({
        "metadata": { "name": name, "annotations": {
            labels::SIDECARS_HASH: format!("hash-{name}"), labels::SIDECARS_HASH_WITHOUT_IMAGE: format!("plain-{name}") } },
        "spec": spec, "status": { "matchedPods": 0, "readyPods": 0, "updatedPods": 0, "latestRevision": format!("{name}-1") },
    }))
    .unwrap()
}

fn pod(spec: &Value, annotations: &Value) -> Value {
    json!({ "metadata": { "name": "p", "namespace": "default", "labels": { "app": "main" }, "annotations": annotations },
        "spec": spec })
}

fn injected(pod: &Value, sets: &[SidecarSet], sort_containers: bool) -> Result<Value, String> {
    let mut pod = pod.clone();
    let now = Timestamp::UNIX_EPOCH;
    inject(&mut pod, sets, Ways { sort_containers, now })?;
    Ok(pod)
}

fn names(list: &Value) -> String {
    let items = list.as_array().map(Vec::as_slice).unwrap_or_default();
    let names: Vec<&str> = items.iter().map(|item| item["name"].as_str().unwrap()).collect();
    names.join(" ")
}

/// Containers by name: `a<` goes before the pod's own, others behind.
fn containers(text: &str) -> Value {
    let containers = text.split_whitespace().map(|word| match word.strip_suffix('<') {
        Some(name) => json!({ "name": name, "image": "set", "podInjectPolicy": "BeforeAppContainer" }),
        None => json!({ "name": word, "image": "set", "podInjectPolicy": "AfterAppContainer" }),
    });
    containers.collect()
}

#[rstest]
#[case::row_22("main", &["s1< s2 s3<"], false, "s1 s3 main s2")]
#[case::row_23("side main", &["side<"], false, "side main")]
#[case::in_its_place("main side", &["side"], false, "main side")]
#[case::behind("main", &["a b"], false, "main a b")]
#[case::of_two_sets("main", &["b< c", "a< d"], false, "b a main c d")]
#[case::of_two_sets_by_name("main", &["b< d", "a< c"], true, "a b main c d")]
#[case::of_two_sets_with_one_name("main", &["a<", "a<"], false, "a a main")]
#[case::nothing("main", &[""], false, "main")]
#[case::before_and_in_its_place("x side", &["a< side< b"], false, "a x side b")]
fn containers_have_their_places(
    #[case] own: &str,
    #[case] sets: &[&str],
    #[case] by_name: bool,
    #[case] want: &str,
) {
    let sets: Vec<SidecarSet> = sets
        .iter()
        .enumerate()
        .map(|(at, names)| set(&format!("s{at}"), &json!({ "containers": containers(names) })))
        .collect();
    let pod = pod(&json!({ "containers": containers(own) }), &json!({}));
    let pod = injected(&pod, &sets, by_name).unwrap();
    assert_eq!(names(&pod["spec"]["containers"]), want);
}

#[rstest]
#[case::by_name("own", &["b a"], "own a b")]
#[case::over_all_sets("own", &["c a", "b"], "own a b c")]
#[case::native_before("m-app-init", &["b-nat< a-init"], "b-nat m-app-init a-init")]
#[case::without_own("", &["b", "a"], "a b")]
#[case::in_its_place("own x", &["own"], "own x")]
fn init_containers_are_sorted(#[case] own: &str, #[case] sets: &[&str], #[case] want: &str) {
    let sets: Vec<SidecarSet> = sets
        .iter()
        .enumerate()
        .map(|(at, names)| set(&format!("s{at}"), &json!({ "initContainers": containers(names) })))
        .collect();
    let pod = pod(
        &json!({ "containers": [], "initContainers": containers(own) }),
        &json!({}),
    );
    let pod = injected(&pod, &sets, false).unwrap();
    assert_eq!(names(&pod["spec"]["initContainers"]), want);
}

/// The container `side` as it comes into a pod with the containers `main` and `other`.
fn side(own: Value, main: Value) -> Result<Value, String> {
    let mut side = json!({ "name": "side", "image": "set", "podInjectPolicy": "BeforeAppContainer" });
    let mut app = json!({ "name": "main", "image": "app" });
    for (into, from) in [(&mut side, own), (&mut app, main)] {
        into.as_object_mut()
            .unwrap()
            .extend(from.as_object().unwrap().clone());
    }
    let other = json!({ "name": "other", "env": [{ "name": "O", "value": "other" }],
        "volumeMounts": [{ "name": "o", "mountPath": "/other" }] });
    let set = set(
        "s",
        &json!({ "containers": [side], "patchPodMetadata": [{ "annotations": { "src": "main" } }] }),
    );
    let pod = pod(&json!({ "containers": [app, other] }), &json!({ "who": "other" }));
    let pod = injected(&pod, &[set], false)?;
    Ok(pod["spec"]["containers"][0].clone())
}

fn paths(list: &Value, field: &str) -> String {
    let items = list.as_array().map(Vec::as_slice).unwrap_or_default();
    let paths: Vec<String> = items
        .iter()
        .map(|item| {
            format!(
                "{}:{}",
                item["name"].as_str().unwrap(),
                item[field].as_str().unwrap()
            )
        })
        .collect();
    paths.join(" ")
}

#[rstest]
#[case::not_shared(json!({ "volumeMounts": [{ "name": "own", "mountPath": "/d" }] }), json!({ "volumeMounts": [{ "name": "v", "mountPath": "/log" }] }), "own:/d", "")]
#[case::row_24(
    json!({ "shareVolumePolicy": { "type": "enabled" }, "volumeMounts": [{ "name": "own", "mountPath": "/d" }] }),
    json!({ "volumeMounts": [{ "name": "v", "mountPath": "/d" }, { "name": "l", "mountPath": "/log" }] }),
    "own:/d l:/log o:/other", ""
)]
#[case::none_of_its_own(
    json!({ "shareVolumePolicy": { "type": "enabled" } }),
    json!({ "volumeMounts": [{ "name": "v", "mountPath": "/d" }] }), "v:/d o:/other", ""
)]
#[case::one_path_once(
    json!({ "shareVolumePolicy": { "type": "enabled" } }),
    json!({ "volumeMounts": [{ "name": "v", "mountPath": "/other" }] }), "v:/other", ""
)]
#[case::of_injected_containers_nothing(
    json!({ "shareVolumePolicy": { "type": "enabled" } }),
    json!({ "volumeMounts": [{ "name": "v", "mountPath": "/d" }], "env": [{ "name": "IS_INJECTED", "value": "true" }] }),
    "o:/other", ""
)]
#[case::devices(
    json!({ "shareVolumeDevicePolicy": { "type": "enabled" }, "volumeDevices": [{ "name": "own", "devicePath": "/dev/a" }] }),
    json!({ "volumeDevices": [{ "name": "v", "devicePath": "/dev/a" }, { "name": "w", "devicePath": "/dev/b" }] }),
    "", "own:/dev/a w:/dev/b"
)]
#[case::devices_not_shared(json!({}), json!({ "volumeDevices": [{ "name": "v", "devicePath": "/dev/a" }] }), "", "")]
#[case::mounts_take_the_paths_of_devices(
    json!({ "shareVolumePolicy": { "type": "enabled" }, "shareVolumeDevicePolicy": { "type": "enabled" } }),
    json!({ "volumeMounts": [{ "name": "v", "mountPath": "/x" }], "volumeDevices": [{ "name": "w", "devicePath": "/x" }] }),
    "v:/x o:/other", ""
)]
#[case::own_devices_take_the_paths_of_mounts(
    json!({ "shareVolumePolicy": { "type": "enabled" }, "volumeDevices": [{ "name": "w", "devicePath": "/x" }] }),
    json!({ "volumeMounts": [{ "name": "v", "mountPath": "/x" }] }),
    "o:/other", "w:/x"
)]
fn mounts_and_devices(#[case] own: Value, #[case] main: Value, #[case] mounts: &str, #[case] devices: &str) {
    let side = side(own, main).unwrap();
    assert_eq!(paths(&side["volumeMounts"], "mountPath"), mounts);
    assert_eq!(paths(&side["volumeDevices"], "devicePath"), devices);
}

fn env(own: Value, main: Value) -> String {
    let side = side(own, main).unwrap();
    let items = side["env"].as_array().unwrap();
    let env: Vec<String> = items
        .iter()
        .map(|env| {
            format!(
                "{}={}",
                env["name"].as_str().unwrap(),
                env["value"].as_str().unwrap_or("…")
            )
        })
        .collect();
    env.join(" ")
}

fn variables() -> Value {
    json!({ "env": [{ "name": "z", "value": "1" }, { "name": "A", "value": "2" }, { "name": "b", "value": "3" },
        { "name": "from", "valueFrom": { "fieldRef": { "fieldPath": "metadata.name" } } }] })
}

#[rstest]
#[case::the_mark(json!({}), "IS_INJECTED=true")]
#[case::own_first(json!({ "env": [{ "name": "x", "value": "0" }] }), "x=0 IS_INJECTED=true")]
#[case::own_mark(json!({ "env": [{ "name": "IS_INJECTED", "value": "no" }] }), "IS_INJECTED=no")]
#[case::row_25(
    json!({ "env": [{ "name": "A", "value": "own" }], "transferEnv": [{ "sourceContainerName": "main", "envNames": ["z", "A", "b"] }] }),
    "A=own IS_INJECTED=true b=3 z=1"
)]
#[case::one_name(json!({ "transferEnv": [{ "sourceContainerName": "main", "envName": "b" }] }), "IS_INJECTED=true b=3")]
#[case::both_kinds_of_names(
    json!({ "transferEnv": [{ "sourceContainerName": "main", "envName": "z", "envNames": ["A"] }] }), "IS_INJECTED=true A=2 z=1"
)]
#[case::from_somewhere(json!({ "transferEnv": [{ "sourceContainerName": "main", "envName": "from" }] }), "IS_INJECTED=true from=…")]
#[case::missing(json!({ "transferEnv": [{ "sourceContainerName": "main", "envName": "none" }] }), "IS_INJECTED=true")]
#[case::of_no_container(json!({ "transferEnv": [{ "sourceContainerName": "none", "envName": "b" }] }), "IS_INJECTED=true")]
#[case::by_an_annotation(
    json!({ "transferEnv": [{ "sourceContainerNameFrom": { "fieldRef": { "fieldPath": "metadata.annotations['who']" } }, "envName": "O" }] }),
    "IS_INJECTED=true O=other"
)]
#[case::by_an_annotation_of_a_set(
    json!({ "transferEnv": [{ "sourceContainerNameFrom": { "fieldRef": { "fieldPath": "metadata.annotations['src']" } }, "envName": "b" }] }),
    "IS_INJECTED=true b=3"
)]
#[case::by_a_label(
    json!({ "transferEnv": [{ "sourceContainerNameFrom": { "fieldRef": { "fieldPath": "metadata.labels['app']" } }, "envName": "b" }] }),
    "IS_INJECTED=true b=3"
)]
#[case::by_a_label_that_is_not_there(
    json!({ "transferEnv": [{ "sourceContainerNameFrom": { "fieldRef": { "fieldPath": "metadata.labels['none']" } }, "envName": "b" }] }),
    "IS_INJECTED=true"
)]
#[case::by_another_field(
    json!({ "transferEnv": [{ "sourceContainerNameFrom": { "fieldRef": { "fieldPath": "metadata.name" } }, "envName": "b" }] }),
    "IS_INJECTED=true"
)]
fn variables_of_other_containers(#[case] own: Value, #[case] want: &str) {
    assert_eq!(env(own, variables()), want);
}

#[rstest]
#[case::shared("enabled", "IS_INJECTED=true b=3")]
#[case::not_shared("disabled", "IS_INJECTED=true")]
fn variables_of_shared_paths(#[case] policy: &str, #[case] want: &str) {
    let mut main = variables();
    main["volumeMounts"] = json!([{ "name": "v", "mountPath": "/d", "subPathExpr": "$(b)/$(none)" }]);
    assert_eq!(
        env(json!({ "shareVolumePolicy": { "type": policy } }), main),
        want
    );
}

#[rstest]
#[case::used_ones(json!([{ "name": "a", "mountPath": "/a" }]), json!([]), "v a")]
#[case::devices_too(json!([]), json!([{ "name": "b", "devicePath": "/b" }]), "v b")]
#[case::none_used(json!([]), json!([]), "v")]
#[case::unknown(json!([{ "name": "none", "mountPath": "/a" }]), json!([]), "v")]
#[case::of_the_pod(json!([{ "name": "v", "mountPath": "/a" }]), json!([]), "v")]
#[case::once(json!([{ "name": "a", "mountPath": "/a" }, { "name": "a", "mountPath": "/b" }]), json!([]), "v a")]
fn volumes(#[case] mounts: Value, #[case] devices: Value, #[case] want: &str) {
    let set = set(
        "s",
        &json!({
            "containers": [{ "name": "side", "volumeMounts": mounts, "volumeDevices": devices }],
            "volumes": [{ "name": "a" }, { "name": "b" }, { "name": "v", "hostPath": { "path": "/" } }],
        }),
    );
    let pod = pod(
        &json!({ "containers": [], "volumes": [{ "name": "v", "emptyDir": {} }] }),
        &json!({}),
    );
    let pod = injected(&pod, &[set], false).unwrap();
    assert_eq!(names(&pod["spec"]["volumes"]), want);
    assert_eq!(
        pod["spec"]["volumes"][0]["emptyDir"],
        json!({}),
        "the pod's own stays"
    );
}

#[rstest]
#[case(json!(["x"]), &["a", "x"], "x a")]
#[case(json!([]), &["a", "b"], "a b")]
#[case(json!(["b", "a"]), &["a"], "b a")]
fn secrets(#[case] own: Value, #[case] of_set: &[&str], #[case] want: &str) {
    let named = |names: &Value| -> Value {
        names
            .as_array()
            .unwrap()
            .iter()
            .map(|name| json!({ "name": name }))
            .collect()
    };
    let set = set(
        "s",
        &json!({ "containers": [{ "name": "side" }], "imagePullSecrets": named(&json!(of_set)) }),
    );
    let pod = pod(
        &json!({ "containers": [], "imagePullSecrets": named(&own) }),
        &json!({}),
    );
    let pod = injected(&pod, &[set], false).unwrap();
    assert_eq!(names(&pod["spec"]["imagePullSecrets"]), want);
}

#[test]
fn a_pod_records_its_sets() {
    let spec = json!({ "containers": [{ "name": "side" }, { "name": "after" }],
        "initContainers": [{ "name": "plain" }, { "name": "native", "restartPolicy": "Always" }] });
    let pod = pod(
        &json!({ "containers": [] }),
        &json!({ labels::SIDECARS_INJECTED: "z", labels::SIDECARS_HASH: r#"{"z":"old"}"# }),
    );
    let pod = injected(&pod, &[set("b", &spec), set("a", &json!({}))], false).unwrap();
    let notes = &pod["metadata"]["annotations"];
    assert_eq!(notes[labels::SIDECARS_INJECTED], "a,b,z");
    let entry = |set: &str, kind: &str, list: &str, revision: &str| {
        format!(
            r#""{set}":{{"updateTimestamp":"1970-01-01T00:00:00Z","hash":"{kind}-{set}","sidecarSetName":"{set}","sidecarList":{list}{revision}}}"#
        )
    };
    let list = r#"["after","native","side"]"#;
    let old = r#""z":{"updateTimestamp":"","hash":"old","sidecarSetName":"","sidecarList":[]}"#;
    let full = format!(
        "{{{},{},{old}}}",
        entry("a", "hash", "[]", r#","controllerRevision":"a-1""#),
        entry("b", "hash", list, r#","controllerRevision":"b-1""#)
    );
    assert_eq!(notes[labels::SIDECARS_HASH], full);
    let plain = format!(
        "{{{},{}}}",
        entry("a", "plain", "[]", ""),
        entry("b", "plain", list, "")
    );
    assert_eq!(notes[labels::SIDECARS_HASH_WITHOUT_IMAGE], plain);
}

#[rstest]
#[case::annotation_that_is_no_json(
    json!({ labels::SIDECARS_HASH: "[" }), json!({}),
    "pod(default/p) invalid annotations[kruise.io/sidecarset-hash] value [, unmarshal failed: "
)]
#[case::merged_into_no_json(
    json!({ "k": "app" }), json!({ "patchPodMetadata": [{ "annotations": { "k": "{}" }, "patchPolicy": "MergePatchJson" }] }), "expected"
)]
#[case::no_target(
    json!({}), json!({ "containers": [{ "name": "side", "resourcesPolicy": { "targetContainersMode": "sum",
        "targetContainersNameRegex": "^side$", "resourcesExpr": {} } }] }),
    "no containers match the regex pattern \"^side$\""
)]
#[case::only_other_sidecars(
    json!({}), json!({ "containers": [{ "name": "main" }, { "name": "side", "resourcesPolicy": { "targetContainersMode": "sum",
        "targetContainersNameRegex": ".*", "resourcesExpr": {} } }] }),
    "no containers match the regex pattern \".*\""
)]
fn refusals(#[case] annotations: Value, #[case] spec: Value, #[case] want: &str) {
    let pod = pod(&json!({ "containers": [{ "name": "main" }] }), &annotations);
    let error = injected(&pod, &[set("s", &spec)], false).unwrap_err();
    assert!(error.starts_with(want), "{error}");
}

#[test]
fn resources_follow_from_own_and_native_containers() {
    let policy = json!({ "targetContainersMode": "sum", "targetContainersNameRegex": ".*",
        "resourcesExpr": { "limits": { "cpu": "cpu*2" } } });
    let set = set(
        "s",
        &json!({ "containers": [{ "name": "side", "resources": {}, "resourcesPolicy": policy }] }),
    );
    let limited = |name: &str, cpu: &str| json!({ "name": name, "resources": { "limits": { "cpu": cpu } } });
    let mut native = limited("native", "1");
    native["restartPolicy"] = json!("Always");
    let pod = pod(
        &json!({ "containers": [limited("main", "100m")], "initContainers": [limited("plain", "5"), native] }),
        &json!({}),
    );
    let pod = injected(&pod, &[set], false).unwrap();
    assert_eq!(
        pod["spec"]["containers"][1]["resources"],
        json!({ "limits": { "cpu": "2200m" } })
    );
}

#[test]
fn hot_containers_come_as_a_pair() {
    let set = set(
        "s",
        &json!({ "containers": [{ "name": "side", "image": "v1", "podInjectPolicy": "BeforeAppContainer",
        "upgradeStrategy": { "upgradeType": "HotUpgrade", "hotUpgradeEmptyImage": "empty" } }] }),
    );
    let pod = pod(&json!({ "containers": [{ "name": "main" }] }), &json!({}));
    let pod = injected(&pod, &[set], false).unwrap();
    let containers = &pod["spec"]["containers"];
    assert_eq!(names(containers), "side-1 side-2 main");
    assert_eq!(
        (&containers[0]["image"], &containers[1]["image"]),
        (&json!("v1"), &json!("empty"))
    );
    assert_eq!(
        names(&containers[1]["env"]),
        "IS_INJECTED SIDECARSET_VERSION SIDECARSET_VERSION_ALT"
    );
    let path = containers[1]["env"][2]["valueFrom"]["fieldRef"]["fieldPath"]
        .as_str()
        .unwrap();
    assert_eq!(
        path,
        "metadata.annotations['versionalt.sidecarset.kruise.io/side-2']"
    );
    let notes = &pod["metadata"]["annotations"];
    assert_eq!(notes[labels::SIDECARS_WORKING], r#"{"side":"side-1"}"#);
    let version = |key: &str| notes[key].as_str().unwrap().to_owned();
    let versions = ["version", "versionalt"]
        .map(|kind| [1, 2].map(|number| version(&format!("{kind}.sidecarset.kruise.io/side-{number}"))));
    assert_eq!(versions, [["1", "0"], ["0", "1"]]);
}

#[test]
fn a_pod_without_sets_stays_as_it_is() {
    let before = json!({ "metadata": {}, "spec": { "containers": [{ "name": "main" }] } });
    assert_eq!(injected(&before, &[], false).unwrap(), before);
}
