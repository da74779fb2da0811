//! Validates ResourceDistributions.

use std::collections::BTreeSet;

use futures::FutureExt as _;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::PostParams;
use pod_rules::field_error::go_quote;
use pod_rules::{FieldError, FieldErrorKind, names};
use serde_json::{Value, json};

use super::GATE;
use crate::api::v1alpha1::{ResourceDistributionTargetNamespaces, ResourceDistributionTargets};
use crate::kit::admission::{Refusal, Request, Rule, Surroundings, Webhook, WebhookKind};
use crate::kit::{ActError, Kind, go_syntax, requests, selector};

/// The kinds of which there may be copies, as refusals list them.
const KINDS: &str = "[Secret ConfigMap]";

/// The webhook.
pub(super) const VALIDATING: Webhook = Webhook {
    rule: Rule {
        name: "vresourcedistribution.kb.io",
        path: "/validate-apps-kruise-io-v1alpha1-resourcedistribution",
        kind: WebhookKind::Validating,
        groups: &["apps.kruise.io"],
        versions: &["v1alpha1"],
        resources: &["resourcedistributions"],
        operations: &["CREATE", "UPDATE"],
    },
    answer: |request| validate(request).boxed(),
};

async fn validate(request: &Request<'_>) -> Result<Option<Value>, Refusal> {
    let new = request.decoded()?;
    if !request.surroundings.gates.is_on(GATE) {
        return Err(Refusal::new(403, format!("feature-gate {GATE} is not enabled")));
    }
    let targets = new.pointer("/spec/targets").cloned().unwrap_or_else(|| json!({}));
    let targets: ResourceDistributionTargets =
        serde_json::from_value(targets).map_err(|error| Refusal::new(400, error))?;
    let resource = match resource(new) {
        Ok(resource) => resource,
        Err(error) => return Err(Refusal::new(422, error)),
    };
    let mut errors = Vec::new();
    errors.extend(self::resource_error(resource, request).await);
    errors.extend(targets_errors(&targets));
    Refusal::unless_empty(422, &errors)
}

/// The resource, if it is an object that names its kind.
fn resource(distribution: &Value) -> Result<&Value, FieldError> {
    let Some(resource) = distribution
        .pointer("/spec/resource")
        .filter(|resource| !resource.is_null())
    else {
        let shown = "runtime.RawExtension{Raw:[]uint8(nil), Object:runtime.Object(nil)}";
        return Err(FieldError::invalid_shown(
            "spec",
            shown,
            "empty resource is not allowed",
        ));
    };
    if text(resource, "/kind").is_empty() {
        let detail = format!(
            "failed to deserialize resource, please check your spec.resource, err Object 'Kind' is missing in '{resource}'"
        );
        return Err(FieldError::new(FieldErrorKind::Internal, "spec", None, detail));
    }
    Ok(resource)
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    let value = object.pointer(pointer).and_then(Value::as_str);
    value.unwrap_or_default()
}

/// The first rule that the resource breaks.
async fn resource_error(resource: &Value, request: &Request<'_>) -> Option<FieldError> {
    let path = "spec.resource";
    let group = text(resource, "/apiVersion")
        .rsplit_once('/')
        .map_or("", |(group, _)| group);
    let kind = text(resource, "/kind");
    if !group.is_empty() || !matches!(kind, "Secret" | "ConfigMap") {
        let shown = format!("unstructured.Unstructured{{Object:{}}}", go_syntax::any(resource));
        let detail = format!("unknown or unsupported resource GroupKind, only support {KINDS}");
        return Some(FieldError::invalid_shown(path, shown, detail));
    }
    let identity = |resource: &Value| {
        ["/apiVersion", "/kind", "/metadata/name"].map(|pointer| text(resource, pointer).to_owned())
    };
    let old = request.old.and_then(|old| old.pointer("/spec/resource"));
    if old.is_some_and(|old| identity(old) != identity(resource)) {
        let detail = "resource apiVersion, kind, and name are immutable";
        return Some(FieldError::invalid_shown(path, go_quote("null"), detail));
    }
    let error = try_out(resource, kind, request.surroundings).await.err()?;
    let detail = format!(
        "failed to dry-run to validate spec.resource, error: {}",
        error.message
    );
    Some(FieldError::new(FieldErrorKind::Internal, path, None, detail))
}

