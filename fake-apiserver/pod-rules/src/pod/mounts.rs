//! Where containers mount volumes.

use std::collections::BTreeSet;

use shared_json::Value;

use super::Around;
use crate::errors::Errors;
use crate::fields::{Fields, NOTHING};
use crate::path::Path;
use crate::volume_sources::descending;

pub(super) fn check(around: &Around<'_>, container: &Value, path: &Path<'_>, errors: &mut Errors) {
    mounts(around, container, &path.field("volumeMounts"), errors);
    devices(around, container, &path.field("volumeDevices"), errors);
}

fn mounts(around: &Around<'_>, container: &Value, path: &Path<'_>, errors: &mut Errors) {
    let mut places = BTreeSet::new();
    let devices = container.list("volumeDevices");
    for (index, mount) in container.list("volumeMounts").iter().enumerate() {
        let at = path.index(index);
        let (name, place) = (mount.text("name"), mount.text("mountPath"));
        if name.is_empty() {
            errors.required(&at.field("name"), "");
        }
        if around.volume(name).is_none() {
            errors.not_found(&at.field("name"), name);
        }
        if place.is_empty() {
            errors.required(&at.field("mountPath"), "");
        }
        if !places.insert(place) {
            errors.invalid(&at.field("mountPath"), place, "must be unique");
        }
        if devices.iter().any(|device| device.text("name") == name) {
            errors.invalid(&at.field("name"), name, "must not already exist in volumeDevices");
        }
        if devices.iter().any(|device| device.text("devicePath") == place) {
            let detail = "must not already exist as a path in volumeDevices";
            errors.invalid(&at.field("mountPath"), place, detail);
        }
        let (sub_path, expression) = (mount.text("subPath"), mount.text("subPathExpr"));
        // These two are named without the mount's index, as in the real server.
        if !sub_path.is_empty() {
            descending(sub_path, &path.field("subPath"), errors);
        }
        if !expression.is_empty() {
            if !sub_path.is_empty() {
                let detail = "subPathExpr and subPath are mutually exclusive";
                errors.invalid(&at.field("subPathExpr"), expression, detail);
            }
            descending(expression, &path.field("subPathExpr"), errors);
        }
        propagation(container, mount, path, errors);
    }
}

fn propagation(container: &Value, mount: &Value, path: &Path<'_>, errors: &mut Errors) {
    if let Some(mode) = mount.text_if_set("mountPropagation") {
        let at = path.field("mountPropagation");
        errors.one_of_or_empty(&at, mode, &["Bidirectional", "HostToContainer", "None"]);
        let context = container.part("securityContext").unwrap_or(&NOTHING);
        if mode == "Bidirectional" && !context.is_true("privileged") {
            errors.forbidden(
                &at,
                "Bidirectional mount propagation is available only to privileged containers",
            );
        }
    }
    let at = path.field("recursiveReadOnly");
    match mount.text_if_set("recursiveReadOnly") {
        None | Some("Disabled") => {}
        Some("Enabled" | "IfPossible") => {
            if !mount.is_true("readOnly") {
                errors.forbidden(&at, "may only be specified when readOnly is true");
            }
            if mount
                .text_if_set("mountPropagation")
                .is_some_and(|mode| mode != "None")
            {
                let detail = "may only be specified when mountPropagation is None or not specified";
                errors.forbidden(&at, detail);
            }
        }
        Some(other) => errors.not_supported(&at, other, &["Disabled", "Enabled", "IfPossible"]),
    }
}

fn devices(around: &Around<'_>, container: &Value, path: &Path<'_>, errors: &mut Errors) {
    let (mut names, mut places) = (BTreeSet::new(), BTreeSet::new());
    let mounts = container.list("volumeMounts");
    for (index, device) in container.list("volumeDevices").iter().enumerate() {
        let at = path.index(index);
        let (name, place) = (device.text("name"), device.text("devicePath"));
        let (name_path, place_path) = (at.field("name"), at.field("devicePath"));
        if name.is_empty() {
            errors.required(&name_path, "");
        }
        if names.contains(name) {
            errors.invalid(&name_path, name, "must be unique");
        }
        match around.volume(name) {
            None => errors.not_found(&name_path, name),
            Some(volume) if !volume.has("persistentVolumeClaim") && !volume.has("ephemeral") => {
                let detail =
                    "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode";
                errors.invalid(&name_path, name, detail);
            }
            Some(_) => {}
        }
        if place.is_empty() {
            errors.required(&place_path, "");
        }
        if places.contains(place) {
            errors.invalid(&place_path, place, "must be unique");
        }
        if place.split('/').any(|part| part == "..") {
            errors.invalid(&place_path, place, "can not contain backsteps ('..')");
        } else {
            places.insert(place);
        }
        if mounts.iter().any(|mount| mount.text("name") == name) {
            errors.invalid(&name_path, name, "must not already exist in volumeMounts");
        }
        if mounts.iter().any(|mount| mount.text("mountPath") == place) {
            let detail = "must not already exist as a path in volumeMounts";
            errors.invalid(&place_path, place, detail);
        }
        if !name.is_empty() {
            names.insert(name);
        }
    }
}
