//! The webhook configurations: which webhooks the API server asks, where, and whom it trusts.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::Client;
use kube::api::{Api, DynamicObject, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

use super::ProcessError;
use crate::webhook::{WebhookKind, rules};

/// OpenKruise keeps the webhooks as they were installed in this annotation; what no controller serves is left out of the
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
    let served: Vec<&str> = rules().map(|rule| rule.path).collect();
    let bundle = STANDARD.encode(ca_pem);
    let mut webhooks = Vec::new();
    for webhook in &template {
        let path = path_of(webhook);
        if !served.contains(&path.as_str()) {
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

/// Brings both configurations up to date.
///
/// # Errors
/// If one is not there, or cannot be written.
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
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn installed() -> Value {
        let webhook = |name: &str, path: &str| json!({"name": name, "clientConfig": {"service": {"namespace": "x", "name": "y", "path": path}}});
        json!({"metadata": {"name": "c"}, "webhooks": [
            webhook("mcloneset.kb.io", "/mutate-apps-kruise-io-v1alpha1-cloneset"),
            webhook("msidecarset.kb.io", "/mutate-apps-kruise-io-v1alpha1-sidecarset"),
        ]})
    }

    #[test]
    fn serves_what_it_can_and_keeps_the_rest_for_later() {
        let service = Reach::Service {
            namespace: "kruise-system".to_owned(),
            name: "kruise-webhook-service".to_owned(),
        };
        let done = configured(&installed(), "pem", &service);
        assert_eq!(done["webhooks"].as_array().unwrap().len(), 1);
        assert_eq!(
            done["webhooks"][0]["clientConfig"],
            json!({"caBundle": "cGVt", "service": {"namespace": "kruise-system", "name": "kruise-webhook-service",
                "path": "/mutate-apps-kruise-io-v1alpha1-cloneset"}})
        );
        let kept: Value =
            serde_json::from_str(done["metadata"]["annotations"]["template"].as_str().unwrap()).unwrap();
        assert_eq!(kept, installed()["webhooks"]);
        // Again, it changes nothing, and another way to reach it starts from what was installed.
        assert_eq!(configured(&done, "pem", &service), done);
        assert!(same(&done, &configured(&done, "pem", &service)));
        let url = configured(&done, "pem", &Reach::Url("https://h:9/".to_owned()));
        assert_eq!(
            url["webhooks"][0]["clientConfig"],
            json!({"caBundle": "cGVt", "url": "https://h:9/mutate-apps-kruise-io-v1alpha1-cloneset"})
        );
        assert!(!same(&done, &url));
        assert!(!same(&installed(), &done));
    }
}
