//! Which revision the spec is, and which was before it.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use kube::ResourceExt;
use serde_json::Value;

use super::claims_hash;
use super::revision::{self, HashOf, Revision, Revisions};
use crate::api::labels;
use crate::kit::Owner;

/// What an owner's revisions are made of.
pub(crate) struct RevisionSource<'a> {
    /// The owner.
    pub(crate) owner: &'a Owner,
    /// Its annotations, which new revisions get.
    pub(crate) annotations: &'a BTreeMap<String, String>,
    /// The pod template.
    pub(crate) template: &'a Value,
    /// The templates of claims, if new revisions get their hash.
    pub(crate) claim_templates: Option<&'a [Value]>,
    /// What the hashes of new revisions are taken over.
    pub(crate) hash_of: HashOf,
    /// The revisions that exist.
    pub(crate) existing: &'a [Arc<ControllerRevision>],
    /// The name of the current one, as the status says it.
    pub(crate) current: &'a str,
}

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
pub(crate) fn plan(source: &RevisionSource<'_>, collision_count: i32) -> Result<RevisionPlan, String> {
    let data = revision::data_of(source.template)?;
    let mut existing: Vec<&ControllerRevision> = source.existing.iter().map(AsRef::as_ref).collect();
    existing.sort_by_key(|r| {
        (
            r.revision,
            r.metadata.creation_timestamp.as_ref().map(|t| t.0),
            r.name_any(),
        )
    });
    let next = existing.last().map_or(1, |last| last.revision.saturating_add(1));

    let equal = existing.iter().rposition(|r| data_of(r) == Some(&data));
    let hash = source.hash_of.hash(source.template, &data, collision_count);
    let (name, action) = match equal.and_then(|at| existing.get(at).map(|r| (at, r.name_any()))) {
        Some((at, name)) if at + 1 == existing.len() => (name, None),
        Some((_, name)) => (
            name.clone(),
            Some(RevisionAction::Renumber { name, number: next }),
        ),
        None => {
            let name = revision::name(&source.owner.key.name, &hash);
            let new = build(source, &name, &hash, &data, next)?;
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
    let current = all
        .iter()
        .find(|revision| revision.name == source.current)
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
    source: &RevisionSource<'_>,
    name: &str,
    hash: &str,
    data: &Value,
    number: i64,
) -> Result<ControllerRevision, String> {
    let labels = source
        .template
        .pointer("/metadata/labels")
        .and_then(Value::as_object);
    let mut labels: BTreeMap<String, String> = labels
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect();
    labels.insert(source.hash_of.label().to_owned(), hash.to_owned());
    let mut revision = ControllerRevision {
        data: Some(RawExtension(data.clone())),
        revision: number,
        ..Default::default()
    };
    revision.metadata.name = Some(name.to_owned());
    revision.metadata.namespace = Some(source.owner.key.namespace.clone());
    revision.metadata.labels = Some(labels);
    let annotations = revision.metadata.annotations.insert(source.annotations.clone());
    if let Some(templates) = source.claim_templates {
        annotations.insert(labels::CLAIMS_HASH.to_owned(), claims_hash::of(templates)?);
    }
    revision.metadata.owner_references = Some(vec![source.owner.reference()]);
    Ok(revision)
}
