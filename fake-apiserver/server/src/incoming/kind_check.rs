//! Checks that an object is of the kind that a path serves.

use machinery::types;
use shared_json::{Map, Value};

use crate::message::TYPE_META;
use crate::resources::Resource;

/// The real server's name for its table of built-in kinds.
pub(crate) const SCHEME: &str = "pkg/api/legacyscheme/scheme.go:30";

/// Why an object is not of the kind that the path serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Mismatch {
    /// It says no kind that could be read.
    Unrecognized(String),
    /// A custom resource without a kind.
    KindMissing,
    /// A known kind under another group or version than the path's.
    Group(String),
    /// Another kind, or one that is unknown.
    Kind {
        kind: String,
        version: String,
        complaint: String,
    },
    /// A custom resource without a version, and its further error.
    Unversioned(String),
    /// A custom resource of another kind.
    CustomKind(String),
}

/// Checks that `object` is of the resource's kind. A missing `kind` or `apiVersion` of a built-in kind is filled in.
pub(super) fn check(resource: &Resource, object: &mut Value) -> Result<(), Mismatch> {
    if object.is_null() && !resource.is_custom() {
        *object = Value::Object(Map::new());
    }
    let found = json_type(object);
    let Some(map) = object.as_object_mut() else {
        if found == "null" {
            return Err(Mismatch::KindMissing);
        }
        return Err(Mismatch::Unrecognized(format!(
            "couldn't get version/kind; json parse error: json: cannot unmarshal {found} into Go value of type {TYPE_META}"
        )));
    };
    let given_version = text(map, "apiVersion")?;
    let given_kind = text(map, "kind")?;
    if given_version.matches('/').count() > 1 {
        return Err(Mismatch::Unrecognized(format!(
            "unexpected GroupVersion string: {given_version}"
        )));
    }
    // A group without a name is the core one.
    let given_version = given_version.strip_prefix('/').unwrap_or(&given_version);
    if resource.is_custom() {
        check_custom(resource, given_version, &given_kind, map)?;
    } else {
        check_builtin(resource, given_version, &given_kind, map)?;
    }
    map.insert("apiVersion".to_owned(), Value::from(resource.api_version()));
    map.insert("kind".to_owned(), Value::from(resource.kind.clone()));
    Ok(())
}

fn check_custom(
    resource: &Resource,
    given_version: &str,
    given_kind: &str,
    object: &Map,
) -> Result<(), Mismatch> {
    if given_kind.is_empty() {
        return Err(Mismatch::KindMissing);
    }
    if object.get("apiVersion").is_some_and(Value::is_null) {
        let complaint = ".apiVersion accessor error: <nil> is of the type <nil>, expected string";
        return Err(Mismatch::Unversioned(complaint.to_owned()));
    }
    // The metadata is read before anybody compares kinds. Of the right kind it is read with the rest.
    let is_other = (given_version, given_kind) != (&resource.api_version(), &resource.kind);
    if is_other
        && let Some(metadata) = object.get("metadata")
        && let Err(error) = types::object_meta().check_types(metadata)
    {
        let complaint = error.to_string();
        return Err(match given_version.rsplit('/').next() {
            None | Some("") => Mismatch::Unversioned(complaint),
            Some(version) => Mismatch::Kind {
                kind: given_kind.to_owned(),
                version: version.to_owned(),
                complaint,
            },
        });
    }
    if given_version != resource.api_version() {
        return Err(Mismatch::Group(given_version.to_owned()));
    }
    if given_kind != resource.kind {
        return Err(Mismatch::CustomKind(given_kind.to_owned()));
    }
    Ok(())
}

