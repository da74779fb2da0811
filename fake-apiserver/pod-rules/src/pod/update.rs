//! The allowed changes of a pod.

use shared_json::{Map, Value};

use super::{placement, whole};
use crate::errors::Errors;
use crate::fields::{Fields, NOTHING, same};
use crate::go;
use crate::path::Path;

const UPDATABLE: &str = "pod updates may not change fields other than `spec.containers[*].image`,\
    `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing \
    tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/// A changed pod.
pub fn update(pod: &Value, old: &Value, errors: &mut Errors) {
    whole(pod, errors);
    annotations(pod, old, errors);
    let path = Path::new("spec");
    let (new, old) = (
        pod.part("spec").unwrap_or(&NOTHING),
        old.part("spec").unwrap_or(&NOTHING),
    );
    for field in ["containers", "initContainers"] {
        let at = path.field(field);
        let (list, before) = (new.list(field), old.list(field));
        if list.len() != before.len() {
            return errors.forbidden(&at, "pod updates may not add or remove containers");
        }
        for (index, container) in list.iter().enumerate() {
            let at = at.index(index);
            if container.text("image").is_empty() {
                errors.required(&at.field("image"), "");
            }
            super::containers::trimmed_image(container, &at, errors);
        }
    }
    let at = path.field("activeDeadlineSeconds");
    match (new.int("activeDeadlineSeconds"), old.int("activeDeadlineSeconds")) {
        (Some(seconds), _) if !(0..=i64::from(i32::MAX)).contains(&seconds) => {
            return errors.in_range(&at, seconds, 0, i64::from(i32::MAX));
        }
        (Some(seconds), Some(before)) if before < seconds => {
            return errors.invalid(&at, seconds, "must be less than or equal to previous value");
        }
        (None, Some(_)) => {
            let detail = "must not update from a positive integer to nil value";
            errors.invalid(&at, Value::Null, detail);
        }
        _ => {}
    }
    added_tolerations(new, old, &path.field("tolerations"), errors);
    deleted_gates(new, old, &path.field("schedulingGates"), errors);
    if same(Some(new), Some(old)) {
        return;
    }
    let mut munged = new.clone();
    forgive(&mut munged, new, old, &path, errors);
    if !same(Some(&munged), Some(old)) {
        errors.forbidden(
            &path,
            &format!("{UPDATABLE}\n{}", go::difference("core.PodSpec", old, &munged)),
        );
    }
}

/// Undoes the allowed changes in `munged`, and complains where an update changes too much of them.
fn forgive(munged: &mut Value, new: &Value, old: &Value, path: &Path<'_>, errors: &mut Errors) {
    let Some(map) = munged.as_object_mut() else { return };
    for field in ["containers", "initContainers"] {
        let list = map.get_mut(field).and_then(Value::as_array_mut);
        for (container, before) in list.into_iter().flatten().zip(old.list(field)) {
            restore(container, before, "image");
        }
    }
    for field in ["activeDeadlineSeconds", "schedulingGates", "tolerations"] {
        put(map, field, old.part(field));
    }
    let negative = old
        .int("terminationGracePeriodSeconds")
        .is_some_and(|grace| grace < 0);
    if negative && new.int("terminationGracePeriodSeconds") == Some(1) {
        put(
            map,
            "terminationGracePeriodSeconds",
            old.part("terminationGracePeriodSeconds"),
        );
    }
    if old.list("schedulingGates").is_empty() {
        return;
    }
    // What waits at a gate may still be narrowed.
    if !same(new.part("nodeSelector"), old.part("nodeSelector")) {
        let kept = old
            .map("nodeSelector")
            .iter()
            .all(|(key, value)| new.map("nodeSelector").get(key) == Some(value));
        if !kept {
            let detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
            let value = new.part("nodeSelector").cloned().unwrap_or_default();
            errors.invalid(&path.field("nodeSelector"), value, detail);
        }
        put(map, "nodeSelector", old.part("nodeSelector"));
    }
    let nodes = |spec: &Value| -> Option<Value> {
        spec.part("affinity")
            .and_then(|affinity| affinity.part("nodeAffinity"))
            .cloned()
    };
    let (new_nodes, old_nodes) = (nodes(new), nodes(old));
    if !same(new_nodes.as_ref(), old_nodes.as_ref()) {
        node_affinity(new_nodes.as_ref(), old_nodes.as_ref(), path, errors);
        let mut affinity = map.get("affinity").cloned().unwrap_or_default();
        if !affinity.is_object() {
            affinity = Value::Object(Map::new());
        }
        if let Some(affinity) = affinity.as_object_mut() {
            put(affinity, "nodeAffinity", old_nodes.as_ref());
        }
        let empty = affinity.as_object().is_some_and(Map::is_empty);
        put(map, "affinity", Some(&affinity).filter(|_| !empty));
    }
}

