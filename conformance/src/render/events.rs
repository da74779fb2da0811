//! The events of a step, object by object, in the order in which each was first seen in it.

use std::collections::{BTreeMap, BTreeSet};

use shared_json::Value;

use super::{Time, normalise, raced};
use crate::history::{Change, ChangeKind, Slice, number, text};

/// One line: an event that was seen during the step, with its count at the step's end.
#[derive(Clone)]
pub(super) struct Line {
    pub(super) reason: String,
    pub(super) kind: String,
    pub(super) message: String,
    count: i64,
    pub(super) at_ms: i64,
}

impl Line {
    fn written(&self) -> String {
        let count = normalise::count(&self.reason, self.count);
        format!("  {:<8}{:<28}{}{count}\n", self.kind, self.reason, self.message)
    }
}

#[cfg(test)]
impl Line {
    /// An event that was seen once.
    pub(super) fn new(reason: &str, message: &str, at_ms: i64) -> Self {
        Self {
            reason: reason.to_owned(),
            kind: "Normal".to_owned(),
            message: message.to_owned(),
            count: 1,
            at_ms,
        }
    }
}

/// The lines of a step, by object, in the order in which each was first seen in it.
pub(super) type Lines = BTreeMap<String, Vec<Line>>;

/// The events that were seen during a step.
pub(super) fn by_object(slice: Slice<'_>) -> String {
    let lines = seen(slice, false);
    let bursts = Bursts::of(&lines);
    written(lines, &[&bursts])
}

/// The events that were seen during a recorded step and during the same step of a run. Events of one burst in either have no
/// order in the other: in virtual time, requests that took their time one after the other come at once.
pub(super) fn by_object_of_both(recorded: Slice<'_>, run: Slice<'_>, time: Time) -> (String, String) {
    let (recorded, mut run) = (seen(recorded, true), seen(run, true));
    raced::align(&mut run, &recorded, time);
    let bursts = [&Bursts::of(&recorded), &Bursts::of(&run)];
    (written(recorded, &bursts), written(run, &bursts))
}

/// The events that were seen during a step of a run in real time, in the order of a text of that step as far as only races are in the
/// way. The text has no times: those of the run count.
pub(super) fn by_object_in_order_of(text: &str, run: Slice<'_>) -> String {
    let mut run = seen(run, false);
    let ordered = read(text, &run);
    raced::align(&mut run, &ordered, Time::Real);
    written(run, &[])
}

/// The lines of a run that a text has, in its order.
fn read(text: &str, run: &Lines) -> Lines {
    let mut ordered = Lines::new();
    let mut object = "";
    for line in text.split_inclusive('\n') {
        if !line.starts_with("  ") {
            object = line.trim_end();
            continue;
        }
        let known = run
            .get(object)
            .and_then(|lines| lines.iter().find(|known| known.written() == line));
        if let Some(known) = known {
            ordered.entry(object.to_owned()).or_default().push(known.clone());
        }
    }
    ordered
}

/// Which events came in one burst, and so have no order: the number of the burst, by object, reason and message.
struct Bursts(BTreeMap<(String, String, String), usize>);

impl Bursts {
    fn of(lines: &Lines) -> Self {
        let mut bursts = BTreeMap::new();
        let mut number = 0;
        for (object, lines) in lines {
            for burst in lines.chunk_by(|one, other| {
                normalise::is_unordered([&one.reason, &other.reason], other.at_ms - one.at_ms)
            }) {
                number += 1;
                for line in burst {
                    let key = (object.clone(), line.reason.clone(), line.message.clone());
                    bursts.insert(key, number);
                }
            }
        }
        Self(bursts)
    }

    fn number(&self, object: &str, line: &Line) -> Option<usize> {
        let key = (object.to_owned(), line.reason.clone(), line.message.clone());
        self.0.get(&key).copied()
    }

    fn join(&self, object: &str, one: &Line, other: &Line) -> bool {
        let number = self.number(object, one);
        number.is_some() && number == self.number(object, other)
    }
}

/// Writes lines down; neighbours of one burst in the order of their reasons and messages.
fn written(lines: Lines, bursts: &[&Bursts]) -> String {
    let mut out = String::new();
    for (object, mut lines) in lines {
        let joined = |one: &Line, other: &Line| bursts.iter().any(|bursts| bursts.join(&object, one, other));
        for burst in lines.chunk_by_mut(joined) {
            burst.sort_by(|one, other| (&one.reason, &one.message).cmp(&(&other.reason, &other.message)));
        }
        out.push_str(&format!("{object}\n"));
        lines.iter().for_each(|line| out.push_str(&line.written()));
    }
    out
}

