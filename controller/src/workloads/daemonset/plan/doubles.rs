//! Several revisions of the present template: the newest is kept.

use serde_json::json;

use super::view::View;
use crate::api::labels;
use crate::pods::{PodAction, PodRef, pod};

/// Gives all pods the label of the newest revision, whatever they were made of, and deletes the others of the same template.
/// Nothing where there is one alone.
pub(super) fn plan(view: &View<'_>) -> Vec<PodAction> {
    let update = &view.revisions.update;
    let others = view.revisions.all.iter();
    let doubles: Vec<&String> = others
        .filter(|other| other.name != update.name && other.template == update.template)
        .map(|other| &other.name)
        .collect();
    if doubles.is_empty() {
        return Vec::new();
    }
    let pods = view.observed.pods.iter();
    let labelled = pods.filter(|pod| pod::label(pod, labels::REVISION_HASH) != Some(view.hash()));
    let patch = json!({ "metadata": { "labels": { labels::REVISION_HASH: view.hash() } } });
    let labels = labelled.map(|pod| PodAction::PatchPod {
        pod: PodRef::of(pod),
        patch: patch.clone().into(),
    });
    let deletions = doubles
        .into_iter()
        .map(|name| PodAction::DeleteRevision { name: name.clone() });
    labels.chain(deletions).collect()
}
