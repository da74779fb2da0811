//! PersistentVolumeClaims.

use shared_json::Value;

use super::amounts;
use super::errors::{Errors, IMMUTABLE};
use super::fields::{Fields, NOTHING, same};
use super::path::Path;
use super::selectors;
use crate::names;
use crate::quantity::Quantity;

const BETA_CLASS: &str = "volume.beta.kubernetes.io/storage-class";
/// How volumes may be used.
pub const ACCESS_MODES: [&str; 4] = [
    "ReadOnlyMany",
    "ReadWriteMany",
    "ReadWriteOnce",
    "ReadWriteOncePod",
];
/// The modes of volumes.
pub const VOLUME_MODES: [&str; 2] = ["Block", "Filesystem"];

/// Modes of access: known ones, and the exclusive one alone.
pub fn access_modes(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let at = path.field("accessModes");
    for mode in spec.texts("accessModes") {
        errors.one_of_or_empty(&at, mode, &ACCESS_MODES);
    }
    let exclusive = spec.texts("accessModes").any(|mode| mode == "ReadWriteOncePod");
    let shared = spec
        .texts("accessModes")
        .any(|mode| mode != "ReadWriteOncePod" && ACCESS_MODES.contains(&mode));
    if exclusive && shared {
        errors.forbidden(&at, "may not use ReadWriteOncePod with other access modes");
    }
}

/// The spec of a claim, or of a template of claims.
pub fn spec(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    if spec.list("accessModes").is_empty() {
        errors.required(&path.field("accessModes"), "at least 1 access mode is required");
    }
    selectors::selector(spec.part("selector"), &path.field("selector"), errors);
    access_modes(spec, path, errors);
    let at = path.field("resources");
    let at = at.key("storage");
    let resources = spec.part("resources").unwrap_or(&NOTHING);
    match resources.map("requests").get("storage") {
        None => errors.required(&at, ""),
        Some(amount) => {
            if amounts::positive(&at, amount, errors) {
                amounts::of_resource("storage", &at, amount, errors);
            }
        }
    }
    class_name(spec, "storageClassName", path, errors);
    if let Some(mode) = spec.text_if_set("volumeMode") {
        errors.one_of_or_empty(&path.field("volumeMode"), mode, &VOLUME_MODES);
    }
    for field in ["dataSource", "dataSourceRef"] {
        if let Some(source) = spec.part(field) {
            data_source(source, &path.field(field), errors);
        }
    }
    if let (Some(source), Some(reference)) = (spec.part("dataSource"), spec.part("dataSourceRef")) {
        // The path itself is the value here: so the real server prints it.
        let value = || Value::Object(shared_json::Map::new());
        if !reference.text("namespace").is_empty() {
            let detail = "may not be specified when dataSourceRef.namespace is specified";
            errors.invalid(path, value(), detail);
        } else if ["apiGroup", "kind", "name"]
            .iter()
            .any(|field| source.part(field) != reference.part(field))
        {
            errors.invalid(path, value(), "must match dataSourceRef");
        }
    }
    class_name(spec, "volumeAttributesClassName", path, errors);
}

fn class_name(spec: &Value, field: &str, path: &Path<'_>, errors: &mut Errors) {
    let name = spec.text(field);
    if !name.is_empty() {
        errors.problems(&path.field(field), name, names::subdomain_problems(name));
    }
}

fn data_source(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    super::volume_sources::required(source, &["name", "kind"], path, errors);
    let (group, kind) = (source.text("apiGroup"), source.text("kind"));
    if group.is_empty() && kind != "PersistentVolumeClaim" {
        let detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
        errors.invalid(path, kind, detail);
    }
    if !group.is_empty() {
        errors.problems(&path.field("apiGroup"), group, names::subdomain_problems(group));
    }
    let namespace = source.text("namespace");
    if !namespace.is_empty() {
        errors.problems(
            &path.field("namespace"),
            namespace,
            names::label_problems(namespace),
        );
    }
}

/// A claim.
pub fn create(claim: &Value, errors: &mut Errors) {
    spec(claim.part("spec").unwrap_or(&NOTHING), &Path::new("spec"), errors);
}

const ONLY: &str = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n";

