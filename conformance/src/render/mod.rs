//! A step of a run, or of a recording, as the same text.
//!
//! [`tables`] shows what is there at the step's end, [`pods`] what became of the pods, [`events`] what was said, object by
//! object. [`normalise`] is the one place where what cannot be equal is made equal.

mod events;
mod normalise;
mod pods;
mod tables;

use crate::history::{Slice, State};

/// Renders one step. The text ends with a newline and names nothing that differs from run to run.
#[must_use]
pub fn step(slice: Slice<'_>) -> String {
    let before = State::after(slice.before);
    let mut after = before.clone();
    for change in slice.during {
        after.apply(change);
    }
    let sections = [
        tables::workloads(&after),
        tables::pods(&after),
        pods::fates(&before, &after, slice.during),
        events::by_object(slice.before, slice.during),
    ];
    let filled: Vec<String> = sections
        .into_iter()
        .filter(|section| !section.is_empty())
        .collect();
    filled.join("\n")
}
