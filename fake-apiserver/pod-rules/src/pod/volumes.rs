//! The volumes of a pod.

use std::collections::BTreeSet;

use shared_json::Value;

use super::{Scope, downward};
use crate::amounts;
use crate::claim;
use crate::errors::Errors;
use crate::fields::Fields;
use crate::go::METADATA;
use crate::names;
use crate::path::Path;
use crate::quantity::Quantity;
use crate::selectors;
use crate::volume_sources::{self as sources, Rule};

/// Where a source stands, how complaints name it (as the second of two, and in itself), and how it is judged.
type Source = (&'static str, &'static str, &'static str, Rule);

/// The kinds of sources that are judged by themselves, in the real server's order.
const SOURCES: [Source; 25] = [
    ("emptyDir", "emptyDir", "emptyDir", Rule::By(empty_dir)),
    ("hostPath", "hostPath", "hostPath", Rule::By(sources::host_path)),
    ("gitRepo", "gitRepo", "gitRepo", Rule::By(git_repo)),
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
    ("secret", "secret", "secret", Rule::By(secret)),
    ("nfs", "nfs", "nfs", Rule::By(sources::nfs)),
    ("iscsi", "iscsi", "iscsi", Rule::By(iscsi)),
    (
        "glusterfs",
        "glusterfs",
        "glusterfs",
        Rule::Required(&["endpoints", "path"]),
    ),
    ("flocker", "flocker", "flocker", Rule::By(sources::flocker)),
    (
        "persistentVolumeClaim",
        "persistentVolumeClaim",
        "persistentVolumeClaim",
        Rule::Required(&["claimName"]),
    ),
    ("rbd", "rbd", "rbd", Rule::Required(&["monitors", "image"])),
    ("cinder", "cinder", "cinder", Rule::By(cinder)),
    ("cephfs", "cephFS", "cephfs", Rule::Required(&["monitors"])),
    ("quobyte", "quobyte", "quobyte", Rule::By(sources::quobyte)),
    // The misspelling is the real server's.
    ("downwardAPI", "downwarAPI", "downwardAPI", Rule::By(downward_api)),
    ("fc", "fc", "fc", Rule::By(sources::fibre_channel)),
    (
        "flexVolume",
        "flexVolume",
        "flexVolume",
        Rule::By(sources::flex_volume),
    ),
    ("configMap", "configMap", "configMap", Rule::By(config_map)),
    (
        "azureFile",
        "azureFile",
        "azureFile",
        Rule::Required(&["secretName", "shareName"]),
    ),
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
    ("storageos", "storageos", "storageos", Rule::By(storage_os)),
];

/// The rest of them, judged after those above.
const MORE_SOURCES: [Source; 5] = [
    ("projected", "projected", "projected", Rule::By(projected)),
    (
        "scaleIO",
        "scaleIO",
        "scaleIO",
        Rule::Required(&["gateway", "system", "volumeName"]),
    ),
    ("csi", "csi", "csi", Rule::By(csi)),
    ("ephemeral", "ephemeral", "ephemeral", Rule::By(ephemeral)),
    ("image", "image", "image", Rule::By(image)),
];

const SECOND: &str = "may not specify more than 1 volume type";

/// The volumes; gives those that others may refer to.
pub(super) fn check<'a>(
    scope: &Scope<'a>,
    volumes: &'a [Value],
    path: &Path<'_>,
    errors: &mut Errors,
) -> Vec<(&'a str, &'a Value)> {
    let mut known: Vec<(&str, &Value)> = Vec::new();
    let pod = scope.name();
    for (index, volume) in volumes.iter().enumerate() {
        let at = path.index(index);
        let found = errors.len();
        let name = volume.text("name");
        check_source(scope, volume, &at, errors);
        if name.is_empty() {
            errors.required(&at.field("name"), "");
        } else {
            errors.problems(&at.field("name"), name, names::label_problems(name));
        }
        if known.iter().any(|(other, _)| *other == name) {
            errors.duplicate(&at.field("name"), name);
        }
        if errors.len() == found {
            known.push((name, volume));
        }
        if let Some(claim) = volume.part("persistentVolumeClaim")
            && !pod.is_empty()
        {
            let made = volumes.iter().any(|other| {
                other.has("ephemeral")
                    && claim
                        .text("claimName")
                        .strip_prefix(pod)
                        .and_then(|rest| rest.strip_prefix('-'))
                        == Some(other.text("name"))
            });
            if made {
                let detail = "must not reference a PVC that gets created for an ephemeral volume";
                errors.invalid(
                    &at.field("persistentVolumeClaim.claimName"),
                    claim.text("claimName"),
                    detail,
                );
            }
        }
    }
    known
}