/// The events that were seen during a step, as lines; for a comparison without those that are chance.
fn seen(slice: Slice<'_>, compares: bool) -> Lines {
    let Slice { before, during } = slice;
    let known: BTreeMap<String, i64> = before
        .iter()
        .filter(|change| change.resource == "events")
        .map(|change| (change.name(), count(&change.object)))
        .collect();
    let hidden = beyond_reason(before, during);
    let mut stopped: BTreeSet<String> = BTreeSet::new();
    for change in before.iter().filter(|change| change.resource == "events") {
        stopped.extend(stopped_pod(&change.object));
    }
    let mut objects = Lines::new();
    for (index, change) in during.iter().enumerate() {
        if change.resource != "events" || change.kind == ChangeKind::Deleted || hidden.contains(&index) {
            continue;
        }
        let event = &change.object;
        // Events about objects of the cluster are in a namespace that is not recorded.
        if compares && text(event, "/involvedObject/kind") == "NodeImage" {
            continue;
        }
        stopped.extend(stopped_pod(event));
        // A write that does not raise the count says nothing new.
        if known.get(&change.name()) == Some(&count(event)) {
            continue;
        }
        let reason = text(event, "/reason");
        let message = normalise::message(&reason, &text(event, "/message")).into_owned();
        // Whether a probe meets a container that ends is chance.
        if compares && reason == "Unhealthy" && stopped.contains(&text(event, "/involvedObject/uid")) {
            continue;
        }
        let again = known.contains_key(&change.name()) && normalise::is_told_once(&reason, &message);
        if again || normalise::is_of_the_test_bed(&reason, &message) {
            continue;
        }
        let kind = text(event, "/type");
        let lines = objects.entry(object(event)).or_default();
        match lines
            .iter_mut()
            .find(|line| line.reason == reason && line.message == message && line.kind == kind)
        {
            Some(line) if normalise::is_told_once(&line.reason, &line.message) => {}
            Some(line) => line.count = line.count.max(count(event)),
            None => lines.push(Line {
                kind,
                count: if normalise::is_told_once(&reason, &message) {
                    1
                } else {
                    count(event)
                },
                reason,
                message,
                at_ms: change.at_ms,
            }),
        }
    }
    objects
}

/// The events of the step that depend on how often something was tried before: a source may say so much about an object in
/// a row and no more, and tries that vary in number use that up. They are known by their position in `during`.
fn beyond_reason(before: &[Change], during: &[Change]) -> BTreeSet<usize> {
    #[derive(Default)]
    struct Said {
        all: usize,
        varying: usize,
        at_every_look: bool,
        counts: BTreeMap<String, i64>,
        late: Vec<usize>,
    }
    let mut said: BTreeMap<(String, String), Said> = BTreeMap::new();
    for (index, change) in before.iter().chain(during).enumerate() {
        if change.resource != "events" || change.kind == ChangeKind::Deleted {
            continue;
        }
        let event = &change.object;
        let said = said
            .entry((object(event), text(event, "/source/component")))
            .or_default();
        if said.counts.insert(change.name(), count(event)) == Some(count(event)) {
            continue;
        }
        said.all += 1;
        let reason = text(event, "/reason");
        said.at_every_look |= reason == normalise::TOLD_AT_EVERY_LOOK;
        if normalise::count_varies(&reason) {
            said.varying += 1;
        } else if said.all - said.varying > normalise::SAID_MAX {
            said.late.extend(index.checked_sub(before.len()));
        }
    }
    said.into_values()
        .filter(|said| said.at_every_look || said.varying > 0 && said.all > normalise::NEARLY_ALL)
        .flat_map(|said| said.late)
        .collect()
}

/// The uid of the pod that an event says to be stopped.
fn stopped_pod(event: &Value) -> Option<String> {
    let is_stop =
        text(event, "/reason") == "Killing" && text(event, "/message").starts_with("Stopping container");
    is_stop.then(|| text(event, "/involvedObject/uid"))
}

fn count(event: &Value) -> i64 {
    number(event, "/count").max(number(event, "/series/count")).max(1)
}

