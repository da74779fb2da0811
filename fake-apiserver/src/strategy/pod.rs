//! Pods: their phase and QoS class at birth, what may change later, and how they end.

use serde_json::{Map, Value, json};

use super::{Deletion, Strategy, copy_field, pod_spec};
use crate::field_error::FieldError;
use crate::meta::{ObjectMeta, at};

pub(super) struct PodStrategy;

impl Strategy for PodStrategy {
    fn has_generation(&self) -> bool {
        true
    }

    fn returns_deleted_object(&self) -> bool {
        true
    }

    fn prepare_create(&self, object: &mut Value) {
        let mut status = json!({"phase": "Pending", "qosClass": qos_class(object)});
        let gated = at(object, "spec.schedulingGates")
            .and_then(Value::as_array)
            .is_some_and(|gates| !gates.is_empty());
        if gated {
            status["conditions"] = json!([{
                "type": "PodScheduled",
                "status": "False",
                "lastProbeTime": null,
                "lastTransitionTime": null,
                "reason": "SchedulingGated",
                "message": "Scheduling is blocked due to non-empty scheduling gates",
            }]);
        }
        object["status"] = status;
    }

    fn prepare_status_update(&self, object: &mut Value, old: &Value) {
        copy_field(object, old, "spec");
        for field in [
            "ownerReferences",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
        ] {
            object.copy_meta(old, field);
        }
        if let (Some(status), Some(class)) = (
            object.get_mut("status").and_then(Value::as_object_mut),
            at(old, "status.qosClass"),
        ) {
            status.entry("qosClass").or_insert_with(|| class.clone());
        }
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = pod_spec::validate(object, "spec");
        if at(object, "spec.ephemeralContainers")
            .and_then(Value::as_array)
            .is_some_and(|list| !list.is_empty())
        {
            errors.push(FieldError::forbidden(
                "spec.ephemeralContainers",
                "cannot be set on create",
            ));
        }
        errors
    }

    fn warnings(&self, object: &Value) -> Vec<String> {
        pod_spec::warnings(object, "spec")
    }

    fn validate_update(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        validate_spec_update(object, old)
    }

    fn changes_generation(&self, object: &Value, old: &Value) -> bool {
        // Being assigned to a node is no change of what was asked for.
        let asked = |object: &Value| {
            let mut spec = object.get("spec").cloned().unwrap_or_default();
            spec.as_object_mut().map(|spec| spec.remove("nodeName"));
            spec
        };
        asked(object) != asked(old)
    }

    fn deletion(&self, object: &Value, grace_seconds: Option<i64>) -> Deletion {
        let default = at(object, "spec.terminationGracePeriodSeconds")
            .and_then(Value::as_i64)
            .unwrap_or(30);
        let seconds = match grace_seconds {
            // The kubelet was never told of a pod without a node, and has nothing to end in one that has ended.
            _ if at(object, "spec.nodeName")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .is_empty() =>
            {
                0
            }
            _ if matches!(
                at(object, "status.phase").and_then(Value::as_str),
                Some("Succeeded" | "Failed")
            ) =>
            {
                0
            }
            Some(seconds) => seconds.max(0),
            None if default < 0 => 1,
            None => default,
        };
        if seconds == 0 {
            Deletion::Immediate
        } else {
            Deletion::Graceful { seconds }
        }
    }
}

/// `Guaranteed`, `Burstable` or `BestEffort`, by the containers' cpu and memory.
fn qos_class(pod: &Value) -> &'static str {
    let containers = ["spec.containers", "spec.initContainers"]
        .iter()
        .filter_map(|path| at(pod, path).and_then(Value::as_array))
        .flatten();
    let (mut any, mut guaranteed) = (false, true);
    for container in containers {
        for resource in ["cpu", "memory"] {
            let get = |part: &str| {
                at(container, &format!("resources.{part}"))
                    .and_then(|list| list.get(resource))
                    .filter(|quantity| !matches!(quantity.as_str(), Some("0")))
            };
            let (request, limit) = (get("requests"), get("limits"));
            any |= request.is_some() || limit.is_some();
            guaranteed &= limit.is_some() && (request.is_none() || request == limit);
        }
    }
    match (any, guaranteed) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

/// Fields of a pod's spec that an update may change, besides images.
const MUTABLE: [&str; 3] = [
    "activeDeadlineSeconds",
    "terminationGracePeriodSeconds",
    "tolerations",
];

