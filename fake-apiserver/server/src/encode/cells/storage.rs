//! The cells of volumes, claims, storage classes and drivers.

use shared_json::Value;

use super::fields::{Fields, or, plain};
use super::{NONE, UNSET};

const DEFAULT_CLASS: &str = "storageclass.kubernetes.io/is-default-class";
const OLD_DEFAULT_CLASS: &str = "storageclass.beta.kubernetes.io/is-default-class";
const OLD_CLASS: &str = "volume.beta.kubernetes.io/storage-class";

pub(super) fn cell(kind: &str, column: &str, object: Fields<'_>) -> Value {
    match (kind, column) {
        ("PersistentVolume" | "PersistentVolumeClaim", _) => {
            volume(kind == "PersistentVolumeClaim", column, object)
        }
        ("StorageClass", "Provisioner") => Value::from(object.text("provisioner")),
        ("StorageClass", "ReclaimPolicy") => or(object.text("reclaimPolicy"), "Delete"),
        ("StorageClass", "VolumeBindingMode") => or(object.text("volumeBindingMode"), "Immediate"),
        ("StorageClass", "AllowVolumeExpansion") => Value::from(object.flag("allowVolumeExpansion")),
        ("CSIDriver", _) => driver(column, object),
        ("CSINode", "Drivers") => Value::from(object.list("spec.drivers").len()),
        ("VolumeAttachment", "Attacher") => Value::from(object.text("spec.attacher")),
        ("VolumeAttachment", "PV") => Value::from(object.text("spec.source.persistentVolumeName")),
        ("VolumeAttachment", "Node") => Value::from(object.text("spec.nodeName")),
        ("VolumeAttachment", "Attached") => Value::from(object.flag("status.attached")),
        ("VolumeAttributesClass", "DriverName") => Value::from(object.text("driverName")),
        _ => Value::from(""),
    }
}

/// A storage class's name, and whether it is the default.
pub(super) fn class_name(object: Fields<'_>) -> Value {
    let name = object.text("metadata.name");
    let annotations = object.map("metadata.annotations");
    let is_default = [DEFAULT_CLASS, OLD_DEFAULT_CLASS]
        .iter()
        .any(|key| annotations.and_then(|all| all.get(*key)).and_then(Value::as_str) == Some("true"));
    Value::from(if is_default {
        format!("{name} (default)")
    } else {
        name.to_owned()
    })
}

fn volume(is_claim: bool, column: &str, object: Fields<'_>) -> Value {
    let bound = !object.text("spec.volumeName").is_empty();
    match column {
        "Status" if object.has("metadata.deletionTimestamp") => Value::from("Terminating"),
        "Status" => Value::from(object.text("status.phase")),
        "Volume" => Value::from(object.text("spec.volumeName")),
        "Capacity" | "Access Modes" if is_claim && !bound => Value::from(""),
        "Capacity" => {
            let part = if is_claim {
                "status.capacity"
            } else {
                "spec.capacity"
            };
            let storage = object.map(part).and_then(|capacity| capacity.get("storage"));
            Value::from(storage.and_then(plain).unwrap_or_else(|| "0".to_owned()))
        }
        "Access Modes" => {
            let path = if is_claim {
                "status.accessModes"
            } else {
                "spec.accessModes"
            };
            Value::from(access_modes(object.list(path)))
        }
        "Reclaim Policy" => Value::from(object.text("spec.persistentVolumeReclaimPolicy")),
        "Claim" if object.has("spec.claimRef") => {
            let claim = |field: &str| object.text(&format!("spec.claimRef.{field}"));
            Value::from(format!("{}/{}", claim("namespace"), claim("name")))
        }
        "StorageClass" => {
            let old = object
                .map("metadata.annotations")
                .and_then(|all| all.get(OLD_CLASS))
                .and_then(Value::as_str);
            Value::from(old.unwrap_or(object.text("spec.storageClassName")))
        }
        "VolumeAttributesClass" if object.has("spec.volumeAttributesClassName") => {
            Value::from(object.text("spec.volumeAttributesClassName"))
        }
        "VolumeAttributesClass" => Value::from(UNSET),
        "Reason" => Value::from(object.text("status.reason")),
        "VolumeMode" => object.or_unset("spec.volumeMode"),
        _ => Value::from(""),
    }
}

/// The modes' short forms, each once, in the printers' order.
fn access_modes(modes: &[Value]) -> String {
    const SHORT: [(&str, &str); 4] = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let has = |mode: &str| modes.iter().any(|given| given.as_str() == Some(mode));
    let short: Vec<&str> = SHORT
        .iter()
        .filter(|(mode, _)| has(mode))
        .map(|(_, short)| *short)
        .collect();
    short.join(",")
}

fn driver(column: &str, object: Fields<'_>) -> Value {
    let flag = |field: &str, default: bool| {
        Value::from(
            object
                .get(&format!("spec.{field}"))
                .and_then(Value::as_bool)
                .unwrap_or(default),
        )
    };
    match column {
        "AttachRequired" => flag("attachRequired", true),
        "PodInfoOnMount" => flag("podInfoOnMount", false),
        "StorageCapacity" => flag("storageCapacity", false),
        "RequiresRepublish" => flag("requiresRepublish", false),
        "TokenRequests" if object.has("spec.tokenRequests") => {
            let audiences: Vec<&str> = object
                .parts("spec.tokenRequests")
                .map(|token| token.text("audience"))
                .collect();
            Value::from(audiences.join(","))
        }
        "TokenRequests" => Value::from(UNSET),
        "Modes" => {
            let modes: Vec<&str> = object
                .list("spec.volumeLifecycleModes")
                .iter()
                .filter_map(Value::as_str)
                .collect();
            or(&modes.join(","), NONE)
        }
        _ => Value::from(""),
    }
}
