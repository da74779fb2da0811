//! The cells of tables, as the real server's printers fill them.
//!
//! One file per family of kinds; `fields` reads the object, `age` writes times, `json_path` is for custom resources.

mod age;
mod core;
mod fields;
mod json_path;
mod named_groups;
mod pod;
mod selector;
mod storage;
mod workloads;

use jiff::Timestamp;
use shared_json::Value;

use crate::resources::{Column, ColumnSource, Resource};
use fields::Fields;
pub(crate) use selector::label_selector_text;

pub(super) const UNKNOWN: &str = "<unknown>";
pub(super) const NONE: &str = "<none>";
pub(super) const UNSET: &str = "<unset>";

/// The cell of `object`, which is in its stored version if it is of a built-in type.
pub(super) fn cell(resource: &Resource, column: &Column, object: &Value, now: Timestamp) -> Value {
    match &column.source {
        ColumnSource::Builtin => builtin(&resource.kind, &column.name, Fields { object, now }),
        ColumnSource::JsonPath(path) => json_path::cell(object, path, &column.kind, now),
    }
}

/// The cells of a `Scale`: name, replicas wanted and there, age.
pub(super) fn of_scale(scale: &Value, now: Timestamp, is_custom: bool) -> [Value; 4] {
    let number =
        |pointer: &str| Value::from(scale.pointer(pointer).and_then(Value::as_i64).unwrap_or_default());
    let object = Fields { object: scale, now };
    [
        Value::from(object.text("metadata.name")),
        // No replicas are wanted by a field that is left out, which the table of a custom resource does not read.
        match scale.pointer("/spec/replicas") {
            None if is_custom => Value::Null,
            _ => number("/spec/replicas"),
        },
        number("/status/replicas"),
        Value::from(object.age("metadata.creationTimestamp")),
    ]
}

fn builtin(kind: &str, column: &str, object: Fields<'_>) -> Value {
    match (kind, column) {
        // A default storage class says so next to its name.
        ("StorageClass", "Name") => storage::class_name(object),
        (_, "Name") => Value::from(object.text("metadata.name")),
        ("Event", _) => core::event(column, object),
        (_, "Age") => Value::from(object.age("metadata.creationTimestamp")),
        (_, "Created At") => Value::from(object.text("metadata.creationTimestamp")),
        ("Pod", _) => pod::cell(column, object),
        (
            "Namespace" | "Node" | "ConfigMap" | "Secret" | "Service" | "Endpoints" | "ResourceQuota"
            | "ComponentStatus" | "PodTemplate",
            _,
        ) => core::cell(kind, column, object),
        (
            "ReplicationController"
            | "ReplicaSet"
            | "Deployment"
            | "StatefulSet"
            | "DaemonSet"
            | "Job"
            | "CronJob"
            | "ControllerRevision"
            | "HorizontalPodAutoscaler"
            | "PodDisruptionBudget",
            _,
        ) => workloads::cell(kind, column, object),
        (
            "PersistentVolume"
            | "PersistentVolumeClaim"
            | "StorageClass"
            | "CSIDriver"
            | "CSINode"
            | "VolumeAttachment"
            | "VolumeAttributesClass",
            _,
        ) => storage::cell(kind, column, object),
        _ => named_groups::cell(kind, column, object),
    }
}
