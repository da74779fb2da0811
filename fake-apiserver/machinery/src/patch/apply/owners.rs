//! Changes of ownership when an object changes.

use super::compare::Comparison;
use super::field_set::FieldSet;
use super::managed::{Managed, Manager, Owned};
use super::memo;
use super::path::PathElement;
use super::remove::remove_fields;
use super::to_set::to_field_set;
use super::types::{Shape, Type};
use super::versions::{Changes, Unconvertible, Views};
use shared_json::Value;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The fields that other owners than `actor` would lose if it took the changed ones.
pub(super) fn conflicts(managed: &Managed, changes: &Changes, actor: &Manager) -> Vec<(Manager, FieldSet)> {
    let taken = |changes: &Comparison| changes.modified.clone().union(changes.added.clone());
    let own = taken(&changes.own);
    let others = managed.0.iter().filter(|(manager, _)| *manager != actor);
    let lost = others.map(|(manager, owned)| {
        let seen = changes.seen_in(&owned.version);
        let lost = if std::ptr::eq(seen, &changes.own) {
            owned.fields.intersection(&own)
        } else {
            owned.fields.intersection(&taken(seen))
        };
        (manager.clone(), lost)
    });
    lost.filter(|(_, fields)| !fields.is_empty()).collect()
}

/// Takes the changed and removed fields from all owners but `actor`; removes owners without fields.
pub(super) fn take(managed: &mut Managed, changes: &Changes, actor: Option<&Manager>) {
    for (manager, owned) in &mut managed.0 {
        if Some(manager) == actor {
            continue;
        }
        let changes = changes.seen_in(&owned.version);
        for gone in [&changes.modified, &changes.added, &changes.removed] {
            owned.fields = memo::difference(std::mem::take(&mut owned.fields), gone);
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

/// Removes from the merged object the fields that `actor` applied last time and no longer does, unless another manager owns them.
///
/// `managed` already holds the fields that the actor applies now.
///
/// # Errors
/// The object cannot be shown in the version of an owner.
pub(super) fn prune(
    views: &Views<'_>,
    merged: Value,
    managed: &Managed,
    last: Option<&Owned>,
) -> Result<Value, String> {
    let Some(last) = last.filter(|last| !last.fields.is_empty()) else {
        return Ok(merged);
    };
    let start = match views.see(&merged, &last.version) {
        Ok(seen) => seen,
        Err(Unconvertible::Unknown) => return Ok(merged),
        Err(Unconvertible::Refused(why)) => {
            return Err(format!(
                "failed to convert merged object to last applied version: {why}"
            ));
        }
    };
    let given = named(start.of(), &last.fields);
    let mut pruned = remove_fields(start.of(), start.object.clone().into_owned(), &given);
    // What is owned by anybody comes back, what the last version knows first.
    let mut owned: BTreeMap<&str, FieldSet> = BTreeMap::new();
    for owner in managed.0.values() {
        let version = if views.is_other(&owner.version) {
            owner.version.as_str()
        } else {
            views.version
        };
        let all = owned.entry(version).or_default();
        *all = std::mem::take(all).union(owner.fields.clone());
    }
    let first = if views.is_other(&last.version) {
        last.version.as_str()
    } else {
        views.version
    };
    let mut order: Vec<&str> = owned.keys().copied().collect();
    order.sort_by_key(|version| *version != first);
    let refused = |why: &Unconvertible| match why {
        Unconvertible::Unknown => None,
        Unconvertible::Refused(why) => Some(format!("failed to convert merged object at version: {why}")),
    };
    for version in order {
        let (all, part) = match (views.see(&merged, version), views.see(&pruned, version)) {
            (Ok(all), Ok(part)) => (all, part),
            (Err(why), _) | (_, Err(why)) => match refused(&why) {
                None => continue,
                Some(why) => return Err(why),
            },
        };
        let of = all.of();
        let left = named(of, &to_field_set(of, &part.object));
        let left = match owned.get(version) {
            Some(owned) => left.union(named(of, owned)),
            None => left,
        };
        let gone = named(of, &to_field_set(of, &all.object)).difference(&left);
        let back = remove_fields(of, all.object.clone().into_owned(), &gone);
        pruned = back;
    }
    // And what was not the actor's in the first place.
    let part = match views.see(&pruned, &last.version) {
        Ok(part) => part,
        Err(Unconvertible::Unknown) => return Ok(merged),
        Err(Unconvertible::Refused(why)) => return Err(why),
    };
    let of = start.of();
    let left = named(of, &to_field_set(of, &part.object));
    let gone = named(of, &to_field_set(of, &start.object))
        .difference(&left)
        .intersection(&given);
    let kept = remove_fields(of, start.object.clone().into_owned(), &gone);
    match views.see(&kept, views.version) {
        Ok(seen) => Ok(seen.object.into_owned()),
        Err(Unconvertible::Unknown) => Ok(merged),
        Err(Unconvertible::Refused(why)) => Err(why),
    }
}

/// A set in which declared fields count as members if anything below them is one.
fn named(of: Type<'_>, set: &FieldSet) -> FieldSet {
    set.with_members(&Some(of), &is_declared, &descend)
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
    if let Some(other) = unconvertible(version) {
        managed.0.retain(|_, owned| owned.version != other);
    }
}

/// Whether there are such owners among recorded ones.
pub(super) fn has_unconvertible(entries: Option<&Value>, version: &str) -> bool {
    let entries = entries.and_then(Value::as_array).into_iter().flatten();
    let mut versions = entries.map(|entry| entry.get("apiVersion").and_then(Value::as_str));
    unconvertible(version).is_some_and(|other| versions.any(|version| version == Some(other)))
}

fn unconvertible(version: &str) -> Option<&'static str> {
    match version {
        "v1" => Some("events.k8s.io/v1"),
        "events.k8s.io/v1" => Some("v1"),
        _ => None,
    }
}

/// Fits recorded paths to the present type: paths below a part that is now atomic become the part itself.
///
/// Only the types of custom resources change while their objects live.
///
/// # Errors
/// The object cannot be shown in the version of an owner.
pub(super) fn reconcile(views: &Views<'_>, live: &Value, managed: &mut Managed) -> Result<(), String> {
    if views.schema.name.is_some() {
        return Ok(());
    }
    for owned in managed.0.values_mut() {
        let seen = match views.see(live, &owned.version) {
            Ok(seen) => seen,
            Err(Unconvertible::Unknown) => continue,
            Err(Unconvertible::Refused(why)) => return Err(why),
        };
        let mut fitted = FieldSet::default();
        fit(Some(seen.of()), &owned.fields, &mut Vec::new(), &mut fitted);
        owned.fields = fitted;
    }
    Ok(())
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
