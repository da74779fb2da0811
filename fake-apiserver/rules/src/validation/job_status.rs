//! The allowed statuses of a Job. Most rules apply only to the fields that a change concerns: old errors may stay.

use std::collections::BTreeSet;

use shared_json::Value;

use super::errors::{Errors, IMMUTABLE};
use super::fields::{Fields, NOTHING, same};
use super::go;
use super::jobs::{Interval, count_indexes, interval, is_indexed};
use super::path::Path;

fn condition_is(job: &Value, kind: &str, status: &str) -> bool {
    let conditions = job.part("status").unwrap_or(&NOTHING).list("conditions");
    let is = |condition: &Value| condition.text("type") == kind && condition.text("status") == status;
    conditions.iter().any(is)
}

fn condition_is_true(job: &Value, kind: &str) -> bool {
    condition_is(job, kind, "True")
}

pub(super) fn is_suspended(job: &Value) -> bool {
    condition_is_true(job, "Suspended")
}

/// A job before and after a change of its status.
struct Change<'a> {
    new: &'a Value,
    old: &'a Value,
    spec: &'a Value,
    status: &'a Value,
    before: &'a Value,
    path: Path<'a>,
}

impl Change<'_> {
    fn is(&self, kind: &str) -> bool {
        condition_is_true(self.new, kind)
    }

    fn was(&self, kind: &str) -> bool {
        condition_is_true(self.old, kind)
    }

    /// Whether any of these conditions has changed.
    fn turned(&self, kinds: [&str; 2]) -> bool {
        kinds.iter().any(|kind| self.is(kind) != self.was(kind))
    }

    fn changed(&self, field: &str) -> bool {
        !same(self.status.part(field), self.before.part(field))
    }

    fn count(&self, field: &str) -> i64 {
        self.status.int(field).unwrap_or_default()
    }

    fn is_finished(&self) -> bool {
        self.is("Complete") || self.is("Failed")
    }

    fn finished_turned(&self) -> bool {
        self.is_finished() != (self.was("Complete") || self.was("Failed"))
    }
}

/// A changed status of a Job.
pub(super) fn job_status(new: &Value, old: &Value, errors: &mut Errors) {
    let change = Change {
        new,
        old,
        spec: new.part("spec").unwrap_or(&NOTHING),
        status: new.part("status").unwrap_or(&NOTHING),
        before: old.part("status").unwrap_or(&NOTHING),
        path: Path::new("status"),
    };
    for field in ["active", "succeeded", "failed", "ready", "terminating"] {
        errors.not_negative(&change.path.field(field), change.status.int(field));
    }
    uncounted(&change, errors);
    end(&change, errors);
    finished(&change, errors);
    indexes(&change, errors);
    counts(&change, errors);
    success(&change, errors);
    transitions(&change, errors);
}

/// Pods that have ended and are not counted yet.
fn uncounted(change: &Change<'_>, errors: &mut Errors) {
    let pods = change.status.part("uncountedTerminatedPods").unwrap_or(&NOTHING);
    let path = change.path.field("uncountedTerminatedPods");
    let mut seen = BTreeSet::new();
    for field in ["succeeded", "failed"] {
        let list = path.field(field);
        for (index, pod) in pods.texts(field).enumerate() {
            if pod.is_empty() {
                errors.invalid(&list.index(index), pod, "must not be empty");
            } else if !seen.insert(pod) {
                errors.duplicate(&list.index(index), pod);
            }
        }
    }
}

