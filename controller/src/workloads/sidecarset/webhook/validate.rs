//! The errors of a SidecarSet.

use std::collections::BTreeSet;
use std::sync::Arc;

use pod_rules::FieldError;
use pod_rules::errors::Errors;
use pod_rules::path::Path;

use super::{conflicts, containers, strategy, white_list};
use crate::api::v1beta1::{SidecarContainer, SidecarSet, SidecarSetSpec};
use crate::injection::sidecars::selection::Labels;

/// The longest name of a set.
const NAME_LENGTH_MAX: usize = 63;

/// A set, and the objects on which its errors depend.
pub(super) struct Subject<'a> {
    /// The set's name.
    pub(super) name: &'a str,
    /// The set's labels.
    pub(super) labels: &'a Labels,
    /// The set's spec.
    pub(super) spec: &'a SidecarSetSpec,
    /// The spec that it replaces.
    pub(super) old: Option<&'a SidecarSetSpec>,
    /// All sets.
    pub(super) others: &'a [Arc<SidecarSet>],
    /// The white list of annotations, if there is one.
    pub(super) white_list: Option<&'a str>,
    /// Whether annotations are allowed where the white list says nothing.
    pub(super) annotations_by_default: bool,
    /// Why the revision that is to be injected is not found.
    pub(super) missing_revision: Option<&'a str>,
}

/// Everything that is wrong with a set. Texts and their order are those of OpenKruise.
pub(super) fn errors(subject: &Subject<'_>) -> Vec<FieldError> {
    let spec = subject.spec;
    let mut errors = name_errors(subject.name);
    let update = spec.update_strategy.as_ref();
    let rolls = update.and_then(|update| update.kind.as_deref()) == Some("RollingUpdate");
    let native = spec.inits().iter().filter(|init| init.is_native() && rolls);
    errors.extend(native.map(|_| {
        let detail = "The initContainer in-place upgrade is not currently supported.";
        FieldError::required("spec.updateStrategy", detail)
    }));
    match &spec.selector {
        None => errors.push(FieldError::required(
            "spec.selector",
            "no selector defined for SidecarSet",
        )),
        Some(selector) => strategy::selector(selector, "spec.selector", &mut errors),
    }
    if let Some(selector) = &spec.namespace_selector {
        strategy::selector(selector, "spec.namespaceSelector", &mut errors);
    }
    revision_errors(subject, &mut errors);
    strategy::update(spec, &mut errors);
    errors.extend(containers::errors(spec));
    metadata_errors(subject, &mut errors);
    if let Some(old) = subject.old {
        update_errors(spec, old, &mut errors);
    }
    if errors.is_empty() {
        errors = conflicts::errors(subject.name, spec, subject.others);
    }
    errors
}

fn name_errors(name: &str) -> Vec<FieldError> {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    let mut errors = Vec::new();
    if name.len() > NAME_LENGTH_MAX {
        let detail = format!("must be no more than {NAME_LENGTH_MAX} characters");
        errors.push(FieldError::invalid("metadata.name", name, detail));
    }
    if name.is_empty() || !name.bytes().all(is_part) {
        let detail = "sidecarset name must consist of alphanumeric characters or '-' (e.g. 'example-com', regex used for \
                      validation is '^[a-zA-Z0-9\\-]+$')";
        errors.push(FieldError::invalid("metadata.name", name, detail));
    }
    errors
}

fn revision_errors(subject: &Subject<'_>, errors: &mut Vec<FieldError>) {
    let injection = subject.spec.injection_strategy.as_ref();
    let Some(revision) = injection.and_then(|injection| injection.revision.as_ref()) else {
        return;
    };
    if revision.revision_name.is_none() && revision.custom_version.is_none() {
        errors.push(strategy::unnamed(revision));
    } else if let Some(error) = subject.missing_revision {
        let detail = format!("Cannot find specific ControllerRevision, err: {error}");
        errors.push(FieldError::invalid("revision", "null", detail));
    }
    strategy::revision(revision, errors);
}

fn metadata_errors(subject: &Subject<'_>, errors: &mut Vec<FieldError>) {
    let path = "spec.patchPodMetadata";
    let patches = subject.spec.patches();
    let refused = white_list::error(
        subject.white_list,
        subject.annotations_by_default,
        subject.labels,
        patches,
    );
    errors.extend(refused.map(|text| FieldError::required(path, text)));
    let mut seen = BTreeSet::new();
    for patch in patches {
        let annotations = patch
            .annotations
            .as_ref()
            .filter(|annotations| !annotations.is_empty());
        let Some(annotations) = annotations else {
            errors.push(FieldError::required(
                path,
                "no annotations defined for SidecarSet",
            ));
            continue;
        };
        let mut found = Errors::default();
        if let Some(map) = shared_json::to_value(annotations).unwrap_or_default().as_object() {
            pod_rules::pod::annotations(map, &Path::new("patchPodMetadata.annotations"), &mut found);
        }
        errors.extend(found.into_vec());
        if patch.patch_policy.as_deref().unwrap_or_default().is_empty() {
            errors.push(FieldError::required(
                path,
                "no patchPolicy defined for patchPodMetadata",
            ));
        }
        for key in annotations.keys() {
            if !seen.insert(key) {
                let text = format!("patch annotation[{key}] already exist");
                errors.push(FieldError::required(path, text));
            }
        }
    }
}

/// Containers may go, but none may come, and how they are upgraded stays.
fn update_errors(spec: &SidecarSetSpec, old: &SidecarSetSpec, errors: &mut Vec<FieldError>) {
    let kind = |container: &SidecarContainer| {
        let upgrade = container.upgrade_strategy.as_ref();
        upgrade
            .and_then(|upgrade| upgrade.upgrade_type.clone())
            .unwrap_or_default()
    };
    for container in spec.sidecars() {
        let name = container.name();
        let before = old.sidecars().iter().find(|before| before.name() == name);
        let Some(before) = before else {
            let detail = format!("container {name} is not found");
            errors.push(FieldError::invalid("spec.containers.name", name, detail));
            continue;
        };
        if kind(before) != kind(container) {
            let detail = format!("container {name} upgradeType is immutable");
            let path = "spec.containers.upgradeStrategy.upgradeType";
            errors.push(FieldError::invalid(path, name, detail));
        }
    }
}
