//! The objects that are installed, compared with installations of OpenKruise's own manager.

use std::collections::BTreeSet;

use rstest::rstest;

use super::*;

fn upstream(version: &str) -> Vec<Value> {
    let text = match version {
        "1.0.1" => include_str!("../../../fixtures/installation/1.0.1.json"),
        _ => include_str!("../../../fixtures/installation/1.5.0.json"),
    };
    serde_json::from_str(text).unwrap()
}

fn ours(feature_gates: &str) -> Vec<Value> {
    manifests(NAMESPACE, "image", feature_gates).unwrap()
}

fn find<'a>(objects: &'a [Value], kind: &str, name: &str) -> &'a Value {
    objects
        .iter()
        .find(|object| object["kind"] == kind && object["metadata"]["name"] == name)
        .unwrap_or_else(|| panic!("{kind} {name}"))
}

#[rstest]
fn names_are_those_of_openkruise(#[values("1.0.1", "1.5.0")] version: &str) {
    let theirs = upstream(version);
    for object in ours("") {
        let (kind, name) = (
            object["kind"].as_str().unwrap(),
            object["metadata"]["name"].as_str().unwrap(),
        );
        // 1.0.1 runs as the namespace's default account.
        if kind == "CustomResourceDefinition" || (kind == "ServiceAccount" && version == "1.0.1") {
            continue;
        }
        let there = find(&theirs, kind, name);
        assert_eq!(
            object["metadata"].get("namespace"),
            there["metadata"].get("namespace"),
            "{kind} {name}"
        );
        assert_eq!(object["apiVersion"], there["apiVersion"], "{kind} {name}");
    }
}

#[rstest]
fn the_service_and_the_namespace_are_the_same(#[values("1.0.1", "1.5.0")] version: &str) {
    let (ours, theirs) = (ours(""), upstream(version));
    for (kind, name) in [("Service", SERVICE), ("Namespace", NAMESPACE), ("Secret", SECRET)] {
        assert_eq!(find(&ours, kind, name), find(&theirs, kind, name));
    }
}

/// Kinds that have had a second version since.
const TWO_VERSIONS: [&str; 7] = [
    "advancedcronjob",
    "broadcastjob",
    "daemonset",
    "imagelistpulljob",
    "imagepulljob",
    "nodeimage",
    "sidecarset",
];

/// Kinds whose webhooks have the second version in their names.
const VERSION_IN_NAME: [&str; 2] = ["imagelistpulljob.kb.io", "imagepulljob.kb.io"];

/// Webhooks that later versions have alone.
const SINCE_1_9: [&str; 7] = [
    "mimagelistpulljob-v1beta1.kb.io",
    "vephemeraljobs.kb.io",
    "vimagelistpulljob-v1beta1.kb.io",
    "vingress.kb.io",
    "vpersistentpodstate.kb.io",
    "vpodprobemarker.kb.io",
    "vservice.kb.io",
];

/// A webhook of an older installation as 1.9 has it: with the second version of its kind, and no version in its path.
fn as_of_1_9(mut webhook: Value) -> Value {
    let path = webhook["clientConfig"]["service"]["path"]
        .as_str()
        .unwrap()
        .to_owned();
    if TWO_VERSIONS
        .iter()
        .any(|kind| path.ends_with(&format!("-v1alpha1-{kind}")))
    {
        webhook["clientConfig"]["service"]["path"] = path.replace("-v1alpha1-", "-").into();
        webhook["rules"][0]["apiVersions"] = serde_json::json!(["v1alpha1", "v1beta1"]);
    }
    let name = webhook["name"].as_str().unwrap_or_default().to_owned();
    if VERSION_IN_NAME.contains(&&name[1..]) {
        webhook["name"] = name.replace(".kb.io", "-v1beta1.kb.io").into();
    }
    webhook
}

#[rstest]
fn webhooks_are_a_part_of_theirs(
    #[values("1.0.1", "1.5.0")] version: &str,
    #[values(WebhookKind::Mutating, WebhookKind::Validating)] kind: WebhookKind,
) {
    let (ours, theirs) = (ours(""), upstream(version));
    let of = |objects: &[Value]| -> Vec<Value> {
        find(objects, kind_of(kind), name_of(kind))["webhooks"]
            .as_array()
            .unwrap()
            .clone()
    };
    let theirs: Vec<Value> = of(&theirs).into_iter().map(as_of_1_9).collect();
    for webhook in of(&ours) {
        let there = theirs.iter().find(|there| there["name"] == webhook["name"]);
        if there.is_none() && SINCE_1_9.iter().any(|name| webhook["name"] == *name) {
            continue;
        }
        assert_eq!(Some(&webhook), there, "{version}");
    }
}

