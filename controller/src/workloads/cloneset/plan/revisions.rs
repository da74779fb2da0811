//! Which revision the spec is, and which was before it.

use kube::ResourceExt;

use crate::kit::Owner;
use crate::pods::revision::HashOf;
use crate::pods::revision_plan::{self, RevisionPlan, RevisionSource};
use crate::workloads::cloneset::observe::Observed;

/// Finds or makes the revision of the spec's template.
///
/// # Errors
/// When the template is no pod template.
pub(crate) fn plan(observed: &Observed, collision_count: i32) -> Result<RevisionPlan, String> {
    let set = &observed.set;
    let status = set.status.as_ref();
    let source = RevisionSource {
        owner: &Owner::of(set.as_ref()),
        annotations: set.annotations(),
        template: &set.spec.template,
        claim_templates: Some(set.spec.claim_templates()),
        hash_of: HashOf::Data,
        existing: &observed.revisions,
        current: status.map_or("", |status| &status.current_revision),
    };
    revision_plan::plan(&source, collision_count)
}
