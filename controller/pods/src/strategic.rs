//! Strategic merge patches of pods: lists whose items have a key are merged item by item.

use serde_json::{Map, Value};

/// The lists of a pod that are merged, and the keys of their items (Kubernetes' struct tags).
const KEYS: [(&str, &str); 15] = [
    ("conditions", "type"),
    ("containers", "name"),
    ("env", "name"),
    ("ephemeralContainers", "name"),
    ("hostAliases", "ip"),
    ("imagePullSecrets", "name"),
    ("initContainers", "name"),
    ("ownerReferences", "uid"),
    ("ports", "containerPort"),
    ("resourceClaims", "name"),
    ("schedulingGates", "name"),
    ("topologySpreadConstraints", "topologyKey"),
    ("volumeDevices", "devicePath"),
    ("volumeMounts", "mountPath"),
    ("volumes", "name"),
];
/// The lists of texts that are merged.
const UNITED: [&str; 1] = ["finalizers"];
/// The directive that deletes or replaces an object, or a list.
const DIRECTIVE: &str = "$patch";
/// The beginning of the directive that takes texts out of a list.
const WITHOUT: &str = "$deleteFromPrimitiveList/";

/// Applies a strategic merge patch to a pod, or to a part of one.
///
/// # Errors
/// The text about an item without a key, and about a directive that is none.
pub fn merge(value: &mut Value, patch: &Value) -> Result<(), String> {
    match patch {
        Value::Object(patch) => {
            if !value.is_object() {
                *value = Value::Object(Map::new());
            }
            let Some(map) = value.as_object_mut() else {
                return Ok(());
            };
            object(map, patch)
        }
        other => {
            *value = other.clone();
            Ok(())
        }
    }
}

fn object(map: &mut Map<String, Value>, patch: &Map<String, Value>) -> Result<(), String> {
    match patch
        .get(DIRECTIVE)
        .map(|directive| directive.as_str().unwrap_or_default())
    {
        None | Some("merge") => {}
        Some("replace") => map.clear(),
        Some("delete") => {
            map.clear();
            return Ok(());
        }
        Some(other) => return Err(format!("unknown patch type: {other}")),
    }
    if let Some(kept) = patch.get("$retainKeys").and_then(Value::as_array) {
        map.retain(|key, _| kept.iter().any(|kept| kept == key.as_str()));
    }
    for (key, change) in patch {
        if let Some(list) = key.strip_prefix(WITHOUT) {
            let gone = change.as_array().map_or(&[][..], Vec::as_slice);
            if let Some(items) = map.get_mut(list).and_then(Value::as_array_mut) {
                items.retain(|item| !gone.contains(item));
            }
            continue;
        }
        if key.starts_with('$') {
            continue;
        }
        match change {
            Value::Null => drop(map.remove(key)),
            Value::Object(_) => {
                let field = map
                    .entry(key.clone())
                    .or_insert_with(|| Value::Object(Map::new()));
                merge(field, change)?;
                let is_deletion = change.get(DIRECTIVE).and_then(Value::as_str) == Some("delete");
                if is_deletion {
                    map.remove(key);
                }
            }
            Value::Array(changes) => {
                let field = map.entry(key.clone()).or_insert_with(|| Value::Array(Vec::new()));
                list(key, field, changes)?;
            }
            other => drop(map.insert(key.clone(), other.clone())),
        }
    }
    Ok(())
}

