//! The webhook configurations, and the webhooks that convert versions: which webhooks the API server asks, where, and whom it
//! trusts.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::Client;
use kube::api::{Api, DynamicObject, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

use super::ProcessError;
use crate::webhook::{CONVERT_PATH, WebhookKind, conversion, rules};
use crate::workloads::ALL;

/// OpenKruise keeps the webhooks as they were installed in this annotation; a webhook that no controller serves is left out of the
/// configuration itself, and comes back with a manager that serves it.
const TEMPLATE: &str = "template";

/// How the API server reaches the webhooks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    /// Through a Service.
    Service {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// Directly, at `https://host:port`.
    Url(String),
}

/// The names of the configurations, by kind.
#[must_use]
pub const fn name_of(kind: WebhookKind) -> &'static str {
    match kind {
        WebhookKind::Mutating => "kruise-mutating-webhook-configuration",
        WebhookKind::Validating => "kruise-validating-webhook-configuration",
    }
}

/// The kind of configuration for a kind of webhook.
#[must_use]
pub const fn kind_of(kind: WebhookKind) -> &'static str {
    match kind {
        WebhookKind::Mutating => "MutatingWebhookConfiguration",
        WebhookKind::Validating => "ValidatingWebhookConfiguration",
    }
}

fn path_of(webhook: &Value) -> String {
    let client = webhook.get("clientConfig").unwrap_or(&Value::Null);
    if let Some(path) = client.pointer("/service/path").and_then(Value::as_str) {
        return path.to_owned();
    }
    let url = client.get("url").and_then(Value::as_str).unwrap_or_default();
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.find('/')
        .and_then(|at| rest.get(at..))
        .unwrap_or_default()
        .to_owned()
}

/// The configuration with the webhooks that are served here, trusted by `ca_pem` and reached by `reach`. Gives it back as it
/// was if that is how it is.
fn configured(configuration: &Value, ca_pem: &str, reach: &Reach) -> Value {
    let mut configuration = configuration.clone();
    let kept = configuration
        .pointer("/metadata/annotations/template")
        .and_then(Value::as_str)
        .and_then(|text| serde_json::from_str::<Vec<Value>>(text).ok());
    let template = kept.unwrap_or_else(|| {
        let list = configuration.get("webhooks").and_then(Value::as_array);
        list.cloned().unwrap_or_default()
    });
    let bundle = STANDARD.encode(ca_pem);
    let mut webhooks = Vec::new();
    for webhook in &template {
        let path = path_of(webhook);
        if !rules().any(|rule| rule.is_at(&path)) {
            continue;
        }
        let mut webhook = webhook.clone();
        let mut client = json!({ "caBundle": bundle });
        match reach {
            Reach::Service { namespace, name } => {
                client["service"] = json!({ "namespace": namespace, "name": name, "path": path });
            }
            Reach::Url(base) => client["url"] = json!(format!("{}{path}", base.trim_end_matches('/'))),
        }
        // The port is not ours to decide.
        if let (Some(port), Reach::Service { .. }) = (webhook.pointer("/clientConfig/service/port"), reach) {
            client["service"]["port"] = port.clone();
        }
        webhook["clientConfig"] = client;
        webhooks.push(webhook);
    }
    if configuration["metadata"]["annotations"].is_null() {
        configuration["metadata"]["annotations"] = json!({});
    }
    configuration["metadata"]["annotations"][TEMPLATE] = json!(Value::from(template).to_string());
    configuration["webhooks"] = Value::from(webhooks);
    configuration
}

/// Whether the server's own additions aside both say the same.
fn same(one: &Value, other: &Value) -> bool {
    let essence = |configuration: &Value| {
        let webhooks = configuration.get("webhooks").and_then(Value::as_array);
        let clients: Vec<(Option<Value>, Option<Value>)> = webhooks
            .into_iter()
            .flatten()
            .map(|webhook| {
                let mut client = webhook.get("clientConfig").cloned();
                if let Some(service) = client.as_mut().and_then(|client| client.pointer_mut("/service"))
                    && let Some(service) = service.as_object_mut()
                {
                    service.remove("port");
                }
                (webhook.get("name").cloned(), client)
            })
            .collect();
        (
            clients,
            configuration.pointer("/metadata/annotations/template").cloned(),
        )
    };
    essence(one) == essence(other)
}

