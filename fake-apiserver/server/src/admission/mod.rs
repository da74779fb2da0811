//! Admission: decisions about a write that need more than the object itself.
//!
//! Built-in plugins come in the real server's order, mutating ones before the object is validated, validating ones
//! after; then the webhooks.

mod authorizer;
pub(crate) mod lifecycle;
mod limits;
mod matching;
mod mutations;
mod node_restriction;
mod pod_resize;
mod pod_security;
mod policies;
mod priority;
mod quota;
mod service_account;
mod single_rule_plugins;
mod tolerations;
mod topology_labels;
mod webhook;

use std::sync::Arc;

use shared_json::{Value, json};

use machinery::meta::ObjectMeta as _;
use machinery::status::ApiError;
pub(crate) use topology_labels::label_binding;

use crate::authn::User;
use crate::authz::Act;
use crate::context::Warnings;
use crate::local_webhook::WebhookKind;
use crate::message::params::Params;
use crate::resources::Resource;
use crate::server::{Server, ServerState};

/// The operation of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    Create,
    Update,
    Delete,
    /// A stream to something behind the object is asked for.
    Connect,
}

impl Operation {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}

/// One write, as admission sees it.
pub(crate) struct Attributes {
    /// The user that writes.
    pub user: Arc<User>,
    pub operation: Operation,
    pub resource: Arc<Resource>,
    pub subresource: String,
    pub namespace: String,
    /// The object's name in refusals: its name, or its `generateName`.
    pub name: String,
    /// The new object; `None` for a deletion.
    pub object: Option<Value>,
    /// The object as it was; `None` for a creation.
    pub old: Option<Value>,
    pub dry_run: bool,
    /// The options of the request, as [`options`] makes them.
    pub options: Value,
    /// Warnings for the client.
    pub warnings: Warnings,
}

/// Group, version and kind of the body of a subresource, where that is no version of the resource.
pub(crate) fn own_kind(
    plural: &str,
    subresource: &str,
) -> Option<(&'static str, &'static str, &'static str)> {
    Some(match (subresource, plural) {
        ("scale", _) => ("autoscaling", "v1", "Scale"),
        ("binding", _) => ("", "v1", "Binding"),
        ("eviction", _) => ("policy", "v1", "Eviction"),
        ("token", _) => ("authentication.k8s.io", "v1", "TokenRequest"),
        ("exec", _) => ("", "v1", "PodExecOptions"),
        ("attach", _) => ("", "v1", "PodAttachOptions"),
        ("portforward", _) => ("", "v1", "PodPortForwardOptions"),
        ("proxy", "pods") => ("", "v1", "PodProxyOptions"),
        ("proxy", "services") => ("", "v1", "ServiceProxyOptions"),
        ("proxy", _) => ("", "v1", "NodeProxyOptions"),
        _ => return None,
    })
}

impl Attributes {
    /// The name in a refusal; a created object may have none yet, and a deletion of a collection has none.
    fn shown_name(&self) -> &str {
        if self.name.is_empty() {
            return "Unknown";
        }
        &self.name
    }

    fn is(&self, group: &str, resource: &str) -> bool {
        self.resource.group == group && self.resource.plural == resource && self.subresource.is_empty()
    }

    /// The kind of the object that is sent, whose resource is `resource`: a scale is one of its own.
    fn kind_of<'a>(&self, resource: &'a Resource) -> (&'a str, &'a str, &'a str) {
        own_kind(&resource.plural, &self.subresource).unwrap_or((
            &resource.group,
            &resource.version,
            &resource.kind,
        ))
    }

    /// Whether the body is no version of the resource.
    fn is_of_own_kind(&self) -> bool {
        own_kind(&self.resource.plural, &self.subresource).is_some()
    }

    /// The name as far as it is known: none while it is still to be generated.
    fn known_name(&self) -> &str {
        match &self.object {
            Some(object) if self.operation == Operation::Create && object.name().is_empty() => "",
            _ => &self.name,
        }
    }

    /// The write as the authorizer sees it.
    fn act(&self) -> Act {
        Act {
            verb: self.operation.as_str().to_lowercase(),
            group: self.resource.group.clone(),
            resource: self.resource.plural.clone(),
            subresource: self.subresource.clone(),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
            ..Act::default()
        }
    }
}

