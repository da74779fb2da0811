//! The scopes of a quota: whether an object falls under them.

use shared_json::{Value, json};

use crate::meta::at;
use crate::placement::qos_class;

/// Whether the quota is about objects like this one.
pub fn in_scope(quota: &Value, group: &str, plural: &str, object: &Value) -> bool {
    let listed = |path: &str| {
        at(quota, path)
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default()
    };
    let mut selectors = listed("spec.scopeSelector.matchExpressions");
    selectors.extend(
        listed("spec.scopes")
            .into_iter()
            .map(|scope| json!({"scopeName": scope, "operator": "Exists"})),
    );
    if selectors.is_empty() {
        return true;
    }
    selectors.iter().all(|selector| match (group, plural) {
        ("", "pods") => pod_is_in(selector, object),
        ("", "persistentvolumeclaims") => claim_is_in(selector, object),
        _ => false,
    })
}

/// Whether a pod ends by itself after some time.
pub fn ends(pod: &Value) -> bool {
    let deadline = at(pod, "spec.activeDeadlineSeconds").and_then(Value::as_i64);
    deadline.is_some_and(|seconds| seconds >= 0)
}

fn scope_name(selector: &Value) -> &str {
    selector
        .get("scopeName")
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// Whether one of the classes is among those that a scope asks for.
fn class_is_in(selector: &Value, classes: &[&str]) -> bool {
    let listed = selector.get("values").and_then(Value::as_array);
    let is_listed = |class: &&str| listed.is_some_and(|list| list.iter().any(|listed| listed == *class));
    match selector
        .get("operator")
        .and_then(Value::as_str)
        .unwrap_or_default()
    {
        "In" => classes.iter().any(is_listed),
        "NotIn" => classes.is_empty() || !classes.iter().all(is_listed),
        "DoesNotExist" => classes.is_empty(),
        _ => !classes.is_empty(),
    }
}

fn claim_is_in(selector: &Value, claim: &Value) -> bool {
    let classes: Vec<&str> = [
        "spec.volumeAttributesClassName",
        "status.currentVolumeAttributesClassName",
        "status.modifyVolumeStatus.targetVolumeAttributesClassName",
    ]
    .into_iter()
    .filter_map(|path| at(claim, path)?.as_str())
    .filter(|class| !class.is_empty())
    .collect();
    scope_name(selector) == "VolumeAttributesClass" && class_is_in(selector, &classes)
}

fn pod_is_in(selector: &Value, pod: &Value) -> bool {
    match scope_name(selector) {
        "Terminating" => ends(pod),
        "NotTerminating" => !ends(pod),
        "BestEffort" => qos_class(pod) == "BestEffort",
        "NotBestEffort" => qos_class(pod) != "BestEffort",
        "PriorityClass" => {
            let class = at(pod, "spec.priorityClassName").and_then(Value::as_str);
            let class = class.filter(|class| !class.is_empty());
            class_is_in(selector, class.as_slice())
        }
        "CrossNamespacePodAffinity" => crosses(at(pod, "spec.affinity")),
        _ => false,
    }
}

/// Whether any term of an affinity looks into other namespaces.
fn crosses(affinity: Option<&Value>) -> bool {
    match affinity {
        Some(Value::Object(map)) => {
            let named = map
                .get("namespaces")
                .and_then(Value::as_array)
                .is_some_and(|list| !list.is_empty());
            named || map.contains_key("namespaceSelector") || map.values().any(|part| crosses(Some(part)))
        }
        Some(Value::Array(list)) => list.iter().any(|part| crosses(Some(part))),
        _ => false,
    }
}
