//! Pods: their phase and QoS class at creation, the fields that may change later, and their end.

use machinery::meta::{ObjectMeta, at};
use machinery::placement::qos_class;
use shared_json::{Array, Value, json};

use super::generic::reset_metadata;
use super::{Deletion, Strategy, app_armor, copy_field, own_labels};

pub(super) struct PodStrategy;

impl Strategy for PodStrategy {
    fn has_generation(&self) -> bool {
        true
    }

    fn ends_gracefully(&self) -> bool {
        true
    }

    fn returns_deleted_object(&self) -> bool {
        true
    }

    fn normalize(&self, object: &mut Value) {
        if let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) {
            super::one_and_list(status, "podIP", "podIPs", |ip| json!({"ip": ip}));
        }
    }

    fn prepare_update(&self, object: &mut Value, old: &Value) {
        copy_field(object, old, "status");
        // The plugin that sets these for a new pod puts them back.
        let (Some(spec), Some(before)) = (
            object.get_mut("spec").and_then(Value::as_object_mut),
            old.get("spec"),
        ) else {
            return;
        };
        for field in ["priority", "preemptionPolicy"] {
            if let Some(value) = before.get(field) {
                spec.entry(field).or_insert_with(|| value.clone());
            }
        }
    }

    fn prepare_create(&self, object: &mut Value) {
        own_labels::apply(object);
        app_armor::apply(object);
        let now = object.meta_str("creationTimestamp").to_owned();
        // A class that was sent is believed.
        let said = at(object, "status.qosClass").and_then(Value::as_str);
        let class = said
            .filter(|class| !class.is_empty())
            .unwrap_or_else(|| qos_class(object));
        let mut status = json!({"phase": "Pending", "qosClass": class});
        let gated = at(object, "spec.schedulingGates")
            .and_then(Value::as_array)
            .is_some_and(|gates| !gates.is_empty());
        if gated {
            status["conditions"] = json!([{
                "type": "PodScheduled",
                "status": "False",
                "lastProbeTime": null,
                "lastTransitionTime": now,
                "reason": "SchedulingGated",
                "message": "Scheduling is blocked due to non-empty scheduling gates",
            }]);
        }
        object["status"] = status;
    }

    fn prepare_status_update(&self, object: &mut Value, old: &Value) {
        copy_field(object, old, "spec");
        for field in ["ownerReferences", "deletionTimestamp"] {
            object.copy_meta(old, field);
        }
        if let (Some(status), Some(class)) = (
            object.get_mut("status").and_then(Value::as_object_mut),
            at(old, "status.qosClass"),
        ) {
            status.entry("qosClass").or_insert_with(|| class.clone());
        }
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
            Some(seconds) if seconds < 0 => 1,
            Some(seconds) => seconds,
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

const LISTS: [&str; 2] = ["containers", "initContainers"];

fn containers<'a>(pod: &'a Value, list: &str) -> &'a [Value] {
    let found = pod.get("spec").and_then(|spec| spec.get(list)?.as_array());
    found.map_or(&[], Array::as_slice)
}

/// Of a pod that was sent to one of its parts, only that part is taken.
pub fn keep_all_but(part: &str, object: &mut Value, old: &Value) {
    let mut kept = old.clone();
    if let Some(metadata) = object.get("metadata") {
        kept["metadata"] = metadata.clone();
    }
    reset_metadata(&mut kept, old);
    if part == "ephemeralcontainers" {
        match at(object, "spec.ephemeralContainers") {
            Some(list) => kept["spec"]["ephemeralContainers"] = list.clone(),
            None => {
                let spec = kept.get_mut("spec").and_then(Value::as_object_mut);
                spec.map(|spec| spec.remove("ephemeralContainers"));
            }
        }
    } else {
        // Containers that come, go or change their places are left to the validation.
        let length = |pod: &Value, list: &str| containers(pod, list).len();
        if LISTS.iter().any(|list| length(object, list) != length(old, list)) {
            return;
        }
        for list in LISTS {
            let sent = containers(object, list);
            let same_names = sent
                .iter()
                .zip(containers(old, list))
                .all(|(one, other)| one.get("name") == other.get("name"));
            let Some(present) = kept
                .pointer_mut(&format!("/spec/{list}"))
                .and_then(Value::as_array_mut)
            else {
                continue;
            };
            if !same_names {
                *present = sent.iter().cloned().collect();
                continue;
            }
            for (container, other) in present.iter_mut().zip(sent) {
                copy_field(container, other, "resources");
                copy_field(container, other, "resizePolicy");
            }
        }
        if let (Some(sent), Some(kept)) = (object.get("spec"), kept.get_mut("spec")) {
            copy_field(kept, sent, "resources");
        }
    }
    *object = kept;
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(json!({}), None, Deletion::Immediate)]
    #[case(json!({"nodeName": "n"}), None, Deletion::Graceful { seconds: 30 })]
    #[case(json!({"nodeName": "n", "terminationGracePeriodSeconds": 5}), None, Deletion::Graceful { seconds: 5 })]
    #[case(json!({"nodeName": "n"}), Some(0), Deletion::Immediate)]
    fn grace(#[case] spec: Value, #[case] asked: Option<i64>, #[case] expected: Deletion) {
        assert_eq!(PodStrategy.deletion(&json!({"spec": spec}), asked), expected);
    }
}