fn list(name: &str, value: &mut Value, changes: &[Value]) -> Result<(), String> {
    if !value.is_array() {
        *value = Value::Array(Vec::new());
    }
    let Some(items) = value.as_array_mut() else {
        return Ok(());
    };
    if UNITED.contains(&name) {
        for change in changes.iter().filter(|change| change.is_string()) {
            if !items.contains(change) {
                items.push(change.clone());
            }
        }
        return Ok(());
    }
    let Some((_, key)) = KEYS.iter().find(|(list, _)| *list == name) else {
        *items = changes.to_vec();
        return Ok(());
    };
    let directive = |change: &Value| change.get(DIRECTIVE).and_then(Value::as_str).map(str::to_owned);
    if changes
        .iter()
        .any(|change| directive(change).as_deref() == Some("replace"))
    {
        let new = changes.iter().filter(|change| directive(change).is_none());
        *items = new.cloned().collect();
        return Ok(());
    }
    for change in changes {
        let Some(id) = change.get(*key) else {
            return Err(format!(
                "map: {change} does not contain declared merge key: {key}"
            ));
        };
        let at = items.iter().position(|item| item.get(*key) == Some(id));
        match (directive(change).as_deref(), at) {
            (Some("delete"), Some(at)) => drop(items.remove(at)),
            (Some("delete"), None) => {}
            (_, Some(at)) => merge(&mut items[at], change)?,
            (_, None) => {
                let mut item = Value::Object(Map::new());
                merge(&mut item, change)?;
                items.push(item);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case::fields(json!({ "a": 1, "b": { "c": 1 } }), json!({ "a": 2, "b": { "d": 1 } }), json!({ "a": 2, "b": { "c": 1, "d": 1 } }))]
    #[case::null(json!({ "a": 1, "b": 2 }), json!({ "a": null, "c": null }), json!({ "b": 2 }))]
    #[case::new_object(json!({}), json!({ "a": { "b": 1, "c": null } }), json!({ "a": { "b": 1 } }))]
    #[case::by_name(
        json!({ "containers": [{ "name": "x", "image": "1" }, { "name": "y" }] }),
        json!({ "containers": [{ "name": "x", "tty": true }, { "name": "z" }] }),
        json!({ "containers": [{ "name": "x", "image": "1", "tty": true }, { "name": "y" }, { "name": "z" }] })
    )]
    #[case::deleted_item(
        json!({ "env": [{ "name": "A" }, { "name": "B" }] }),
        json!({ "env": [{ "name": "A", "$patch": "delete" }, { "name": "C", "$patch": "delete" }] }),
        json!({ "env": [{ "name": "B" }] })
    )]
    #[case::replaced_list(
        json!({ "env": [{ "name": "A" }] }),
        json!({ "env": [{ "name": "B" }, { "$patch": "replace" }] }),
        json!({ "env": [{ "name": "B" }] })
    )]
    #[case::atomic_list(json!({ "tolerations": [1] }), json!({ "tolerations": [2] }), json!({ "tolerations": [2] }))]
    #[case::finalizers(json!({ "finalizers": ["a"] }), json!({ "finalizers": ["b", "a"] }), json!({ "finalizers": ["a", "b"] }))]
    #[case::without(json!({ "finalizers": ["a", "b"] }), json!({ "$deleteFromPrimitiveList/finalizers": ["a"] }), json!({ "finalizers": ["b"] }))]
    #[case::replaced_object(json!({ "a": { "b": 1 } }), json!({ "a": { "$patch": "replace", "c": 1 } }), json!({ "a": { "c": 1 } }))]
    #[case::deleted_object(json!({ "a": { "b": 1 } }), json!({ "a": { "$patch": "delete" } }), json!({}))]
    #[case::retained(
        json!({ "volumes": [{ "name": "v", "emptyDir": {} }] }),
        json!({ "volumes": [{ "name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": { "path": "/" } }] }),
        json!({ "volumes": [{ "name": "v", "hostPath": { "path": "/" } }] })
    )]
    #[case::another_type(json!({ "a": 1 }), json!({ "a": { "b": 1 } }), json!({ "a": { "b": 1 } }))]
    fn patches(#[case] mut value: Value, #[case] patch: Value, #[case] want: Value) {
        assert_eq!(merge(&mut value, &patch), Ok(()));
        assert_eq!(value, want);
    }

    #[rstest]
    #[case(json!({ "containers": [{ "image": "1" }] }), "does not contain declared merge key: name")]
    #[case(json!({ "$patch": "twist" }), "unknown patch type: twist")]
    fn refusals(#[case] patch: Value, #[case] want: &str) {
        let error = merge(&mut json!({}), &patch).unwrap_err();
        assert!(error.contains(want), "{error}");
    }
}