/// How a job ends, and when.
fn end(change: &Change<'_>, errors: &mut Errors) {
    let Change { status, path, .. } = change;
    let (complete, failed) = (change.is("Complete"), change.is("Failed"));
    let conditions = path.field("conditions");
    if complete && failed && change.turned(["Complete", "Failed"]) {
        errors.invalid_unshown(&conditions, "cannot set Complete=True and Failed=true conditions");
    }
    if complete && change.is("FailureTarget") && change.turned(["Complete", "FailureTarget"]) {
        errors.invalid_unshown(
            &conditions,
            "cannot set Complete=True and FailureTarget=true conditions",
        );
    }
    let at = path.field("completionTime");
    let completion = status.part("completionTime");
    if change.is("Complete") != change.was("Complete") || change.changed("completionTime") {
        match completion {
            Some(time) if !complete => {
                let detail = "cannot set completionTime when there is no Complete=True condition";
                errors.invalid(&at, time.clone(), detail);
            }
            None if complete => errors.required(&at, "completionTime is required for Complete jobs"),
            _ => {}
        }
    }
    if let (Some(start), Some(end)) = (
        status.text_if_set("startTime"),
        status.text_if_set("completionTime"),
    ) && end < start
        && (change.changed("startTime") || change.changed("completionTime"))
    {
        errors.invalid(&at, end, "must be equal to or after `startTime`");
    }
    let failed_anew = change.is("Failed") != change.was("Failed") || change.changed("failedIndexes");
    if failed && !change.is("FailureTarget") && failed_anew {
        errors.invalid_unshown(
            &conditions,
            "cannot set Failed=True condition without the FailureTarget=true condition",
        );
    }
    if complete && !change.is("SuccessCriteriaMet") && change.turned(["Complete", "SuccessCriteriaMet"]) {
        errors.invalid_unshown(
            &conditions,
            "cannot set Complete=True condition without the SuccessCriteriaMet=true condition",
        );
    }
}

/// The rules for a job that has finished.
fn finished(change: &Change<'_>, errors: &mut Errors) {
    let Change {
        spec, status, path, ..
    } = change;
    if !change.is_finished() {
        return;
    }
    let concerns = |field: &str| change.finished_turned() || change.changed(field);
    if change.count("active") > 0 && concerns("active") {
        let detail = "active>0 is invalid for finished job";
        errors.invalid(&path.field("active"), change.count("active"), detail);
    }
    let never_began = spec.is_true("suspend") && spec.int("completions") == Some(0);
    if !status.has("startTime") && concerns("startTime") && !never_began {
        errors.required(&path.field("startTime"), "startTime is required for finished job");
    }
    let pods = status.part("uncountedTerminatedPods").unwrap_or(&NOTHING);
    let any = ["succeeded", "failed"]
        .iter()
        .any(|field| !pods.list(field).is_empty());
    if any && concerns("uncountedTerminatedPods") {
        let shown = go::text("batch.UncountedTerminatedPods", Some(pods));
        errors.invalid_shown(
            &path.field("uncountedTerminatedPods"),
            shown,
            "must be empty for finished job",
        );
    }
}

/// Which indexes have completed, and which have failed.
fn indexes(change: &Change<'_>, errors: &mut Errors) {
    let Change {
        spec, status, path, ..
    } = change;
    let (completed_at, failed_at) = (path.field("completedIndexes"), path.field("failedIndexes"));
    let (completed, failed) = (
        status.text("completedIndexes"),
        status.text_if_set("failedIndexes"),
    );
    let changed = ["completedIndexes", "failedIndexes"].map(|field| change.changed(field));
    let completions = spec.int("completions");
    let per_index = spec.has("backoffLimitPerIndex");
    if let (true, Some(Err(why))) = (changed[0], completions.map(|most| count_indexes(completed, most))) {
        let detail = format!("error parsing completedIndexes: {why}");
        errors.invalid(&completed_at, completed, detail);
    }
    if let (true, true, Some(failed), Some(most)) = (changed[1], per_index, failed, completions)
        && let Err(why) = count_indexes(failed, most)
    {
        let detail = format!("error parsing failedIndexes: {why}");
        errors.invalid(&failed_at, failed, detail);
    }
    if changed[0] && !completed.is_empty() && !is_indexed(spec) {
        let detail = "cannot set non-empty completedIndexes when non-indexed completion mode";
        errors.invalid(&completed_at, completed, detail);
    }
    let Some(failed) = failed else { return };
    if changed[1] && !per_index {
        let detail = "cannot set non-null failedIndexes when backoffLimitPerIndex is null";
        errors.invalid(&failed_at, failed, detail);
    }
    if changed.contains(&true)
        && let Some(index) = completions.and_then(|most| overlap(completed, failed, most))
    {
        let detail = format!("failedIndexes and completedIndexes overlap at index: {index}");
        errors.invalid(&failed_at, failed, detail);
    }
}

