//! Events, in the old form and the new.

use pod_rules::names;
use shared_json::Value;

use super::errors::{Errors, IMMUTABLE};
use super::fields::{Fields, NOTHING, same};
use super::go;
use super::path::Path;

/// The names that one field has in Go's struct, in `v1` and in `events.k8s.io/v1`.
const NAMES: [(&str, &str, &str); 7] = [
    ("involvedObject", "involvedObject", "regarding"),
    ("message", "message", "note"),
    ("source", "source", "deprecatedSource"),
    ("firstTimestamp", "firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "count", "deprecatedCount"),
    ("reportingController", "reportingComponent", "reportingController"),
];

fn is_new(event: &Value) -> bool {
    event.text("apiVersion").starts_with("events.k8s.io/")
}

/// A field by its name in Go's struct.
fn get<'a>(event: &'a Value, field: &str) -> Option<&'a Value> {
    let name = NAMES
        .iter()
        .find(|(go, ..)| *go == field)
        .map_or(field, |(_, old, new)| if is_new(event) { new } else { old });
    event.part(name)
}

fn text<'a>(event: &'a Value, field: &str) -> &'a str {
    get(event, field).and_then(Value::as_str).unwrap_or_default()
}

/// An Event, besides the rules of [`common`].
pub(super) fn create(event: &Value, errors: &mut Errors) {
    if !is_new(event) {
        return;
    }
    series(event, errors);
    if !event.has("eventTime") {
        errors.required(&Path::new("eventTime"), "");
    }
    let kind = event.text("type");
    if !matches!(kind, "Normal" | "Warning") {
        errors.invalid(&Path::new("type"), "", format!("has invalid value: {kind}"));
    }
    const UNSET: &str = "needs to be unset";
    for field in ["firstTimestamp", "lastTimestamp"] {
        if get(event, field).is_some() {
            errors.invalid(&Path::new(field), "", UNSET);
        }
    }
    if get(event, "count").and_then(Value::as_i64).unwrap_or_default() != 0 {
        errors.invalid(&Path::new("count"), "", UNSET);
    }
    let source = get(event, "source").unwrap_or(&NOTHING);
    if !source.text("component").is_empty() || !source.text("host").is_empty() {
        errors.invalid(&Path::new("source"), "", UNSET);
    }
}

fn series(event: &Value, errors: &mut Errors) {
    let Some(series) = event.part("series") else {
        return;
    };
    if series.int("count").unwrap_or_default() < 2 {
        errors.invalid(&Path::new("series.count"), "", "should be at least 2");
    }
    if !series.has("lastObservedTime") {
        errors.required(&Path::new("series.lastObservedTime"), "");
    }
}

/// The rules for Events in both forms, new and changed ones.
pub(super) fn common(event: &Value, errors: &mut Errors) {
    let namespace = event.part("metadata").map_or("", |meta| meta.text("namespace"));
    let about = get(event, "involvedObject").map_or("", |about| about.text("namespace"));
    let path = Path::new("involvedObject.namespace");
    let mut mismatch = || errors.invalid(&path, about, "does not match event.namespace");
    if !event.has("eventTime") {
        let fits = if about.is_empty() {
            matches!(namespace, "" | "default")
        } else {
            namespace == about
        };
        if !fits {
            mismatch();
        }
    } else {
        if about.is_empty() && !matches!(namespace, "default" | "kube-system") {
            mismatch();
        }
        let field = if event.text("apiVersion") == "v1" {
            "reportingComponent"
        } else {
            "reportingController"
        };
        let path = Path::new(field);
        let controller = text(event, "reportingController");
        if controller.is_empty() {
            errors.required(&path, "");
        }
        errors.problems(&path, controller, names::qualified_problems(controller));
        for (field, most) in [
            ("reportingInstance", 128),
            ("action", 128),
            ("reason", 128),
            ("message", 1024),
        ] {
            let value = text(event, field);
            if value.is_empty() && field != "message" {
                errors.required(&Path::new(field), "");
            }
            if value.len() > most {
                let detail = format!("can have at most {most} characters");
                errors.invalid(&Path::new(field), "", detail);
            }
        }
    }
    errors.problems(
        &Path::new("namespace"),
        namespace,
        names::subdomain_problems(namespace),
    );
}

/// A changed Event: in the new form only the series changes.
pub(super) fn update(new: &Value, old: &Value, errors: &mut Errors) {
    common(new, errors);
    if !is_new(new) {
        return;
    }
    if !same(new.part("series"), old.part("series")) {
        series(new, errors);
    }
    for field in [
        "involvedObject",
        "reason",
        "message",
        "source",
        "firstTimestamp",
        "lastTimestamp",
        "count",
        "reason",
        "type",
        "eventTime",
        "action",
        "related",
        "reportingController",
        "reportingInstance",
    ] {
        if !same(get(new, field), get(old, field)) {
            match get(new, field) {
                Some(reference) if matches!(field, "involvedObject" | "related") => {
                    let shown = go::text("core.ObjectReference", Some(reference));
                    errors.invalid_shown(&Path::new(field), shown, IMMUTABLE);
                }
                source if field == "source" => {
                    let shown = go::text("core.EventSource", source);
                    errors.invalid_shown(&Path::new(field), shown, IMMUTABLE);
                }
                value => {
                    let unset = match field {
                        "count" => Value::from(0),
                        "firstTimestamp" | "lastTimestamp" | "eventTime" | "involvedObject" | "related" => {
                            Value::Null
                        }
                        _ => Value::from(""),
                    };
                    errors.invalid(&Path::new(field), value.cloned().unwrap_or(unset), IMMUTABLE);
                }
            }
        }
    }
}
