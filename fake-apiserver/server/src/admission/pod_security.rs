//! PodSecurity: the standards that a namespace's labels ask of its pods.

mod checks;

use std::collections::BTreeMap;

use machinery::meta::{ObjectMeta, at, string_map};
use machinery::status::ApiError;
use pod_rules::field_error::FieldError;
use shared_json::Value;
use store::{GroupResource, ObjectKey};

use super::{Attributes, Operation, matching};
use crate::server::ServerState;

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

/// Refuses pods that the namespace forbids.
pub(super) fn validate(server: &ServerState, attributes: &Attributes) -> Result<(), ApiError> {
    let Some(object) = attributes
        .object
        .as_ref()
        .filter(|_| attributes.operation != Operation::Delete)
    else {
        return Ok(());
    };
    if attributes.is("", "namespaces") {
        check_labels(attributes, object)?;
        attributes
            .warnings
            .tell(enforced_anew(server, attributes, object));
        return Ok(());
    }
    let is_pod = attributes.resource.group.is_empty()
        && attributes.resource.plural == "pods"
        && match attributes.subresource.as_str() {
            "" => {
                attributes.operation == Operation::Create
                    || attributes
                        .old
                        .as_ref()
                        .is_some_and(|old| runs_something_else(object, old))
            }
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
        None => return Ok(()),
    };
    let Some(namespace) = matching::namespace_of(server, attributes) else {
        return Ok(());
    };
    let asked = |mode: &str| asked(&namespace, mode);
    let Some(spec) = spec else {
        return Ok(());
    };
    let violations = |level: &str, version: &str| {
        let metadata = metadata.unwrap_or(&Value::Null);
        checks::violations(level, checks::version(version), spec, metadata)
    };
    if is_pod && let Some((level, version)) = asked("enforce") {
        let found = violations(&level, &version);
        if !found.is_empty() {
            let why = format!("violates PodSecurity \"{level}:{version}\": {}", found.join(", "));
            let resource = attributes.resource.group_resource();
            return Err(ApiError::forbidden(&resource, &attributes.name, &why));
        }
    }
    if let Some((level, version)) = asked("warn") {
        let found = violations(&level, &version);
        if !found.is_empty() {
            attributes.warnings.tell([format!(
                "would violate PodSecurity \"{level}:{version}\": {}",
                found.join(", ")
            )]);
        }
    }
    Ok(())
}

/// Whether a pod's namespace asks for a standard that pods must keep.
pub(super) fn is_asked_for(server: &ServerState, attributes: &Attributes) -> bool {
    let key = ObjectKey::new("", &attributes.namespace);
    let namespace = server.store.get(&GroupResource::new("", "namespaces"), &key);
    namespace.is_some_and(|namespace| asked(&namespace.value, "enforce").is_some())
}

/// Whether a changed pod has other containers, or other images in them.
fn runs_something_else(pod: &Value, old: &Value) -> bool {
    let images = |pod: &Value, list: &str| -> Vec<Value> {
        let containers = at(pod, "spec")
            .and_then(|spec| spec.get(list))
            .and_then(Value::as_array);
        let images = containers
            .into_iter()
            .flatten()
            .map(|container| container.get("image").cloned());
        images.map(Option::unwrap_or_default).collect()
    };
    ["containers", "initContainers"]
        .iter()
        .any(|list| images(pod, list) != images(old, list))
}

/// The standard that a namespace asks for, and its version.
fn asked(namespace: &Value, mode: &str) -> Option<(String, String)> {
    let labels = string_map(namespace, "labels");
    let label = |name: &str| labels.get(&format!("{PREFIX}{name}")).and_then(Value::as_str);
    let version = label(&format!("{mode}-version")).unwrap_or("latest").to_owned();
    label(mode).map(|level| (level.to_owned(), version))
}

/// A namespace that becomes stricter: warns of the pods that would not be let in any more.
fn enforced_anew(server: &ServerState, attributes: &Attributes, namespace: &Value) -> Vec<String> {
    let Some(old) = attributes
        .old
        .as_ref()
        .filter(|_| attributes.subresource.is_empty())
    else {
        return Vec::new();
    };
    let of = |namespace: &Value| {
        asked(namespace, "enforce").unwrap_or_else(|| ("privileged".to_owned(), "latest".to_owned()))
    };
    let ((level, version), (old_level, old_version)) = (of(namespace), of(old));
    let rank = |level: &str| LEVELS.iter().position(|known| *known == level);
    if level == "privileged" || (version == old_version && rank(&level) <= rank(&old_level)) {
        return Vec::new();
    }
    let table = GroupResource::new("", "pods");
    let Ok(pods) = server.store.list(&table, Some(namespace.name()), None, None) else {
        return Vec::new();
    };
    // By what is wrong: the first pod of all, and how many there are.
    let mut found: BTreeMap<String, (String, usize)> = BTreeMap::new();
    for pod in &pods.items {
        let null = Value::Null;
        let (spec, metadata) = (
            pod.value.get("spec").unwrap_or(&null),
            pod.value.get("metadata").unwrap_or(&null),
        );
        let wrong = checks::violations(&level, checks::version(&version), spec, metadata);
        if wrong.is_empty() {
            continue;
        }
        let reasons: Vec<&str> = wrong
            .iter()
            .map(|violation| {
                violation
                    .split_once(" (")
                    .map_or(violation.as_str(), |(reason, _)| reason)
            })
            .collect();
        let (first, count) = found
            .entry(reasons.join(", "))
            .or_insert_with(|| (pod.key.name.to_string(), 0));
        *count += 1;
        if pod.key.name.as_str() < first.as_str() {
            *first = pod.key.name.to_string();
        }
    }
    let mut warnings: Vec<String> = found
        .into_iter()
        .map(|(reasons, (first, count))| match count {
            1 => format!("{first}: {reasons}"),
            2 => format!("{first} (and 1 other pod): {reasons}"),
            count => format!("{first} (and {} other pods): {reasons}", count - 1),
        })
        .collect();
    warnings.sort();
    if !warnings.is_empty() {
        let name = namespace.name();
        let title = format!(
            "existing pods in namespace \"{name}\" violate the new PodSecurity enforce level \"{level}:{version}\""
        );
        warnings.insert(0, title);
    }
    warnings
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
    let minor = |text: &str| {
        let padded = text.len() > 1 && text.starts_with('0');
        !text.is_empty() && !padded && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    text == "latest" || text.strip_prefix("v1.").is_some_and(minor)
}