fn check_source(scope: &Scope<'_>, volume: &Value, path: &Path<'_>, errors: &mut Errors) {
    let mut seen = false;
    for (field, second, name, rule) in SOURCES.iter().chain(&MORE_SOURCES) {
        let Some(source) = volume.part(field) else {
            continue;
        };
        if seen {
            errors.forbidden(&path.field(second), SECOND);
            continue;
        }
        seen = true;
        let at = path.field(name);
        if *field == "image" && scope.is_pod && source.text("reference").is_empty() {
            errors.required(&at.field("reference"), "");
        }
        rule.judge(source, &at, errors);
        match *field {
            "iscsi" => {
                let (name, portal) = (volume.text("name"), source.text("targetPortal"));
                if source.has("initiatorName") && name.len() + 1 + portal.len() > 64 {
                    let detail = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if \
                                  iscsi.initiatorName is specified.";
                    errors.invalid(&path.field("name"), name, detail);
                }
            }
            "ephemeral" => {
                let (pod, name) = (scope.name(), volume.text("name"));
                if !pod.is_empty() && !name.is_empty() {
                    let claim = format!("{pod}-{name}");
                    for problem in names::subdomain_problems(&claim) {
                        let detail = format!("PVC name \"{claim}\": {problem}");
                        errors.invalid(&path.field("name"), name, detail);
                    }
                }
            }
            _ => {}
        }
    }
    if !seen {
        errors.required(path, "must specify a volume type");
    }
}

fn empty_dir(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    if source
        .part("sizeLimit")
        .is_some_and(|limit| Quantity::of(limit).nanos() < 0)
    {
        errors.forbidden(
            &path.field("sizeLimit"),
            "SizeLimit field must be a valid resource quantity",
        );
    }
}

fn git_repo(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    sources::required(source, &["repository"], path, errors);
    sources::descending(source.text("directory"), &path.field("directory"), errors);
}

fn iscsi(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    sources::iscsi(source, true, path, errors);
}

fn cinder(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    sources::required(source, &["volumeID"], path, errors);
    sources::secret_ref(source, &["name"], path, errors);
}

fn storage_os(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    sources::storage_os(source, &["name"], path, errors);
}

fn key_to_path(item: &Value, path: &Path<'_>, errors: &mut Errors) {
    sources::required(item, &["key", "path"], path, errors);
    sources::not_reserved(item.text("path"), &path.field("path"), errors);
    sources::mode(item, "mode", path, errors);
}

fn keyed_files(source: &Value, name: &str, path: &Path<'_>, errors: &mut Errors) {
    sources::required(source, &[name], path, errors);
    sources::mode(source, "defaultMode", path, errors);
    let items = path.field("items");
    for (index, item) in source.list("items").iter().enumerate() {
        key_to_path(item, &items.index(index), errors);
    }
}

fn secret(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    keyed_files(source, "secretName", path, errors);
}

fn config_map(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    keyed_files(source, "name", path, errors);
}

fn downward_api(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    sources::mode(source, "defaultMode", path, errors);
    for file in source.list("items") {
        downward_file(file, path, errors);
    }
}

