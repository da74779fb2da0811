//! The webhook of markers, which validates. Texts and their order are those of OpenKruise.

use std::collections::BTreeSet;

use futures::FutureExt as _;
use pod_rules::errors::Errors;
use pod_rules::path::Path;
use pod_rules::{FieldError, names, pod, selectors};
use serde_json::Value;

use super::handler::handler;
use crate::api::v1alpha1::{PodContainerProbe, PodProbeMarker, ProbeMarkerPolicy};
use crate::injection::probes::GATE;
use crate::kit::admission::{Refusal, Request, Rule, Webhook, WebhookKind};
use crate::kit::go_syntax;

/// The webhooks of markers.
pub(super) const WEBHOOKS: &[Webhook] = &[Webhook {
    rule: Rule::of_apps(
        (
            "vpodprobemarker.kb.io",
            "/validate-apps-kruise-io-podprobemarker",
            WebhookKind::Validating,
        ),
        &["v1alpha1"],
        &["podprobemarkers"],
        &["CREATE", "UPDATE"],
    ),
    answer: |request| async move { validate(request) }.boxed(),
}];

/// Names that a probe must not have: conditions of pods that others write.
const NATIVE_CONDITIONS: [&str; 6] = [
    "PodScheduled",
    "Initialized",
    "Ready",
    "ContainersReady",
    "KruisePodReady",
    "InPlaceUpdateReady",
];

fn validate(request: &Request<'_>) -> Result<Option<Value>, Refusal> {
    for gate in [GATE, "KruiseDaemon"] {
        if !request.surroundings.gates.is_on(gate) {
            return Err(Refusal::new(403, format!("feature-gate {gate} is not enabled")));
        }
    }
    let decoded = |object: &Value| -> Result<PodProbeMarker, Refusal> {
        serde_json::from_value(object.clone()).map_err(|error| Refusal::new(400, error))
    };
    let new = decoded(request.decoded()?)?;
    let mut errors = Vec::new();
    self::errors(&new, &mut errors);
    if let Some(old) = request.old.map(decoded).transpose()?
        && old.spec.selector != new.spec.selector
    {
        let shown = go_syntax::selector(&new.spec.selector);
        errors.push(FieldError::invalid_shown(
            "selector",
            shown,
            "selector must be immutable",
        ));
    }
    Refusal::unless_empty(400, &errors)
}

/// Everything that is wrong with a marker, up to the first error after which OpenKruise looks no further.
fn errors(marker: &PodProbeMarker, errors: &mut Vec<FieldError>) {
    let spec = &marker.spec;
    let selector = shared_json::to_value(&spec.selector).unwrap_or_default();
    let mut found = Errors::default();
    selectors::selector(Some(&selector), &Path::new("spec").field("selector"), &mut found);
    errors.extend(found.into_vec());
    if selectors::is_empty(&selector) {
        let shown = go_syntax::selector(&spec.selector);
        let detail = "empty selector is not valid for podProbeMarker.";
        errors.push(FieldError::invalid_shown("spec.selector", shown, detail));
    }
    if spec.probes.is_empty() {
        let shown = "[]v1alpha1.PodContainerProbe{}".to_owned();
        let detail = "empty probes is not valid for PodProbeMarker.";
        errors.push(FieldError::invalid_shown("spec.probes", shown, detail));
    }
    let (mut known, mut conditions) = (BTreeSet::new(), BTreeSet::new());
    for probe in &spec.probes {
        if let Some(error) = name_error(probe, &mut known) {
            return errors.push(error);
        }
        handler(&probe.probe, errors);
        if let Some(error) = condition_error(probe, &mut conditions) {
            return errors.push(error);
        }
        if !probe.pod_condition_type.is_empty() {
            let kind = &probe.pod_condition_type;
            let mut found = Errors::default();
            found.problems(&Path::new("spec"), kind, names::qualified_problems(kind));
            errors.extend(found.into_vec());
        }
        if !policies(probe.marker_policy.as_deref().unwrap_or_default(), errors) {
            return;
        }
    }
}

/// The error in the names of a probe.
fn name_error<'p>(probe: &'p PodContainerProbe, known: &mut BTreeSet<&'p str>) -> Option<FieldError> {
    let (name, container) = (&*probe.name, &*probe.container_name);
    let invalid = |value: &str, detail: &str| Some(FieldError::invalid("spec.probes", value, detail));
    if name.contains('#') {
        return invalid(name, "probe name can't contains '#'.");
    }
    if name.is_empty() {
        return invalid(name, "probe name can't be empty in PodProbeMarker.");
    }
    if container.is_empty() {
        return invalid(container, "probe containerName can't be empty in PodProbeMarker.");
    }
    if NATIVE_CONDITIONS.contains(&name) {
        return invalid(name, &format!("probe name can't be {name}"));
    }
    if !known.insert(name) {
        return invalid(name, "probe name must be unique in PodProbeMarker.");
    }
    None
}

/// The error in the condition of a probe.
fn condition_error<'p>(probe: &'p PodContainerProbe, known: &mut BTreeSet<&'p str>) -> Option<FieldError> {
    let kind = &*probe.pod_condition_type;
    if kind.is_empty() && probe.marker_policy.iter().flatten().next().is_none() {
        let detail = "podConditionType and markerPolicy cannot be empty at the same time";
        return Some(FieldError::invalid_shown("spec.probes", shown(probe), detail));
    }
    if !kind.is_empty() && !known.insert(kind) {
        let detail = format!("podConditionType {kind} must be unique in podProbeMarker");
        return Some(FieldError::invalid("spec.probes", kind, detail));
    }
    None
}

/// A probe as Go's `%#v` prints it, without the addresses and values in it.
fn shown(probe: &PodContainerProbe) -> String {
    let [name, container] = [&probe.name, &probe.container_name].map(|text| format!("{text:?}"));
    format!("v1alpha1.PodContainerProbe{{Name:{name}, ContainerName:{container}, Probe:(...)}}")
}

/// The errors in the marks of a probe; false if OpenKruise looks no further.
fn policies(policies: &[ProbeMarkerPolicy], errors: &mut Vec<FieldError>) -> bool {
    let path = "spec.markerPolicy";
    let mut known = BTreeSet::new();
    for policy in policies {
        let state = &*policy.state;
        if !known.insert(state) {
            errors.push(FieldError::invalid(
                path,
                state,
                "marker policy state must be unique.",
            ));
            return false;
        }
        if !matches!(state, "Succeeded" | "Failed") {
            let detail = "marker policy state must be 'True' or 'False'";
            errors.push(FieldError::required("spec.markerPolicy.state", detail));
            continue;
        }
        let [labels, annotations] = [&policy.labels, &policy.annotations].map(|map| {
            let map = shared_json::to_value(map).unwrap_or_default();
            map.as_object().cloned().unwrap_or_default()
        });
        if labels.is_empty() && annotations.is_empty() {
            let detail = "marker policy annotations or labels can't be both empty";
            errors.push(FieldError::required(path, detail));
            continue;
        }
        let mut found = Errors::default();
        let spec = Path::new("spec");
        let at = spec.field("markerPolicy");
        selectors::labels(&labels, &at.field("labels"), &mut found);
        pod::annotations(&annotations, &at.field("annotations"), &mut found);
        errors.extend(found.into_vec());
    }
    true
}

#[cfg(test)]
#[path = "webhook_tests.rs"]
mod tests;