/// The refusal that every update of another field gets.
const IMMUTABLE: &str = "pod updates may not change fields other than `spec.containers[*].image`,\
    `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing \
    tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

fn without_mutable(spec: &Value) -> Value {
    let mut spec = spec.clone();
    let Some(map) = spec.as_object_mut() else {
        return spec;
    };
    for field in MUTABLE {
        map.remove(field);
    }
    for list in ["containers", "initContainers"] {
        let Some(containers) = map.get_mut(list).and_then(Value::as_array_mut) else {
            continue;
        };
        for container in containers {
            if let Some(container) = container.as_object_mut() {
                container.remove("image");
            }
        }
    }
    // A gate may be taken away, and what was gated may be narrowed; that is left to the schema.
    map.remove("schedulingGates");
    spec
}

fn validate_spec_update(object: &Value, old: &Value) -> Vec<FieldError> {
    static EMPTY: Value = Value::Null;
    let (new_spec, old_spec) = (
        object.get("spec").unwrap_or(&EMPTY),
        old.get("spec").unwrap_or(&EMPTY),
    );
    let mut errors = Vec::new();
    for (list, at_path) in [
        ("containers", "spec.containers"),
        ("initContainers", "spec.initContainers"),
    ] {
        let containers = new_spec
            .get(list)
            .and_then(Value::as_array)
            .map(Vec::as_slice)
            .unwrap_or_default();
        for (index, container) in containers.iter().enumerate() {
            if container
                .get("image")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .is_empty()
            {
                errors.push(FieldError::required(format!("{at_path}[{index}].image"), ""));
            }
        }
    }
    let (new_rest, old_rest) = (without_mutable(new_spec), without_mutable(old_spec));
    if new_rest != old_rest {
        errors.push(FieldError::forbidden(
            "spec",
            format!("{IMMUTABLE}\n{}", difference(&old_rest, &new_rest)),
        ));
    }
    errors
}

/// What differs, by field: Kubernetes appends a dump of the two structs in Go's notation here.
fn difference(old: &Value, new: &Value) -> String {
    let none = Map::new();
    let (old, new) = (old.as_object().unwrap_or(&none), new.as_object().unwrap_or(&none));
    let mut fields: Vec<&String> = old
        .keys()
        .chain(new.keys())
        .filter(|key| old.get(*key) != new.get(*key))
        .collect();
    fields.sort();
    fields.dedup();
    let lines: Vec<String> = fields
        .into_iter()
        .map(|key| {
            let text = |value: Option<&Value>| value.map_or_else(|| "nothing".to_owned(), Value::to_string);
            format!("  {key}: {} -> {}", text(old.get(key)), text(new.get(key)))
        })
        .collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(json!([{}]), "BestEffort")]
    #[case(json!([{"resources": {"requests": {"cpu": "1"}}}]), "Burstable")]
    #[case(json!([{"resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}]), "Guaranteed")]
    #[case(json!([{"resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}, {}]), "Burstable")]
    fn classes(#[case] containers: Value, #[case] expected: &str) {
        assert_eq!(qos_class(&json!({"spec": {"containers": containers}})), expected);
    }

    #[rstest]
    #[case(json!({"containers": [{"name": "a", "image": "y"}]}), 0)]
    #[case(json!({"containers": [{"name": "a", "image": ""}]}), 1)]
    #[case(json!({"containers": [{"name": "b", "image": "x"}]}), 1)]
    #[case(json!({"containers": [{"name": "a", "image": "x"}], "nodeName": "n"}), 1)]
    #[case(json!({"containers": [{"name": "a", "image": "x"}], "activeDeadlineSeconds": 5}), 0)]
    fn what_may_change(#[case] spec: Value, #[case] errors: usize) {
        let old = json!({"spec": {"containers": [{"name": "a", "image": "x"}]}});
        assert_eq!(validate_spec_update(&json!({"spec": spec}), &old).len(), errors);
    }

    #[rstest]
    #[case(json!({}), None, Deletion::Immediate)]
    #[case(json!({"nodeName": "n"}), None, Deletion::Graceful { seconds: 30 })]
    #[case(json!({"nodeName": "n", "terminationGracePeriodSeconds": 5}), None, Deletion::Graceful { seconds: 5 })]
    #[case(json!({"nodeName": "n"}), Some(0), Deletion::Immediate)]
    fn grace(#[case] spec: Value, #[case] asked: Option<i64>, #[case] expected: Deletion) {
        assert_eq!(PodStrategy.deletion(&json!({"spec": spec}), asked), expected);
    }
}
