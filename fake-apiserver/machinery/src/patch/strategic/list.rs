//! Merging lists, and the order of the result.

use super::map::{self, DIRECTIVE, unknown_directive};
use crate::patch::PatchError;
use crate::patch::print::go_print;
use crate::types::Schema;
use shared_json::{Array, Map, Value};

/// How a list merges.
pub(super) struct ListMerge<'s> {
    /// Merged rather than replaced.
    pub(super) merge: bool,
    /// The merge key of objects; none for lists of scalars.
    pub(super) key: Option<&'s str>,
    /// The type of the items.
    pub(super) items: Option<&'s Schema>,
}

/// Merges `change` into `before`: objects by key, scalars as a set. The patch's items keep the patch's order, the others
/// theirs.
pub(super) fn merge(before: &[Value], change: &[Value], how: &ListMerge<'_>) -> Result<Array, PatchError> {
    check_alike(before, change)?;
    let objects = before.iter().chain(change).next().is_some_and(Value::is_object);
    if !objects {
        let mut merged = Array::with_capacity(before.len() + change.len());
        for item in before.iter().chain(change) {
            if !merged.contains(item) {
                merged.push(item.clone());
            }
        }
        return in_order(merged, change, before, None);
    }
    let Some(key) = how.key else {
        return Err(PatchError::Internal(
            "cannot merge lists without merge key".to_owned(),
        ));
    };
    let (mut merged, plain) = directives(before, change, key)?;
    for item in plain {
        let value = item.get(key).ok_or_else(|| no_key(item, key))?;
        match find(&merged, key, value)? {
            Some(at) => {
                if let Some(Value::Object(target)) = merged.get_mut(at) {
                    map::merge(target, item, how.items)?;
                }
            }
            None => merged.push(Value::Object(item.clone())),
        }
    }
    let patched: Vec<Value> = change
        .iter()
        .filter(|item| item.get(DIRECTIVE).is_none())
        .cloned()
        .collect();
    in_order(merged, &patched, before, Some(key))
}

/// All items of both lists must be of one type, and not lists.
fn check_alike(before: &[Value], change: &[Value]) -> Result<(), PatchError> {
    let types = || before.iter().chain(change).map(std::mem::discriminant);
    if before.iter().chain(change).any(Value::is_array) {
        return Err(PatchError::Internal(
            "lists of lists are not supported".to_owned(),
        ));
    }
    if types().zip(types().skip(1)).all(|(one, next)| one == next) {
        return Ok(());
    }
    let both = Value::from(vec![Value::from(before.to_vec()), Value::from(change.to_vec())]);
    Err(PatchError::Internal(format!(
        "list element types are not identical: {}",
        go_print(&both)
    )))
}

/// Items of a patch.
type Items<'p> = Vec<&'p Map>;

/// Carries out `$patch` in list items: gives the rest of the list, and the items of the patch that are to be merged.
fn directives<'p>(
    before: &[Value],
    change: &'p [Value],
    key: &str,
) -> Result<(Array, Items<'p>), PatchError> {
    let mut left: Array = before.iter().cloned().collect();
    let mut plain = Vec::new();
    let mut replace = false;
    for item in change {
        let Value::Object(item) = item else {
            return Err(PatchError::Internal(format!(
                "expected a map[string]interface {{}}, but received {}",
                go_print(item)
            )));
        };
        match item
            .get(DIRECTIVE)
            .map(|directive| (directive, directive.as_str()))
        {
            None => plain.push(item),
            Some((_, Some("delete"))) => {
                let value = item.get(key).ok_or_else(|| no_key(item, key))?;
                left.retain(|other| other.get(key) != Some(value));
            }
            Some((_, Some("replace"))) => replace = true,
            Some((_, Some("merge"))) => {
                return Err(PatchError::Internal(
                    "merging lists cannot yet be specified in the patch".to_owned(),
                ));
            }
            Some((directive, _)) => return Err(unknown_directive(directive, item)),
        }
    }
    match replace {
        true => Ok((
            plain.into_iter().cloned().map(Value::Object).collect(),
            Vec::new(),
        )),
        false => Ok((left, plain)),
    }
}

fn no_key(item: &Map, key: &str) -> PatchError {
    let item = go_print(&Value::Object(item.clone()));
    PatchError::Internal(format!("map: {item} does not contain declared merge key: {key}"))
}

fn find(items: &[Value], key: &str, value: &Value) -> Result<Option<usize>, PatchError> {
    for (at, item) in items.iter().enumerate() {
        let Value::Object(item) = item else {
            return Err(PatchError::Internal(format!("value for key {at} is not a map")));
        };
        if item.get(key) == Some(value) {
            return Ok(Some(at));
        }
    }
    Ok(None)
}

/// The identity of an item: the value of its key, or the item itself.
fn identity<'v>(item: &'v Value, key: Option<&str>) -> Option<&'v Value> {
    match key {
        Some(key) => item.get(key),
        None => Some(item),
    }
}

fn position(list: &[Value], item: &Value, key: Option<&str>) -> Option<usize> {
    let wanted = identity(item, key)?;
    list.iter().position(|other| identity(other, key) == Some(wanted))
}

