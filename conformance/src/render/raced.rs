//! Events whose order is chance: two things raced.
//!
//! The nodes of a cluster and its scheduler work beside each other. A workload's pass answers each of them, so that the events about
//! two pods may come one way or the other. Within one pass the order is the controller's, and is compared. The scheduler writes its event
//! beside the binding, so that a busy API server may show a node's first.

use super::events::{Line, Lines};

/// Events that came within this time of each other, in the recording and in the run, raced.
const RACE_MS: u64 = 500;
/// Events of a run that came within this time of each other may be of one pass.
const PASS_MS: u64 = 5;

/// Brings the lines of a run into the order of the recording, as far as only races are in the way.
pub(super) fn align(run: &mut Lines, recorded: &Lines) {
    for (object, lines) in run {
        if let Some(recorded) = recorded.get(object) {
            align_lines(lines, recorded);
        }
    }
}

fn align_lines(run: &mut [Line], recorded: &[Line]) {
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
            let scheduler = of_the_scheduler(&run[at - 1]) || of_the_scheduler(&run[at]);
            let raced = match scheduler {
                // The scheduler of a run records at once, however long the node then takes.
                true => apart_ms[1] <= RACE_MS,
                false => {
                    let passes = apart_ms[0] > PASS_MS && !same_pod(&run[at - 1], &run[at]);
                    passes && apart_ms.iter().all(|ms| *ms <= RACE_MS)
                }
            };
            if one > other && raced {
                run.swap(at - 1, at);
                changed = true;
            }
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

    /// Lines from words such as `900 d1`: when, what is done (`d`elete, `c`reate, `s`chedule), and the pod.
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
        let mut run = lines(run);
        align_lines(&mut run, &lines(recorded));
        let shown = |line: &Line| {
            let deed = match line.reason.as_str() {
                "SuccessfulDelete" => 'd',
                "Scheduled" => 's',
                _ => 'c',
            };
            format!("{deed}{}", line.message.trim_start_matches("pod a-"))
        };
        let got: Vec<String> = run.iter().map(shown).collect();
        assert_eq!(got.join(" "), expected);
    }
}