/// The first index that is in both; intervals that cannot be read are passed over.
fn overlap(completed: &str, failed: &str, completions: i64) -> Option<i64> {
    let read = |text: &str| -> Vec<Interval> {
        let intervals = text.split(',');
        intervals
            .filter_map(|text| interval(text, completions).ok())
            .collect()
    };
    let failed = read(failed);
    read(completed).into_iter().find_map(|completed| {
        let mut both = failed
            .iter()
            .map(|failed| (completed.0.max(failed.0), completed.1.min(failed.1)));
        both.find(|(first, last)| first <= last).map(|(first, _)| first)
    })
}

/// Pods that go, and pods that are ready.
fn counts(change: &Change<'_>, errors: &mut Errors) {
    let (terminating, ready, path) = (change.count("terminating"), change.count("ready"), &change.path);
    let concerns = change.finished_turned() || change.changed("terminating");
    if change.is_finished() && terminating > 0 && concerns {
        let detail = "terminating>0 is invalid for finished job";
        errors.invalid(&path.field("terminating"), terminating, detail);
    }
    if ready > change.count("active") && (change.changed("ready") || change.changed("active")) {
        let detail = "cannot set more ready pods than active";
        errors.invalid(&path.field("ready"), ready, detail);
    }
}

/// The rules for a job that has succeeded, at any time.
fn success(change: &Change<'_>, errors: &mut Errors) {
    let conditions = change.path.field("conditions");
    let met = change.is("SuccessCriteriaMet");
    if met && change.is("Failed") {
        errors.invalid_unshown(
            &conditions,
            "cannot set SuccessCriteriaMet=True and Failed=true conditions",
        );
    }
    if met && change.is("FailureTarget") {
        errors.invalid_unshown(
            &conditions,
            "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions",
        );
    }
    if change.spec.has("successPolicy") && !met && change.is("Complete") {
        errors.invalid_unshown(
            &conditions,
            "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True",
        );
    }
}

/// The forbidden transitions of a status.
fn transitions(change: &Change<'_>, errors: &mut Errors) {
    let Change {
        spec,
        status,
        before,
        path,
        ..
    } = change;
    let conditions = path.field("conditions");
    let time = |status: &Value, field: &str| status.part(field).cloned();
    for kind in ["Failed", "Complete", "FailureTarget"] {
        if change.was(kind) && !change.is(kind) {
            let detail = format!("cannot disable the terminal {kind}=True condition");
            errors.invalid_unshown(&conditions, &detail);
        }
    }
    // A job that grows and shrinks may lose indexes that had succeeded.
    let is_elastic = is_indexed(spec) && spec.int("completions") == spec.int("parallelism");
    for field in ["failed", "succeeded"] {
        if !(is_elastic && field == "succeeded")
            && change.count(field) < before.int(field).unwrap_or_default()
        {
            let detail = format!("cannot decrease the {field} counter");
            errors.invalid(&path.field(field), change.count(field), detail);
        }
    }
    if let (Some(new), Some(old)) = (time(status, "completionTime"), time(before, "completionTime"))
        && new != old
    {
        errors.invalid(&path.field("completionTime"), new, IMMUTABLE);
    }
    let resuming = change.was("Suspended") && condition_is(change.new, "Suspended", "False");
    if let Some(old) = time(before, "startTime").filter(|_| !spec.is_true("suspend") && !resuming) {
        let new = time(status, "startTime");
        if new.as_ref() != Some(&old) {
            let detail = "field is immutable for unsuspended job once set";
            errors.invalid(&path.field("startTime"), new.unwrap_or_default(), detail);
        }
    }
    if change.was("SuccessCriteriaMet") && !change.is("SuccessCriteriaMet") {
        errors.invalid_unshown(
            &conditions,
            "cannot disable the SuccessCriteriaMet=True condition",
        );
    }
}
