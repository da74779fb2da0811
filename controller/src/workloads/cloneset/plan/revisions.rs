//! Which revision the spec is, and which was before it.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use kube::ResourceExt;
use serde_json::Value;

use crate::api::labels;
use crate::workloads::cloneset::observe::{Observed, Revision, Revisions};
use crate::workloads::cloneset::{claims_hash, owner, revision};

/// What must be written before the pass goes on.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum RevisionAction {
    /// Create this revision.
    Create(Box<ControllerRevision>),
    /// Give this revision a higher number, because it is in use again.
    Renumber {
        /// Its name.
        name: String,
        /// Its new number.
        number: i64,
    },
}

/// The revisions of a pass, and what to write.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RevisionPlan {
    pub(crate) revisions: Revisions,
    pub(crate) action: Option<RevisionAction>,
}

/// Finds or makes the revision of the spec's template.
///
/// # Errors
/// When the template is no pod template.
pub(crate) fn plan(observed: &Observed, collision_count: i32) -> Result<RevisionPlan, String> {
    let set = &observed.set;
    let set_name = set.name_any();
    let data = revision::data_of(&set.spec.template)?;
    let mut existing: Vec<&ControllerRevision> = observed.revisions.iter().map(AsRef::as_ref).collect();
    existing.sort_by_key(|r| {
        (
            r.revision,
            r.metadata.creation_timestamp.as_ref().map(|t| t.0),
            r.name_any(),
        )
    });
    let next = existing.last().map_or(1, |last| last.revision.saturating_add(1));

    let equal = existing.iter().rposition(|r| data_of(r) == Some(&data));
    let hash = revision::hash(&data, collision_count);
    let (name, action) = match equal.and_then(|at| existing.get(at).map(|r| (at, r.name_any()))) {
        Some((at, name)) if at + 1 == existing.len() => (name, None),
        Some((_, name)) => (
            name.clone(),
            Some(RevisionAction::Renumber { name, number: next }),
        ),
        None => {
            let name = revision::name(&set_name, &hash);
            let new = build(observed, &name, &hash, &data, next)?;
            (name, Some(RevisionAction::Create(Box::new(new))))
        }
    };
    let written = match &action {
        Some(RevisionAction::Create(new)) => Some(new.as_ref()),
        _ => equal.and_then(|at| existing.get(at).copied()),
    };
    let update = Revision {
        name,
        template: revision::template_of(&data).unwrap_or_default(),
        claims: written.and_then(claims_of),
    };
    let mut all: Vec<Revision> = existing.iter().filter_map(|r| known(r)).collect();
    all.retain(|revision| revision.name != update.name);
    all.push(update.clone());
    let current = set
        .status
        .as_ref()
        .map(|status| status.current_revision.as_str())
        .unwrap_or_default();
    let current = all
        .iter()
        .find(|revision| revision.name == current)
        .unwrap_or(&update)
        .clone();
    Ok(RevisionPlan {
        revisions: Revisions {
            update,
            current,
            all,
            collision_count,
        },
        action,
    })
}

fn known(revision: &ControllerRevision) -> Option<Revision> {
    Some(Revision {
        name: revision.name_any(),
        template: revision::template_of(data_of(revision)?)?,
        claims: claims_of(revision),
    })
}

/// What a revision says of the claim templates.
fn claims_of(revision: &ControllerRevision) -> Option<String> {
    revision.annotations().get(labels::CLAIMS_HASH).cloned()
}

/// The data of a revision.
pub(crate) fn data_of(revision: &ControllerRevision) -> Option<&Value> {
    revision.data.as_ref().map(|data| &data.0)
}

fn build(
    observed: &Observed,
    name: &str,
    hash: &str,
    data: &Value,
    number: i64,
) -> Result<ControllerRevision, String> {
    let set = &observed.set;
    let labels = set
        .spec
        .template
        .pointer("/metadata/labels")
        .and_then(Value::as_object);
    let mut labels: BTreeMap<String, String> = labels
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect();
    labels.insert(labels::REVISION_LABEL.to_owned(), hash.to_owned());
    let mut revision = ControllerRevision {
        data: Some(RawExtension(data.clone())),
        revision: number,
        ..Default::default()
    };
    revision.metadata.name = Some(name.to_owned());
    revision.metadata.namespace = set.namespace();
    revision.metadata.labels = Some(labels);
    let claims = claims_hash::of(set.spec.claim_templates())?;
    let annotations = revision.metadata.annotations.insert(set.annotations().clone());
    annotations.insert(labels::CLAIMS_HASH.to_owned(), claims);
    revision.metadata.owner_references = Some(vec![owner::reference(set)]);
    Ok(revision)
}
