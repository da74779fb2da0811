//! The sources of a volume's content; the rules that pods and persistent volumes share.

use shared_json::Value;

use super::errors::{Errors, range_text};
use super::fields::Fields;
use super::path::Path;
use crate::names;

/// How one kind of source is judged.
#[derive(Clone, Copy)]
pub enum Rule {
    /// These fields are required, and nothing else is looked at.
    Required(&'static [&'static str]),
    /// By a function.
    By(fn(&Value, &Path<'_>, &mut Errors)),
}

impl Rule {
    /// Checks a source by the rule.
    pub fn judge(self, source: &Value, path: &Path<'_>, errors: &mut Errors) {
        match self {
            Rule::Required(fields) => required(source, fields, path, errors),
            Rule::By(judge) => judge(source, path, errors),
        }
    }
}

/// Fields that must not be empty.
pub fn required(source: &Value, fields: &[&str], path: &Path<'_>, errors: &mut Errors) {
    for field in fields {
        let missing = match source.part(field) {
            None => true,
            Some(Value::String(text)) => text.is_empty(),
            Some(Value::Array(list)) => list.is_empty(),
            Some(_) => false,
        };
        if missing {
            errors.required(&path.field(field), "");
        }
    }
}

/// A reference to a secret, if there is one, must say these.
pub fn secret_ref(source: &Value, fields: &[&str], path: &Path<'_>, errors: &mut Errors) {
    if let Some(reference) = source.part("secretRef") {
        required(reference, fields, &path.field("secretRef"), errors);
    }
}

const MODE_MOST: i64 = 0o777;
/// The complaint about modes of files.
pub const MODE_TEXT: &str = "must be a number between 0 and 0777 (octal), both inclusive";

/// Permissions of files, if given.
pub fn mode(source: &Value, field: &str, path: &Path<'_>, errors: &mut Errors) {
    if let Some(mode) = source.int(field).filter(|mode| !(0..=MODE_MOST).contains(mode)) {
        errors.invalid(&path.field(field), mode, MODE_TEXT);
    }
}

/// A path without `..`.
pub fn no_backsteps(text: &str, path: &Path<'_>, errors: &mut Errors) {
    if text.split('/').any(|part| part == "..") {
        errors.invalid(path, text, "must not contain '..'");
    }
}

/// A relative path that stays below where it starts.
pub fn descending(text: &str, path: &Path<'_>, errors: &mut Errors) {
    if text.starts_with('/') {
        errors.invalid(path, text, "must be a relative path");
    }
    no_backsteps(text, path, errors);
}

/// The same, and no name that the kubelet reserves.
pub fn not_reserved(text: &str, path: &Path<'_>, errors: &mut Errors) {
    descending(text, path, errors);
    if text.starts_with("..") && !text.starts_with("../") {
        errors.invalid(path, text, "must not start with '..'");
    }
}

/// A `hostPath` volume.
pub fn host_path(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    if source.text("path").is_empty() {
        return errors.required(&path.field("path"), "");
    }
    no_backsteps(source.text("path"), &path.field("path"), errors);
    if let Some(kind) = source.text_if_set("type") {
        let known = [
            "",
            "BlockDevice",
            "CharDevice",
            "Directory",
            "DirectoryOrCreate",
            "File",
            "FileOrCreate",
            "Socket",
        ];
        errors.one_of_or_empty(&path.field("type"), kind, &known);
    }
}

/// A volume on a cloud's disk, which is named by `field`.
fn disk(source: &Value, field: &str, path: &Path<'_>, errors: &mut Errors) {
    required(source, &[field], path, errors);
    if let Some(partition) = source
        .int("partition")
        .filter(|partition| !(0..=255).contains(partition))
    {
        errors.invalid(&path.field("partition"), partition, range_text(1, 255));
    }
}

/// A `gcePersistentDisk` volume.
pub fn gce_disk(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    disk(source, "pdName", path, errors);
}

/// An `awsElasticBlockStore` volume.
pub fn aws_disk(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    disk(source, "volumeID", path, errors);
}

/// An `nfs` volume.
pub fn nfs(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    required(source, &["server", "path"], path, errors);
    let place = source.text("path");
    if !place.starts_with('/') {
        errors.invalid(&path.field("path"), place, "must be an absolute path");
    }
}

/// Names of iSCSI targets and initiators: `iqn.2001-04.com.example:…`, `eui.` and 16, `naa.` and 32 characters.
fn is_iscsi_name(name: &str) -> Option<bool> {
    if let Some(rest) = name.strip_prefix("iqn") {
        let fits = rest.strip_prefix('.').and_then(|rest| {
            let (date, rest) = rest.split_once('.')?;
            let (year, month) = date.split_once('-')?;
            let digits = |text: &str, count| text.len() == count && text.bytes().all(|b| b.is_ascii_digit());
            let (domain, name) = rest.split_once(':')?;
            let domain_fits = !domain.is_empty()
                && domain
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.'));
            let name_fits = !name.is_empty()
                && !name
                    .chars()
                    .any(|c| c.is_whitespace() || matches!(c, ',' | ';' | '*' | '&' | '$' | '|'));
            Some(digits(year, 4) && digits(month, 2) && domain_fits && name_fits)
        });
        return Some(fits.unwrap_or(false));
    }
    for (prefix, length) in [("eui", 16), ("naa", 32)] {
        if let Some(rest) = name.strip_prefix(prefix) {
            let rest = rest.get(1..).unwrap_or_default();
            return Some(rest.len() == length && rest.bytes().all(|b| b.is_ascii_alphanumeric()));
        }
    }
    None
}

/// An iSCSI disk of pods (`of_pod`) and of persistent volumes.
pub fn iscsi(source: &Value, of_pod: bool, path: &Path<'_>, errors: &mut Errors) {
    required(source, &["targetPortal", "iqn"], path, errors);
    let unknown = if of_pod {
        "must be valid format starting with iqn, eui, or naa"
    } else {
        "must be valid format"
    };
    let mut judge = |name: &str, field: &str| match is_iscsi_name(name) {
        Some(true) => {}
        Some(false) => errors.invalid(&path.field(field), name, "must be valid format"),
        None => errors.invalid(&path.field(field), name, unknown),
    };
    if !source.text("iqn").is_empty() {
        judge(source.text("iqn"), "iqn");
    }
    let initiator = source.text_if_set("initiatorName");
    if let Some(lun) = source.int("lun").filter(|lun| !(0..=255).contains(lun)) {
        errors.invalid(&path.field("lun"), lun, range_text(0, 255));
    }
    let secured = source.is_true("chapAuthDiscovery") || source.is_true("chapAuthSession");
    if secured && !source.has("secretRef") {
        errors.required(&path.field("secretRef"), "");
    }
    if !of_pod {
        secret_ref(source, &["name"], path, errors);
    }
    if let Some(initiator) = initiator {
        match is_iscsi_name(initiator) {
            Some(true) => {}
            Some(false) => errors.invalid(&path.field("initiatorname"), initiator, "must be valid format"),
            None => errors.invalid(&path.field("initiatorname"), initiator, unknown),
        }
    }
}

/// An `fc` volume.
pub fn fibre_channel(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    let (wwns, wwids) = (source.list("targetWWNs"), source.list("wwids"));
    let at = path.field("targetWWNs");
    if wwns.is_empty() && wwids.is_empty() {
        errors.required(&at, "must specify either targetWWNs or wwids, but not both");
    }
    if !wwns.is_empty() && !wwids.is_empty() {
        let detail = "targetWWNs and wwids can not be specified simultaneously";
        errors.invalid(&at, wwns.to_vec(), detail);
    }
    if !wwns.is_empty() {
        match source.int("lun") {
            None => errors.required(&path.field("lun"), "lun is required if targetWWNs is specified"),
            Some(lun) => errors.in_range(&path.field("lun"), lun, 0, 255),
        }
    }
}

/// A `flocker` volume.
pub fn flocker(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    let (name, uuid) = (source.text("datasetName"), source.text("datasetUUID"));
    if name.is_empty() && uuid.is_empty() {
        errors.required(path, "one of datasetName and datasetUUID is required");
    }
    if !name.is_empty() && !uuid.is_empty() {
        let detail = "datasetName and datasetUUID can not be specified simultaneously";
        errors.invalid(path, "resource", detail);
    }
    if name.contains('/') {
        errors.invalid(&path.field("datasetName"), name, "must not contain '/'");
    }
}

/// A `quobyte` volume.
pub fn quobyte(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    const PAIRS: &str = "must be a host:port pair or multiple pairs separated by commas";
    let registry = source.text("registry");
    if registry.is_empty() {
        errors.required(&path.field("registry"), PAIRS);
    } else if source.text("tenant").len() >= 65 {
        errors.required(
            &path.field("tenant"),
            "must be a UUID and may not exceed a length of 64 characters",
        );
    } else {
        for pair in registry.split(',') {
            if pair.matches(':').count() != 1 {
                errors.invalid(&path.field("registry"), registry, PAIRS);
            }
        }
    }
    required(source, &["volume"], path, errors);
}

/// A `flexVolume`.
pub fn flex_volume(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    required(source, &["driver"], path, errors);
    let options = path.field("options");
    for key in source.map("options").keys() {
        let domain = key.split_once('/').map_or(key.as_str(), |(domain, _)| domain);
        let domain = format!(".{}", domain.to_lowercase());
        if domain.ends_with(".kubernetes.io") || domain.ends_with(".k8s.io") {
            let detail = "kubernetes.io and k8s.io namespaces are reserved";
            errors.invalid(&options.key(key), key.as_str(), detail);
        }
    }
}

/// An `azureDisk` volume.
pub fn azure_disk(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    required(source, &["diskName", "diskURI"], path, errors);
    if let Some(mode) = source.text_if_set("cachingMode") {
        errors.one_of_or_empty(
            &path.field("cachingMode"),
            mode,
            &["None", "ReadOnly", "ReadWrite"],
        );
    }
    let Some(kind) = source.text_if_set("kind") else {
        return;
    };
    errors.one_of_or_empty(&path.field("kind"), kind, &["Dedicated", "Managed", "Shared"]);
    let uri = source.text("diskURI");
    let (begins, form) = if kind == "Managed" {
        (
            "/subscriptions/",
            "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}",
        )
    } else {
        (
            "https://",
            "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd",
        )
    };
    if !uri.starts_with(begins) {
        errors.not_supported(&path.field("diskURI"), uri, &[form]);
    }
}

/// StorageOS, whose secret must say these.
pub fn storage_os(source: &Value, secret: &[&str], path: &Path<'_>, errors: &mut Errors) {
    required(source, &["volumeName"], path, errors);
    for field in ["volumeName", "volumeNamespace"] {
        let name = source.text(field);
        if !name.is_empty() {
            errors.problems(&path.field(field), name, names::label_problems(name));
        }
    }
    secret_ref(source, secret, path, errors);
}

/// The name of a CSI driver.
pub fn driver_name(name: &str, path: &Path<'_>, errors: &mut Errors) {
    if name.is_empty() {
        return errors.required(path, "");
    }
    if name.len() > names::LABEL_BYTES_MAX {
        errors.too_long(path, names::LABEL_BYTES_MAX);
    }
    errors.problems(path, name, names::subdomain_problems(&name.to_lowercase()));
}
