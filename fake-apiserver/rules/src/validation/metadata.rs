//! `metadata`: validated and filled in by the server.

use machinery::meta::{ObjectMeta, string_map};
use pod_rules::field_error::FieldError;
use pod_rules::names;
use shared_json::{Array, Value};

/// Whose metadata is looked at.
#[derive(Debug, Clone, Copy)]
pub struct Of<'a> {
    /// The API group; empty for the core group.
    pub group: &'a str,
    /// The plural, lower-case name.
    pub plural: &'a str,
    /// Whether a definition describes it.
    pub is_custom: bool,
}

/// Annotations may take 256 KiB in all.
const ANNOTATION_BYTES_MAX: usize = 256 * 1024;

/// The finalizers that need no qualified name.
const STANDARD_FINALIZERS: [&str; 3] = ["kubernetes", "orphan", "foregroundDeletion"];

/// The errors in a name of this resource, or in the beginning of one.
fn name_problems(resource: Of<'_>, name: &str) -> Vec<String> {
    match (resource.group, resource.plural) {
        // Recorders of old make names of events from anything.
        ("rbac.authorization.k8s.io" | "policy" | "apiregistration.k8s.io", _) | ("", "events") => {
            names::path_segment_problems(name)
        }
        ("", "namespaces" | "services") | ("apps", "statefulsets") => names::label_problems(name),
        ("networking.k8s.io", "ipaddresses") => super::address_problems(name),
        _ => names::subdomain_problems(name),
    }
}

/// The errors in a name generated from this base, whatever its suffix.
fn prefix_problems(resource: Of<'_>, prefix: &str) -> Vec<String> {
    let masked = match prefix.strip_suffix('-') {
        Some(base) => format!("{base}a"),
        None => prefix.to_owned(),
    };
    name_problems(resource, &masked)
}

/// Kinds whose own rules do not look at the metadata when a part of them is written.
const UNLOOKED: [&str; 4] = [
    "cronjobs",
    "poddisruptionbudgets",
    "volumeattachments",
    "validatingadmissionpolicies",
];

/// How often the real server's own rules of a resource check the metadata of a change, besides the check for all resources:
/// each look complains anew.
struct Looks {
    /// As if the object were new.
    anew: usize,
    /// As at a change.
    change: usize,
    /// Whether finalizers must be qualified or known.
    finalizers: bool,
}

fn looks(resource: Of<'_>) -> Looks {
    let looks = |anew, change, finalizers| Looks {
        anew,
        change,
        finalizers,
    };
    if resource.is_custom {
        return looks(0, 1, false);
    }
    match (resource.group, resource.plural) {
        ("apps", "controllerrevisions") => looks(1, 1, true),
        ("", "persistentvolumes") => looks(2, 0, true),
        ("", "events") | ("policy", _) => looks(0, 0, false),
        ("apiregistration.k8s.io", _) | ("node.k8s.io", _) => looks(1, 1, false),
        ("admissionregistration.k8s.io", _) => looks(1, 0, false),
        ("apiextensions.k8s.io" | "coordination.k8s.io", _) => looks(0, 1, false),
        ("storage.k8s.io", "csinodes" | "volumeattachments")
        | ("discovery.k8s.io" | "flowcontrol.apiserver.k8s.io", _)
        | ("", "limitranges") => looks(1, 0, true),
        ("apps" | "autoscaling" | "scheduling.k8s.io", _)
        | ("batch", "cronjobs")
        | ("storage.k8s.io", "csidrivers")
        | ("networking.k8s.io", "networkpolicies" | "servicecidrs")
        | ("resource.k8s.io", "resourceslices")
        | ("events.k8s.io", _)
        | ("", "podtemplates" | "replicationcontrollers" | "resourcequotas" | "services") => {
            looks(0, 1, true)
        }
        _ => looks(1, 1, true),
    }
}

/// Validates the metadata of a new object.
pub fn validate(resource: Of<'_>, object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    names(resource, object, &mut errors);
    shape(object, &mut errors);
    if looks(resource).finalizers {
        standard_finalizers(object, &mut errors);
    }
    errors
}