/// A changed claim.
pub fn update(claim: &Value, old: &Value, errors: &mut Errors) {
    create(claim, errors);
    let of = |object: &'_ Value| object.part("spec").cloned().unwrap_or_default();
    let (mut new_spec, mut old_spec) = (of(claim), of(old));
    let annotation = |object: &Value| -> Option<String> {
        object
            .part("metadata")
            .and_then(|meta| meta.map("annotations").text_if_set(BETA_CLASS))
            .map(str::to_owned)
    };
    let (new_class, old_class) = (annotation(claim), annotation(old));
    if old_spec.text("volumeName").is_empty() {
        set(&mut old_spec, "volumeName", new_spec.part("volumeName").cloned());
    }
    let from_annotation = old_class.is_some()
        && !old_spec.has("storageClassName")
        && new_spec.text_if_set("storageClassName").map(str::to_owned) == old_class
        && (new_class.is_none() || new_class == old_class);
    if from_annotation {
        set(&mut new_spec, "storageClassName", None);
    } else {
        if new_class != old_class {
            let shown = new_class.unwrap_or_default();
            errors.invalid(
                &Path::new("metadata.annotations").field(BETA_CLASS),
                shown,
                IMMUTABLE,
            );
        }
        let from_nothing = new_spec.has("storageClassName")
            && !old_spec.has("storageClassName")
            && (old_class.is_none()
                || new_spec.text_if_set("storageClassName").map(str::to_owned) == old_class);
        if from_nothing {
            set(&mut new_spec, "storageClassName", None);
        }
    }
    let size = |spec: &Value| -> Quantity {
        spec.part("resources")
            .and_then(|resources| resources.map("requests").get("storage"))
            .map_or(Quantity::count(0), Quantity::of)
    };
    let (new_size, old_size) = (size(&new_spec), size(&old_spec));
    let status = claim.part("status").unwrap_or(&NOTHING);
    if status.text("phase") == "Bound" {
        if let Some(requests) = new_spec
            .pointer_mut("/resources/requests")
            .and_then(Value::as_object_mut)
        {
            let before = old_spec.pointer("/resources/requests/storage").cloned();
            requests.insert("storage".to_owned(), before.unwrap_or_default());
        }
        set(
            &mut new_spec,
            "volumeAttributesClassName",
            old_spec.part("volumeAttributesClassName").cloned(),
        );
    }
    let path = Path::new("spec");
    if !same(Some(&new_spec), Some(&old_spec)) {
        let shown = super::go::difference("core.PersistentVolumeClaimSpec", &old_spec, &new_spec);
        errors.forbidden(&path, &format!("{ONLY}{shown}"));
    }
    if new_size.nanos() < old_size.nanos() {
        let capacity = old
            .part("status")
            .and_then(|status| status.map("capacity").get("storage"))
            .map_or(Quantity::count(0), Quantity::of);
        if new_size.nanos() <= capacity.nanos() {
            errors.forbidden(
                &path.field("resources.requests.storage"),
                "field can not be less than status.capacity",
            );
        }
    }
    let mode = |object: &Value| object.pointer("/spec/volumeMode").cloned();
    if mode(claim) != mode(old) {
        errors.invalid(
            &Path::new("volumeMode"),
            mode(claim).unwrap_or_default(),
            IMMUTABLE,
        );
    }
}

fn set(spec: &mut Value, field: &str, value: Option<Value>) {
    if let Some(spec) = spec.as_object_mut() {
        match value {
            Some(value) => spec.insert(field.to_owned(), value),
            None => spec.remove(field),
        };
    }
}

/// A changed status of a claim.
pub fn status(claim: &Value, _old: &Value, errors: &mut Errors) {
    let status = claim.part("status").unwrap_or(&NOTHING);
    let spec = claim.part("spec").unwrap_or(&NOTHING);
    if spec.list("accessModes").is_empty() {
        errors.required(&Path::new("Spec.accessModes"), "");
    }
    let path = Path::new("status.capacity");
    for (name, amount) in status.map("capacity") {
        amounts::basic(&path.key(name), amount, errors);
    }
    let path = Path::new("status.allocatedResourceStatuses");
    for (name, state) in status.map("allocatedResourceStatuses") {
        is_storage(name, &path, errors);
        if !RESIZE_STATES.contains(&state.as_str().unwrap_or_default()) {
            errors.not_supported(&path, name, &RESIZE_STATES);
        }
    }
    let path = Path::new("status.allocatedResources");
    for (name, amount) in status.map("allocatedResources") {
        if is_storage(name, &path, errors) {
            amounts::basic(&path.key(name), amount, errors);
        }
    }
}

const RESIZE_STATES: [&str; 5] = [
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
];

/// Whether a claim can request an amount of this resource: storage, or a resource that is not Kubernetes' own.
fn is_storage(name: &str, path: &Path<'_>, errors: &mut Errors) -> bool {
    let problems = names::qualified_problems(name);
    let is_named = problems.is_empty();
    errors.problems(path, name, problems);
    let is_other = amounts::is_native(name) && name != "storage";
    if is_named && is_other {
        errors.not_supported(path, name, &["storage"]);
    }
    is_named && !is_other
}
