//! What is wrong with the spec of a pod, wherever it stands.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::field_error::FieldError;
use crate::meta::at;
use crate::names;

fn list<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value
        .get(field)
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default()
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// The complaints about the spec at `path` of `object`.
pub(super) fn validate(object: &Value, path: &str) -> Vec<FieldError> {
    let Some(spec) = at(object, path) else {
        return Vec::new();
    };
    let mut errors = Vec::new();
    if list(spec, "containers").is_empty() {
        errors.push(FieldError::required(format!("{path}.containers"), ""));
    }
    let mut names = BTreeSet::new();
    for field in ["containers", "initContainers"] {
        for (index, container) in list(spec, field).iter().enumerate() {
            let at = format!("{path}.{field}[{index}]");
            validate_name(
                text(container, "name"),
                &mut names,
                &format!("{at}.name"),
                &mut errors,
            );
            if text(container, "image").is_empty() {
                errors.push(FieldError::required(format!("{at}.image"), ""));
            }
            validate_mounts(spec, container, &at, &mut errors);
        }
    }
    errors
}

fn validate_name(name: &str, names: &mut BTreeSet<String>, path: &str, errors: &mut Vec<FieldError>) {
    if name.is_empty() {
        errors.push(FieldError::required(path, ""));
        return;
    }
    for problem in names::label_problems(name) {
        errors.push(FieldError::invalid(path, name, problem));
    }
    if !names.insert(name.to_owned()) {
        errors.push(FieldError::duplicate(path, name));
    }
}

fn validate_mounts(spec: &Value, container: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let volumes: BTreeSet<&str> = list(spec, "volumes")
        .iter()
        .map(|volume| text(volume, "name"))
        .collect();
    let mut places = BTreeSet::new();
    for (index, mount) in list(container, "volumeMounts").iter().enumerate() {
        let at = format!("{path}.volumeMounts[{index}]");
        let (name, place) = (text(mount, "name"), text(mount, "mountPath"));
        if name.is_empty() {
            errors.push(FieldError::required(format!("{at}.name"), ""));
        } else if !volumes.contains(name) && !claims(spec, name) {
            errors.push(FieldError::not_found(format!("{at}.name"), name));
        }
        if place.is_empty() {
            errors.push(FieldError::required(format!("{at}.mountPath"), ""));
        }
        if !places.insert(place) {
            errors.push(FieldError::invalid(
                format!("{at}.mountPath"),
                place,
                "must be unique",
            ));
        }
    }
}

/// A StatefulSet's claims become volumes of its pods under their own names; that is known where the set is validated.
fn claims(spec: &Value, name: &str) -> bool {
    list(spec, "volumeClaimTemplates")
        .iter()
        .any(|claim| claim.pointer("/metadata/name").and_then(Value::as_str) == Some(name))
}

/// What a client should be told of the spec at `path` of `object`.
pub(super) fn warnings(object: &Value, path: &str) -> Vec<String> {
    let Some(spec) = at(object, path) else {
        return Vec::new();
    };
    let constraints = list(spec, "topologySpreadConstraints").iter().enumerate();
    constraints
        .filter(|(_, constraint)| constraint.get("labelSelector").is_none_or(Value::is_null))
        .map(|(index, _)| {
            format!(
                "{path}.topologySpreadConstraints[{index}].labelSelector: a null labelSelector results in matching no pod"
            )
        })
        .collect()
}