/// Validates the metadata of a changed object, or of one of which a part was changed.
pub fn validate_update(resource: Of<'_>, subresource: &str, object: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    still_named(object, &mut errors);
    shape(object, &mut errors);
    change(object, old, &mut errors);
    let looks = if subresource.is_empty() {
        looks(resource)
    } else {
        Looks {
            anew: usize::from(is_judged_last(resource)),
            change: usize::from(resource.is_custom || !UNLOOKED.contains(&resource.plural)),
            finalizers: !resource.is_custom,
        }
    };
    let (mut anew, mut changed) = (Vec::new(), Vec::new());
    for _ in 0..looks.anew {
        still_named(object, &mut anew);
        shape(object, &mut anew);
        if looks.finalizers {
            standard_finalizers(object, &mut anew);
        }
    }
    if !is_judged_last(resource) {
        for _ in 0..looks.change {
            change(object, old, &mut changed);
            if looks.finalizers {
                standard_finalizers(object, &mut changed);
            }
        }
    }
    let change_first = matches!(
        (resource.group, resource.plural),
        (
            "",
            "configmaps" | "endpoints" | "persistentvolumeclaims" | "pods" | "secrets" | "serviceaccounts"
        ) | ("apps", "controllerrevisions")
            | ("networking.k8s.io", "ingresses" | "ingressclasses")
            | ("storage.k8s.io", "volumeattributesclasses")
    );
    if change_first {
        errors.extend(changed.into_iter().chain(anew));
    } else {
        errors.extend(anew.into_iter().chain(changed));
    }
    errors
}

/// Whether the changed metadata is checked again after all else.
fn is_judged_last(resource: Of<'_>) -> bool {
    !resource.is_custom && resource.group == "certificates.k8s.io"
}

/// The look at a change that comes after all others, where there is one.
pub fn validate_last(resource: Of<'_>, object: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if is_judged_last(resource) {
        change(object, old, &mut errors);
        standard_finalizers(object, &mut errors);
    }
    errors
}

/// Validates the metadata of a scale, which may be wrong like that of a new object.
pub fn validate_scale(scale: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for problem in names::subdomain_problems(scale.name()) {
        errors.push(FieldError::invalid("metadata.name", scale.name(), problem));
    }
    shape(scale, &mut errors);
    standard_finalizers(scale, &mut errors);
    errors
}

/// Validates the metadata of a resource within a custom resource: any names do that can stand in a path.
pub(crate) fn validate_embedded(metadata: &Value) -> Vec<FieldError> {
    let object = shared_json::json!({ "metadata": metadata });
    let mut errors = Vec::new();
    for field in ["generateName", "name"] {
        let name = object.meta_str(field);
        for problem in names::path_segment_problems(name) {
            errors.push(FieldError::invalid(format!("metadata.{field}"), name, problem));
        }
    }
    let namespace = object.namespace();
    if !namespace.is_empty() {
        for problem in names::label_problems(namespace) {
            errors.push(FieldError::invalid("metadata.namespace", namespace, problem));
        }
    }
    shape(&object, &mut errors);
    recorded_owners(&object, &mut errors);
    errors
}

/// The errors in entries of managed fields that no other code reads.
fn recorded_owners(object: &Value, errors: &mut Vec<FieldError>) {
    let entries = object
        .pointer("/metadata/managedFields")
        .and_then(Value::as_array);
    for (index, entry) in entries.into_iter().flatten().enumerate() {
        let text = |field: &str| entry.get(field).and_then(Value::as_str).unwrap_or_default();
        let rules = [
            (
                "operation",
                ["Apply", "Update"].contains(&text("operation")),
                "must be `Apply` or `Update`",
            ),
            (
                "fieldsType",
                ["", "FieldsV1"].contains(&text("fieldsType")),
                "must be `FieldsV1`",
            ),
        ];
        for (field, _, detail) in rules.into_iter().filter(|(_, fits, _)| !fits) {
            let path = format!("metadata.managedFields[{index}].{field}");
            errors.push(FieldError::invalid(path, text(field), detail));
        }
    }
}