/// What gates of later versions need, and the role of 1.5.0 does not name.
const SINCE_1_6: [(&str, &str); 2] = [("storage.k8s.io", "storageclasses"), ("", "pods/resize")];

/// OpenKruise's own role is enough for this manager, whatever its gates: its chart needs no change.
#[rstest]
fn the_role_asks_for_no_more_than_theirs(#[values("", "AllAlpha=true,AllBeta=true")] feature_gates: &str) {
    let theirs = upstream("1.5.0");
    let granted: BTreeSet<(String, String, String)> =
        triples(find(&theirs, "ClusterRole", "kruise-manager-role"));
    let ours = ours(feature_gates);
    for wanted in triples(find(&ours, "ClusterRole", "kruise-manager-role")) {
        if SINCE_1_6.contains(&(&*wanted.0, &*wanted.1)) && !feature_gates.is_empty() {
            continue;
        }
        assert!(granted.contains(&wanted), "{wanted:?}");
    }
    let granted = triples(find(&theirs, "Role", "kruise-leader-election-role"));
    for wanted in triples(find(&ours, "Role", "kruise-leader-election-role")) {
        assert!(granted.contains(&wanted), "{wanted:?}");
    }
}

fn triples(role: &Value) -> BTreeSet<(String, String, String)> {
    let texts = |value: &Value| -> Vec<String> {
        value
            .as_array()
            .into_iter()
            .flatten()
            .map(|text| text.as_str().unwrap().to_owned())
            .collect()
    };
    let mut out = BTreeSet::new();
    for rule in role["rules"].as_array().unwrap() {
        for group in texts(&rule["apiGroups"]) {
            for resource in texts(&rule["resources"]) {
                for verb in texts(&rule["verbs"]) {
                    out.insert((group.clone(), resource.clone(), verb));
                }
            }
        }
    }
    out
}