fn put(map: &mut Map, field: &str, value: Option<&Value>) {
    match value {
        Some(value) => map.insert(field.to_owned(), value.clone()),
        None => map.remove(field),
    };
}

fn restore(container: &mut Value, before: &Value, field: &str) {
    if let Some(container) = container.as_object_mut() {
        put(container, field, before.part(field));
    }
}

fn node_affinity(new: Option<&Value>, old: Option<&Value>, path: &Path<'_>, errors: &mut Errors) {
    const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
    let terms = |nodes: Option<&Value>| -> Vec<Value> {
        nodes
            .and_then(|nodes| nodes.part(REQUIRED))
            .map(|selector| selector.list("nodeSelectorTerms").to_vec())
            .unwrap_or_default()
    };
    let (new, old) = (terms(new), terms(old));
    let at = path.field("affinity.nodeAffinity");
    let at = at.field(REQUIRED);
    let at = at.field("nodeSelectorTerms");
    if !old.is_empty() && old.len() != new.len() {
        let detail = "no additions/deletions to non-empty NodeSelectorTerms list are allowed";
        let shown = if new.is_empty() {
            "null".to_owned()
        } else {
            go::list_text("core.NodeSelectorTerm", &new)
        };
        return errors.invalid_shown(&at, shown, detail);
    }
    for (index, (term, before)) in new.iter().zip(&old).enumerate() {
        let begins = |field: &str| term.list(field).starts_with(before.list(field));
        let was_empty = before.list("matchExpressions").is_empty() && before.list("matchFields").is_empty();
        let is_empty = term.list("matchExpressions").is_empty() && term.list("matchFields").is_empty();
        if !begins("matchExpressions") || !begins("matchFields") || (was_empty && !is_empty) {
            let shown = go::text("core.NodeSelectorTerm", Some(term));
            let detail = "only additions are allowed (no mutations or deletions)";
            errors.invalid_shown(&at.index(index), shown, detail);
        }
    }
}

fn added_tolerations(new: &Value, old: &Value, path: &Path<'_>, errors: &mut Errors) {
    let without_seconds = |toleration: &Value| {
        let mut toleration = toleration.clone();
        if let Some(map) = toleration.as_object_mut() {
            map.remove("tolerationSeconds");
        }
        toleration
    };
    let list = new.list("tolerations");
    if list == old.list("tolerations") {
        return placement::tolerations(list, path, errors);
    }
    let present: Vec<Value> = list.iter().map(without_seconds).collect();
    for toleration in old.list("tolerations") {
        if !present.contains(&without_seconds(toleration)) {
            let detail = "existing toleration can not be modified except its tolerationSeconds";
            return errors.forbidden(path, detail);
        }
    }
    placement::tolerations(list, path, errors);
}

fn deleted_gates(new: &Value, old: &Value, path: &Path<'_>, errors: &mut Errors) {
    for (index, gate) in new.list("schedulingGates").iter().enumerate() {
        let name = gate.text("name");
        let known = old
            .list("schedulingGates")
            .iter()
            .any(|gate| gate.text("name") == name);
        if !known {
            let detail = format!("only deletion is allowed, but found new scheduling gate '{name}'");
            errors.forbidden(&path.index(index).field("name"), &detail);
        }
    }
}

const MIRROR: &str = "kubernetes.io/config.mirror";
const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";

/// Some annotations stay as they were born.
pub(super) fn annotations(pod: &Value, old: &Value, errors: &mut Errors) {
    let of = |pod: &Value| -> Map {
        pod.part("metadata")
            .map(|meta| meta.map("annotations").clone())
            .unwrap_or_default()
    };
    let (new, old) = (of(pod), of(old));
    let path = Path::new("metadata.annotations");
    for (key, value) in &old {
        if new.get(key) == Some(value) {
            continue;
        }
        if key.starts_with(APP_ARMOR) {
            errors.forbidden(&path.key(key), "may not remove or update AppArmor annotations");
        }
        if key == MIRROR {
            errors.forbidden(&path.key(key), "may not remove or update mirror pod annotation");
        }
    }
    for key in new.keys().filter(|key| !old.contains_key(*key)) {
        if key.starts_with(APP_ARMOR) {
            errors.forbidden(&path.key(key), "may not add AppArmor annotations");
        }
        if key == MIRROR {
            errors.forbidden(&path.key(key), "may not add mirror pod annotation");
        }
    }
}

fn is_mirror(pod: &Value) -> bool {
    pod.part("metadata")
        .is_some_and(|meta| meta.map("annotations").has(MIRROR))
}