fn names(resource: Of<'_>, object: &Value, errors: &mut Vec<FieldError>) {
    let base = object.meta_str("generateName");
    if !base.is_empty() {
        for problem in prefix_problems(resource, base) {
            errors.push(FieldError::invalid("metadata.generateName", base, problem));
        }
    }
    let name = object.name();
    if name.is_empty() {
        errors.push(unnamed());
    } else {
        for problem in name_problems(resource, name) {
            errors.push(FieldError::invalid("metadata.name", name, problem));
        }
    }
}

fn unnamed() -> FieldError {
    FieldError::required("metadata.name", "name or generateName is required")
}

/// A webhook can remove the name of a changed object.
fn still_named(object: &Value, errors: &mut Vec<FieldError>) {
    if object.name().is_empty() && object.meta_str("generateName").is_empty() {
        errors.push(unnamed());
    }
}

/// The rules for new and changed objects.
fn shape(object: &Value, errors: &mut Vec<FieldError>) {
    let generation = object.generation();
    if generation < 0 {
        let detail = "must be greater than or equal to 0";
        errors.push(FieldError::invalid("metadata.generation", generation, detail));
    }
    labels_and_owners(object, errors);
    finalizers(object, errors);
}

fn labels_and_owners(object: &Value, errors: &mut Vec<FieldError>) {
    for (key, value) in string_map(object, "labels") {
        for problem in names::qualified_problems(key) {
            errors.push(FieldError::invalid("metadata.labels", key.as_str(), problem));
        }
        let value = value.as_str().unwrap_or_default();
        for problem in names::label_value_problems(value) {
            errors.push(FieldError::invalid("metadata.labels", value, problem));
        }
    }
    let mut annotation_bytes = 0;
    for (key, value) in string_map(object, "annotations") {
        annotation_bytes += key.len() + value.as_str().map_or(0, str::len);
        for problem in names::qualified_problems(&key.to_lowercase()) {
            errors.push(FieldError::invalid("metadata.annotations", key.as_str(), problem));
        }
    }
    if annotation_bytes > ANNOTATION_BYTES_MAX {
        errors.push(FieldError::too_long("metadata.annotations", ANNOTATION_BYTES_MAX));
    }
    validate_owners(object, errors);
}

fn finalizers(object: &Value, errors: &mut Vec<FieldError>) {
    let finalizers = object.finalizers();
    for finalizer in &finalizers {
        for problem in names::qualified_problems(finalizer) {
            errors.push(FieldError::invalid("metadata.finalizers", *finalizer, problem));
        }
    }
    if finalizers.contains(&"orphan") && finalizers.contains(&"foregroundDeletion") {
        let value: Vec<Value> = finalizers.iter().map(|name| Value::from(*name)).collect();
        let detail = "finalizer orphan and foregroundDeletion cannot be both set";
        errors.push(FieldError::invalid("metadata.finalizers", value, detail));
    }
}

fn standard_finalizers(object: &Value, errors: &mut Vec<FieldError>) {
    for (index, finalizer) in object.finalizers().iter().enumerate() {
        if !finalizer.contains('/') && !STANDARD_FINALIZERS.contains(finalizer) {
            let detail = "name is neither a standard finalizer name nor is it fully qualified";
            errors.push(FieldError::invalid(
                format!("metadata.finalizers[{index}]"),
                *finalizer,
                detail,
            ));
        }
    }
}