fn downward_file(file: &Value, path: &Path<'_>, errors: &mut Errors) {
    sources::required(file, &["path"], path, errors);
    sources::not_reserved(file.text("path"), &path.field("path"), errors);
    match (file.part("fieldRef"), file.part("resourceFieldRef")) {
        (Some(field), resource) => {
            downward::field_ref(field, downward::Place::Volume, &path.field("fieldRef"), errors);
            if resource.is_some() {
                let detail = "fieldRef and resourceFieldRef can not be specified simultaneously";
                errors.invalid(path, "resource", detail);
            }
        }
        (None, Some(resource)) => {
            downward::resource_ref(
                resource,
                downward::Place::Volume,
                &path.field("resourceFieldRef"),
                errors,
            );
        }
        (None, None) => errors.required(path, "one of fieldRef and resourceFieldRef is required"),
    }
    sources::mode(file, "mode", path, errors);
}

fn csi(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    sources::driver_name(source.text("driver"), &path.field("driver"), errors);
    if let Some(reference) = source.part("nodePublishSecretRef") {
        let name = reference.text("name");
        if name.is_empty() {
            errors.required(&path.field("nodePublishSecretRef.name"), "");
        } else {
            errors.problems(&path.field("name"), name, names::subdomain_problems(name));
        }
    }
}

/// The metadata of a template for claims: annotations and labels alone.
pub fn template_metadata(template: &Value, path: &Path<'_>, errors: &mut Errors) {
    let metadata = path.field("metadata");
    let meta = template.part("metadata").unwrap_or(&crate::fields::NOTHING);
    super::template::annotations(meta.map("annotations"), &metadata.field("annotations"), errors);
    selectors::labels(meta.map("labels"), &metadata.field("labels"), errors);
    let fields = METADATA
        .into_iter()
        .filter(|field| !matches!(*field, "labels" | "annotations"));
    for field in fields {
        if meta.part(field).is_some_and(|value| value.as_str() != Some("")) {
            // Names of Go's fields are shown with a small letter before them.
            let shown = if field == "uid" { "uID" } else { field };
            errors.forbidden(&metadata.field(shown), "cannot be set");
        }
    }
}

fn ephemeral(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    let at = path.field("volumeClaimTemplate");
    let Some(template) = source.part("volumeClaimTemplate") else {
        return errors.required(&at, "");
    };
    template_metadata(template, &at, errors);
    let spec = template.part("spec").unwrap_or(&crate::fields::NOTHING);
    claim::spec(spec, &at.field("spec"), errors);
}

fn image(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    super::containers::pull_policy(source.text("pullPolicy"), &path.field("pullPolicy"), errors);
}

fn projected(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    sources::mode(source, "defaultMode", path, errors);
    let mut places: BTreeSet<&str> = BTreeSet::new();
    let list = path.field("sources");
    for (index, part) in source.list("sources").iter().enumerate() {
        let at = list.index(index);
        let mut kinds = 0;
        for kind in ["secret", "configMap"] {
            let Some(source) = part.part(kind) else { continue };
            kinds += 1;
            let at = at.field(kind);
            sources::required(source, &["name"], &at, errors);
            let items = at.field("items");
            for (index, item) in source.list("items").iter().enumerate() {
                key_to_path(item, &items.index(index), errors);
                let place = item.text("path");
                if !place.is_empty() && !places.insert(place) {
                    errors.invalid(path, source.text("name"), CONFLICTING);
                }
            }
        }
        if let Some(source) = part.part("downwardAPI") {
            kinds += 1;
            for file in source.list("items") {
                downward_file(file, &at.field("downwardAPI"), errors);
                claim_place(file.text("path"), &mut places, path, errors);
            }
        }
        if let Some(token) = part.part("serviceAccountToken") {
            kinds += 1;
            let seconds = token.int("expirationSeconds").unwrap_or_default();
            let at = at.field("serviceAccountToken.expirationSeconds");
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
            if token.text("path").is_empty() {
                errors.required(&path.field("path"), "");
            } else {
                sources::not_reserved(token.text("path"), &path.field("path"), errors);
            }
        }
        if let Some(bundle) = part.part("clusterTrustBundle") {
            kinds += 1;
            trust_bundle(bundle, &at.field("clusterTrustBundle"), errors);
            let place = bundle.text("path");
            if !places.insert(place) {
                errors.invalid(path, place, CONFLICTING);
            }
        }
        if let Some(certificate) = part.part("podCertificate") {
            kinds += 1;
            let at = at.field("podCertificate");
            pod_certificate(certificate, &at, errors);
            let mut given = 0;
            for field in ["credentialBundlePath", "keyPath", "certificateChainPath"] {
                let place = certificate.text(field);
                if place.is_empty() {
                    continue;
                }
                given += 1;
                sources::not_reserved(place, &at.field(field), errors);
                claim_place(place, &mut places, path, errors);
            }
            if given == 0 {
                let detail =
                    "specify at least one of credentialBundlePath, keyPath, and certificateChainPath";
                errors.required(&at, detail);
            }
        }
        if kinds > 1 {
            errors.forbidden(&at, "may not specify more than 1 volume type per source");
        }
    }
}