/// A change of the containers for debugging: they are only added.
pub fn ephemeral_containers(pod: &Value, old: &Value, errors: &mut Errors) {
    whole(pod, errors);
    annotations(pod, old, errors);
    if is_mirror(old) {
        *errors = Errors::default();
        return errors.forbidden(&Path::new(""), "static pods do not support ephemeral containers");
    }
    let path = Path::new("spec.ephemeralContainers");
    let of = |pod: &Value| -> Vec<Value> {
        pod.part("spec")
            .map(|spec| spec.list("ephemeralContainers").to_vec())
            .unwrap_or_default()
    };
    let new = of(pod);
    for before in of(old) {
        let name = before.text("name");
        match new.iter().find(|container| container.text("name") == name) {
            None => {
                let detail = format!("existing ephemeral containers \"{name}\" may not be removed\n");
                errors.forbidden(&path, &detail);
            }
            Some(container) if !same(Some(container), Some(&before)) => {
                let detail = format!(
                    "existing ephemeral containers \"{name}\" may not be changed\n{}",
                    go::difference("core.EphemeralContainer", &before, container)
                );
                errors.forbidden(&path, &detail);
            }
            Some(_) => {}
        }
    }
}

/// A change of containers' requests and limits.
pub fn resize(pod: &Value, old: &Value, classes: (&str, &str), errors: &mut Errors) {
    whole(pod, errors);
    let path = Path::new("spec");
    let mut only = |detail: &str| {
        *errors = Errors::default();
        errors.forbidden(&Path::new(""), detail);
    };
    if is_mirror(old) {
        return only("static pods cannot be resized");
    }
    let (new_spec, old_spec) = (
        pod.part("spec").unwrap_or(&NOTHING),
        old.part("spec").unwrap_or(&NOTHING),
    );
    if old_spec.part("os").is_some_and(|os| os.text("name") == "windows") {
        return only("windows pods cannot be resized");
    }
    let (new_class, old_class) = classes;
    if new_class != old_class {
        let shown = pod
            .part("status")
            .map(|status| status.text("qosClass"))
            .unwrap_or_default();
        errors.invalid(
            &path,
            shown,
            "Pod QOS Class may not change as a result of resizing",
        );
    }
    let status = old.part("status").unwrap_or(&NOTHING);
    let running = status
        .list("containerStatuses")
        .iter()
        .find(|status| status.part("state").is_some_and(|state| state.has("running")));
    if running.is_some_and(|status| !status.has("resources")) {
        errors.forbidden(&path, "Pod running on node without support for resize");
    }
    let mut munged = new_spec.clone();
    resize_whole(&mut munged, new_spec, old_spec, errors);
    let found = errors.len();
    for (field, changed, renamed) in [
        (
            "containers",
            "containers may not be added or removed on resize",
            "containers may not be renamed or reordered on resize",
        ),
        (
            "initContainers",
            "initContainers may not be added or removed on resize",
            "initContainers may not be renamed or reordered on resize",
        ),
    ] {
        let at = path.field(field);
        let (new, old) = (new_spec.list(field), old_spec.list(field));
        if new.len() != old.len() {
            errors.forbidden(&at, changed);
            continue;
        }
        for (index, (container, before)) in new.iter().zip(old).enumerate() {
            if container.text("name") != before.text("name") {
                errors.forbidden(&at.index(index).field("name"), renamed);
            }
        }
    }
    if errors.len() > found {
        return;
    }
    for field in ["initContainers", "containers"] {
        let at = path.field(field);
        for (index, (container, before)) in new_spec.list(field).iter().zip(old_spec.list(field)).enumerate()
        {
            let at = at.index(index);
            let (new, old) = (
                container.part("resources").unwrap_or(&NOTHING),
                before.part("resources").unwrap_or(&NOTHING),
            );
            for (part, detail) in [
                ("requests", "resource requests cannot be removed"),
                ("limits", "resource limits cannot be removed"),
            ] {
                if old.map(part).keys().any(|name| !new.map(part).contains_key(name)) {
                    errors.forbidden(&at.field("resources").field(part), detail);
                }
            }
        }
    }
    const ONLY: &str = "only cpu and memory resources are mutable";
    for field in ["containers", "initContainers"] {
        let at = path.field(field);
        let list = munged.get_mut(field).and_then(Value::as_array_mut);
        for (index, (container, before)) in list.into_iter().flatten().zip(old_spec.list(field)).enumerate() {
            let starts_once = field == "initContainers" && container.text("restartPolicy") != "Always";
            let changed = !same(Some(container), Some(before));
            restore_amounts(container, before);
            // Which claims a container takes part in is not compared.
            if let Some(resources) = container.get_mut("resources").and_then(Value::as_object_mut) {
                resources.remove("claims");
            }
            if !same(Some(container), Some(before)) {
                if field == "containers" {
                    errors.forbidden(&path, ONLY);
                } else {
                    let detail = "only cpu and memory resources for init or sidecar containers are mutable";
                    errors.forbidden(&at.index(index), detail);
                }
            }
            let policies = container.list("resizePolicy").iter();
            for _ in policies
                .filter(|policy| changed && starts_once && policy.text("restartPolicy") == "RestartContainer")
            {
                let detail =
                    "non-sidecar init containers with a resize policy of RestartContainer cannot be resized";
                errors.forbidden(&at.index(index), detail);
            }
        }
    }
    if errors.is_empty() && !same(Some(&munged), Some(old_spec)) {
        errors.forbidden(&path, ONLY);
    }
}

