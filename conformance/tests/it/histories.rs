//! Random histories of each kind; `cargo xtask histories --count 1000` plays more of them.

use conformance::histories::{self, Kind};
use rstest::rstest;

/// How many of each kind a test run plays.
const HISTORIES: u64 = 12;

/// How many requests at least fail in a history, on average.
const STRUCK: u64 = 4;

#[rstest]
fn nothing_that_must_not_happen_happens(
    #[values(
        Kind::BroadcastJob,
        Kind::CloneSet,
        Kind::DaemonSet,
        Kind::ImagePullJob,
        Kind::PodUnavailableBudget,
        Kind::ResourceDistribution,
        Kind::Restarts,
        Kind::SidecarSet,
        Kind::StatefulSet,
        Kind::UnitedDeployment,
        Kind::WorkloadSpread
    )]
    kind: Kind,
) {
    let mut bad = Vec::new();
    let mut struck = 0;
    for seed in 0..HISTORIES {
        let played = histories::play(kind, seed, &|seed, job| seeded_entropy::simulate(seed, job)).unwrap();
        struck += u64::from(played.struck);
        if let Some(first) = played.wrongs.first() {
            bad.push(format!("seed {seed}: {first} ({} in all)", played.wrongs.len()));
        }
    }
    assert!(struck > STRUCK * HISTORIES, "the weather was fair: {struck}");
    assert!(
        bad.is_empty(),
        "cargo xtask histories --kind {} --seed <seed> plays one again:\n{}",
        kind.name(),
        bad.join("\n")
    );
}

/// Histories that went wrong once, by their seeds.
#[rstest]
#[case::a_misplaced_pod_whose_deletion_is_refused(Kind::BroadcastJob, 752)]
fn mended(#[case] kind: Kind, #[case] seed: u64) {
    let played = histories::play(kind, seed, &|seed, job| seeded_entropy::simulate(seed, job)).unwrap();
    assert_eq!(played.wrongs, Vec::<String>::new());
}

/// A history is a function of its seed, whatever was played before it in the same process, and whatever goes wrong in it.
#[test]
fn a_history_is_played_again_the_same() {
    let play = |seed| {
        histories::play(Kind::CloneSet, seed, &|seed, job| {
            seeded_entropy::simulate(seed, job)
        })
        .unwrap()
    };
    let first = play(62);
    assert!(first.struck > 0, "the weather was fair");
    play(3);
    let again = play(62);
    let differs = first
        .story
        .iter()
        .zip(&again.story)
        .find(|(one, other)| one != other);
    assert_eq!(differs, None);
    assert_eq!(first.struck, again.struck);
}