/// Versions that the real server still knows and no longer serves: their names, their present groups, and
/// their kinds.
const RETIRED: [(&str, &str, &[&str]); 15] = [
    (
        "apps/v1beta1",
        "apps",
        &["Deployment", "StatefulSet", "ControllerRevision"],
    ),
    (
        "apps/v1beta2",
        "apps",
        &[
            "Deployment",
            "StatefulSet",
            "ControllerRevision",
            "DaemonSet",
            "ReplicaSet",
        ],
    ),
    (
        "extensions/v1beta1",
        "apps",
        &["Deployment", "DaemonSet", "ReplicaSet"],
    ),
    (
        "extensions/v1beta1",
        "networking.k8s.io",
        &["Ingress", "NetworkPolicy"],
    ),
    ("batch/v1beta1", "batch", &["CronJob"]),
    ("policy/v1beta1", "policy", &["PodDisruptionBudget"]),
    (
        "networking.k8s.io/v1beta1",
        "networking.k8s.io",
        &["Ingress", "IngressClass"],
    ),
    (
        "rbac.authorization.k8s.io/v1beta1",
        "rbac.authorization.k8s.io",
        &["Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"],
    ),
    (
        "rbac.authorization.k8s.io/v1alpha1",
        "rbac.authorization.k8s.io",
        &["Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"],
    ),
    (
        "storage.k8s.io/v1beta1",
        "storage.k8s.io",
        &[
            "StorageClass",
            "VolumeAttachment",
            "CSIDriver",
            "CSINode",
            "CSIStorageCapacity",
        ],
    ),
    (
        "scheduling.k8s.io/v1beta1",
        "scheduling.k8s.io",
        &["PriorityClass"],
    ),
    ("coordination.k8s.io/v1beta1", "coordination.k8s.io", &["Lease"]),
    ("discovery.k8s.io/v1beta1", "discovery.k8s.io", &["EndpointSlice"]),
    ("node.k8s.io/v1beta1", "node.k8s.io", &["RuntimeClass"]),
    (
        "admissionregistration.k8s.io/v1beta1",
        "admissionregistration.k8s.io",
        &["ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"],
    ),
];

/// Whether the real server has a built-in type of this name.
pub(crate) fn is_registered(api_version: &str, kind: &str) -> bool {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    // Every kind has a list of its own.
    let listed = kind.strip_suffix("List").unwrap_or(kind);
    types::builtin_kinds().any(|known| known == (group, version, kind) || known == (group, version, listed))
        || (api_version, kind) == ("v1", "List")
}

/// The complaint about a kind that there is not.
pub(crate) fn unregistered(api_version: &str, kind: &str) -> String {
    format!("no kind \"{kind}\" is registered for version \"{api_version}\" in scheme \"{SCHEME}\"")
}

fn check_builtin(
    resource: &Resource,
    given_version: &str,
    given_kind: &str,
    object: &Map,
) -> Result<(), Mismatch> {
    let expected = resource.api_version();
    let api_version = if given_version.is_empty() {
        expected.as_str()
    } else {
        given_version
    };
    let kind = if given_kind.is_empty() {
        resource.kind.as_str()
    } else {
        given_kind
    };
    if kind == resource.kind && api_version == expected {
        return Ok(());
    }
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let wrong = |complaint: String| {
        Err(Mismatch::Kind {
            kind: kind.to_owned(),
            version: version.to_owned(),
            complaint,
        })
    };
    let retired = |group: &str| {
        RETIRED
            .iter()
            .any(|(version, now, kinds)| (*version, *now) == (api_version, group) && kinds.contains(&kind))
    };
    if kind == resource.kind && retired(&resource.group) {
        return Err(Mismatch::Group(given_version.to_owned()));
    }
    if !is_registered(api_version, kind) {
        return wrong(unregistered(api_version, kind));
    }
    // It is read as what it says it is before anyone finds that it is something else.
    if let Some(schema) = types::builtin((group, version, kind))
        && let Err(error) = schema.check_types(&Value::Object(object.clone()))
    {
        return wrong(error.to_string());
    }
    // Both groups of events have the same kind.
    if kind == resource.kind && (group == resource.group || kind == "Event") {
        return Err(Mismatch::Group(given_version.to_owned()));
    }
    let internal = match resource.group.split('.').next() {
        Some("") | None => "core",
        Some(first) => first,
    };
    wrong(format!(
        "converting ({version}.{kind}) to ({internal}.{}): unknown conversion",
        resource.kind
    ))
}

/// Whether the object's `kind` and `apiVersion` can be read at all.
pub(crate) fn readable(object: &Value) -> Result<(), String> {
    let Some(map) = object.as_object() else {
        return Ok(());
    };
    let text = |field: &str| {
        text(map, field).map_err(|mismatch| match mismatch {
            Mismatch::Unrecognized(complaint) => complaint,
            _ => String::new(),
        })
    };
    let version = text("apiVersion")?;
    text("kind")?;
    if version.matches('/').count() > 1 {
        return Err(format!("unexpected GroupVersion string: {version}"));
    }
    Ok(())
}

fn text(map: &Map, field: &str) -> Result<String, Mismatch> {
    match map.get(field) {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.to_string()),
        Some(other) => Err(Mismatch::Unrecognized(format!(
            "couldn't get version/kind; json parse error: json: cannot unmarshal {} into Go struct field .{field} of type \
             string",
            json_type(other)
        ))),
    }
}

fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Array(_) => "array",
        Value::String(_) => "string",
        Value::Number(_) => "number",
        Value::Bool(_) => "bool",
        Value::Object(_) => "object",
        Value::Null => "null",
    }
}
