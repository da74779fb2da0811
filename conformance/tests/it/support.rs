//! Shared code of the tests.

use std::path::PathBuf;

use conformance::Error;
use conformance::report::Totals;
use conformance::suite::{self, SuiteOptions};

/// The folder of the project's fixtures.
pub(crate) fn fixtures() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../fixtures")
}

/// A suite that plays the project's own scenarios whose names match.
pub(crate) fn scenarios(only: &str) -> SuiteOptions {
    SuiteOptions {
        scenarios: fixtures().join("scenarios"),
        recordings: fixtures().join("recordings"),
        divergences: fixtures().join("recordings/divergences.yaml"),
        play_scenarios: true,
        only: Some(only.to_owned()),
        seed: 1,
        ..SuiteOptions::default()
    }
}

/// The same for recordings.
pub(crate) fn recordings(only: &str) -> SuiteOptions {
    SuiteOptions {
        play_scenarios: false,
        play_recordings: true,
        ..scenarios(only)
    }
}

/// Runs a suite; its totals, and its output.
pub(crate) fn run(options: &SuiteOptions) -> (Result<Totals, Error>, String) {
    let mut out = Vec::new();
    let totals = suite::run(options, &mut out, &|seed, job| {
        seeded_entropy::simulate(seed, job)
    });
    (totals, String::from_utf8(out).expect("text"))
}
