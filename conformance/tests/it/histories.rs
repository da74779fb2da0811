//! Random histories of CloneSets; `cargo xtask histories --count 1000` plays more of them.

use conformance::histories;

/// How many a test run plays.
const HISTORIES: u64 = 24;

#[test]
fn nothing_that_must_not_happen_happens() {
    let mut bad = Vec::new();
    for seed in 0..HISTORIES {
        let faults = histories::play(seed, &|seed, job| seeded_entropy::simulate(seed, job))
            .unwrap()
            .faults;
        if let Some(first) = faults.first() {
            bad.push(format!("seed {seed}: {first} ({} in all)", faults.len()));
        }
    }
    assert!(
        bad.is_empty(),
        "cargo xtask histories --seed <seed> plays one again:\n{}",
        bad.join("\n")
    );
}
