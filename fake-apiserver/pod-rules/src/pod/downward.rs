//! The downward API: the fields of its own pod that a container may read.

use shared_json::Value;

use crate::errors::Errors;
use crate::fields::Fields;
use crate::names;
use crate::path::Path;
use crate::quantity::Quantity;

/// Where the value goes; not everything can go everywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// A variable of the environment.
    Variable,
    /// A file.
    Volume,
}

const FIELDS_OF_VARIABLES: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
const FIELDS_OF_VOLUMES: [&str; 5] = [
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
];
/// Every field that has a label in the API.
const KNOWN: [&str; 15] = [
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.phase",
    "status.podIP",
    "status.podIPs",
    // A host's old name.
    "spec.host",
];
const RESOURCES: [&str; 6] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];
const DIVISORS: &str = "1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei";

/// A field of the pod.
pub(super) fn field_ref(reference: &Value, place: Place, path: &Path<'_>, errors: &mut Errors) {
    if reference.text("apiVersion").is_empty() {
        return errors.required(&path.field("apiVersion"), "");
    }
    let field = reference.text("fieldPath");
    let at = path.field("fieldPath");
    if field.is_empty() {
        return errors.required(&at, "");
    }
    let subscripted = field
        .strip_suffix("']")
        .and_then(|rest| rest.split_once("['"))
        .filter(|(name, _)| !name.is_empty());
    let name = subscripted.map_or(field, |(name, _)| name);
    if reference.text("apiVersion") != "v1" {
        let detail = format!(
            "error converting fieldPath: unsupported pod version: {}",
            reference.text("apiVersion")
        );
        return errors.invalid(&at, field, detail);
    }
    let trouble = match subscripted {
        Some(("metadata.annotations" | "metadata.labels", _)) => None,
        Some(_) => Some("field label does not support subscript"),
        None if KNOWN.contains(&name) => None,
        None => Some("field label not supported"),
    };
    if let Some(trouble) = trouble {
        let detail = format!("error converting fieldPath: {trouble}: {field}");
        return errors.invalid(&at, field, detail);
    }
    if let Some((name, key)) = subscripted {
        let key = if name == "metadata.annotations" {
            key.to_lowercase()
        } else {
            key.to_owned()
        };
        return errors.problems(path, &key, names::qualified_problems(&key));
    }
    let name = if name == "spec.host" {
        "spec.nodeName"
    } else {
        name
    };
    let allowed: &[&str] = match place {
        Place::Variable => &FIELDS_OF_VARIABLES,
        Place::Volume => &FIELDS_OF_VOLUMES,
    };
    errors.one_of_or_empty(&at, name, allowed);
}

/// A reference to the container's requests or limits.
pub(super) fn resource_ref(reference: &Value, place: Place, path: &Path<'_>, errors: &mut Errors) {
    let resource = reference.text("resource");
    let huge = resource.starts_with("requests.hugepages-") || resource.starts_with("limits.hugepages-");
    if place == Place::Volume && reference.text("containerName").is_empty() {
        errors.required(&path.field("containerName"), "");
    } else if resource.is_empty() {
        errors.required(&path.field("resource"), "");
    } else if !huge {
        errors.one_of_or_empty(&path.field("resource"), resource, &RESOURCES);
    }
    let Some(divisor) = reference
        .part("divisor")
        .map(Quantity::of)
        .filter(|divisor| divisor.nanos() != 0)
    else {
        return;
    };
    let divisor = divisor.canonical();
    let of_bytes = DIVISORS.split(", ").any(|allowed| allowed == divisor);
    let (fits, supported) = match resource {
        "limits.cpu" | "requests.cpu" => (
            matches!(divisor.as_str(), "1" | "1m"),
            "1m and 1 are supported with the cpu resource".to_owned(),
        ),
        "limits.memory" | "requests.memory" => (
            of_bytes,
            format!("{DIVISORS} are supported with the memory resource"),
        ),
        "limits.ephemeral-storage" | "requests.ephemeral-storage" => (
            of_bytes,
            format!("{DIVISORS} are supported with the local ephemeral storage resource"),
        ),
        _ if huge => (
            of_bytes,
            format!("{DIVISORS} are supported with the hugepages resource"),
        ),
        _ => return,
    };
    if !fits {
        let detail = format!("only divisor's values {supported}");
        errors.invalid(&path.field("divisor"), resource, detail);
    }
}
