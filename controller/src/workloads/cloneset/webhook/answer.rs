//! The answers to requests.

use futures::FutureExt as _;
use kube::{Api, Client, ResourceExt};
use pod_rules::field_error::FieldError;
use serde_json::Value;

use super::mutate::mutate_cloneset;
use super::validate::validate_cloneset;
use crate::kit::admission::{Refusal, Request, Rule, Webhook, WebhookKind, patch};
use crate::kit::protection;
use crate::pods::pod::Pod;

const VERSIONS: &[&str] = &["v1alpha1"];
const RESOURCES: &[&str] = &["clonesets"];

/// The webhooks of CloneSets.
pub(in crate::workloads::cloneset) const WEBHOOKS: &[Webhook] = &[
    Webhook {
        rule: Rule::of_apps(
            (
                "mcloneset.kb.io",
                "/mutate-apps-kruise-io-v1alpha1-cloneset",
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
                "vcloneset.kb.io",
                "/validate-apps-kruise-io-v1alpha1-cloneset",
                WebhookKind::Validating,
            ),
            VERSIONS,
            RESOURCES,
            &["CREATE", "UPDATE", "DELETE"],
        ),
        answer: |request| validate(request).boxed(),
    },
];

fn mutate(request: &Request<'_>) -> Result<Option<Value>, Refusal> {
    let set = request.decoded()?;
    let mut changed = set.clone();
    mutate_cloneset(&mut changed, request.old).map_err(|message| Refusal::new(400, message))?;
    Ok(patch(set, changed))
}

async fn validate(request: &Request<'_>) -> Result<Option<Value>, Refusal> {
    if request.operation == "DELETE" {
        return protection::workload(request);
    }
    let set = request.decoded()?;
    let mut errors = validate_cloneset(set, request.old);
    if errors.is_empty() {
        errors.extend(pods_to_delete(set, request.old, request.surroundings.client.as_ref()).await);
    }
    Refusal::unless_empty(422, &errors)
}

/// Pods that are newly named in `podsToDelete` must be the set's own and must not terminate already.
async fn pods_to_delete(set: &Value, old: Option<&Value>, client: Option<&Client>) -> Vec<FieldError> {
    let Some(client) = client else { return Vec::new() };
    let names = |set: Option<&Value>| -> Vec<String> {
        let list = set
            .and_then(|set| set.pointer("/spec/scaleStrategy/podsToDelete"))
            .and_then(Value::as_array);
        list.into_iter()
            .flatten()
            .filter_map(|name| name.as_str().map(str::to_owned))
            .collect()
    };
    let known = names(old);
    let namespace = set
        .pointer("/metadata/namespace")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let uid = set
        .pointer("/metadata/uid")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let mut errors = Vec::new();
    for name in names(Some(set)).iter().filter(|name| !known.contains(name)) {
        let detail = match pods.get_opt(name).await {
            Ok(None) => format!("find pod {name} failed: Pod {name:?} not found"),
            Err(error) => format!("find pod {name} failed: {error}"),
            Ok(Some(pod)) if pod.metadata.deletion_timestamp.is_some() => {
                format!("find pod {name} already terminating")
            }
            Ok(Some(pod)) if !pod.owner_references().iter().any(|owner| owner.uid == uid) => {
                format!("find pod {name} owner is not this CloneSet")
            }
            Ok(Some(_)) => continue,
        };
        errors.push(FieldError::invalid(
            "spec.scaleStrategy.podsToDelete",
            format!("{name:?}"),
            detail,
        ));
    }
    errors
}
