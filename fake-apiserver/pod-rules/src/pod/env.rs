//! The environment of containers.

use shared_json::Value;

use super::Release;
use super::downward::{self, Place};
use crate::errors::Errors;
use crate::fields::Fields;
use crate::names;
use crate::path::Path;
use crate::volume_sources::no_backsteps;

const SOURCES: [&str; 5] = [
    "fieldRef",
    "resourceFieldRef",
    "configMapKeyRef",
    "secretKeyRef",
    "fileKeyRef",
];

/// The rule for names of variables.
fn problems_of(release: Release) -> fn(&str) -> Vec<String> {
    match release {
        Release::V1_32 => names::strict_variable_problems,
        Release::V1_36 => names::variable_problems,
    }
}

pub(super) fn variables(release: Release, variables: &[Value], path: &Path<'_>, errors: &mut Errors) {
    let problems = problems_of(release);
    for (index, variable) in variables.iter().enumerate() {
        let at = path.index(index);
        let name = variable.text("name");
        if name.is_empty() {
            errors.required(&at.field("name"), "");
        } else {
            errors.problems(&at.field("name"), name, problems(name));
        }
        if let Some(from) = variable.part("valueFrom") {
            value_from(release, variable, from, &at.field("valueFrom"), errors);
        }
    }
}

fn value_from(release: Release, variable: &Value, from: &Value, path: &Path<'_>, errors: &mut Errors) {
    let mut given = 0;
    for source in SOURCES {
        let Some(reference) = from.part(source) else {
            continue;
        };
        given += 1;
        let at = path.field(source);
        match source {
            "fieldRef" => downward::field_ref(reference, Place::Variable, &at, errors),
            "resourceFieldRef" => downward::resource_ref(reference, Place::Variable, &at, errors),
            "fileKeyRef" => file_key(reference, &at, errors),
            _ => key_ref(reference, &at, errors),
        }
    }
    if given == 0 {
        let detail = match release {
            Release::V1_32 => {
                "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`"
            }
            Release::V1_36 => {
                "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
            }
        };
        errors.invalid(path, "", detail);
    } else if !variable.text("value").is_empty() {
        errors.invalid(path, "", "may not be specified when `value` is not empty");
    } else if given > 1 {
        errors.invalid(path, "", ONE_ONLY);
    }
}

const ONE_ONLY: &str = "may not have more than one field specified at a time";

fn key_ref(reference: &Value, path: &Path<'_>, errors: &mut Errors) {
    let (name, key) = (reference.text("name"), reference.text("key"));
    errors.problems(&path.field("name"), name, names::subdomain_problems(name));
    if key.is_empty() {
        errors.required(&path.field("key"), "");
    } else {
        errors.problems(&path.field("key"), key, names::config_key_problems(key));
    }
}

fn file_key(reference: &Value, path: &Path<'_>, errors: &mut Errors) {
    let (key, volume, place) = (
        reference.text("key"),
        reference.text("volumeName"),
        reference.text("path"),
    );
    if key.is_empty() {
        errors.required(&path.field("key"), "");
    } else {
        errors.problems(&path.field("key"), key, names::variable_problems(key));
    }
    if volume.is_empty() {
        errors.required(&path.field("volumeName"), "");
    } else {
        errors.problems(&path.field("volumeName"), volume, names::label_problems(volume));
    }
    if place.is_empty() {
        errors.required(&path.field("path"), "");
    } else {
        no_backsteps(place, &path.field("path"), errors);
    }
}

pub(super) fn sources(release: Release, sources: &[Value], path: &Path<'_>, errors: &mut Errors) {
    for (index, source) in sources.iter().enumerate() {
        let at = path.index(index);
        let prefix = source.text("prefix");
        if !prefix.is_empty() {
            errors.problems(&at.field("prefix"), prefix, problems_of(release)(prefix));
        }
        let mut given = 0;
        for field in ["configMapRef", "secretRef"] {
            let Some(reference) = source.part(field) else {
                continue;
            };
            given += 1;
            let at = at.field(field);
            let name = reference.text("name");
            if name.is_empty() {
                errors.required(&at.field("name"), "");
            } else {
                // A prefix of a name is taken too.
                let masked = name.strip_suffix('-').map(|base| format!("{base}a"));
                let problems = names::subdomain_problems(masked.as_deref().unwrap_or(name));
                errors.problems(&at.field("name"), name, problems);
            }
        }
        match given {
            0 => errors.invalid(path, "", "must specify one of: `configMapRef` or `secretRef`"),
            1 => {}
            _ => errors.invalid(path, "", ONE_ONLY),
        }
    }
}
