//! The changes of the pods during a step.

use std::collections::BTreeMap;

use shared_json::Value;

use super::tables::restarts;
use crate::history::{Change, ChangeKind, State, text};

/// Which pods stayed, came, went and were restarted. A pod is the same one if its uid is.
pub(super) fn fates(before: &State, after: &State, during: &[Change]) -> String {
    let by_uid = |state: &State| -> BTreeMap<String, Value> {
        state
            .of("pods")
            .map(|pod| (text(pod, "/metadata/uid"), pod.clone()))
            .collect()
    };
    let (old, new) = (by_uid(before), by_uid(after));
    let name = |pod: &Value| text(pod, "/metadata/name");
    let kept = old
        .iter()
        .filter(|(uid, _)| new.contains_key(*uid))
        .map(|(_, pod)| name(pod))
        .collect();
    let created = new
        .iter()
        .filter(|(uid, _)| !old.contains_key(*uid))
        .map(|(_, pod)| name(pod))
        .collect();
    let deleted = old
        .iter()
        .filter(|(uid, _)| !new.contains_key(*uid))
        .map(|(_, pod)| name(pod))
        .collect();
    let passing = during
        .iter()
        .filter(|change| change.resource == "pods" && change.kind == ChangeKind::Deleted)
        .filter(|change| !old.contains_key(&text(&change.object, "/metadata/uid")))
        .map(Change::name)
        .collect();
    let restarted = new
        .iter()
        .filter(|(uid, pod)| restarts(pod) > old.get(*uid).map_or(0, restarts))
        .map(|(_, pod)| name(pod))
        .collect();
    let lines = [
        ("pods kept", kept),
        ("pods created", created),
        ("pods deleted", deleted),
        ("pods created and deleted", passing),
        ("pods restarted", restarted),
    ];
    lines
        .into_iter()
        .filter_map(|(title, names)| line(title, names))
        .collect()
}

fn line(title: &str, mut names: Vec<String>) -> Option<String> {
    names.sort();
    (!names.is_empty()).then(|| format!("{title}: {}\n", names.join(", ")))
}