/// Has the API server say whether it would take the resource, in the manager's own namespace.
async fn try_out(resource: &Value, kind: &str, surroundings: &Surroundings) -> Result<(), ActError> {
    let Some(client) = &surroundings.client else {
        return Ok(());
    };
    let namespace = &surroundings.namespace;
    let mut object = resource.clone();
    if let Some(fields) = object.as_object_mut() {
        let metadata = fields.entry("metadata").or_insert_with(|| json!({}));
        if let Some(metadata) = metadata.as_object_mut() {
            metadata.insert("namespace".to_owned(), json!(namespace));
        }
    }
    let params = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let tried = if kind == "Secret" {
        requests::create::<Secret>(client, namespace, &params, &object).await
    } else {
        requests::create::<ConfigMap>(client, namespace, &params, &object).await
    };
    match tried {
        Err(error) if error.kind != Kind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// Everything that is wrong with the targets.
fn targets_errors(targets: &ResourceDistributionTargets) -> Vec<FieldError> {
    let path = "spec.targets";
    let (included, excluded) = (
        targets.included_namespaces.clone().unwrap_or_default(),
        targets.excluded_namespaces.clone().unwrap_or_default(),
    );
    let mut errors = Vec::new();
    for (field, list) in [
        ("includedNamespaces", &included),
        ("excludedNamespaces", &excluded),
    ] {
        for problem in list.names().flat_map(names::label_problems) {
            errors.push(FieldError::invalid_shown(
                format!("{path}.{field}"),
                shown_list(list),
                problem,
            ));
        }
    }
    let names: BTreeSet<&str> = included.names().collect();
    let both: Vec<&str> = excluded.names().filter(|name| names.contains(name)).collect();
    if !both.is_empty() {
        let detail = format!(
            "ambiguous targets because namespace [{}] is in both IncludedNamespaces.List and ExcludedNamespaces.List",
            both.join(" ")
        );
        errors.push(FieldError::invalid_shown(path, shown_targets(targets), detail));
    }
    let selector = targets.namespace_label_selector.clone().unwrap_or_default();
    if let Some(error) = selector::problem(&selector) {
        errors.push(FieldError::invalid_shown(
            format!("{path}.namespaceLabelSelector"),
            go_syntax::selector(&selector),
            format!("labelSelectorAsSelector error: {error}"),
        ));
    }
    errors
}

/// A list of namespaces in Go's syntax.
fn shown_list(list: &ResourceDistributionTargetNamespaces) -> String {
    let item = "v1alpha1.ResourceDistributionNamespace";
    let names: Vec<String> = list
        .names()
        .map(|name| format!("{item}{{Name:{}}}", go_quote(name)))
        .collect();
    let items = match list.list {
        Some(_) => format!("[]{item}{{{}}}", names.join(", ")),
        None => format!("[]{item}(nil)"),
    };
    format!("v1alpha1.ResourceDistributionTargetNamespaces{{List:{items}}}")
}

/// Targets in Go's syntax.
fn shown_targets(targets: &ResourceDistributionTargets) -> String {
    let list =
        |list: &Option<ResourceDistributionTargetNamespaces>| shown_list(&list.clone().unwrap_or_default());
    format!(
        "v1alpha1.ResourceDistributionTargets{{AllNamespaces:{}, ExcludedNamespaces:{}, IncludedNamespaces:{}, \
         NamespaceLabelSelector:{}}}",
        targets.all_namespaces,
        list(&targets.excluded_namespaces),
        list(&targets.included_namespaces),
        go_syntax::selector(&targets.namespace_label_selector.clone().unwrap_or_default()),
    )
}

#[cfg(test)]
#[path = "webhook_tests.rs"]
mod tests;
