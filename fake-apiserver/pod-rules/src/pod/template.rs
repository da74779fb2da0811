//! Templates of pods, and the annotations with a meaning for pods.

use shared_json::{Map, Value};

use super::{Release, Scope, each_container, spec};
use crate::errors::Errors;
use crate::fields::{Fields, NOTHING};
use crate::names;
use crate::path::Path;
use crate::selectors;
use crate::volume_sources::descending;

/// Annotations may take 256 KiB in all.
const ANNOTATION_BYTES_MAX: usize = 256 * 1024;
const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";
const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
const MIRROR: &str = "kubernetes.io/config.mirror";
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// Keys and size of annotations.
pub fn annotations(annotations: &Map, path: &Path<'_>, errors: &mut Errors) {
    let mut bytes = 0;
    for (key, value) in annotations {
        bytes += key.len() + value.as_str().map_or(0, str::len);
        let problems = if key.bytes().any(|b| b.is_ascii_uppercase()) {
            names::qualified_problems(&key.to_lowercase())
        } else {
            names::qualified_problems(key)
        };
        errors.problems(path, key, problems);
    }
    if bytes > ANNOTATION_BYTES_MAX {
        errors.too_long(path, ANNOTATION_BYTES_MAX);
    }
}

/// Annotations that mean something to a pod.
pub(super) fn pod_annotations(
    release: Release,
    annotations: &Map,
    spec: &Value,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    if annotations.is_empty() {
        return;
    }
    if let Some(value) = annotations.text_if_set(MIRROR)
        && spec.text("nodeName").is_empty()
    {
        let detail = "must set spec.nodeName if mirror pod annotation is set";
        errors.invalid(&path.key(MIRROR), value, detail);
    }
    if let Some(cost) = annotations.text_if_set(DELETION_COST)
        && release > Release::V1_32
    {
        let plain = cost == "0" || (!cost.starts_with('+') && !cost.trim_start_matches('-').starts_with('0'));
        if !plain || cost.parse::<i32>().is_err() {
            errors.invalid(&path.key(DELETION_COST), cost, "must be a 32bit integer");
        }
    }
    for (key, value) in annotations {
        let value = value.as_str().unwrap_or_default();
        if key == SECCOMP_POD || key.starts_with(SECCOMP_CONTAINER) {
            let at = path.field(key);
            match value {
                "runtime/default" | "docker/default" | "unconfined" => {}
                value => match value.strip_prefix("localhost/") {
                    Some(profile) => descending(profile, &at, errors),
                    None => errors.invalid(&at, value, "must be a valid seccomp profile"),
                },
            }
        }
    }
    for (key, value) in annotations {
        let Some(container) = key.strip_prefix(APP_ARMOR) else {
            continue;
        };
        let value = value.as_str().unwrap_or_default();
        let mut found = false;
        each_container(spec, path, &mut |other, _| {
            found |= other.text("name") == container
        });
        if !found {
            errors.invalid(&path.key(key), container, "container not found");
        }
        let known = matches!(value, "" | "runtime/default" | "unconfined") || value.starts_with("localhost/");
        if !known {
            let detail = format!("invalid AppArmor profile name: \"{value}\"");
            errors.invalid(&path.key(key), value, detail);
        }
    }
}

/// A template of pods.
pub fn check<'a>(scope: &Scope<'a>, template: &'a Value, path: &Path<'_>, errors: &mut Errors) {
    let meta = template.part("metadata").unwrap_or(&NOTHING);
    let spec_value = template.part("spec").unwrap_or(&NOTHING);
    selectors::labels(meta.map("labels"), &path.field("labels"), errors);
    annotations(meta.map("annotations"), &path.field("annotations"), errors);
    pod_annotations(
        scope.release,
        meta.map("annotations"),
        spec_value,
        &path.field("annotations"),
        errors,
    );
    spec(scope, spec_value, &path.field("spec"), errors);
    if !spec_value.list("ephemeralContainers").is_empty() {
        errors.forbidden(
            &path.field("spec.ephemeralContainers"),
            "ephemeral containers not allowed in pod template",
        );
    }
}

/// A PodTemplate.
pub fn pod_template(object: &Value, errors: &mut Errors) {
    let template = object.part("template").unwrap_or(&NOTHING);
    check(&Scope::TEMPLATE, template, &Path::new("template"), errors);
}