fn object(event: &Value) -> String {
    format!(
        "{}/{}",
        text(event, "/involvedObject/kind").to_lowercase(),
        text(event, "/involvedObject/name")
    )
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rstest::rstest;
    use shared_json::json;

    use super::*;

    /// Events about one object: at which millisecond, with which reason and message.
    fn history(events: &[(i64, &str, &str)]) -> Vec<Change> {
        let change = |(at_ms, reason, message): &(i64, &str, &str)| Change {
            at_ms: *at_ms,
            resource: "events".to_owned(),
            kind: ChangeKind::Added,
            object: Arc::new(json!({
                "metadata": {"name": format!("{reason}.{message}")},
                "involvedObject": {"kind": "Set", "name": "s", "uid": "u"},
                "reason": reason, "message": message, "type": "Normal",
            })),
        };
        events.iter().map(change).collect()
    }

    fn are_alike(recorded: &[(i64, &str, &str)], run: &[(i64, &str, &str)], time: Time) -> bool {
        let (recorded, run) = (history(recorded), history(run));
        let slice = |during| Slice { before: &[], during };
        let (recorded, run) = by_object_of_both(slice(&recorded), slice(&run), time);
        recorded == run
    }

    const DELETED: &str = "SuccessfulDelete";

    #[rstest]
    #[case::one_after_the_other_here_and_at_once_there(
        &[(0, DELETED, "b"), (900, DELETED, "a")], &[(0, DELETED, "b"), (0, DELETED, "a")], true)]
    #[case::another_order_in_one_burst(
        &[(0, DELETED, "b"), (900, DELETED, "a")], &[(0, DELETED, "a"), (0, DELETED, "b")], true)]
    #[case::another_order_in_no_burst(
        &[(0, DELETED, "b"), (900, DELETED, "a")], &[(0, DELETED, "a"), (900, DELETED, "b")], false)]
    #[case::another_order_of_reasons(
        &[(0, DELETED, "a"), (0, "SuccessfulCreate", "a")], &[(0, "SuccessfulCreate", "a"), (0, DELETED, "a")], false)]
    #[case::a_probe_of_a_container_that_ends(
        &[(0, "Killing", "Stopping container c"), (9, "Unhealthy", "x")], &[(0, "Killing", "Stopping container c")], true)]
    #[case::a_probe_of_a_container_that_runs(
        &[(0, "Unhealthy", "x"), (9, "Killing", "Stopping container c")], &[(0, "Killing", "Stopping container c")], false)]
    fn what_has_no_order_in_one_has_none_in_the_other(
        #[case] recorded: &[(i64, &str, &str)],
        #[case] run: &[(i64, &str, &str)],
        #[case] alike: bool,
    ) {
        assert_eq!(are_alike(recorded, run, Time::Virtual), alike);
        assert_eq!(are_alike(run, recorded, Time::Virtual), alike);
    }

    const UPDATED: &str = "SuccessfulUpdatePodInPlace";

    #[rstest]
    #[case::another_order_in_one_second(&[(0, UPDATED, "pod a-1"), (900, UPDATED, "pod a-2")],
        &[(0, UPDATED, "pod a-2"), (0, UPDATED, "pod a-1")], true)]
    #[case::another_order(&[(0, UPDATED, "pod a-1"), (1900, UPDATED, "pod a-2")],
        &[(0, UPDATED, "pod a-2"), (0, UPDATED, "pod a-1")], false)]
    #[case::another_pod(&[(0, UPDATED, "pod a-1"), (900, UPDATED, "pod a-2")],
        &[(0, UPDATED, "pod a-3"), (0, UPDATED, "pod a-1")], false)]
    #[case::one_more(&[(0, UPDATED, "pod a-1")], &[(0, UPDATED, "pod a-2"), (0, UPDATED, "pod a-1")], false)]
    fn events_of_one_second_are_a_set_in_real_time(
        #[case] recorded: &[(i64, &str, &str)],
        #[case] run: &[(i64, &str, &str)],
        #[case] alike: bool,
    ) {
        assert_eq!(are_alike(recorded, run, Time::Real), alike);
    }

    #[rstest]
    #[case::in_one_second(&[(0, UPDATED, "pod a-2"), (900, UPDATED, "pod a-1")], true)]
    #[case::a_second_apart(&[(0, UPDATED, "pod a-2"), (1000, UPDATED, "pod a-1")], false)]
    #[case::another_pod(&[(0, UPDATED, "pod a-3"), (0, UPDATED, "pod a-1")], false)]
    #[case::one_less(&[(0, UPDATED, "pod a-1")], false)]
    fn a_run_in_real_time_takes_the_order_of_a_text(#[case] run: &[(i64, &str, &str)], #[case] alike: bool) {
        let slice = |during| Slice { before: &[], during };
        let recorded = history(&[(0, UPDATED, "pod a-1"), (0, UPDATED, "pod a-2")]);
        let text = by_object(slice(&recorded));
        assert_eq!(by_object_in_order_of(&text, slice(&history(run))) == text, alike);
    }
}
