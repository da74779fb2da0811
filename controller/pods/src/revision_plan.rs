//! Which revision the spec is, and which was before it.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use kruise_api::labels;
use kruise_kit::Owner;
use kube::ResourceExt;
use serde_json::Value;

use super::claims_hash;
use super::revision::{self, HashOf, Revision, Revisions};

/// The parts that an owner's revisions are made of.
pub struct RevisionSource<'a> {
    /// The owner.
    pub owner: &'a Owner,
    /// Its annotations, which new revisions get.
    pub annotations: &'a BTreeMap<String, String>,
    /// The pod template.
    pub template: &'a Value,
    /// The templates of claims, if new revisions get their hash.
    pub claim_templates: Option<&'a [Value]>,
    /// The data that the hashes of new revisions are taken over.
    pub hash_of: HashOf,
    /// The revisions that exist.
    pub existing: &'a [Arc<ControllerRevision>],
    /// The name of the current one, as the status says it.
    pub current: &'a str,
}

/// The write that is due before the pass goes on.
#[derive(Debug, Clone, PartialEq)]
pub enum RevisionAction {
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

/// The revisions of a pass, and the write that is due.
#[derive(Debug, Clone, PartialEq)]
pub struct RevisionPlan {
    /// The revisions.
    pub revisions: Revisions,
    /// The write, if one is due.
    pub action: Option<RevisionAction>,
}

/// Finds or makes the revision of the spec's template.
///
/// # Errors
/// When the template is no pod template.
pub fn plan(source: &RevisionSource<'_>, collision_count: i32) -> Result<RevisionPlan, String> {
    let data = revision::data_of(source.template)?;
    let existing = oldest_first(source.existing);
    let (labels, annotations) = marks(source)?;
    let new = New {
        owner: source.owner,
        hash_of: source.hash_of,
        template: source.template,
        labels,
        annotations,
    };
    let Place { name, action, equal } = place(&existing, new, &data, collision_count);
    let written = match &action {
        Some(RevisionAction::Create(new)) => Some(new.as_ref()),
        _ => equal,
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

/// Revisions in the order of their numbers.
pub fn oldest_first(revisions: &[Arc<ControllerRevision>]) -> Vec<&ControllerRevision> {
    let mut revisions: Vec<&ControllerRevision> = revisions.iter().map(AsRef::as_ref).collect();
    revisions.sort_by_key(|r| {
        (
            r.revision,
            r.metadata.creation_timestamp.as_ref().map(|t| t.0),
            r.name_any(),
        )
    });
    revisions
}

/// Labels or annotations.
type Texts = BTreeMap<String, String>;

/// The owner and the marks of a new revision.
pub struct New<'a> {
    /// The owner, in the namespace of its revisions.
    pub owner: &'a Owner,
    /// The data that its hash is taken over.
    pub hash_of: HashOf,
    /// The pod template, if the hash is taken over that.
    pub template: &'a Value,
    /// The labels, without the hash.
    pub labels: Texts,
    /// The annotations.
    pub annotations: Texts,
}

/// The place of data among the revisions of an owner.
pub struct Place<'a> {
    /// The name of its revision.
    pub name: String,
    /// The write that it needs, if it needs one.
    pub action: Option<RevisionAction>,
    /// Its revision, if there is one.
    pub equal: Option<&'a ControllerRevision>,
}

/// Finds or makes the revision that has `data`; `existing` are those that there are, oldest first.
pub fn place<'a>(
    existing: &[&'a ControllerRevision],
    new: New<'_>,
    data: &Value,
    collision_count: i32,
) -> Place<'a> {
    let next = existing.last().map_or(1, |last| last.revision.saturating_add(1));
    let at = existing.iter().rposition(|r| data_of(r) == Some(data));
    let equal = at.and_then(|at| existing.get(at).copied());
    if let Some(equal) = equal {
        let name = equal.name_any();
        let is_last = at.is_some_and(|at| at + 1 == existing.len());
        let action = (!is_last).then(|| RevisionAction::Renumber {
            name: name.clone(),
            number: next,
        });
        return Place {
            name,
            action,
            equal: Some(equal),
        };
    }
    let hash = new.hash_of.hash(new.template, data, collision_count);
    let name = revision::name(&new.owner.key.name, &hash);
    let new = build(new, &name, &hash, data, next);
    Place {
        name,
        action: Some(RevisionAction::Create(Box::new(new))),
        equal: None,
    }
}

fn known(revision: &ControllerRevision) -> Option<Revision> {
    Some(Revision {
        name: revision.name_any(),
        template: revision::template_of(data_of(revision)?)?,
        claims: claims_of(revision),
    })
}

/// The hash of the claim templates in a revision.
fn claims_of(revision: &ControllerRevision) -> Option<String> {
    revision.annotations().get(labels::CLAIMS_HASH).cloned()
}

/// The data of a revision.
pub fn data_of(revision: &ControllerRevision) -> Option<&Value> {
    revision.data.as_ref().map(|data| &data.0)
}

/// The labels and annotations of a new revision of a pod template.
fn marks(source: &RevisionSource<'_>) -> Result<(Texts, Texts), String> {
    let labels = source
        .template
        .pointer("/metadata/labels")
        .and_then(Value::as_object);
    let labels = labels
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect();
    let mut annotations = source.annotations.clone();
    if let Some(templates) = source.claim_templates {
        annotations.insert(labels::CLAIMS_HASH.to_owned(), claims_hash::of(templates)?);
    }
    Ok((labels, annotations))
}

fn build(new: New<'_>, name: &str, hash: &str, data: &Value, number: i64) -> ControllerRevision {
    let mut labels = new.labels;
    labels.insert(new.hash_of.label().to_owned(), hash.to_owned());
    let mut revision = ControllerRevision {
        data: Some(RawExtension(data.clone())),
        revision: number,
        ..Default::default()
    };
    revision.metadata.name = Some(name.to_owned());
    revision.metadata.namespace = Some(new.owner.key.namespace.clone());
    revision.metadata.labels = Some(labels);
    revision.metadata.annotations = Some(new.annotations);
    revision.metadata.owner_references = Some(vec![new.owner.reference()]);
    revision
}
