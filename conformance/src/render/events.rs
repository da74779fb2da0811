//! The events of a step, object by object, in the order in which each was first seen in it.

use std::collections::{BTreeMap, BTreeSet};

use shared_json::Value;

use super::normalise;
use crate::history::{Change, ChangeKind, number, text};

/// One line: an event that was seen during the step, with its count at the step's end.
struct Line {
    reason: String,
    kind: String,
    message: String,
    count: i64,
    at_ms: i64,
}

/// The events that were seen during a step.
pub(super) fn by_object(before: &[Change], during: &[Change]) -> String {
    let known: BTreeMap<String, i64> = before
        .iter()
        .filter(|change| change.resource == "events")
        .map(|change| (change.name(), count(&change.object)))
        .collect();
    let hidden = beyond_reason(before, during);
    let mut objects: BTreeMap<String, Vec<Line>> = BTreeMap::new();
    for (index, change) in during.iter().enumerate() {
        if change.resource != "events" || change.kind == ChangeKind::Deleted || hidden.contains(&index) {
            continue;
        }
        let event = &change.object;
        // A write that does not raise the count says nothing new.
        if known.get(&change.name()) == Some(&count(event)) {
            continue;
        }
        let reason = text(event, "/reason");
        let message = normalise::message(&reason, &text(event, "/message")).into_owned();
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
    let mut out = String::new();
    for (object, mut lines) in objects {
        for run in lines.chunk_by_mut(|one, other| {
            normalise::is_unordered([&one.reason, &other.reason], other.at_ms - one.at_ms)
        }) {
            run.sort_by(|one, other| (&one.reason, &one.message).cmp(&(&other.reason, &other.message)));
        }
        out.push_str(&format!("{object}\n"));
        for line in lines {
            let count = normalise::count(&line.reason, line.count);
            out.push_str(&format!(
                "  {:<8}{:<28}{}{count}\n",
                line.kind, line.reason, line.message
            ));
        }
    }
    out
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