/// The resources of a pod as a whole: processors and memory may change, and no resource may be removed. The changes are
/// undone in `munged`.
fn resize_whole(munged: &mut Value, new: &Value, old: &Value, errors: &mut Errors) {
    let is_set = |spec: &Value| {
        let resources = spec.part("resources").unwrap_or(&NOTHING);
        !resources.map("requests").is_empty() || !resources.map("limits").is_empty()
    };
    if !is_set(old) && !is_set(new) {
        return;
    }
    let path = Path::new("spec");
    let at = path.field("resources");
    if old.has("resources") && !new.has("resources") {
        return errors.forbidden(&at, "pod-level resources cannot be removed");
    }
    let (before, after) = (
        old.part("resources").unwrap_or(&NOTHING),
        new.part("resources").unwrap_or(&NOTHING),
    );
    for (part, detail) in [
        ("requests", "pod-level resource requests cannot be removed"),
        ("limits", "pod-level resource limits cannot be removed"),
    ] {
        if before
            .map(part)
            .keys()
            .any(|name| !after.map(part).contains_key(name))
        {
            errors.forbidden(&at.field(part), detail);
        }
    }
    restore_amounts(munged, old);
    let is_bare = munged
        .part("resources")
        .is_none_or(|resources| resources.map("requests").is_empty() && resources.map("limits").is_empty());
    if is_bare
        && !old.has("resources")
        && let Some(munged) = munged.as_object_mut()
    {
        munged.remove("resources");
    }
    if !same(munged.get("resources"), old.get("resources")) {
        errors.forbidden(&path, "only cpu and memory resources are mutable at pod-level");
    }
}

/// Undoes the changes that a resize may make to a container, or to a pod as a whole.
fn restore_amounts(container: &mut Value, before: &Value) {
    let old = before.part("resources").cloned().unwrap_or_default();
    let Some(container) = container.as_object_mut() else {
        return;
    };
    let resources = container
        .entry("resources")
        .or_insert_with(|| Value::Object(Map::new()));
    let Some(resources) = resources.as_object_mut() else {
        return;
    };
    for part in ["requests", "limits"] {
        let mut amounts = resources
            .get(part)
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default();
        for name in ["cpu", "memory"] {
            put(&mut amounts, name, old.map(part).get(name));
        }
        put(
            resources,
            part,
            Some(&Value::Object(amounts.clone())).filter(|_| !amounts.is_empty()),
        );
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use shared_json::json;

    use super::*;

    fn container(name: &str, image: &str) -> Value {
        json!({"name": name, "image": image, "imagePullPolicy": "Always", "terminationMessagePolicy": "File"})
    }

    fn pod(fields: Value) -> Value {
        let mut spec = json!({
            "containers": [container("a", "x")], "terminationGracePeriodSeconds": 30, "restartPolicy": "Always",
            "dnsPolicy": "ClusterFirst",
        });
        for (key, value) in fields.as_object().into_iter().flatten() {
            spec[key] = value.clone();
        }
        json!({"metadata": {"name": "p"}, "spec": spec})
    }

    #[rstest]
    #[case(json!({"containers": [container("a", "y")]}), 0)]
    #[case(json!({"containers": [container("a", "")]}), 2)]
    #[case(json!({"containers": [container("b", "x")]}), 1)]
    #[case(json!({"nodeName": "n"}), 1)]
    #[case(json!({"activeDeadlineSeconds": 5}), 0)]
    #[case(json!({"containers": []}), 2)]
    #[case(json!({"tolerations": [{"key": "a", "operator": "Exists"}]}), 0)]
    fn what_may_change(#[case] fields: Value, #[case] expected: usize) {
        let mut errors = Errors::default();
        update(&pod(fields), &pod(json!({})), &mut errors);
        let errors = errors.into_vec();
        assert_eq!(errors.len(), expected, "{errors:?}");
    }
}
