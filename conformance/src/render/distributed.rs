//! ResourceDistributions and their copies.

use std::collections::{BTreeMap, BTreeSet};

use shared_json::Value;

use super::tables::align;
use crate::history::{Change, ChangeKind, State, list, number, text};

/// The kinds of which there are copies, as recordings name them.
const COPIED: [(&str, &str); 2] = [("configmaps", "ConfigMap"), ("secrets", "Secret")];

/// The distributions, with the columns that `kubectl get` prints, and the failures in their conditions.
pub(super) fn distributions(state: &State) -> String {
    let all: Vec<&Value> = state.of("resourcedistributions").collect();
    if all.is_empty() {
        return String::new();
    }
    let columns = ["/status/desired", "/status/succeeded", "/status/failed"];
    let rows: Vec<Vec<String>> = all
        .iter()
        .map(|distribution| {
            let shown = |column: &&str| {
                let value = distribution.pointer(column);
                value
                    .map(|_| number(distribution, column).to_string())
                    .unwrap_or_default()
            };
            let mut row = vec![text(distribution, "/metadata/name")];
            row.extend(columns.iter().map(shown));
            row
        })
        .collect();
    let mut out = align(&["NAME", "TOTAL", "SUCCEED", "FAILED"], &rows);
    for distribution in all {
        let name = text(distribution, "/metadata/name");
        let observed = number(distribution, "/metadata/generation")
            == number(distribution, "/status/observedGeneration");
        if !observed {
            out.push_str(&format!("{name}: not observed\n"));
        }
        for condition in list(distribution, "/status/conditions") {
            let namespaces: Vec<&str> = list(condition, "/failedNamespace")
                .iter()
                .filter_map(Value::as_str)
                .collect();
            out.push_str(&format!(
                "{name}: {}={} {} [{}]\n",
                text(condition, "/type"),
                text(condition, "/status"),
                text(condition, "/reason"),
                namespaces.join(" ")
            ));
        }
    }
    out
}

/// The kind and the name of the object that a distribution copies.
fn copied(distribution: &Value) -> (String, String) {
    (
        text(distribution, "/spec/resource/kind"),
        text(distribution, "/spec/resource/metadata/name"),
    )
}

/// The objects that have the kind and the name of copies, regardless of their makers.
pub(super) fn copies(state: &State) -> String {
    let copied: BTreeSet<(String, String)> = state.of("resourcedistributions").map(copied).collect();
    let mut rows = Vec::new();
    for (resource, kind) in COPIED {
        for object in state.of(resource) {
            let name = text(object, "/metadata/name");
            if !copied.contains(&(kind.to_owned(), name.clone())) {
                continue;
            }
            let annotations = object.pointer("/metadata/annotations");
            let annotation = |key: &str| {
                let value = annotations.and_then(|map| map.get(key)?.as_str());
                value.unwrap_or("-").to_owned()
            };
            rows.push(vec![
                text(object, "/metadata/namespace"),
                format!("{kind}/{name}"),
                annotation("kruise.io/resourcedistribution.resource.from"),
                annotation("kruise.io/resourcedistribution.resource.hashcode"),
                object.get("data").map(Value::to_string).unwrap_or_default(),
            ]);
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    align(&["NAMESPACE", "COPY", "FROM", "HASH", "DATA"], &rows)
}

/// The changes of copies, object by object.
pub(super) fn fates(before: &[Change], during: &[Change]) -> String {
    let all = before.iter().chain(during);
    let copied: BTreeSet<(String, String)> = all
        .filter(|change| change.resource == "resourcedistributions")
        .map(|change| copied(&change.object))
        .collect();
    let mut fates: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for change in during {
        let Some((_, kind)) = COPIED.iter().find(|(resource, _)| *resource == change.resource) else {
            continue;
        };
        if !copied.contains(&((*kind).to_owned(), change.name())) {
            continue;
        }
        let (namespace, name) = (text(&change.object, "/metadata/namespace"), change.name());
        let fate = match change.kind {
            ChangeKind::Added => "added",
            ChangeKind::Modified => "changed",
            ChangeKind::Deleted => "deleted",
        };
        fates
            .entry(format!("{kind}/{name} in {namespace}"))
            .or_default()
            .push(fate);
    }
    fates
        .into_iter()
        .map(|(object, fates)| format!("{object}: {}\n", fates.join(", ")))
        .collect()
}