/// Whether a plugin or a webhook may change or refuse the write by looking at the object.
pub(crate) fn is_concerned(server: &Server, attributes: &Attributes) -> bool {
    let is_new_pod = attributes.operation == Operation::Create && attributes.is("", "pods");
    let is_judged = matches!(
        attributes.resource.plural.as_str(),
        "namespaces" | "persistentvolumeclaims" | "services"
    );
    is_new_pod
        || is_judged
        || node_restriction::is_concerned(attributes)
        || pod_resize::is_concerned(attributes)
        || (attributes.is("", "pods") && pod_security::is_asked_for(&server.state, attributes))
        || quota::is_concerned(&server.state, attributes)
        || policies::is_concerned(&server.state, attributes)
        || mutations::is_concerned(&server.state, attributes)
        || webhook::concerns(server, attributes)
}

/// The options of a write in the form for webhooks: the options that the client gave, and their kind.
pub(crate) fn options(params: &Params, kind: &str) -> Value {
    let mut options = json!({"kind": kind, "apiVersion": "meta.k8s.io/v1"});
    for (field, text) in [
        ("fieldManager", &params.field_manager),
        ("fieldValidation", &params.field_validation_given),
    ] {
        if !text.is_empty() {
            options[field] = Value::from(text.clone());
        }
    }
    if !params.dry_run_given.is_empty() {
        options["dryRun"] = json!(params.dry_run_given);
    }
    options
}

/// Lets the mutating plugins and webhooks change the object, in their order.
pub(crate) async fn mutate(server: &Server, attributes: &mut Attributes) -> Result<(), ApiError> {
    let state: &ServerState = &server.state;
    lifecycle::admit(state, attributes)?;
    if attributes.operation == Operation::Create && attributes.is("", "pods") {
        service_account::mutate(state, attributes)?;
        limits::mutate(state, attributes)?;
        priority::mutate(state, attributes)?;
        tolerations::mutate(attributes);
        single_rule_plugins::runtime_class(state, attributes)?;
    }
    let changes_pod = attributes.operation == Operation::Update && attributes.subresource.is_empty();
    if changes_pod && attributes.is("", "pods") {
        tolerations::mutate(attributes);
    }
    node_restriction::admit(state, attributes)?;
    single_rule_plugins::taint_node(attributes);
    single_rule_plugins::default_storage_class(state, attributes)?;
    single_rule_plugins::default_ingress_class(state, attributes)?;
    topology_labels::mutate(state, attributes);
    let is_new_pod = attributes.operation == Operation::Create && attributes.is("", "pods");
    let others = |attributes: &Attributes| {
        mutations::is_concerned(state, attributes) || webhook::concerns(server, attributes)
    };
    let before = (is_new_pod && others(attributes)).then(|| attributes.object.clone());
    mutations::mutate(server, attributes)?;
    webhook::call(server, attributes, WebhookKind::Mutating).await?;
    if before.is_some_and(|before| before != attributes.object) {
        // What a policy or a webhook added has not been seen by the others yet.
        service_account::mutate(state, attributes)?;
        limits::mutate(state, attributes)?;
        priority::mutate(state, attributes)?;
        tolerations::mutate(attributes);
    }
    Ok(())
}

/// Lets webhooks and policies judge the body of a subresource that is no object of its own.
pub(crate) async fn judge_posted(server: &Server, attributes: &mut Attributes) -> Result<(), ApiError> {
    node_restriction::admit(&server.state, attributes)?;
    webhook::call(server, attributes, WebhookKind::Mutating).await?;
    policies::validate(server, attributes)?;
    webhook::call(server, attributes, WebhookKind::Validating).await
}

/// Lets the validating plugins, policies and webhooks refuse the write.
pub(crate) async fn validate(server: &Server, attributes: &mut Attributes) -> Result<(), ApiError> {
    let state: &ServerState = &server.state;
    limits::validate(state, attributes)?;
    single_rule_plugins::certificate_subject(attributes)?;
    single_rule_plugins::claim_resize(state, attributes)?;
    pod_security::validate(state, attributes)?;
    single_rule_plugins::pod_overhead(state, attributes)?;
    pod_resize::validate(state, attributes)?;
    policies::validate(server, attributes)?;
    webhook::call(server, attributes, WebhookKind::Validating).await?;
    // Last, as what is refused for another reason is not counted.
    quota::charge(state, attributes)
}