const CONFLICTING: &str = "conflicting duplicate paths";

/// A file's place, which no other may have.
fn claim_place<'a>(place: &'a str, places: &mut BTreeSet<&'a str>, path: &Path<'_>, errors: &mut Errors) {
    if !place.is_empty() && !places.insert(place) {
        errors.invalid(path, place, CONFLICTING);
    }
}

fn trust_bundle(bundle: &Value, path: &Path<'_>, errors: &mut Errors) {
    match (bundle.text_if_set("name"), bundle.text_if_set("signerName")) {
        (Some(_), Some(_)) => {
            errors.invalid(
                path,
                bundle.clone(),
                "only one of name and signerName may be used",
            );
        }
        (Some(name), None) => {
            if name.is_empty() {
                errors.required(&path.field("name"), "must be a valid object name");
            }
            for problem in names::subdomain_problems(name) {
                let detail = format!("not a valid clustertrustbundlename: {problem}");
                errors.invalid(&path.field("name"), name, detail);
            }
            if let Some(selector) = bundle.part("labelSelector") {
                errors.invalid(
                    &path.field("labelSelector"),
                    selectors::shown(selector),
                    "labelSelector must be unset if name is specified",
                );
            }
        }
        (None, Some(signer)) => {
            if signer.is_empty() {
                errors.required(&path.field("signerName"), "must be a valid signer name");
            }
            selectors::selector(bundle.part("labelSelector"), &path.field("labelSelector"), errors);
        }
        (None, None) => errors.required(path, "either name or signerName must be specified"),
    }
    sources::required(bundle, &["path"], path, errors);
    sources::not_reserved(bundle.text("path"), &path.field("path"), errors);
}

fn pod_certificate(certificate: &Value, path: &Path<'_>, errors: &mut Errors) {
    let kinds = [
        "RSA3072",
        "RSA4096",
        "ECDSAP256",
        "ECDSAP384",
        "ECDSAP521",
        "ED25519",
    ];
    errors.one_of_or_empty(&path.field("keyType"), certificate.text("keyType"), &kinds);
    if let Some(seconds) = certificate.int("maxExpirationSeconds") {
        let at = path.field("maxExpirationSeconds");
        if seconds < 3600 {
            errors.invalid(&at, seconds, "if provided, maxExpirationSeconds must be >= 3600");
        }
        let most = if certificate.text("signerName").starts_with("kubernetes.io/") {
            86_400
        } else {
            7_862_400
        };
        if seconds > most {
            let detail = format!("if provided, maxExpirationSeconds must be <= {most}");
            errors.invalid(&at, seconds, detail);
        }
    }
}

/// The amounts of a pod's overhead.
pub(super) fn overhead(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    if let Some(overhead) = spec.part("overhead").and_then(Value::as_object) {
        let none = shared_json::Map::new();
        amounts::requirements(
            &none,
            overhead,
            amounts::container_resource_name,
            &path.field("overhead"),
            errors,
        );
    }
}
