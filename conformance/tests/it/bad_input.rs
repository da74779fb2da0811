//! Bad input: a message with the error, the place and the advice, and nothing half done.

use std::path::PathBuf;

use conformance::suite::{BackendChoice, SuiteOptions};
use rstest::rstest;

use crate::support::{fixtures, run};

struct Folder(PathBuf);

impl Folder {
    fn with(test: &str, files: &[(&str, &str)]) -> Self {
        let folder = std::env::temp_dir().join(format!("seatrial-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        for (name, text) in files {
            std::fs::write(folder.join(name), text).expect("a file");
        }
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _gone = std::fs::remove_dir_all(&self.0);
    }
}

fn options(folder: &Folder) -> SuiteOptions {
    SuiteOptions {
        scenarios: folder.0.clone(),
        recordings: fixtures().join("recordings"),
        divergences: fixtures().join("recordings/divergences.yaml"),
        play_scenarios: true,
        ..SuiteOptions::default()
    }
}

fn scenario(steps: &str) -> String {
    format!(
        "apiVersion: chainsaw.kyverno.io/v1alpha1\nkind: Test\nmetadata:\n  name: t\nspec:\n  namespace: default\n  steps:\n{steps}"
    )
}

const APPLY: &str = "  - name: one\n    try:\n    - apply:\n        file: set.yaml\n";

#[rstest]
#[case::yaml("yaml", "spec: [", "", &["chainsaw-test.yaml:1"])]
#[case::unknown_field(
    "field",
    &scenario("  - name: one\n    frobnicate: 3\n    try: []\n"),
    "",
    &["chainsaw-test.yaml:9", "spec.steps[0].frobnicate", "unknown field"]
)]
#[case::unknown_operation(
    "operation",
    &scenario("  - name: one\n    try:\n    - frobnicate:\n        content: rm\n"),
    "",
    &["chainsaw-test.yaml:10", "spec.steps[0].try[0].frobnicate", "unknown field `frobnicate`"]
)]
#[case::two_operations(
    "two",
    &scenario("  - name: one\n    try:\n    - apply:\n        file: set.yaml\n      sleep:\n        duration: 1s\n"),
    "",
    &["chainsaw-test.yaml", "spec.steps[0].try[0]", "apply and sleep"]
)]
#[case::wrong_duration(
    "duration",
    &scenario("  - name: one\n    try:\n    - sleep:\n        duration: soon\n"),
    "",
    &["chainsaw-test.yaml:11", "spec.steps[0].try[0].sleep.duration", "\"soon\" is not a duration"]
)]
#[case::wrong_kind("kind", "apiVersion: v1\nkind: Test\nmetadata: {name: t}\nspec: {steps: []}\n", "", &["apiVersion v1"])]
#[case::missing_file("missing", &scenario(APPLY), "", &["set.yaml", "No such file"])]
#[case::manifest_yaml("manifest", &scenario(APPLY), "a: [1\nb: 2\n", &["set.yaml:2"])]
#[case::manifest_kind("nokind", &scenario(APPLY), "apiVersion: v1\nmetadata: {name: x}\n", &["set.yaml", "kind is missing"])]
#[case::annotation(
    "annotation",
    "apiVersion: chainsaw.kyverno.io/v1alpha1\nkind: Test\nmetadata:\n  name: t\n  annotations:\n    seatrial.dev/nonsense: x\nspec:\n  steps: []\n",
    "",
    &["chainsaw-test.yaml", "metadata.annotations", "seatrial.dev/nonsense"]
)]
fn is_explained(#[case] name: &str, #[case] test: &str, #[case] manifest: &str, #[case] says: &[&str]) {
    let mut files = vec![("chainsaw-test.yaml", test)];
    if !manifest.is_empty() {
        files.push(("set.yaml", manifest));
    }
    let folder = Folder::with(name, &files);
    let (result, printed) = run(&options(&folder));
    let error = result.expect_err("an error");
    let text = error.to_string();
    for part in says {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
    assert_eq!(printed, "", "something was played");
}

#[test]
fn a_refused_manifest_fails_with_the_servers_words() {
    let set = "apiVersion: apps.kruise.io/v1alpha1\nkind: CloneSet\nmetadata:\n  name: x\n  namespace: default\nspec:\n  replicas: -1\n  selector: {matchLabels: {a: b}}\n  template:\n    metadata: {labels: {a: b}}\n    spec: {containers: [{name: c, image: i}]}\n";
    let folder = Folder::with(
        "refused",
        &[("chainsaw-test.yaml", &scenario(APPLY)), ("set.yaml", set)],
    );
    let (result, _) = run(&options(&folder));
    let text = result.expect_err("an error").to_string();
    assert!(
        text.contains("set.yaml:1") && text.contains("spec.replicas"),
        "{text}"
    );
}

#[test]
fn a_folder_without_scenarios() {
    let folder = Folder::with("empty", &[]);
    let (result, _) = run(&options(&folder));
    assert!(
        result
            .expect_err("an error")
            .to_string()
            .contains("there is none")
    );
}

#[test]
fn a_kubeconfig_that_leads_nowhere() {
    let config = "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {}}]\n";
    let folder = Folder::with(
        "nowhere",
        &[
            ("config", config),
            (
                "chainsaw-test.yaml",
                &scenario("  - name: one\n    try:\n    - sleep: {duration: 1s}\n"),
            ),
        ],
    );
    for (file, says) in [
        ("config", "reach the cluster at http://127.0.0.1:1"),
        ("absent", "absent"),
    ] {
        let mut options = options(&folder);
        options.backend = BackendChoice::Kubeconfig(Some(folder.0.join(file)));
        let (result, _) = run(&options);
        let text = result.expect_err("an error").to_string();
        assert!(text.contains(says), "{text}");
    }
}

/// Without kind, without an engine, or without the image of the node, which no registry has.
#[test]
fn a_cluster_that_cannot_be_made() {
    let folder = Folder::with(
        "engine",
        &[(
            "chainsaw-test.yaml",
            &scenario("  - name: one\n    try:\n    - sleep: {duration: 1s}\n"),
        )],
    );
    let mut options = options(&folder);
    options.backend = BackendChoice::Kind(Some("missing.invalid/node".to_owned()));
    let (result, printed) = run(&options);
    let text = result.expect_err("an error").to_string();
    assert!(text.starts_with("make a cluster with kind: "), "{text}");
    assert_eq!(printed, "");
}