/// Sorts a merged list: items of the patch in the patch's order, items only the server knows in the server's order, and the two
/// interleaved so that both orders hold, a patch item that the server did not know going first.
pub(super) fn in_order(
    merged: Array,
    patch_order: &[Value],
    server_order: &[Value],
    key: Option<&str>,
) -> Result<Array, PatchError> {
    if let Some(key) = key
        && let Some(item) = merged
            .iter()
            .filter_map(Value::as_object)
            .find(|item| !item.contains_key(key))
    {
        return Err(no_key(item, key));
    }
    let patch_order: Vec<_> = patch_order.iter().map(|item| identity(item, key)).collect();
    let server_order: Vec<_> = server_order.iter().map(|item| identity(item, key)).collect();
    let place = |order: &[Option<&Value>], item: &Value| {
        let wanted = identity(item, key)?;
        order.iter().position(|other| *other == Some(wanted))
    };
    let (mut patched, mut server_only) = (Vec::new(), Vec::new());
    for item in merged {
        let at = place(&server_order, &item);
        match place(&patch_order, &item) {
            Some(listed) => patched.push((listed, at, item)),
            None => server_only.push((at, item)),
        }
    }
    patched.sort_by_key(|(listed, ..)| *listed);
    server_only.sort_by_key(|(at, _)| *at);
    let mut result = Array::with_capacity(patched.len() + server_only.len());
    let mut server_only = server_only.into_iter().peekable();
    for (_, at, item) in patched {
        // What the server has before it goes first.
        while let (Some(ours), Some((Some(theirs), _))) = (at, server_only.peek())
            && *theirs < ours
        {
            result.extend(server_only.next().map(|(_, item)| item));
        }
        result.push(item);
    }
    result.extend(server_only.map(|(_, item)| item));
    Ok(result)
}

/// The order of the server's list as the real server sees it after a patch. There an item that the patch adds takes the place in
/// memory of one that it deletes, so that as many added items as there are deleted ones count as the server's own last items.
pub(super) fn order_after(before: &[Value], change: Option<&Array>, key: Option<&str>) -> Vec<Value> {
    let deletes = |item: &Value| item.get(DIRECTIVE).and_then(Value::as_str) == Some("delete");
    let change = change.map_or(&[][..], Array::as_slice);
    let deleted: Vec<&Value> = change.iter().filter(|item| deletes(item)).collect();
    let is_deleted = |item: &Value| {
        deleted
            .iter()
            .any(|gone| identity(gone, key) == identity(item, key))
    };
    let mut order: Vec<Value> = before.iter().filter(|item| !is_deleted(item)).cloned().collect();
    let room = before.len() - order.len();
    let added = change
        .iter()
        .filter(|item| item.get(DIRECTIVE).is_none() && position(before, item, key).is_none());
    order.extend(added.take(room).cloned());
    order
}

/// The items of a patch must stand in the order that `$setElementOrder` lists.
pub(super) fn check_order(change: &[Value], order: &[Value], key: Option<&str>) -> Result<(), PatchError> {
    if change.is_empty() || order.is_empty() {
        return Ok(());
    }
    let mut listed = order.iter();
    if let Some(key) = key {
        for item in order.iter().filter_map(Value::as_object) {
            if !item.contains_key(key) {
                return Err(no_key(item, key));
            }
        }
    }
    for item in change.iter().filter(|item| item.get(DIRECTIVE).is_none()) {
        if let (Some(key), Value::Object(map)) = (key, item)
            && !map.contains_key(key)
        {
            return Err(no_key(map, key));
        }
        if !listed.any(|other| identity(other, key) == identity(item, key)) {
            let (change, order) = (Value::from(change.to_vec()), Value::from(order.to_vec()));
            return Err(PatchError::Internal(format!(
                "The order in patch list:\n{}\n doesn't match $setElementOrder list:\n{}\n",
                go_print(&change),
                go_print(&order)
            )));
        }
    }
    Ok(())
}

/// A value that is new to the object: without the parts that carry a `$patch` directive and without nulls in objects. None if
/// the value itself carries a directive.
pub(super) fn without_directives(value: &Value) -> Option<Value> {
    if is_plain(value) {
        return Some(value.clone());
    }
    match value {
        Value::Object(map) if map.contains_key(DIRECTIVE) => None,
        Value::Object(map) => {
            let mut plain = Map::with_capacity(map.len());
            let fields = map.iter().filter(|(_, value)| !value.is_null());
            plain.extend(fields.filter_map(|(name, value)| Some((name.clone(), without_directives(value)?))));
            Some(Value::Object(plain))
        }
        Value::Array(items) => Some(Value::Array(
            items.iter().filter_map(without_directives).collect(),
        )),
        other => Some(other.clone()),
    }
}

/// Whether nothing in a value is a directive, or null in an object.
fn is_plain(value: &Value) -> bool {
    match value {
        Value::Object(map) => map
            .iter()
            .all(|(name, value)| name != DIRECTIVE && !value.is_null() && is_plain(value)),
        Value::Array(items) => items.iter().all(is_plain),
        _ => true,
    }
}