/// A gate brings the definitions that it needs, and the right to work with them.
#[rstest]
#[case("", &["advancedcronjobs", "broadcastjobs", "clonesets", "containerrecreaterequests", "daemonsets", "ephemeraljobs", "nodeimages", "nodepodprobes", "persistentpodstates", "podprobemarkers", "podunavailablebudgets", "sidecarsets", "statefulsets", "uniteddeployments", "workloadspreads"])]
#[case("ImagePullJobGate=true", &["advancedcronjobs", "broadcastjobs", "clonesets", "containerrecreaterequests", "daemonsets", "ephemeraljobs", "imagelistpulljobs", "imagepulljobs", "nodeimages", "nodepodprobes", "persistentpodstates", "podprobemarkers", "podunavailablebudgets", "sidecarsets", "statefulsets", "uniteddeployments", "workloadspreads"])]
#[case("PreDownloadImageForInPlaceUpdate=true", &["advancedcronjobs", "broadcastjobs", "clonesets", "containerrecreaterequests", "daemonsets", "ephemeraljobs", "imagelistpulljobs", "imagepulljobs", "nodeimages", "nodepodprobes", "persistentpodstates", "podprobemarkers", "podunavailablebudgets", "sidecarsets", "statefulsets", "uniteddeployments", "workloadspreads"])]
#[case("PreDownloadImageForDaemonSetUpdate=true", &["advancedcronjobs", "broadcastjobs", "clonesets", "containerrecreaterequests", "daemonsets", "ephemeraljobs", "imagelistpulljobs", "imagepulljobs", "nodeimages", "nodepodprobes", "persistentpodstates", "podprobemarkers", "podunavailablebudgets", "sidecarsets", "statefulsets", "uniteddeployments", "workloadspreads"])]
#[case("PreDownloadImageForInPlaceUpdate=true,KruiseDaemon=false", &["advancedcronjobs", "broadcastjobs", "clonesets", "daemonsets", "ephemeraljobs", "persistentpodstates", "podunavailablebudgets", "sidecarsets", "statefulsets", "uniteddeployments", "workloadspreads"])]
#[case("CloneSetShortHash=true", &["advancedcronjobs", "broadcastjobs", "clonesets", "containerrecreaterequests", "daemonsets", "ephemeraljobs", "nodeimages", "nodepodprobes", "persistentpodstates", "podprobemarkers", "podunavailablebudgets", "sidecarsets", "statefulsets", "uniteddeployments", "workloadspreads"])]
#[case("ResourceDistributionGate=true", &["advancedcronjobs", "broadcastjobs", "clonesets", "containerrecreaterequests", "daemonsets", "ephemeraljobs", "nodeimages", "nodepodprobes", "persistentpodstates", "podprobemarkers", "podunavailablebudgets", "resourcedistributions", "sidecarsets", "statefulsets", "uniteddeployments", "workloadspreads"])]
#[case("AllAlpha=true", &["advancedcronjobs", "broadcastjobs", "clonesets", "containerrecreaterequests", "daemonsets", "ephemeraljobs", "imagelistpulljobs", "imagepulljobs", "nodeimages", "nodepodprobes", "persistentpodstates", "podprobemarkers", "podunavailablebudgets", "resourcedistributions", "sidecarsets", "statefulsets", "uniteddeployments", "workloadspreads"])]
fn gates_bring_their_definitions(#[case] feature_gates: &str, #[case] expected: &[&str]) {
    let objects = ours(feature_gates);
    let mut definitions: Vec<&str> = objects
        .iter()
        .filter(|object| object["kind"] == "CustomResourceDefinition")
        .map(|definition| definition["spec"]["names"]["plural"].as_str().unwrap())
        .collect();
    definitions.sort_unstable();
    assert_eq!(definitions, expected);
    let granted = triples(find(&objects, "ClusterRole", "kruise-manager-role"));
    let mut watched: Vec<&str> = granted
        .iter()
        .filter(|(group, resource, verb)| {
            group.ends_with("kruise.io") && verb == "watch" && !resource.contains('/')
        })
        .map(|(_, resource, _)| resource.as_str())
        .collect();
    watched.sort_unstable();
    assert_eq!(watched, expected);
    let deployment = find(&objects, "Deployment", "kruise-controller-manager");
    let arguments = deployment["spec"]["template"]["spec"]["containers"][0]["args"].to_string();
    assert_eq!(arguments.contains("--feature-gates="), !feature_gates.is_empty());
    assert!(arguments.contains(feature_gates));
}

#[test]
fn unknown_gates_are_refused() {
    assert!(manifests(NAMESPACE, "image", "Nonsense=true").is_err());
}

/// This manager understands OpenKruise's Deployment: its command, arguments, ports and probes.
#[rstest]
fn their_deployment_runs_this_manager(#[values("1.0.1", "1.5.0")] version: &str) {
    let theirs = upstream(version);
    let ours = ours("");
    let container = |objects: &[Value]| {
        find(objects, "Deployment", "kruise-controller-manager")["spec"]["template"]["spec"]["containers"][0]
            .clone()
    };
    let (there, here) = (container(&theirs), container(&ours));
    assert_eq!(
        (&here["name"], &here["command"]),
        (&there["name"], &there["command"])
    );
    assert_eq!(here["readinessProbe"], there["readinessProbe"]);
    let arguments = |container: &Value| -> Vec<String> {
        container["args"]
            .as_array()
            .unwrap()
            .iter()
            .map(|text| text.as_str().unwrap().to_owned())
            .collect()
    };
    for arguments in [arguments(&there), arguments(&here)] {
        let flags = super::super::flags::Flags::parse(arguments).unwrap();
        super::super::gates::FeatureGates::parse(flags.text("feature-gates")).unwrap();
        assert!(flags.is_set("enable-leader-election"));
    }
    let environment = |container: &Value| -> BTreeSet<String> {
        container["env"]
            .as_array()
            .unwrap()
            .iter()
            .map(|entry| entry["name"].as_str().unwrap().to_owned())
            .collect()
    };
    assert!(environment(&here).is_subset(&environment(&there)));
    let labels = |objects: &[Value]| {
        find(objects, "Deployment", "kruise-controller-manager")["spec"]["template"]["metadata"]["labels"]
            .clone()
    };
    assert_eq!(labels(&ours), labels(&theirs));
    assert_eq!(labels(&ours), find(&ours, "Service", SERVICE)["spec"]["selector"]);
}
