//! Merges injected containers, volumes and secrets into the lists of a pod.

use std::collections::HashMap;

use serde_json::Value;

use super::selection::Labels;
use crate::pods::build::strings;

/// The name of a container, a volume, a secret.
pub(super) fn name(item: &Value) -> &str {
    item.get("name").and_then(Value::as_str).unwrap_or_default()
}

/// A container to inject, and whether it goes before the pod's own.
pub(super) struct Injected {
    pub(super) container: Value,
    pub(super) before: bool,
}

/// Merges containers into the pod's own: one of a name that is there takes its place, the others go before all or behind all.
pub(super) fn containers(own: &mut Vec<Value>, injected: Vec<Injected>) {
    let mut before = Vec::new();
    // Of two containers of one name the first is replaced.
    let named = own.iter().enumerate().rev();
    let mut places: HashMap<String, usize> = named.map(|(at, same)| (name(same).to_owned(), at)).collect();
    for Injected {
        container,
        before: is_before,
    } in injected
    {
        if let Some(&at) = places.get(name(&container)) {
            own[at] = container;
        } else if is_before {
            before.push(container);
        } else {
            places.insert(name(&container).to_owned(), own.len());
            own.push(container);
        }
    }
    own.splice(0..0, before);
}

/// Appends the items whose name is new.
pub(super) fn by_name(own: &mut Vec<Value>, injected: Vec<Value>) {
    for item in injected {
        if !own.iter().any(|same| name(same) == name(&item)) {
            own.push(item);
        }
    }
}

/// The list at a field, which becomes one if there is none.
pub(super) fn list<'a>(spec: &'a mut Value, field: &str) -> Option<&'a mut Vec<Value>> {
    let list = spec
        .as_object_mut()?
        .entry(field)
        .or_insert_with(|| Value::Array(Vec::new()));
    if list.is_null() {
        *list = Value::Array(Vec::new());
    }
    list.as_array_mut()
}

/// The texts of a map in the pod's metadata.
pub(super) fn texts(pod: &Value, field: &str) -> Labels {
    strings(pod, &format!("/metadata/{field}"))
}
