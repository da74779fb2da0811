//! Changes of fields that must stay.

use pod_rules::FieldError;
use serde_json::{Map, Value, json};

use crate::api::v1alpha1::UnitedDeployment;
use crate::pods::template::rules::non_negative;
use crate::workloads::uniteddeployment::canonical;
use crate::workloads::uniteddeployment::kinds::ChildKind;

/// Fields of the spec of a StatefulSet that may change.
const MUTABLE: [&str; 3] = ["replicas", "template", "updateStrategy"];
const STAYS: &str = "may not be changed in an update";

/// The errors of an update that changes other fields.
pub(super) fn update(new: &UnitedDeployment, old: &UnitedDeployment) -> Vec<FieldError> {
    let mut errors = template(new, old);
    let mut tolerations = Vec::new();
    for (at, subset) in new.spec.topology.subsets.iter().enumerate() {
        let subsets = &old.spec.topology.subsets;
        let Some(known) = subsets.iter().find(|known| known.name == subset.name) else {
            continue;
        };
        let path = |field: &str| format!("spec.topology.subsets[{at}].{field}");
        if known.node_selector_term != subset.node_selector_term {
            errors.push(FieldError::forbidden(path("nodeSelectorTerm"), STAYS));
        }
        let listed = |list: &Option<Vec<_>>| list.clone().unwrap_or_default();
        if listed(&known.tolerations) != listed(&subset.tolerations) {
            errors.push(FieldError::forbidden(path("tolerations"), STAYS));
            tolerations.push(FieldError::forbidden(path("tolerations"), STAYS));
        }
    }
    errors.extend(tolerations);
    errors
}

/// The errors of a template of the kind that it had.
fn template(new: &UnitedDeployment, old: &UnitedDeployment) -> Vec<FieldError> {
    let checked = ChildKind::ALL
        .into_iter()
        .filter(|kind| *kind != ChildKind::CloneSet);
    let both = |kind: &ChildKind| {
        let has = |set: &UnitedDeployment| kind.template(&set.spec.template).is_some();
        has(new) && has(old)
    };
    let mut errors = Vec::new();
    let Some(kind) = checked.into_iter().find(both) else {
        return errors;
    };
    let path = format!("spec.template.{}.spec", kind.field());
    if kind != ChildKind::Deployment && rest(kind, new) != rest(kind, old) {
        let name = match kind {
            ChildKind::AdvancedStatefulSet => "advancedStatefulsetTemplate",
            _ => "statefulsetTemplate",
        };
        let detail = format!(
            "updates to {name} spec for fields other than 'template', and 'updateStrategy' are forbidden"
        );
        errors.push(FieldError::forbidden(path.as_str(), detail));
    }
    let spec = kind.template(&new.spec.template).map(|template| &template.spec);
    let replicas = spec.and_then(|spec| spec.get("replicas")?.as_i64());
    let replicas = replicas.map(|replicas| i32::try_from(replicas).unwrap_or(i32::MAX));
    non_negative(&format!("{path}.replicas"), replicas, &mut errors);
    errors
}

/// The fields of the spec that must stay, as Go writes them.
fn rest(kind: ChildKind, set: &UnitedDeployment) -> Option<Map<String, Value>> {
    let template = canonical::template(&json!(set.spec.template)).ok()?;
    let mut spec = template.get(kind.field())?.get("spec")?.as_object()?.clone();
    spec.retain(|field, _| !MUTABLE.contains(&field.as_str()));
    Some(spec)
}
