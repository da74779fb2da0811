//! Events whose order is chance: two things raced.
//!
//! The nodes of a cluster and its scheduler work beside each other. A workload's pass answers each of them, so that the events about
//! two pods may come one way or the other. Within one pass the order is the controller's, and is compared. The scheduler writes its event
//! beside the binding, so that a busy API server may show a node's first.
//!
//! A cluster in real time has machines of its own speed, and says in whole seconds when something happened. There events that were
//! recorded within one second are compared as a set, but for those that may be about one pod: they follow from each other.

use super::Time;
use super::events::{Line, Lines};
use super::normalise;

/// Events that came within this time of each other, in the recording and in the run, raced.
const RACE_MS: u64 = 500;
/// Events of a run that came within this time of each other may be of one pass.
const PASS_MS: u64 = 5;
/// The unit of the times in events: those that were recorded closer to each other have no order on a cluster in real time.
const SECOND_MS: u64 = 1000;

/// Brings the lines of a run into the order of the recording, as far as only races are in the way.
pub(super) fn align(run: &mut Lines, recorded: &Lines, time: Time) {
    for (object, lines) in run {
        if let Some(recorded) = recorded.get(object) {
            align_lines(lines, recorded, time);
        }
    }
}

fn align_lines(run: &mut [Line], recorded: &[Line], time: Time) {
    let place = |line: &Line| {
        let same = |other: &Line| other.reason == line.reason && other.message == line.message;
        recorded.iter().position(same)
    };
    // Neighbours change places until none may: each change brings the two into the recorded order, so that this ends.
    let mut changed = true;
    while changed {
        changed = false;
        for at in 1..run.len() {
            let (Some(one), Some(other)) = (place(&run[at - 1]), place(&run[at])) else {
                continue;
            };
            let apart_ms = [
                run[at - 1].at_ms.abs_diff(run[at].at_ms),
                recorded[one].at_ms.abs_diff(recorded[other].at_ms),
            ];
            if one > other && have_raced([&run[at - 1], &run[at]], apart_ms, time) {
                run.swap(at - 1, at);
                changed = true;
            }
        }
    }
}

/// Whether two neighbours of a run, so many milliseconds apart in the run and in the recording, may have come the other way.
fn have_raced([one, other]: [&Line; 2], apart_ms: [u64; 2], time: Time) -> bool {
    let [in_run_ms, recorded_ms] = apart_ms;
    let scheduler = of_the_scheduler(one) || of_the_scheduler(other);
    match time {
        // The scheduler of a run records at once, however long the node then takes.
        Time::Virtual if scheduler => recorded_ms <= RACE_MS,
        Time::Virtual => {
            let passes = in_run_ms > PASS_MS && !same_pod(one, other);
            passes && apart_ms.iter().all(|ms| *ms <= RACE_MS)
        }
        Time::Real => {
            let close = recorded_ms < SECOND_MS && (scheduler || !same_pod(one, other));
            let apart_ms = i64::try_from(recorded_ms).unwrap_or(i64::MAX);
            close || normalise::is_unordered([&one.reason, &other.reason], apart_ms)
        }
    }
}

/// Whether an event is the scheduler's. It records after it has bound the pod, beside the kubelet that starts it.
fn of_the_scheduler(line: &Line) -> bool {
    line.reason == "Scheduled"
}

/// Whether two events may be about the same pod.
fn same_pod(one: &Line, other: &Line) -> bool {
    match (pod_of(one), pod_of(other)) {
        (Some(one), Some(other)) => one == other,
        // An event that names no pod is compared with all.
        _ => true,
    }
}

/// The first word of an event's message that may be a pod's name.
fn pod_of(line: &Line) -> Option<&str> {
    let mut words = line.message.split([' ', '(', ')', ',', '"', ':']);
    words.find(|word| word.contains('-') && *word != "in-place")
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// Lines from words such as `900 d1`: when, the action (`d`elete, `c`reate, `s`chedule), and the pod.
    fn lines(words: &str) -> Vec<Line> {
        let line = |word: &str| {
            let (at, deed) = word.split_once(' ').unwrap();
            let reason = match &deed[..1] {
                "d" => "SuccessfulDelete",
                "s" => "Scheduled",
                _ => "SuccessfulCreate",
            };
            Line::new(reason, &format!("pod a-{}", &deed[1..]), at.parse().unwrap())
        };
        words.split(", ").map(line).collect()
    }

    #[rstest]
    #[case::a_race("0 d1, 250 c2", "0 c2, 100 d1", "d1 c2")]
    #[case::far_apart_in_the_recording("0 d1, 600 c2", "0 c2, 100 d1", "c2 d1")]
    #[case::far_apart_in_the_run("0 d1, 250 c2", "0 c2, 600 d1", "c2 d1")]
    #[case::of_one_pass("0 d1, 250 c2", "0 c2, 1 d1", "c2 d1")]
    #[case::about_one_pod("0 d1, 250 c1", "0 c1, 100 d1", "c1 d1")]
    #[case::the_scheduler_of_one_pod("0 c1, 250 s1", "0 s1, 100 c1", "c1 s1")]
    #[case::a_node_that_takes_its_time("0 c1, 250 s1", "0 s1, 1400 c1", "c1 s1")]
    #[case::the_scheduler_long_after("0 c1, 600 s1", "0 s1, 100 c1", "s1 c1")]
    #[case::not_recorded("0 d1", "0 c2, 100 d1", "c2 d1")]
    fn races(#[case] recorded: &str, #[case] run: &str, #[case] expected: &str) {
        assert_eq!(aligned(recorded, run, Time::Virtual), expected);
    }

    #[rstest]
    #[case::within_a_second("0 c1, 900 c2", "0 c2, 1 c1", "c1 c2")]
    #[case::within_a_second_and_far_apart_in_the_run("0 d1, 900 c2", "0 c2, 3000 d1", "d1 c2")]
    #[case::a_second_apart("0 d1, 1000 c2", "0 c2, 1 d1", "c2 d1")]
    #[case::about_one_pod("0 d1, 250 c1", "0 c1, 100 d1", "c1 d1")]
    #[case::the_scheduler_of_one_pod("0 c1, 900 s1", "0 s1, 100 c1", "c1 s1")]
    #[case::creations_of_one_burst("0 c1, 1100 c2", "0 c2, 100 c1", "c1 c2")]
    #[case::another_event("0 d1, 250 c2", "0 c3, 100 d1", "c3 d1")]
    fn races_in_real_time(#[case] recorded: &str, #[case] run: &str, #[case] expected: &str) {
        assert_eq!(aligned(recorded, run, Time::Real), expected);
    }

    /// The lines of a run as [`align_lines`] puts them, each as its deed and its pod.
    fn aligned(recorded: &str, run: &str, time: Time) -> String {
        let mut run = lines(run);
        align_lines(&mut run, &lines(recorded), time);
        let shown = |line: &Line| {
            let deed = match line.reason.as_str() {
                "SuccessfulDelete" => 'd',
                "Scheduled" => 's',
                _ => 'c',
            };
            format!("{deed}{}", line.message.trim_start_matches("pod a-"))
        };
        let shown: Vec<String> = run.iter().map(shown).collect();
        shown.join(" ")
    }
}
