//! A step of a run, or of a recording, as the same text.
//!
//! [`tables`] shows the objects at the step's end, [`pods`] the changes of the pods, [`events`] the events, object by
//! object, [`budgets`] the PodUnavailableBudgets, [`spreads`] the WorkloadSpreads, [`distributed`] the changes of copies of
//! Secrets and ConfigMaps, [`sidecars`] the SidecarSets, [`jobs`] jobs, [`images`] jobs that pull images, [`pod_states`] where pods were,
//! [`probes`] probes of nodes, [`united`] the UnitedDeployments. [`normalise`] is the only place that masks values which
//! differ between runs.

mod budgets;
mod distributed;
mod events;
mod images;
mod jobs;
mod normalise;
mod pod_states;
mod pods;
mod probes;
mod raced;
mod sidecars;
mod spreads;
mod tables;
mod united;

use std::collections::BTreeMap;

use crate::history::{Slice, State};

/// How time goes in a run that is compared with a recording or a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Time {
    /// As a simulation has it: all that can happen at once does.
    Virtual,
    /// As on the wall: machines have a speed of their own.
    Real,
}

/// Renders one step. The text ends with a newline and names nothing that differs from run to run.
#[must_use]
pub fn step(slice: Slice<'_>) -> String {
    text(slice, events::by_object(slice))
}

/// Renders a recorded step and the same step of a run, for a comparison: lines without an order in one of them have none in the other.
#[must_use]
pub fn both(recorded: Slice<'_>, run: Slice<'_>, time: Time) -> (String, String) {
    let events = events::by_object_of_both(recorded, run, time);
    (text(recorded, events.0), text(run, events.1))
}

/// Renders a step of a run in real time for a comparison with a text of it: lines without an order come in the order of that.
#[must_use]
pub fn in_order_of(expected: &str, run: Slice<'_>) -> String {
    text(run, events::by_object_in_order_of(expected, run))
}

/// The text of a step, with its events as they are already written.
fn text(slice: Slice<'_>, events: String) -> String {
    let before = State::after(slice.before);
    let mut after = before.clone();
    for change in slice.during {
        after.apply(change);
    }
    let sections = [
        united::deployments(&after),
        tables::workloads(&after),
        tables::daemon_sets(&after),
        sidecars::sets(&after, slice.before, slice.during),
        tables::stateful_sets(&after),
        pod_states::records(&after),
        probes::markers(&after),
        probes::requests(&after),
        probes::liveness(&after),
        jobs::cron_jobs(&after),
        jobs::broadcast_jobs(&after),
        jobs::ephemeral_jobs(&after),
        images::lists(&after),
        images::jobs(&after),
        images::tags(&after),
        budgets::budgets(&after),
        spreads::spreads(&after),
        distributed::distributions(&after),
        distributed::copies(&after),
        distributed::fates(slice.before, slice.during),
        tables::pods(&after),
        pods::fates(&before, &after, slice.during),
        events,
    ];
    let filled: Vec<String> = sections
        .into_iter()
        .filter(|section| !section.is_empty())
        .collect();
    filled.join("\n")
}

/// Whether everything that was said in one rendered step was said in another, too, and as often.
#[must_use]
pub(crate) fn has_all_events(text: &str, of: &str) -> bool {
    let said = said(text);
    self::said(of)
        .into_iter()
        .all(|(line, count)| said.get(&line).is_some_and(|had| *had >= count))
}

/// The events of a rendered step: their objects and texts, and their counts.
fn said(text: &str) -> BTreeMap<(&str, &str), u64> {
    let mut object = "";
    let mut out = BTreeMap::new();
    for line in text.lines() {
        let Some(event) = line.strip_prefix("  ") else {
            object = line;
            continue;
        };
        let (event, count) = match event.rsplit_once(" (x") {
            Some((event, count)) => (event, count.trim_end_matches(')').parse().unwrap_or(1)),
            None => (event, 1),
        };
        out.insert((object, event), count);
    }
    out
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("a/b\n  Normal A x\n", true)]
    #[case("a/b\n  Normal A x\n  Normal B x (x3)\n", true)]
    #[case("a/b\n  Normal A x (x2)\n", false)]
    #[case("a/c\n  Normal A x\n", false)]
    #[case("", true)]
    fn what_was_said(#[case] of: &str, #[case] expected: bool) {
        let text = "pods\n\na/b\n  Normal B x (x3)\n  Normal A x\n";
        assert_eq!(has_all_events(text, of), expected);
    }
}
