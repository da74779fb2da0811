//! Tests which module may name which: reads the sources and holds the invariants of ARCHITECTURE.md.

use std::path::{Path, PathBuf};

use rstest::rstest;

/// The kinds of OpenKruise, as types and as rooms.
const KINDS: [&str; 35] = [
    "AdvancedCronJob",
    "BroadcastJob",
    "CloneSet",
    "ContainerRecreateRequest",
    "DaemonSet",
    "EphemeralJob",
    "NodeImage",
    "NodePodProbe",
    "PersistentPodState",
    "PodProbeMarker",
    "PodUnavailableBudget",
    "ResourceDistribution",
    "SidecarSet",
    "StatefulSet",
    "UnitedDeployment",
    "WorkloadSpread",
    "advancedcronjob::",
    "broadcastjob::",
    "cloneset::",
    "containerrecreaterequest::",
    "daemonset::",
    "ephemeraljob::",
    "imagelistpulljob::",
    "imagepulljob::",
    "nodeimage::",
    "nodepodprobe::",
    "persistentpodstate::",
    "podprobemarker::",
    "podunavailablebudget::",
    "resourcedistribution::",
    "sidecarset::",
    "sidecarterminator::",
    "statefulset::",
    "uniteddeployment::",
    "workloadspread::",
];
/// The rooms of kinds.
const ROOMS: [&str; 19] = [
    "advancedcronjob",
    "broadcastjob",
    "cloneset",
    "containerrecreaterequest",
    "daemonset",
    "ephemeraljob",
    "imagelistpulljob",
    "imagepulljob",
    "nodeimage",
    "nodepodprobe",
    "persistentpodstate",
    "podprobemarker",
    "podunavailablebudget",
    "resourcedistribution",
    "sidecarset",
    "sidecarterminator",
    "statefulset",
    "uniteddeployment",
    "workloadspread",
];

/// The rooms of `injection`, each of which works for one kind and names it.
const INJECTION_ROOMS: [&str; 5] = [
    "injection/budgets/",
    "injection/pod_states/",
    "injection/probes/",
    "injection/sidecars/",
    "injection/spreads/",
];

/// The sources below a folder, but for those that hold tests alone.
fn sources(folder: &Path, out: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            sources(&path, out);
        } else if path
            .to_str()
            .is_some_and(|path| path.ends_with(".rs") && !path.ends_with("_tests.rs"))
        {
            out.push(path);
        }
    }
}

/// The lines of code below a folder of `src` that have one of the words; comments do not count.
fn lines_with(folder: &str, words: &[&str]) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root.join(folder), &mut files);
    assert!(!files.is_empty(), "{folder}");
    let mut found = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        for (number, line) in (1..).zip(text.lines()) {
            let code = line.split("//").next().unwrap_or_default();
            if words.iter().any(|word| code.contains(word)) {
                let name = file.strip_prefix(&root).unwrap().display();
                found.push(format!("{name}:{number}: {}", line.trim()));
            }
        }
    }
    found
}

#[rstest]
#[case::images("images", &["crate::pods", "crate::injection", "crate::workloads", "crate::daemon", "crate::process"])]
#[case::injection("injection", &["crate::workloads", "crate::daemon", "crate::process"])]
#[case::targets("targets", &["crate::pods", "crate::injection", "crate::workloads", "crate::daemon", "crate::process"])]
#[case::daemon("daemon", &["crate::injection", "crate::workloads", "crate::process"])]
#[case::workloads("workloads", &["crate::injection::pod::", "crate::daemon", "crate::process"])]
fn a_module_knows_only_those_below_it(#[case] folder: &str, #[case] others: &[&str]) {
    assert_eq!(lines_with(folder, others), Vec::<String>::new());
}

#[rstest]
fn engines_name_no_kind(
    #[values("../kit/src", "../pods/src", "injection", "process", "webhook")] folder: &str,
) {
    let mut found = lines_with(folder, &KINDS);
    // Some gates and metrics are named after kinds.
    found.retain(|line| {
        !["gates.rs", "metrics.rs"]
            .iter()
            .any(|file| line.starts_with(&format!("../kit/src/{file}:")))
    });
    found.retain(|line| !INJECTION_ROOMS.iter().any(|room| line.starts_with(room)));
    // Kubernetes has a DaemonSet of its own, in which the daemon is installed.
    found.retain(|line| !line.contains("\"apiVersion\": \"apps/v1\""));
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn a_room_knows_no_other() {
    for room in ROOMS {
        let others = ROOMS.iter().filter(|other| **other != room);
        let words: Vec<String> = others.map(|other| format!("{other}::")).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let found = lines_with(&format!("workloads/{room}"), &words);
        assert_eq!(found, Vec::<String>::new(), "{room}");
    }
}
