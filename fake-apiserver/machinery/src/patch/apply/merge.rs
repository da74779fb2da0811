//! Merging an applied configuration into the live object.

use super::path::PathElement;
use super::types::{List, MapShape, Shape, Type};
use shared_json::{Array, Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// The live value with the applied one laid over it: parts owned as one are replaced, the rest merges.
pub(super) fn merge(of: Type<'_>, live: Option<&Value>, applied: Option<&Value>) -> Option<Value> {
    let (live, value) = match (live, applied) {
        (live, None) => return live.cloned(),
        (None, Some(value)) => return Some(value.clone()),
        (Some(live), Some(value)) => (live, value),
    };
    match (of.shape(Some(value)), live, value) {
        (Shape::Map(map), live, Value::Object(applied)) if !map.atomic => {
            let live = live.as_object();
            if applied.is_empty() && live.is_none_or(Map::is_empty) {
                return Some(value.clone());
            }
            Some(merge_fields(map, live, applied))
        }
        (Shape::List(list), live, Value::Array(applied)) if !list.atomic() => {
            let live = live.as_array().map_or(&[][..], Array::as_slice);
            Some(Value::from(merge_items(list, live, applied)))
        }
        // Null applied to a map or list that has parts leaves the parts to their owners.
        (Shape::Map(map), Value::Object(fields), Value::Null) if !map.atomic && !fields.is_empty() => {
            Some(live.clone())
        }
        (Shape::List(list), Value::Array(items), Value::Null) if !list.atomic() && !items.is_empty() => {
            Some(live.clone())
        }
        _ => Some(value.clone()),
    }
}

fn merge_fields(shape: MapShape<'_>, live: Option<&Map>, applied: &Map) -> Value {
    let mut merged = Map::with_capacity(applied.len().max(live.map_or(0, Map::len)));
    for (name, value) in live.into_iter().flatten() {
        if !applied.contains_key(name) {
            merged.insert(name.clone(), value.clone());
        }
    }
    for (name, value) in applied {
        let of = shape.child(name).unwrap_or(Type::Whole);
        let before = live.and_then(|live| live.get_named(name, 0));
        if let Some(value) = merge(of, before, Some(value)) {
            merged.insert(name.clone(), value);
        }
    }
    // What stays as it was stays where it was.
    Value::Object(match live {
        Some(live) if live.is_alike(&merged) => live.clone(),
        _ => merged,
    })
}

/// Merges lists by key. The applied order holds for applied items, the live order for live ones; a live-only item keeps
/// its place between its neighbours.
fn merge_items(list: List<'_>, live: &[Value], applied: &[Value]) -> Vec<Value> {
    let index = |items: &[Value]| -> Vec<(PathElement, usize)> {
        items
            .iter()
            .enumerate()
            .filter_map(|(at, item)| Some((list.element(item).ok()?, at)))
            .collect()
    };
    let (left, right) = (index(live), index(applied));
    let live_at: BTreeMap<&PathElement, usize> =
        left.iter().rev().map(|(element, at)| (element, *at)).collect();
    let applied_at: BTreeMap<&PathElement, usize> =
        right.iter().rev().map(|(element, at)| (element, *at)).collect();
    let mut shared = right
        .iter()
        .map(|(element, _)| element)
        .filter(|element| live_at.contains_key(element))
        .peekable();
    let both = |element: &PathElement| {
        let before = live_at.get(element).and_then(|at| live.get(*at));
        merge(
            list.items(),
            before,
            applied_at.get(element).and_then(|at| applied.get(*at)),
        )
    };

    let mut merged = Vec::with_capacity(live.len() + applied.len());
    let mut done: BTreeSet<&PathElement> = BTreeSet::new();
    let (mut l, mut r) = (0, 0);
    loop {
        match (left.get(l), right.get(r)) {
            (None, None) => return merged,
            (Some((ours, _)), Some((theirs, _))) if ours == theirs => {
                done.insert(ours);
                merged.extend(both(ours));
                shared.next();
                (l, r) = (l + 1, r + 1);
            }
            // A shared item whose turn has not come: it will come with the applied ones.
            (Some((ours, _)), Some(_))
                if applied_at.contains_key(ours) && shared.peek().is_some_and(|next| *next != ours) =>
            {
                l += 1;
            }
            (Some((ours, at)), _) if !applied_at.contains_key(ours) => {
                merged.extend(live.get(*at).cloned());
                l += 1;
            }
            (ours, Some((theirs, _))) => {
                if ours.is_some_and(|(ours, _)| done.contains(ours)) {
                    l += 1;
                }
                done.insert(theirs);
                merged.extend(both(theirs));
                if shared.peek().is_some_and(|next| *next == theirs) {
                    shared.next();
                }
                r += 1;
            }
            // Live items that were merged at an earlier turn.
            (Some(_), None) => l += 1,
        }
    }
}
