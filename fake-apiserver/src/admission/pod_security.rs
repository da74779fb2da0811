//! PodSecurity: the standards that a namespace's labels ask of its pods.

mod checks;

use serde_json::Value;

use super::{Attributes, Operation, matching};
use crate::field_error::FieldError;
use crate::meta::{ObjectMeta, at, string_map};
use crate::server::ServerState;
use crate::status::ApiError;

const PREFIX: &str = "pod-security.kubernetes.io/";
const LEVELS: [&str; 3] = ["privileged", "baseline", "restricted"];

/// The kinds that make pods, and where they hold the template.
const TEMPLATES: [(&str, &str, &str); 8] = [
    ("", "podtemplates", "template.spec"),
    ("", "replicationcontrollers", "spec.template.spec"),
    ("apps", "replicasets", "spec.template.spec"),
    ("apps", "deployments", "spec.template.spec"),
    ("apps", "statefulsets", "spec.template.spec"),
    ("apps", "daemonsets", "spec.template.spec"),
    ("batch", "jobs", "spec.template.spec"),
    ("batch", "cronjobs", "spec.jobTemplate.spec.template.spec"),
];

/// Refuses pods that the namespace forbids; returns warnings.
pub(super) fn validate(server: &ServerState, attributes: &Attributes) -> Result<Vec<String>, ApiError> {
    let Some(object) = attributes
        .object
        .as_ref()
        .filter(|_| attributes.operation != Operation::Delete)
    else {
        return Ok(Vec::new());
    };
    if attributes.is("", "namespaces") {
        check_labels(attributes, object)?;
        return Ok(Vec::new());
    }
    let is_pod = attributes.resource.group.is_empty()
        && attributes.resource.plural == "pods"
        && match attributes.subresource.as_str() {
            "" => attributes.operation == Operation::Create,
            subresource => subresource == "ephemeralcontainers",
        };
    let template = TEMPLATES
        .iter()
        .find(|(group, plural, _)| attributes.is(group, plural))
        .map(|(_, _, path)| *path);
    let (spec, metadata) = match template {
        _ if is_pod => (at(object, "spec"), at(object, "metadata")),
        Some(path) => {
            let metadata = path.strip_suffix("spec").unwrap_or_default();
            (at(object, path), at(object, &format!("{metadata}metadata")))
        }
        None => return Ok(Vec::new()),
    };
    let Some(namespace) = matching::namespace_of(server, attributes) else {
        return Ok(Vec::new());
    };
    let asked = |mode: &str| {
        let label = |name: &str| {
            let labels = string_map(&namespace, "labels");
            labels.get(&format!("{PREFIX}{name}")).and_then(Value::as_str)
        };
        let version = label(&format!("{mode}-version")).unwrap_or("latest").to_owned();
        label(mode).map(|level| (level.to_owned(), version))
    };
    let Some(spec) = spec else {
        return Ok(Vec::new());
    };
    let violations = |level: &str| checks::violations(level, spec, metadata.unwrap_or(&Value::Null));
    if is_pod && let Some((level, version)) = asked("enforce") {
        let found = violations(&level);
        if !found.is_empty() {
            let why = format!("violates PodSecurity \"{level}:{version}\": {}", found.join(", "));
            let resource = attributes.resource.group_resource();
            return Err(ApiError::forbidden(&resource, &attributes.name, &why));
        }
    }
    let mut warnings = Vec::new();
    if let Some((level, version)) = asked("warn") {
        let found = violations(&level);
        if !found.is_empty() {
            warnings.push(format!(
                "would violate PodSecurity \"{level}:{version}\": {}",
                found.join(", ")
            ));
        }
    }
    Ok(warnings)
}

/// Labels of namespaces must name a standard, and a version of it.
fn check_labels(attributes: &Attributes, namespace: &Value) -> Result<(), ApiError> {
    let before = attributes.old.as_ref().map(|old| string_map(old, "labels"));
    let mut errors = Vec::new();
    for mode in ["enforce", "audit", "warn"] {
        for (label, is_version) in [
            (format!("{PREFIX}{mode}"), false),
            (format!("{PREFIX}{mode}-version"), true),
        ] {
            let value = string_map(namespace, "labels").get(&label);
            if before.is_some_and(|before| before.get(&label) == value) {
                continue;
            }
            let Some(text) = value.and_then(Value::as_str) else {
                continue;
            };
            let path = format!("metadata.labels[{label}]");
            if !is_version && !LEVELS.contains(&text) {
                let detail = format!("must be one of {}", LEVELS.join(", "));
                errors.push(FieldError::invalid(path, text, detail));
            } else if is_version && !is_a_version(text) {
                let detail = "must be \"latest\" or \"v1.x\"";
                errors.push(FieldError::invalid(path, text, detail));
            }
        }
    }
    if errors.is_empty() {
        return Ok(());
    }
    Err(ApiError::invalid("", "Namespace", namespace.name(), &errors))
}

fn is_a_version(text: &str) -> bool {
    let minor = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text == "latest" || text.strip_prefix("v1.").is_some_and(minor)
}
