//! The in-process server's answers, against those of a real kube-apiserver.

use std::path::{Path, PathBuf};

use conformance::apidiff::{self, ApidiffOptions};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/apidiff")
}

fn options() -> ApidiffOptions {
    ApidiffOptions {
        cases: fixtures().join("cases"),
        ..ApidiffOptions::default()
    }
}

#[test]
fn everything_but_the_known_failures_is_answered_as_recorded() {
    let mut told = Vec::new();
    let outcomes = apidiff::run(&options(), &mut told).expect("readable cases");
    let known = apidiff::known_failures(&fixtures().join("failing.txt")).expect("the list of known failures");
    let (new, fixed) = apidiff::surprises(&outcomes, &known);
    assert!(
        new.is_empty(),
        "not known to fail: {new:#?}\n{}",
        String::from_utf8_lossy(&told)
    );
    assert!(
        fixed.is_empty(),
        "these pass now; `cargo xtask apidiff --prune` takes them off the list: {fixed:#?}"
    );
}

#[test]
fn an_answer_that_differs_fails_its_case() {
    let folder = std::env::temp_dir().join(format!("seatrial-apidiff-{}", std::process::id()));
    let options = ApidiffOptions {
        only: vec!["conflicts/*".to_owned()],
        ..options()
    };
    let recorded = ApidiffOptions {
        record: Some(folder.clone()),
        ..options.clone()
    };
    let cases = apidiff::run(&recorded, &mut Vec::new()).expect("answers").len();
    let again = ApidiffOptions {
        cases: folder.clone(),
        ..options
    };
    let outcomes = apidiff::run(&again, &mut Vec::new()).expect("outcomes");
    assert_eq!(
        apidiff::totals(&outcomes).passed,
        cases,
        "what was recorded is answered again"
    );

    let changed = folder.join("conflicts");
    for entry in std::fs::read_dir(&changed).expect("the recorded group") {
        let path = entry.expect("a file").path();
        let text = std::fs::read_to_string(&path).expect("answers");
        std::fs::write(&path, text.replace("Conflict", "Harmony")).expect("other answers");
    }
    let mut told = Vec::new();
    let outcomes = apidiff::run(&again, &mut told).expect("outcomes");
    std::fs::remove_dir_all(&folder).expect("no more files");
    assert!(apidiff::totals(&outcomes).failed > 0);
    let told = String::from_utf8_lossy(&told);
    assert!(
        told.contains("Harmony") && told.contains("~ /body/reason"),
        "{told}"
    );
}
