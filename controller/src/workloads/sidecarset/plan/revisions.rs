//! The revision of the spec, and the revisions that go.

use std::collections::BTreeSet;

use k8s_openapi::api::apps::v1::ControllerRevision;
use kube::ResourceExt as _;
use serde_json::Value;

use crate::api::labels;
use crate::injection::sidecars::{annotations, history};
use crate::kit::Owner;
use crate::pods::revision::HashOf;
use crate::pods::revision_plan::{New, RevisionPlan, oldest_first, place};
use crate::pods::{Revision, Revisions, pod};
use crate::workloads::sidecarset::observe::Observed;
use crate::workloads::sidecarset::settings::history_limit;

/// Finds or makes the revision of the spec. `owner` is the set, in the namespace of the revisions.
pub(in crate::workloads::sidecarset) fn plan(
    observed: &Observed,
    owner: &Owner,
    collisions: i32,
) -> RevisionPlan {
    let set = &observed.set;
    let data = history::data_of(&set.spec);
    let mut labels = set.labels().clone();
    labels.insert(labels::SIDECARS_NAME.to_owned(), set.name_any());
    let version = history::custom_version(set);
    labels.extend(version.map(|version| (labels::SIDECARS_CUSTOM_VERSION.to_owned(), version.to_owned())));
    let new = New {
        owner,
        hash_of: HashOf::Data,
        template: &Value::Null,
        labels,
        annotations: set.annotations().clone(),
    };
    let existing = oldest_first(&observed.revisions);
    let place = place(&existing, new, &data, collisions);
    let revision = |name: String| Revision {
        name,
        template: data.clone(),
        claims: None,
    };
    let update = revision(place.name);
    RevisionPlan {
        revisions: Revisions {
            current: update.clone(),
            update,
            all: Vec::new(),
            collision_count: collisions,
        },
        action: place.action,
    }
}

/// The custom version that the latest revision is to be labelled with, if it is labelled otherwise.
pub(super) fn label(observed: &Observed, latest: &str) -> Option<String> {
    let version = history::custom_version(&observed.set)?;
    let latest = observed
        .revisions
        .iter()
        .find(|revision| revision.name_any() == latest)?;
    (custom_version(latest) != Some(version)).then(|| version.to_owned())
}

fn custom_version(revision: &ControllerRevision) -> Option<&str> {
    revision
        .labels()
        .get(labels::SIDECARS_CUSTOM_VERSION)
        .map(String::as_str)
}

/// The names of the revisions beyond the limit that are not in use, oldest first.
pub(super) fn beyond_limit(observed: &Observed, latest: &str) -> Vec<String> {
    let set = &observed.set;
    let others: Vec<&ControllerRevision> = oldest_first(&observed.revisions)
        .into_iter()
        .filter(|revision| revision.name_any() != latest)
        .collect();
    let excess = (others.len() + 1).saturating_sub(history_limit(set));
    let mut in_use: BTreeSet<String> = BTreeSet::new();
    for pod in &observed.pods {
        let text = pod::annotation(pod, labels::SIDECARS_HASH);
        let mut applied = annotations::read(text).unwrap_or_default();
        in_use.extend(
            applied
                .remove(&set.name_any())
                .map(|applied| applied.controller_revision.into_owned()),
        );
    }
    let injection = set.spec.injection_strategy.as_ref();
    if let Some(wanted) = injection.and_then(|injection| injection.revision.as_ref()) {
        in_use.extend(wanted.revision_name.clone());
        let version = wanted.custom_version.as_deref();
        let newest = others
            .iter()
            .rev()
            .find(|revision| custom_version(revision) == version);
        in_use.extend(version.and(newest).map(|revision| revision.name_any()));
    }
    let unused = others.iter().map(|revision| revision.name_any());
    unused
        .filter(|name| !in_use.contains(name))
        .take(excess)
        .collect()
}