/// The versions of reviews that the webhooks take.
pub(super) const REVIEW_VERSIONS: [&str; 2] = ["v1", "v1beta1"];

/// Whether versions of the kind of a definition differ in more than their names.
pub(super) fn is_converted(definition: &Value) -> bool {
    let text = |pointer: &str| definition.pointer(pointer).and_then(Value::as_str);
    let names = text("/spec/group").zip(text("/spec/names/kind"));
    names.is_some_and(|(group, kind)| conversion(group, kind).is_some())
}

/// The definition with the webhook that converts its versions, trusted by `ca_pem` and reached by `reach`. None if that is how it is,
/// or if its versions are not converted by a webhook.
fn convertible(definition: &Value, ca_pem: &str, reach: &Reach) -> Option<Value> {
    let strategy = definition.pointer("/spec/conversion/strategy");
    if strategy != Some(&json!("Webhook")) {
        return None;
    }
    let mut client = json!({ "caBundle": STANDARD.encode(ca_pem) });
    match reach {
        Reach::Service { namespace, name } => {
            client["service"] =
                json!({ "namespace": namespace, "name": name, "path": CONVERT_PATH, "port": 443 });
        }
        Reach::Url(base) => client["url"] = json!(format!("{}{CONVERT_PATH}", base.trim_end_matches('/'))),
    }
    let webhook = json!({ "clientConfig": client, "conversionReviewVersions": REVIEW_VERSIONS });
    if definition.pointer("/spec/conversion/webhook") == Some(&webhook) {
        return None;
    }
    let mut definition = definition.clone();
    definition["spec"]["conversion"]["webhook"] = webhook;
    Some(definition)
}

/// Brings the definitions whose versions a webhook converts up to date. One that is not there is left out.
async fn ensure_conversions(client: &Client, ca_pem: &str, reach: &Reach) -> Result<(), ProcessError> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(
        "apiextensions.k8s.io",
        "v1",
        "CustomResourceDefinition",
    ));
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let all = ALL.iter().flat_map(|workload| workload.crds);
    for crd in all {
        let name = crd.name();
        let failed = |error| ProcessError::request(&format!("configure the conversion of {name}"), error);
        let Some(found) = api.get_opt(&name).await.map_err(failed)? else {
            continue;
        };
        let before = serde_json::to_value(&found).map_err(|error| failed(kube::Error::SerdeError(error)))?;
        let Some(after) = convertible(&before, ca_pem, reach) else {
            continue;
        };
        let object: DynamicObject =
            serde_json::from_value(after).map_err(|error| failed(kube::Error::SerdeError(error)))?;
        api.replace(&name, &PostParams::default(), &object)
            .await
            .map_err(failed)?;
    }
    Ok(())
}

/// Brings both configurations and the definitions up to date.
///
/// # Errors
/// If a configuration is not there, or one of them cannot be written.
pub async fn ensure(client: &Client, ca_pem: &str, reach: &Reach) -> Result<(), ProcessError> {
    for kind in [WebhookKind::Mutating, WebhookKind::Validating] {
        let name = name_of(kind);
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(
            "admissionregistration.k8s.io",
            "v1",
            kind_of(kind),
        ));
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
        let failed = |error| ProcessError::request(&format!("configure {name}"), error);
        let found = api.get(name).await.map_err(failed)?;
        let before = serde_json::to_value(&found).map_err(|error| failed(kube::Error::SerdeError(error)))?;
        let after = configured(&before, ca_pem, reach);
        if same(&before, &after) {
            continue;
        }
        let object: DynamicObject =
            serde_json::from_value(after).map_err(|error| failed(kube::Error::SerdeError(error)))?;
        api.replace(name, &PostParams::default(), &object)
            .await
            .map_err(failed)?;
    }
    ensure_conversions(client, ca_pem, reach).await
}

#[cfg(test)]
#[path = "configurations_tests.rs"]
mod tests;