fn validate_owners(object: &Value, errors: &mut Vec<FieldError>) {
    let path = "metadata.ownerReferences";
    let owners = object
        .metadata()
        .and_then(|meta| meta.get("ownerReferences"))
        .and_then(Value::as_array);
    let owners = owners.map(Array::as_slice).unwrap_or_default();
    let mut controller: Option<String> = None;
    for owner in owners {
        let text = |field: &str| owner.get(field).and_then(Value::as_str).unwrap_or_default();
        let api_version = text("apiVersion");
        if api_version.is_empty() || api_version.ends_with('/') || api_version.matches('/').count() > 1 {
            errors.push(FieldError::invalid(
                format!("{path}.apiVersion"),
                api_version,
                "version must not be empty",
            ));
        }
        for field in ["kind", "name", "uid"] {
            if text(field).is_empty() {
                errors.push(FieldError::invalid(
                    format!("{path}.{field}"),
                    "",
                    "must not be empty",
                ));
            }
        }
        if text("kind") == "Event" && matches!(api_version, "v1" | "events.k8s.io/v1") {
            let shown = if api_version == "v1" { "/v1" } else { api_version };
            let detail = format!("{shown}, Kind=Event is disallowed from being an owner");
            errors.push(FieldError::invalid(path, owner.clone(), detail));
        }
        if owner.get("controller").and_then(Value::as_bool) == Some(true) {
            if let Some(first) = &controller {
                let detail = format!(
                    "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {}/{}",
                    text("kind"),
                    text("name")
                );
                errors.push(FieldError {
                    shown: Some(owners_text(owners)),
                    ..FieldError::invalid(path, Value::Null, detail)
                });
            }
            controller.get_or_insert_with(|| format!("{}/{}", text("kind"), text("name")));
        }
    }
}

/// Owners as the real server's own struct prints.
fn owners_text(owners: &[Value]) -> String {
    let fields = [
        "apiVersion",
        "kind",
        "name",
        "uid",
        "controller",
        "blockOwnerDeletion",
    ];
    let one = |owner: &Value| {
        let parts = fields
            .iter()
            .filter_map(|field| Some(format!("\"{field}\":{}", owner.get(field)?)));
        format!("{{{}}}", parts.collect::<Vec<_>>().join(","))
    };
    format!("[{}]", owners.iter().map(one).collect::<Vec<_>>().join(","))
}

/// The warnings for a client about new finalizers of a custom resource.
pub fn finalizer_warnings(object: &Value, old: Option<&Value>) -> Vec<String> {
    let before = old.map(|old| old.finalizers()).unwrap_or_default();
    let mut out = Vec::new();
    for name in object.finalizers() {
        if before.contains(&name) || name.contains('/') || STANDARD_FINALIZERS.contains(&name) {
            continue;
        }
        let path = if name.contains('.') {
            " including a path (/)"
        } else {
            ""
        };
        out.push(format!(
            "metadata.finalizers: \"{name}\": prefer a domain-qualified finalizer name{path} to avoid accidental conflicts with \
             other finalizer writers"
        ));
    }
    out
}

/// Leaves out owners that are named twice; returns a warning.
pub fn dedup_owners(object: &mut Value) -> Option<String> {
    let owners = object
        .pointer_mut("/metadata/ownerReferences")
        .and_then(Value::as_array_mut)?;
    let mut twice = Vec::new();
    let mut kept = Array::with_capacity(owners.len());
    for owner in std::mem::take(owners) {
        if kept.contains(&owner) {
            twice.push(
                owner
                    .get("uid")
                    .and_then(Value::as_str)
                    .unwrap_or_default()
                    .to_owned(),
            );
        } else {
            kept.push(owner);
        }
    }
    *owners = kept;
    (!twice.is_empty()).then(|| {
        format!(
            ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and \
             may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
            twice.join(", ")
        )
    })
}

/// The rules for a change: immutable fields, and errors that must not stay.
fn change(object: &Value, old: &Value, errors: &mut Vec<FieldError>) {
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
    let (now, before) = (object.metadata(), old.metadata());
    for field in [
        "name",
        "namespace",
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    ] {
        let value = now.and_then(|now| now.get(field));
        if value != before.and_then(|before| before.get(field)) {
            let none = match field {
                "name" | "namespace" | "uid" => Value::from(""),
                _ => Value::Null,
            };
            let value = value.cloned().unwrap_or(none);
            errors.push(FieldError::invalid(
                format!("metadata.{field}"),
                value,
                "field is immutable",
            ));
        }
    }
    labels_and_owners(object, errors);
}
