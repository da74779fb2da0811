//! SidecarSets, and the pods that have their containers.
//!
//! The hash in a revision's name differs between versions of OpenKruise: revisions are numbered in the order in which they come.

use std::collections::BTreeMap;

use shared_json::{Array, Value};

use super::tables::{align, rows};
use crate::history::{Change, State, number, text};

/// The annotation of a pod that has the hash and the revision of each set.
const HASHES: &str = "/metadata/annotations/kruise.io~1sidecarset-hash";
/// The annotation of a pod that has the images that ran before.
const LAST_IMAGES: &str = "/metadata/annotations/kruise.io~1sidecarset-inplace-update-state";

/// The names of revisions, by set and in the order in which they were a set's latest.
type Names = BTreeMap<String, Vec<String>>;

fn names<'a>(changes: impl Iterator<Item = &'a Change>) -> Names {
    let mut names = Names::new();
    for change in changes.filter(|change| change.resource == "sidecarsets") {
        let latest = text(&change.object, "/status/latestRevision");
        let known = names.entry(change.name()).or_default();
        if !latest.is_empty() && !known.contains(&latest) {
            known.push(latest);
        }
    }
    names
}

/// The number of a revision of a set.
fn numbered(names: &Names, set: &str, revision: &str) -> String {
    let known = names
        .get(set)
        .and_then(|known| known.iter().position(|known| known == revision));
    match known {
        Some(at) => format!("revision {}", at + 1),
        None if revision.is_empty() => "no revision".to_owned(),
        None => "an unknown revision".to_owned(),
    }
}

/// The sets with the columns that `kubectl get` prints; then, pod by pod, the revisions that it has of them, the containers whose images
/// have changed, and whether it can be upgraded.
pub(super) fn sets(state: &State, before: &[Change], during: &[Change]) -> String {
    let names = names(before.iter().chain(during));
    let sets: Vec<&Value> = state.of("sidecarsets").collect();
    let mut out = String::new();
    if !sets.is_empty() {
        let columns = ["/status/matchedPods", "/status/updatedPods", "/status/readyPods"];
        out = align(&["NAME", "MATCHED", "UPDATED", "READY"], &rows(&sets, &columns));
    }
    for set in sets {
        out.push_str(&format!(
            "{}: hash {}, {}, updated and ready {}\n",
            text(set, "/metadata/name"),
            text(set, "/metadata/annotations/kruise.io~1sidecarset-hash"),
            numbered(
                &names,
                &text(set, "/metadata/name"),
                &text(set, "/status/latestRevision")
            ),
            number(set, "/status/updatedReadyPods"),
        ));
    }
    for pod in state.of("pods") {
        out.push_str(&of_pod(pod, &names));
    }
    out
}

fn of_pod(pod: &Value, names: &Names) -> String {
    let Some(versions) = json(pod, HASHES) else {
        return String::new();
    };
    let name = text(pod, "/metadata/name");
    let versions: Vec<String> = versions
        .as_object()
        .into_iter()
        .flatten()
        .map(|(set, version)| {
            let number = numbered(names, set, &text(version, "/controllerRevision"));
            format!("{number} of {set}")
        })
        .collect();
    let mut out = format!("{name}: {}\n", versions.join(", "));
    let changed = json(pod, LAST_IMAGES);
    for (set, state) in changed.as_ref().and_then(Value::as_object).into_iter().flatten() {
        let last = state.pointer("/lastContainerStatuses").and_then(Value::as_object);
        let names: Vec<String> = last
            .into_iter()
            .flatten()
            .map(|(name, _)| name.to_string())
            .collect();
        out.push_str(&format!("{name}: changed by {set}: {}\n", names.join(", ")));
    }
    let conditions = pod.pointer("/status/conditions").and_then(Value::as_array);
    for condition in conditions.into_iter().flatten() {
        if text(condition, "/type") == "SidecarSetUpgradable" {
            let part = |field: &str| text(condition, field);
            out.push_str(&format!(
                "{name}: upgradable {} {} {}\n",
                part("/status"),
                part("/reason"),
                part("/message")
            ));
        }
    }
    out.push_str(&others(pod, &name));
    out.push_str(&parts(pod, &name));
    out
}

/// The other annotations of sidecars, but for the hash without images.
fn others(pod: &Value, name: &str) -> String {
    let annotations = pod.pointer("/metadata/annotations").and_then(Value::as_object);
    let sidecars: BTreeMap<String, String> = annotations
        .into_iter()
        .flatten()
        .filter(|(key, _)| key.contains("sidecarset-injected") || key.contains("sidecarset-working"))
        .map(|(key, value)| (key.to_string(), value.as_str().unwrap_or_default().to_owned()))
        .collect();
    sidecars
        .into_iter()
        .map(|(key, value)| format!("{name}: {key} {value}\n"))
        .collect()
}

/// The containers of a pod with their variables, mounts, devices and resources; its volumes and its secrets for images.
fn parts(pod: &Value, name: &str) -> String {
    let mut out = String::new();
    for (list, kind) in [
        ("/spec/initContainers", "init container"),
        ("/spec/containers", "container"),
    ] {
        for container in items(pod, list) {
            let texts = |list: &str, field: &str| {
                let texts: Vec<String> = items(container, list)
                    .iter()
                    .map(|item| text(item, field))
                    .collect();
                texts.join(" ")
            };
            let resources = container
                .get("resources")
                .map(Value::to_string)
                .unwrap_or_default();
            out.push_str(&format!(
                "{name}: {kind} {} env [{}] mounts [{}] devices [{}] resources {resources}\n",
                text(container, "/name"),
                texts("/env", "/name"),
                texts("/volumeMounts", "/mountPath"),
                texts("/volumeDevices", "/devicePath"),
            ));
        }
    }
    let names = |list: &str| {
        let names = items(pod, list).iter().map(|item| text(item, "/name"));
        let names: Vec<String> = names
            .filter(|name| !name.starts_with("kube-api-access-"))
            .collect();
        names.join(" ")
    };
    let (volumes, secrets) = (names("/spec/volumes"), names("/spec/imagePullSecrets"));
    out.push_str(&format!("{name}: volumes [{volumes}] secrets [{secrets}]\n"));
    out
}

fn items<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    let list = object.pointer(pointer).and_then(Value::as_array);
    list.map(Array::as_slice).unwrap_or_default()
}

/// The JSON in a text.
fn json(object: &Value, pointer: &str) -> Option<Value> {
    let value = object.pointer(pointer)?.as_str()?;
    shared_json::from_str(value).ok()
}
