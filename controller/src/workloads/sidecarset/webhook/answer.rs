//! The answers to requests.

use futures::FutureExt as _;
use serde_json::Value;

use super::mutate::mutate_sidecar_set;
use super::validate::{Subject, errors};
use super::{canonical, convert, white_list};
use crate::api::v1beta1::{SidecarSet, SidecarSetSpec};
use crate::injection::sidecars::find_revision;
use crate::kit::Informer;
use crate::kit::admission::{Refusal, Request, Rule, Surroundings, Webhook, WebhookKind, patch};

/// The gate that allows annotations about which the white list says nothing.
const ANNOTATIONS_BY_DEFAULT: &str = "SidecarSetPatchPodMetadataDefaultsAllowed";

const VERSIONS: &[&str] = &["v1alpha1", "v1beta1"];
const RESOURCES: &[&str] = &["sidecarsets"];

/// The webhooks of SidecarSets.
pub(in crate::workloads::sidecarset) const WEBHOOKS: &[Webhook] = &[
    Webhook {
        rule: Rule::of_apps(
            (
                "msidecarset.kb.io",
                "/mutate-apps-kruise-io-sidecarset",
                WebhookKind::Mutating,
            ),
            VERSIONS,
            RESOURCES,
            &["CREATE", "UPDATE"],
        ),
        answer: |request| async { mutate(request) }.boxed(),
    },
    Webhook {
        rule: Rule::of_apps(
            (
                "vsidecarset.kb.io",
                "/validate-apps-kruise-io-sidecarset",
                WebhookKind::Validating,
            ),
            VERSIONS,
            RESOURCES,
            &["CREATE", "UPDATE"],
        ),
        answer: |request| validate(request).boxed(),
    },
];

fn mutate(request: &Request<'_>) -> Result<Option<Value>, Refusal> {
    let set = request.decoded()?;
    let mut changed = set.clone();
    mutate_sidecar_set(&mut changed).map_err(|message| Refusal::new(400, message))?;
    Ok(patch(set, changed))
}

/// The spec of a set in Go's form, whatever its version.
fn spec_of(set: &Value) -> Result<SidecarSetSpec, Refusal> {
    let mut set = set.clone();
    convert::to_v1beta1(&mut set);
    let spec = set.get("spec").cloned().unwrap_or_else(|| serde_json::json!({}));
    canonical::read(&spec).map_err(|message| Refusal::new(400, message))
}

async fn validate(request: &Request<'_>) -> Result<Option<Value>, Refusal> {
    let set = request.decoded()?;
    let surroundings = request.surroundings;
    let spec = spec_of(set)?;
    let old = request.old.map(spec_of).transpose()?;
    let name = set
        .pointer("/metadata/name")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let labels = set.pointer("/metadata/labels").cloned().unwrap_or_default();
    let labels = serde_json::from_value(labels).unwrap_or_default();
    let sets: Informer<SidecarSet> = surroundings.cache().await?;
    let missing_revision = missing_revision(surroundings, name, &spec).await;
    let white_list = white_list(surroundings, &spec).await?;
    let subject = Subject {
        name,
        labels: &labels,
        spec: &spec,
        old: old.as_ref(),
        others: &sets.all(),
        white_list: white_list.as_deref(),
        annotations_by_default: surroundings.gates.is_on(ANNOTATIONS_BY_DEFAULT),
        missing_revision: missing_revision.as_deref(),
    };
    Refusal::unless_empty(500, &errors(&subject))
}

/// Why the revision that is to be injected is not found.
async fn missing_revision(surroundings: &Surroundings, name: &str, spec: &SidecarSetSpec) -> Option<String> {
    let injection = spec.injection_strategy.as_ref();
    let revision = injection.and_then(|injection| injection.revision.as_ref())?;
    if revision.revision_name.is_none() && revision.custom_version.is_none() {
        return None;
    }
    find_revision(surroundings, name, revision).await.err()
}

/// The white list of annotations, if the set has some.
async fn white_list(surroundings: &Surroundings, spec: &SidecarSetSpec) -> Result<Option<String>, Refusal> {
    if spec.patches().is_empty() {
        return Ok(None);
    }
    let list = surroundings.setting(white_list::KEY).await;
    list.map_err(|message| Refusal::new(500, message))
}
