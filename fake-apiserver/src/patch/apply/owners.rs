//! How ownership moves when an object changes.

use super::compare::Comparison;
use super::field_set::FieldSet;
use super::managed::{Managed, Manager, Owned};
use super::path::PathElement;
use super::remove::remove_fields;
use super::to_set::to_field_set;
use super::types::{Shape, Type};
use crate::types::Schema;
use serde_json::Value;
use std::sync::LazyLock;

/// Takes what changed from everybody but `actor`, and gives back what others would lose if the actor may not take it.
pub(super) fn conflicts(
    managed: &Managed,
    changes: &Comparison,
    actor: &Manager,
) -> Vec<(Manager, FieldSet)> {
    let taken = changes.modified.clone().union(changes.added.clone());
    let others = managed.0.iter().filter(|(manager, _)| *manager != actor);
    let lost = others.map(|(manager, owned)| (manager.clone(), owned.fields.intersection(&taken)));
    lost.filter(|(_, fields)| !fields.is_empty()).collect()
}

/// Takes what was changed or removed from everybody but `actor`; owners of nothing go.
pub(super) fn take(managed: &mut Managed, changes: &Comparison, actor: Option<&Manager>) {
    for (manager, owned) in &mut managed.0 {
        if Some(manager) == actor {
            continue;
        }
        for gone in [&changes.modified, &changes.added, &changes.removed] {
            if owned.fields.intersects(gone) {
                owned.fields = std::mem::take(&mut owned.fields).difference(gone);
            }
        }
    }
    managed.0.retain(|_, owned| !owned.fields.is_empty());
}

/// The fields that no owner is ever recorded for.
pub(super) fn stripped() -> &'static FieldSet {
    &STRIPPED
}

static STRIPPED: LazyLock<FieldSet> = LazyLock::new(|| {
    FieldSet::of(&[
        &["apiVersion"],
        &["kind"],
        &["metadata"],
        &["metadata", "name"],
        &["metadata", "namespace"],
        &["metadata", "creationTimestamp"],
        &["metadata", "selfLink"],
        &["metadata", "uid"],
        &["metadata", "clusterName"],
        &["metadata", "generation"],
        &["metadata", "managedFields"],
        &["metadata", "resourceVersion"],
    ])
});

/// Takes from the merged object what `actor` applied last time and no longer does, unless somebody else owns it.
///
/// `managed` already holds what the actor applies now.
pub(super) fn prune(of: Type<'_>, merged: Value, managed: &Managed, last: Option<&Owned>) -> Value {
    let Some(last) = last.filter(|last| !last.fields.is_empty()) else {
        return merged;
    };
    let named = |set: &FieldSet| set.with_members(&Some(of), &is_declared, &descend);
    let last = named(&last.fields);
    let without = remove_fields(of, merged.clone(), &last);
    // What is owned by anybody comes back.
    let owned = managed
        .0
        .values()
        .fold(FieldSet::default(), |all, owned| all.union(owned.fields.clone()));
    let there = named(&to_field_set(of, &merged));
    let left = named(&to_field_set(of, &without)).union(named(&owned));
    let pruned = remove_fields(of, merged.clone(), &there.clone().difference(&left));
    // And what was not the actor's in the first place.
    let left = named(&to_field_set(of, &pruned));
    remove_fields(of, merged, &there.difference(&left).intersection(&last))
}

/// Whether a step with paths below it is a declared field; such fields count as members where items are removed.
fn is_declared(of: &Option<Type<'_>>, element: &PathElement) -> bool {
    match (of.map(|of| of.shape(None)), element) {
        (Some(Shape::Map(map)), PathElement::Field(name)) => map.declares(name),
        _ => false,
    }
}

fn descend<'s>(of: &Option<Type<'s>>, element: &PathElement) -> Option<Type<'s>> {
    match ((*of)?.shape(None), element) {
        (Shape::Map(map), PathElement::Field(name)) => map.child(name),
        (Shape::List(list), PathElement::Key(_) | PathElement::Value(_)) => Some(list.items()),
        _ => None,
    }
}

/// Drops owners in versions that the real server cannot convert an object of this version to: events are in two groups.
pub(super) fn forget_unconvertible(managed: &mut Managed, version: &str) {
    let other = match version {
        "v1" => "events.k8s.io/v1",
        "events.k8s.io/v1" => "v1",
        _ => return,
    };
    managed.0.retain(|_, owned| owned.version != other);
}

/// Fits recorded paths to the type as it is now: what is below a part that is owned as one becomes the part itself.
///
/// Only the types of custom resources change while their objects live.
pub(super) fn reconcile(schema: &Schema, managed: &mut Managed) {
    if schema.name.is_some() {
        return;
    }
    for owned in managed.0.values_mut() {
        let mut fitted = FieldSet::default();
        fit(
            Some(Type::Known(schema, false)),
            &owned.fields,
            &mut Vec::new(),
            &mut fitted,
        );
        owned.fields = fitted;
    }
}

fn fit(of: Option<Type<'_>>, fields: &FieldSet, path: &mut Vec<PathElement>, fitted: &mut FieldSet) {
    for (element, member, below) in fields.steps() {
        path.push(element.clone());
        let of = descend(&of, element);
        let whole = match of.map(|of| of.shape(None)) {
            Some(Shape::List(list)) => list.atomic(),
            Some(Shape::Map(map)) => map.atomic,
            _ => false,
        };
        if member || (whole && !below.is_empty()) {
            fitted.insert(path);
        }
        if !whole {
            fit(of, below, path, fitted);
        }
        path.pop();
    }
}
