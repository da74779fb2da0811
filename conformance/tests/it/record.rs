//! The recording of a run is a recording of it.

use conformance::record;
use conformance::suite::SuiteOptions;

use crate::support;

#[test]
fn a_recording_of_a_run_is_played_as_it_was() {
    let scratch = std::env::temp_dir().join(format!("seatrial-record-{}", std::process::id()));
    let out = scratch.join("1.5.0/cs-recreate-mu1");
    let from = support::fixtures().join("recordings/1.5.0/cs-recreate-mu1");
    let options = SuiteOptions {
        seed: 7,
        ..SuiteOptions::default()
    };
    let again = || {
        record::run(&options, &from, &out, &|seed, job| {
            seeded_entropy::simulate(seed, job)
        })
    };
    let changes = again().expect("a recording");
    assert!(changes > 100, "{changes}");
    assert!(again().is_err(), "a recording is never overwritten");
    let played = support::run(&SuiteOptions {
        recordings: scratch.clone(),
        ..support::recordings("*")
    });
    std::fs::remove_dir_all(&scratch).expect("the scratch folder goes");
    let totals = played.0.expect("a run");
    assert_eq!((totals.passed, totals.failed), (1, 0), "{}", played.1);
}
