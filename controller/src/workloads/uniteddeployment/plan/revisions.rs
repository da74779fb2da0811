//! The revision of the template, and the revisions that go.

use std::collections::BTreeMap;

use kube::ResourceExt as _;
use serde_json::{Value, json};

use crate::kit::Owner;
use crate::pods::revision::HashOf;
use crate::pods::revision_plan::{New, RevisionPlan, data_of, oldest_first, place};
use crate::pods::{Revision, Revisions};
use crate::workloads::uniteddeployment::canonical;
use crate::workloads::uniteddeployment::observe::Observed;
use crate::workloads::uniteddeployment::settings::history_limit;

/// Finds or makes the revision of the template: all of `spec.template` counts.
///
/// # Errors
/// The decoder's text when the template is none.
pub(in crate::workloads::uniteddeployment) fn plan(
    observed: &Observed,
    collisions: i32,
) -> Result<RevisionPlan, String> {
    let set = &observed.set;
    let owner = Owner::of(set.as_ref());
    let mut template = canonical::template(&json!(set.spec.template))?;
    if let Some(template) = template.as_object_mut() {
        template.insert("$patch".to_owned(), json!("replace"));
    }
    let data = json!({ "spec": { "template": template } });
    let new = New {
        owner: &owner,
        hash_of: HashOf::Data,
        template: &Value::Null,
        labels: labels(observed),
        annotations: set.annotations().clone(),
    };
    let existing = oldest_first(&observed.revisions);
    let place = place(&existing, new, &data, collisions);
    let revision = |name: String, data: &Value| Revision {
        name,
        template: data.clone(),
        claims: None,
    };
    let update = revision(place.name, &data);
    let others = existing.iter().filter(|known| known.name_any() != update.name);
    let mut all: Vec<Revision> = others
        .map(|known| revision(known.name_any(), data_of(known).unwrap_or(&Value::Null)))
        .collect();
    all.push(update.clone());
    let named = set.status.as_ref().map(|status| status.current_revision.as_str());
    let current = all.iter().find(|known| Some(known.name.as_str()) == named);
    Ok(RevisionPlan {
        revisions: Revisions {
            current: current.unwrap_or(&update).clone(),
            update,
            all,
            collision_count: collisions,
        },
        action: place.action,
    })
}

/// The labels of the template, by which revisions are found.
fn labels(observed: &Observed) -> BTreeMap<String, String> {
    let template = observed.kind.template(&observed.set.spec.template);
    let metadata = template.and_then(|template| template.metadata.as_ref());
    let labels = metadata.and_then(|metadata| metadata.get("labels")?.as_object());
    let texts = labels.into_iter().flatten();
    texts
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect()
}

/// The names of the oldest revisions beyond the limit. Those that the status names stay, but count.
pub(super) fn beyond_limit(observed: &Observed, revisions: &Revisions) -> Vec<String> {
    let excess = revisions.all.len().saturating_sub(history_limit(&observed.set));
    let status = observed.set.status.as_ref();
    let update = status.and_then(|status| status.update_status.as_ref());
    let in_use = [
        status.map(|status| status.current_revision.as_str()),
        update.map(|update| update.updated_revision.as_str()),
        Some(revisions.update.name.as_str()),
        Some(revisions.current.name.as_str()),
    ];
    let oldest = revisions.all.iter().take(excess).map(|revision| &revision.name);
    oldest
        .filter(|name| !in_use.contains(&Some(name.as_str())))
        .cloned()
        .collect()
}

#[cfg(test)]
#[path = "revisions_tests.rs"]
mod tests;
