//! Events whose order is chance: two things raced.
//!
//! The nodes of a cluster work beside each other. A workload's pass answers each of them, so that the events about two pods may come
//! one way or the other. Within one pass the order is the controller's, and is compared.

use super::events::{Line, Lines};

/// Events that came within this time of each other, in the recording and in the run, raced.
const RACE_MS: i64 = 500;
/// Events of a run that came within this time of each other may be of one pass.
const PASS_MS: i64 = 5;

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
            let raced = apart_ms.iter().all(|ms| *ms <= RACE_MS.unsigned_abs())
                && apart_ms[0] > PASS_MS.unsigned_abs()
                && !same_pod(&run[at - 1], &run[at]);
            if one > other && raced {
                run.swap(at - 1, at);
                changed = true;
            }
        }
    }
}

/// Whether the messages of two events share a word that may be a pod's name.
fn same_pod(one: &Line, other: &Line) -> bool {
    let names = |line: &Line| {
        let words = line.message.split([' ', '(', ')', ',', '"', ':']);
        let names = words.filter(|word| word.contains('-') && *word != "in-place");
        names.map(str::to_owned).collect::<Vec<_>>()
    };
    let others = names(other);
    let one = names(one);
    one.is_empty() || others.is_empty() || one.first() == others.first()
}
