//! Jobs. A CronJob's job template gets none of this: its jobs do when they are created.

use super::builtin::{object, set, unset};
use shared_json::{Map, json};

pub(super) fn fill(kind: &str, map: &mut Map) {
    if kind != "v1.Job" {
        return;
    }
    let labels = map
        .get("spec")
        .and_then(|spec| spec.pointer("/template/metadata/labels"))
        .cloned();
    if let Some(spec) = object(map, "spec") {
        job(spec);
    }
    if let Some(labels) = labels {
        set(map, &["metadata", "labels"], &labels);
    }
}

fn job(spec: &mut Map) {
    // Neither given is a single pod; a parallelism alone is a work queue without a number of completions.
    if unset(spec, "completions") && unset(spec, "parallelism") {
        spec.insert("completions".to_owned(), json!(1));
    }
    set(spec, &["parallelism"], &json!(1));
    let per_index = !unset(spec, "backoffLimitPerIndex");
    set(
        spec,
        &["backoffLimit"],
        &json!(if per_index { i32::MAX } else { 6 }),
    );
    let policy = if unset(spec, "podFailurePolicy") {
        "TerminatingOrFailed"
    } else {
        "Failed"
    };
    set(spec, &["podReplacementPolicy"], &json!(policy));
}
