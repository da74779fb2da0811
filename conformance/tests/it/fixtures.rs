//! Every scenario and every recording of the project, a test each.

use std::path::{Path, PathBuf};

use rstest::rstest;

use crate::support::{recordings, run, scenarios};

fn name(file: &Path, levels: usize) -> String {
    let folder = file.parent().expect("a folder");
    let parts: Vec<_> = folder
        .components()
        .rev()
        .take(levels)
        .map(|part| part.as_os_str().to_string_lossy())
        .collect();
    parts.into_iter().rev().collect::<Vec<_>>().join("/")
}

#[rstest]
fn scenario(#[files("../fixtures/scenarios/**/chainsaw-test.yaml")] file: PathBuf) {
    let (totals, text) = run(&scenarios(&name(&file, 1)));
    let totals = totals.expect("a scenario that can be played");
    assert_eq!(
        (totals.passed, totals.failed, totals.skipped),
        (1, 0, 0),
        "{text}"
    );
}

#[rstest]
fn recording(#[files("../fixtures/recordings/**/steps.json")] file: PathBuf) {
    let (totals, text) = run(&recordings(&name(&file, 2)));
    let totals = totals.expect("a recording that can be played");
    assert_eq!(
        (totals.passed, totals.failed, totals.skipped),
        (1, 0, 0),
        "{text}"
    );
}

/// Snapshots are insta's, so that `cargo insta` can be used on them; each says where it comes from.
#[rstest]
fn snapshot(#[files("../fixtures/scenarios/*/snapshots/*.snap")] file: PathBuf) {
    let content = std::fs::read_to_string(&file).expect("a snapshot");
    let contents = insta::Snapshot::from_file(&file).expect("insta's form");
    let description = contents.metadata().description().unwrap_or_default().to_owned();
    assert!(
        description.starts_with("equal to recording") || description.starts_with("no recording"),
        "{} does not say where it comes from:\n{content}",
        file.display()
    );
}
