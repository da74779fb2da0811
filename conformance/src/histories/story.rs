//! A history to read: the essence of each change, in a line.

use shared_json::Value;

use super::pod::{MARK, STATE};
use super::wish::Wish;
use crate::history::{Change, ChangeKind, number, text};

/// The story of a history.
pub(super) fn of(history: &[Change], wish: &dyn Wish) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for change in history {
        let object = &change.object;
        let what = match change.resource.as_str() {
            resource if resource == wish.resource() => set(object),
            "pods" => pod(object),
            "events" if text(object, "/involvedObject/kind") == wish.kind() => {
                format!("{} {}", text(object, "/reason"), text(object, "/message"))
            }
            "persistentvolumeclaims" => format!(
                "{} {}",
                text(object, "/status/phase"),
                text(object, "/metadata/deletionTimestamp")
            ),
            _ => continue,
        };
        let kind = match change.kind {
            ChangeKind::Added => "+",
            ChangeKind::Modified => " ",
            ChangeKind::Deleted => "-",
        };
        let line = format!("{kind} {} {}: {what}", change.resource, change.name());
        if out.last().is_none_or(|last| !last.ends_with(&line)) {
            out.push(format!("{:>8} {line}", change.at_ms));
        }
    }
    out
}

fn set(set: &Value) -> String {
    let mut spec = set.get("spec").cloned().unwrap_or_default();
    let image = text(set, "/spec/template/spec/containers/0/image");
    let variant = text(set, "/spec/template/spec/containers/0/env/0/value");
    if let Some(spec) = spec.as_object_mut() {
        for known in [
            "selector",
            "template",
            "volumeClaimTemplates",
            "revisionHistoryLimit",
        ] {
            spec.remove(known);
        }
    }
    let status = |field: &str| number(set, &format!("/status/{field}"));
    let revision = |field: &str| {
        let name = text(set, &format!("/status/{field}"));
        name.chars()
            .rev()
            .take(4)
            .collect::<Vec<_>>()
            .into_iter()
            .rev()
            .collect::<String>()
    };
    format!(
        "{spec} {image} {variant} | {} pods, {} ready, {} available, {} updated; {} -> {}",
        status("replicas"),
        status("readyReplicas"),
        status("availableReplicas"),
        status("updatedReplicas"),
        revision("currentRevision"),
        revision("updateRevision"),
    )
}

fn pod(pod: &Value) -> String {
    let conditions = pod.pointer("/status/conditions").and_then(Value::as_array);
    let ready = conditions
        .into_iter()
        .flatten()
        .any(|condition| condition["type"] == "Ready" && condition["status"] == "True");
    let revision = text(pod, "/metadata/labels/controller-revision-hash");
    let label = |key: &str| {
        let labels = pod.pointer("/metadata/labels");
        labels
            .and_then(|labels| labels.get(key)?.as_str())
            .unwrap_or_default()
    };
    format!(
        "{} {}{} {} {}{}{}",
        text(pod, "/status/phase"),
        if ready { "ready " } else { "" },
        label(STATE),
        revision.rsplit('-').next().unwrap_or_default(),
        text(pod, "/spec/containers/0/image"),
        if label(MARK).is_empty() { "" } else { " marked" },
        if text(pod, "/metadata/deletionTimestamp").is_empty() {
            ""
        } else {
            " going"
        },
    )
}
