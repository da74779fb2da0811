//! Volumes and their providers: PersistentVolumes, classes, drivers, attachments.

use std::collections::{BTreeMap, BTreeSet};

use pod_rules::names;
use shared_json::{Map, Value};

use super::errors::{Errors, IMMUTABLE};
use super::fields::{Fields, NOTHING, same};
use super::path::Path;
use super::volume_sources::{self as sources, Rule};
use super::{amounts, claim, go, immutable, selectors};

/// Where a source stands, how complaints name it (as the second of two, and in itself), and how it is judged.
type Source = (&'static str, &'static str, &'static str, Rule);

const SOURCES: [Source; 22] = [
    ("hostPath", "hostPath", "hostPath", Rule::By(sources::host_path)),
    (
        "gcePersistentDisk",
        "gcePersistentDisk",
        "persistentDisk",
        Rule::By(sources::gce_disk),
    ),
    (
        "awsElasticBlockStore",
        "awsElasticBlockStore",
        "awsElasticBlockStore",
        Rule::By(sources::aws_disk),
    ),
    ("glusterfs", "glusterfs", "glusterfs", Rule::By(glusterfs)),
    ("flocker", "flocker", "flocker", Rule::By(sources::flocker)),
    ("nfs", "nfs", "nfs", Rule::By(sources::nfs)),
    ("rbd", "rbd", "rbd", Rule::Required(&["monitors", "image"])),
    ("quobyte", "quobyte", "quobyte", Rule::By(sources::quobyte)),
    ("cephfs", "cephFS", "cephfs", Rule::Required(&["monitors"])),
    ("iscsi", "iscsi", "iscsi", Rule::By(iscsi)),
    ("cinder", "cinder", "cinder", Rule::By(cinder)),
    ("fc", "fc", "fc", Rule::By(sources::fibre_channel)),
    (
        "flexVolume",
        "flexVolume",
        "flexVolume",
        Rule::By(sources::flex_volume),
    ),
    ("azureFile", "azureFile", "azureFile", Rule::By(azure_file)),
    (
        "vsphereVolume",
        "vsphereVolume",
        "vsphereVolume",
        Rule::Required(&["volumePath"]),
    ),
    (
        "photonPersistentDisk",
        "photonPersistentDisk",
        "photonPersistentDisk",
        Rule::Required(&["pdID"]),
    ),
    (
        "portworxVolume",
        "portworxVolume",
        "portworxVolume",
        Rule::Required(&["volumeID"]),
    ),
    (
        "azureDisk",
        "azureDisk",
        "azureDisk",
        Rule::By(sources::azure_disk),
    ),
    (
        "scaleIO",
        "scaleIO",
        "scaleIO",
        Rule::Required(&["gateway", "system", "volumeName"]),
    ),
    ("local", "local", "local", Rule::By(local)),
    ("storageos", "storageos", "storageos", Rule::By(storage_os)),
    ("csi", "csi", "csi", Rule::By(csi)),
];

fn glusterfs(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    sources::required(source, &["endpoints", "path"], path, errors);
    if let Some(namespace) = source.text_if_set("endpointsNamespace") {
        let at = path.field("endpointsNamespace");
        if namespace.is_empty() {
            let detail = "if the endpointnamespace is set, it must be a valid namespace name";
            errors.invalid(&at, namespace, detail);
        } else {
            errors.problems(&at, namespace, names::label_problems(namespace));
        }
    }
}

fn iscsi(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    sources::iscsi(source, false, path, errors);
}

fn cinder(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    sources::required(source, &["volumeID"], path, errors);
    sources::secret_ref(source, &["name", "namespace"], path, errors);
}

fn azure_file(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    sources::required(source, &["secretName", "shareName"], path, errors);
    if source.text_if_set("secretNamespace") == Some("") {
        errors.required(&path.field("secretNamespace"), "");
    }
}

fn local(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    let place = source.text("path");
    if place.is_empty() {
        return errors.required(&path.field("path"), "");
    }
    sources::no_backsteps(place, &path.field("path"), errors);
}

fn storage_os(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    sources::storage_os(source, &["name", "namespace"], path, errors);
}

fn csi(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    sources::driver_name(source.text("driver"), &path.field("driver"), errors);
    sources::required(source, &["volumeHandle"], path, errors);
    for field in [
        "controllerPublishSecretRef",
        "controllerExpandSecretRef",
        "nodePublishSecretRef",
        "nodeExpandSecretRef",
    ] {
        let Some(reference) = source.part(field) else {
            continue;
        };
        let at = path.field(field);
        let (name, namespace) = (reference.text("name"), reference.text("namespace"));
        if name.is_empty() {
            errors.required(&at.field("name"), "");
        } else {
            errors.problems(&at.field("name"), name, names::subdomain_problems(name));
        }
        if namespace.is_empty() {
            errors.required(&at.field("namespace"), "");
        } else {
            errors.problems(
                &at.field("namespace"),
                namespace,
                names::label_problems(namespace),
            );
        }
    }
}

/// A PersistentVolume.
pub(super) fn volume(volume: &Value, errors: &mut Errors) {
    volume_spec(
        volume.part("spec").unwrap_or(&NOTHING),
        &Path::new("spec"),
        false,
        errors,
    );
}

fn capacity_of_volume(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let at = path.field("capacity");
    let capacity = spec.map("capacity");
    if capacity.is_empty() {
        errors.required(&at, "");
    }
    if !capacity.contains_key("storage") || capacity.len() > 1 {
        let shown = if capacity.is_empty() {
            Value::Null
        } else {
            Value::Object(capacity.clone())
        };
        errors.not_supported(&at, shown, &["storage"]);
    }
    for (name, amount) in capacity {
        amounts::basic(&at.key(name), amount, errors);
        amounts::positive(&at.key(name), amount, errors);
    }
}

/// A volume's spec; that of one that no object stands for has no capacity, and comes from a driver.
fn volume_spec(spec: &Value, path: &Path<'_>, inline: bool, errors: &mut Errors) {
    const INLINE: &str = "may not be specified in the context of inline volumes";
    if inline {
        for field in ["claimRef", "capacity"] {
            if spec
                .part(field)
                .is_some_and(|value| value.as_object().is_some_and(|map| !map.is_empty()))
            {
                errors.forbidden(&path.field(field), INLINE);
            }
        }
        if !spec.has("csi") {
            errors.required(
                &path.field("csi"),
                "has to be specified in the context of inline volumes",
            );
        }
    }
    if spec.list("accessModes").is_empty() {
        errors.required(&path.field("accessModes"), "");
    }
    claim::access_modes(spec, path, errors);
    if !inline {
        capacity_of_volume(spec, path, errors);
    }
    let policy = spec.text("persistentVolumeReclaimPolicy");
    let policy_path = path.field("persistentVolumeReclaimPolicy");
    if inline {
        if !matches!(policy, "" | "Retain") {
            let detail = "may only be Retain in the context of inline volumes";
            errors.forbidden(&policy_path, detail);
        }
        if spec.has("nodeAffinity") {
            errors.forbidden(&path.field("nodeAffinity"), INLINE);
        }
    } else if !policy.is_empty() {
        errors.one_of_or_empty(&policy_path, policy, &["Delete", "Recycle", "Retain"]);
    }
    if let Some(affinity) = spec.part("nodeAffinity").filter(|_| !inline) {
        let at = path.field("nodeAffinity");
        let at = at.field("required");
        match affinity.part("required") {
            Some(selector) => selectors::node_selector(selector, &at, errors),
            None => errors.required(&at, "must specify required node constraints"),
        }
    }
    let mut seen = false;
    for (field, second, name, rule) in SOURCES {
        let Some(source) = spec.part(field) else { continue };
        if seen && field != "flexVolume" {
            errors.forbidden(&path.field(second), "may not specify more than 1 volume type");
            continue;
        }
        seen = true;
        rule.judge(source, &path.field(name), errors);
        if field == "local" && !spec.has("nodeAffinity") {
            errors.required(&path.field("nodeAffinity"), "Local volume requires node affinity");
        }
    }
    if !seen {
        errors.required(path, "must specify a volume type");
    }
    let host_path = spec.part("hostPath").map(|source| source.text("path"));
    if policy == "Recycle"
        && host_path.is_some_and(|place| place.chars().all(|c| c == '/') && !place.is_empty())
    {
        errors.forbidden(&policy_path, "may not be 'recycle' for a hostPath mount of '/'");
    }
    let class = spec.text("storageClassName");
    if !class.is_empty() {
        errors.problems(
            &path.field("storageClassName"),
            class,
            names::subdomain_problems(class),
        );
    }
    if let Some(mode) = spec.text_if_set("volumeMode") {
        errors.one_of_or_empty(&path.field("volumeMode"), mode, &claim::VOLUME_MODES);
    }
    if let Some(class) = spec.text_if_set("volumeAttributesClassName") {
        let at = path.field("volumeAttributesClassName");
        if class.is_empty() {
            errors.required(&at, "an empty string is disallowed");
        } else {
            errors.problems(&at, class, names::subdomain_problems(class));
        }
        if !spec.has("csi") {
            errors.required(
                &path.field("csi"),
                "has to be specified when using volumeAttributesClassName",
            );
        }
    }
}

/// A changed PersistentVolume.
pub(super) fn volume_update(new: &Value, old: &Value, errors: &mut Errors) {
    // The real server looks twice, and says all of it twice.
    volume(new, errors);
    volume(new, errors);
    let source = |object: &Value| -> Value {
        let spec = object.part("spec").unwrap_or(&NOTHING);
        let mut out = Map::new();
        for (field, ..) in SOURCES {
            if let Some(source) = spec.part(field) {
                out.insert(field.to_owned(), source.clone());
            }
        }
        Value::Object(out)
    };
    let (mut new_source, old_source) = (source(new), source(old));
    let expandable = old_source
        .part("csi")
        .is_some_and(|csi| !csi.has("controllerExpandSecretRef"));
    if expandable && let Some(csi) = new_source.pointer_mut("/csi").and_then(Value::as_object_mut) {
        csi.remove("controllerExpandSecretRef");
    }
    let named = |source: &Value| -> Vec<String> {
        let names = source.as_object().into_iter().flat_map(Map::keys);
        names.map(ToString::to_string).collect()
    };
    if named(&new_source) != named(&old_source) || !same(Some(&new_source), Some(&old_source)) {
        let difference = go::difference("core.PersistentVolumeSource", &old_source, &new_source);
        let detail = format!("spec.persistentvolumesource is immutable after creation\n{difference}");
        errors.forbidden(&Path::new("spec.persistentvolumesource"), &detail);
    }
    immutable(new, old, "/spec/volumeMode", &Path::new("volumeMode"), errors);
    if old.pointer("/spec/nodeAffinity").is_some()
        && !same(
            old.pointer("/spec/nodeAffinity"),
            new.pointer("/spec/nodeAffinity"),
        )
    {
        let affinity = new
            .pointer("/spec/nodeAffinity")
            .filter(|affinity| !affinity.is_null());
        let shown = affinity.map_or_else(
            || "null".to_owned(),
            |affinity| go::text("core.VolumeNodeAffinity", Some(affinity)),
        );
        let detail = format!("{IMMUTABLE}, except for updating from beta label to GA");
        errors.invalid_shown(&Path::new("nodeAffinity"), shown, detail);
    }
    if old.pointer("/spec/volumeAttributesClassName").is_some()
        && new.pointer("/spec/volumeAttributesClassName").is_none()
    {
        errors.forbidden(
            &Path::new("spec.volumeAttributesClassName"),
            "update from non-nil value to nil is forbidden",
        );
    }
}

fn provisioner(name: &str, path: &Path<'_>, errors: &mut Errors) {
    if name.is_empty() {
        errors.required(path, "");
    } else {
        let name = name.to_lowercase();
        errors.problems(path, &name, names::qualified_problems(&name));
    }
}

const PARAMETERS_MAX: usize = 512;
const PARAMETER_BYTES_MAX: usize = 256 * 1024;

fn parameters(parameters: &Map, required: bool, errors: &mut Errors) {
    let path = Path::new("parameters");
    if parameters.len() > PARAMETERS_MAX {
        return errors.too_long(&path, PARAMETERS_MAX);
    }
    let mut bytes = 0;
    for (key, value) in parameters {
        if key.is_empty() {
            errors.invalid(&path, "", "field can not be empty.");
        }
        bytes += key.len() + value.as_str().map_or(0, str::len);
    }
    if bytes > PARAMETER_BYTES_MAX {
        errors.too_long(&path, PARAMETER_BYTES_MAX);
    }
    if required && parameters.is_empty() {
        errors.required(&path, "must contain at least one key/value pair");
    }
}

/// A StorageClass.
pub(super) fn class(class: &Value, errors: &mut Errors) {
    provisioner(class.text("provisioner"), &Path::new("provisioner"), errors);
    parameters(class.map("parameters"), false, errors);
    let policy = class.text("reclaimPolicy");
    if !policy.is_empty() {
        errors.one_of_or_empty(&Path::new("reclaimPolicy"), policy, &["Delete", "Retain"]);
    }
    let path = Path::new("volumeBindingMode");
    match class.text_if_set("volumeBindingMode") {
        None => errors.required(&path, ""),
        Some(mode) => errors.one_of_or_empty(&path, mode, &["Immediate", "WaitForFirstConsumer"]),
    }
    let path = Path::new("allowedTopologies");
    let topologies = class.list("allowedTopologies");
    // The real server compares with as many empty ones, too.
    let mut terms: Vec<BTreeMap<&str, BTreeSet<&str>>> = vec![BTreeMap::new(); topologies.len()];
    for (index, term) in topologies.iter().enumerate() {
        let at = path.index(index);
        let expressions = at.field("matchLabelExpressions");
        let mut keys = BTreeSet::new();
        for (index, expression) in term.list("matchLabelExpressions").iter().enumerate() {
            let at = expressions.index(index);
            let values = at.field("values");
            if expression.list("values").is_empty() {
                errors.required(&values, "");
            }
            let mut seen = BTreeSet::new();
            for (index, value) in expression.texts("values").enumerate() {
                if !seen.insert(value) {
                    errors.duplicate(&values.index(index), value);
                }
            }
            let key = expression.text("key");
            errors.problems(&at.field("key"), key, names::qualified_problems(key));
            if !keys.insert(key) {
                errors.duplicate(&at.field("key"), key);
            }
        }
        let meant = meant(term);
        for _ in terms.iter().filter(|term| **term == meant) {
            errors.duplicate(&expressions, "");
        }
        terms.push(meant);
    }
}

/// The requirements of a topology term, regardless of their order.
fn meant(term: &Value) -> BTreeMap<&str, BTreeSet<&str>> {
    let expressions = term.list("matchLabelExpressions").iter();
    expressions
        .map(|expression| (expression.text("key"), expression.texts("values").collect()))
        .collect()
}

/// A changed StorageClass.
pub(super) fn class_update(new: &Value, old: &Value, errors: &mut Errors) {
    class(new, errors);
    for field in ["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"] {
        let pointer = format!("/{field}");
        immutable(new, old, &pointer, &Path::new(field), errors);
    }
}

/// A VolumeAttributesClass.
pub(super) fn attributes_class(class: &Value, errors: &mut Errors) {
    provisioner(class.text("driverName"), &Path::new("driverName"), errors);
    parameters(class.map("parameters"), true, errors);
}

/// A changed VolumeAttributesClass.
pub(super) fn attributes_class_update(new: &Value, old: &Value, errors: &mut Errors) {
    if new.part("driverName") != old.part("driverName") {
        errors.forbidden(&Path::new("driverName"), "updates to driverName are forbidden.");
    }
    if new.part("parameters") != old.part("parameters") {
        errors.forbidden(&Path::new("parameters"), "updates to parameters are forbidden.");
    }
    attributes_class(new, errors);
}

/// A CSIDriver.
pub(super) fn driver(driver: &Value, errors: &mut Errors) {
    let spec = driver.part("spec").unwrap_or(&NOTHING);
    let path = Path::new("spec");
    for (field, shown) in [
        ("attachRequired", "attachedRequired"),
        ("podInfoOnMount", "podInfoOnMount"),
        ("storageCapacity", "storageCapacity"),
    ] {
        if !spec.has(field) {
            errors.required(&path.field(shown), "");
        }
    }
    if let Some(policy) = spec.text_if_set("fsGroupPolicy") {
        errors.one_of_or_empty(
            &path.field("fsGroupPolicy"),
            policy,
            &["File", "None", "ReadWriteOnceWithFSType"],
        );
    }
    let requests = path.field("tokenRequests");
    let mut seen = BTreeSet::new();
    for (index, request) in spec.list("tokenRequests").iter().enumerate() {
        let at = requests.index(index);
        if !seen.insert(request.text("audience")) {
            errors.duplicate(&at.field("audience"), request.text("audience"));
            continue;
        }
        let Some(seconds) = request.int("expirationSeconds") else {
            continue;
        };
        let at = at.field("expirationSeconds");
        if seconds < 600 {
            errors.invalid(&at, seconds, "may not specify a duration less than 10 minutes");
        }
        if seconds > 1 << 32 {
            errors.invalid(
                &at,
                seconds,
                "may not specify a duration larger than 2^32 seconds",
            );
        }
    }
    for mode in spec.texts("volumeLifecycleModes") {
        errors.one_of_or_empty(
            &path.field("volumeLifecycleModes"),
            mode,
            &["Persistent", "Ephemeral"],
        );
    }
    if !spec.has("seLinuxMount") {
        errors.required(&path.field("seLinuxMount"), "");
    }
    if let Some(period) = spec
        .int("nodeAllocatableUpdatePeriodSeconds")
        .filter(|period| *period < 10)
    {
        errors.invalid(
            &path.field("nodeAllocatableUpdatePeriodSeconds"),
            period,
            "must be greater than or equal to 10 seconds",
        );
    }
    if let Some(flag) = spec
        .flag("serviceAccountTokenInSecrets")
        .filter(|_| spec.list("tokenRequests").is_empty())
    {
        errors.invalid(
            &path.field("serviceAccountTokenInSecrets"),
            flag,
            "serviceAccountTokenInSecrets is set but no tokenRequests are specified",
        );
    }
}

/// A changed CSIDriver.
pub(super) fn driver_update(new: &Value, old: &Value, errors: &mut Errors) {
    driver(new, errors);
    let path = Path::new("spec");
    immutable(
        new,
        old,
        "/spec/attachRequired",
        &path.field("attachedRequired"),
        errors,
    );
    immutable(
        new,
        old,
        "/spec/volumeLifecycleModes",
        &path.field("volumeLifecycleModes"),
        errors,
    );
}

const NODE_ID_MAX: usize = 256;

/// A CSINode.
pub(super) fn node(node: &Value, errors: &mut Errors) {
    let spec = node.part("spec").unwrap_or(&NOTHING);
    let path = Path::new("spec.drivers");
    let mut seen = BTreeSet::new();
    for (index, driver) in spec.list("drivers").iter().enumerate() {
        let at = path.index(index);
        let (name, id) = (driver.text("name"), driver.text("nodeID"));
        sources::driver_name(name, &at.field("name"), errors);
        if id.is_empty() {
            errors.required(&at.field("nodeID"), "");
        }
        if id.len() > NODE_ID_MAX {
            let detail = format!("must be {NODE_ID_MAX} characters or less");
            errors.invalid(&at.field("nodeID"), id, detail);
        }
        if let Some(allocatable) = driver.part("allocatable") {
            errors.not_negative(&at.field("allocatable.count"), allocatable.int("count"));
        }
        if !seen.insert(name) {
            errors.duplicate(&at.field("name"), name);
        }
        let mut keys = BTreeSet::new();
        for key in driver.texts("topologyKeys") {
            if key.is_empty() {
                errors.required(&at, "");
            }
            if !keys.insert(key) {
                errors.duplicate(&at, key);
            }
            errors.problems(&at, key, names::qualified_problems(key));
        }
    }
}

/// A changed CSINode.
pub(super) fn node_update(new: &Value, old: &Value, errors: &mut Errors) {
    node(new, errors);
    let drivers = |object: &Value| -> Vec<Value> {
        object
            .part("spec")
            .map(|spec| spec.list("drivers").to_vec())
            .unwrap_or_default()
    };
    let fixed = |driver: &Value| go::only(driver, &["name", "nodeID", "topologyKeys"]);
    let new = drivers(new);
    for before in drivers(old) {
        for driver in new
            .iter()
            .filter(|driver| driver.text("name") == before.text("name"))
        {
            if !same(Some(&fixed(driver)), Some(&fixed(&before))) {
                let shown = go::text("storage.CSINodeDriver", Some(&fixed(driver)));
                errors.invalid_shown(&Path::new("spec.drivers"), shown, IMMUTABLE);
            }
        }
    }
}

/// A VolumeAttachment.
pub(super) fn attachment(attachment: &Value, errors: &mut Errors) {
    let spec = attachment.part("spec").unwrap_or(&NOTHING);
    let path = Path::new("spec");
    sources::driver_name(spec.text("attacher"), &path.field("attacher"), errors);
    let source = spec.part("source").unwrap_or(&NOTHING);
    let at = path.field("source");
    const ONE: &str = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
    let name = source.text_if_set("persistentVolumeName");
    match (source.has("inlineVolumeSpec"), name) {
        (false, None) => errors.required(&at, ONE),
        (true, Some(_)) => errors.forbidden(&at, ONE),
        (false, Some("")) => errors.required(
            &at.field("persistentVolumeName"),
            "must specify non empty persistentVolumeName",
        ),
        _ => {}
    }
    if let Some(inline) = source.part("inlineVolumeSpec").filter(|_| name.is_none()) {
        volume_spec(inline, &at.field("inlineVolumeSpec"), true, errors);
    }
    attachment_status(attachment.part("status").unwrap_or(&NOTHING), errors);
    let node = spec.text("nodeName");
    errors.problems(&path.field("nodeName"), node, names::subdomain_problems(node));
    if let Some(name) = name {
        errors.problems(
            &Path::new("spec.source.persistentVolumeName"),
            name,
            names::subdomain_problems(name),
        );
    }
}

/// The attachment's metadata, and its errors.
fn attachment_status(status: &Value, errors: &mut Errors) {
    let path = Path::new("status");
    let bytes: usize = status
        .map("attachmentMetadata")
        .iter()
        .map(|(key, value)| key.len() + value.as_str().map_or(0, str::len))
        .sum();
    if bytes > ATTACHED_BYTES_MAX {
        errors.too_long(&path.field("attachmentMetadata"), ATTACHED_BYTES_MAX);
    }
    for field in ["attachError", "detachError"] {
        let error = status.part(field).unwrap_or(&NOTHING);
        let at = path.field(field);
        if error.text("message").len() > ERROR_BYTES_MAX {
            // The real server names the other limit.
            errors.too_long(&at.field("message"), ATTACHED_BYTES_MAX);
        }
        if let Some(code) = error.int("errorCode").filter(|code| *code < 0) {
            let detail = "must be between 0 and 2147483647, inclusive";
            errors.invalid(&at.field("errorCode"), code, detail);
        }
    }
}

const ATTACHED_BYTES_MAX: usize = 256 * 1024;
const ERROR_BYTES_MAX: usize = 1024;

/// A changed VolumeAttachment.
pub(super) fn attachment_update(new: &Value, old: &Value, errors: &mut Errors) {
    attachment(new, errors);
    if !same(new.part("spec"), old.part("spec")) {
        let shown = go::text("storage.VolumeAttachmentSpec", new.part("spec"));
        errors.invalid_shown(&Path::new("spec"), shown, IMMUTABLE);
    }
}

/// A CSIStorageCapacity.
pub(super) fn capacity(capacity: &Value, errors: &mut Errors) {
    selectors::selector(capacity.part("nodeTopology"), &Path::new("nodeTopology"), errors);
    let class = capacity.text("storageClassName");
    errors.problems(
        &Path::new("storageClassName"),
        class,
        names::subdomain_problems(class),
    );
    if let Some(amount) = capacity.part("capacity") {
        amounts::not_negative(&Path::new("capacity"), amount, errors);
    }
}

/// A changed CSIStorageCapacity.
pub(super) fn capacity_update(new: &Value, old: &Value, errors: &mut Errors) {
    capacity(new, errors);
    for field in ["nodeTopology", "storageClassName"] {
        let pointer = format!("/{field}");
        immutable(new, old, &pointer, &Path::new(field), errors);
    }
}
