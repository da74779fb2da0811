//! `metadata`: validated and filled in by the server.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use crate::field_error::FieldError;
use crate::meta::{ObjectMeta, string_map};
use crate::resources::Resource;

/// Annotations may take 256 KiB in all.
const ANNOTATION_BYTES_MAX: usize = 256 * 1024;

const SUBDOMAIN_TEXT: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
    and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL_TEXT: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
    start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const DNS1035_TEXT: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an \
    alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for \
    validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const QUALIFIED_TEXT: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with \
    an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
    '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE_TEXT: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', \
    and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for \
    validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_label)
}

fn is_label(text: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    !text.is_empty() && text.bytes().all(allowed) && !text.starts_with('-') && !text.ends_with('-')
}

static QUALIFIED: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new("^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$").ok());

fn is_qualified_part(text: &str) -> bool {
    text.len() <= 63 && QUALIFIED.as_ref().is_some_and(|pattern| pattern.is_match(text))
}

/// What is wrong with a name of this resource.
fn name_problems(resource: &Resource, name: &str) -> Vec<String> {
    if resource.group == "rbac.authorization.k8s.io" {
        if name == "." || name == ".." {
            return vec![format!("may not be '{name}'")];
        }
        let found = ["/", "%"].iter().find(|bad| name.contains(*bad));
        return found
            .map(|bad| vec![format!("may not contain '{bad}'")])
            .unwrap_or_default();
    }
    let (limit, valid, text): (usize, fn(&str) -> bool, &str) =
        match (resource.group.as_str(), resource.plural.as_str()) {
            ("", "namespaces") => (63, is_label, LABEL_TEXT),
            ("", "services") => (
                63,
                |name| is_label(name) && name.starts_with(|c: char| c.is_ascii_lowercase()),
                DNS1035_TEXT,
            ),
            _ => (253, is_subdomain, SUBDOMAIN_TEXT),
        };
    let mut problems = Vec::new();
    if name.len() > limit {
        problems.push(format!("must be no more than {limit} bytes"));
    }
    if !valid(name) {
        problems.push(text.to_owned());
    }
    problems
}

fn qualified_problems(key: &str) -> Vec<String> {
    let (prefix, name) = match key.rsplit_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    let mut problems = Vec::new();
    if prefix.is_some_and(|prefix| !is_subdomain(prefix)) {
        problems.push(format!("prefix part {SUBDOMAIN_TEXT}"));
    }
    if name.is_empty() {
        problems.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        problems.push("name part must be no more than 63 bytes".to_owned());
    }
    if !is_qualified_part(name) && name.len() <= 63 {
        problems.push(QUALIFIED_TEXT.to_owned());
    }
    problems
}

/// Validates the metadata of any object, new or changed.
pub(crate) fn validate(resource: &Resource, object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let name = object.name();
    if name.is_empty() {
        errors.push(FieldError::required(
            "metadata.name",
            "name or generateName is required",
        ));
    } else {
        for problem in name_problems(resource, name) {
            errors.push(FieldError::invalid("metadata.name", Value::from(name), &problem));
        }
    }
    for (key, value) in string_map(object, "labels") {
        for problem in qualified_problems(key) {
            errors.push(FieldError::invalid(
                "metadata.labels",
                Value::from(key.clone()),
                &problem,
            ));
        }
        let value = value.as_str().unwrap_or_default();
        if value.len() > 63 {
            errors.push(FieldError::invalid(
                "metadata.labels",
                Value::from(value),
                "must be no more than 63 bytes",
            ));
        } else if !value.is_empty() && !is_qualified_part(value) {
            errors.push(FieldError::invalid(
                "metadata.labels",
                Value::from(value),
                LABEL_VALUE_TEXT,
            ));
        }
    }
    let mut annotation_bytes = 0;
    for (key, value) in string_map(object, "annotations") {
        annotation_bytes += key.len() + value.as_str().map_or(0, str::len);
        for problem in qualified_problems(&key.to_lowercase()) {
            errors.push(FieldError::invalid(
                "metadata.annotations",
                Value::from(key.clone()),
                &problem,
            ));
        }
    }
    if annotation_bytes > ANNOTATION_BYTES_MAX {
        errors.push(FieldError::too_long("metadata.annotations", ANNOTATION_BYTES_MAX));
    }
    for finalizer in object.finalizers() {
        for problem in qualified_problems(finalizer) {
            errors.push(FieldError::invalid(
                "metadata.finalizers",
                Value::from(finalizer),
                &problem,
            ));
        }
    }
    validate_owners(object, &mut errors);
    errors
}

fn validate_owners(object: &Value, errors: &mut Vec<FieldError>) {
    let owners = object
        .metadata()
        .and_then(|meta| meta.get("ownerReferences"))
        .and_then(Value::as_array);
    let owners = owners.map(Vec::as_slice).unwrap_or_default();
    let mut controller: Option<&str> = None;
    for owner in owners {
        let text = |field: &str| owner.get(field).and_then(Value::as_str).unwrap_or_default();
        for (field, what) in [("apiVersion", "version"), ("kind", ""), ("name", ""), ("uid", "")] {
            if text(field).is_empty() {
                let path = format!("metadata.ownerReferences.{field}");
                let detail = if what.is_empty() {
                    "must not be empty".to_owned()
                } else {
                    format!("{what} must not be empty")
                };
                errors.push(FieldError::invalid(&path, Value::from(""), &detail));
            }
        }
        if owner.get("controller").and_then(Value::as_bool) == Some(true) {
            if let Some(first) = controller {
                let detail = format!(
                    "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {}",
                    text("kind").to_owned() + "/" + text("name")
                );
                errors.push(FieldError::invalid(
                    "metadata.ownerReferences",
                    Value::Array(owners.to_vec()),
                    &detail,
                ));
            }
            controller.get_or_insert_with(|| owner.get("name").and_then(Value::as_str).unwrap_or_default());
        }
    }
}

/// Validates what an update may not change.
pub(crate) fn validate_update(object: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for field in [
        "name",
        "namespace",
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    ] {
        let value = |object: &Value| object.metadata().and_then(|meta| meta.get(field)).cloned();
        if value(object) != value(old) {
            errors.push(FieldError::invalid(
                &format!("metadata.{field}"),
                value(object).unwrap_or_default(),
                "field is immutable",
            ));
        }
    }
    if old.is_terminating() {
        let before = old.finalizers();
        let added: Vec<&str> = object
            .finalizers()
            .into_iter()
            .filter(|name| !before.contains(name))
            .collect();
        if !added.is_empty() {
            let detail = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                added
                    .iter()
                    .map(|name| format!("\"{name}\""))
                    .collect::<Vec<_>>()
                    .join(", ")
            );
            errors.push(FieldError::forbidden("metadata.finalizers", &detail));
        }
    }
    errors
}
