//! The question to a webhook: an `AdmissionReview`.

use shared_json::{Value, json};

use super::configuration::Concern;
use crate::admission::Attributes;
use crate::resources::Resource;
use crate::server::Server;

/// A question, and the id that its answer must name.
pub(super) struct Review {
    pub body: Value,
    pub uid: String,
}

/// The question about a write, in the version that the webhook wants.
pub(super) fn of(server: &Server, attributes: &Attributes, concern: &Concern) -> Review {
    let uid = server.state.new_uid();
    let mut request = request(attributes, concern);
    request["uid"] = Value::from(uid.clone());
    let body = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request});
    Review { body, uid }
}

/// The question about a write, without its uid.
pub(super) fn request(attributes: &Attributes, concern: &Concern) -> Value {
    let asked = &attributes.resource;
    let wanted = &concern.resource;
    let gvk = |resource: &Resource| {
        let (group, version, kind) = attributes.kind_of(resource);
        json!({"group": group, "version": version, "kind": kind})
    };
    let gvr = |resource: &Resource| json!({"group": resource.group, "version": resource.version, "resource": resource.plural});
    let mut request = json!({
        "kind": gvk(wanted),
        "resource": gvr(wanted),
        "requestKind": gvk(asked),
        "requestResource": gvr(asked),
        "operation": attributes.operation.as_str(),
        "userInfo": attributes.user.info(),
        "object": concern.object(attributes),
        "oldObject": concern.old(attributes),
        "dryRun": attributes.dry_run,
        "options": attributes.options,
    });
    if !attributes.known_name().is_empty() {
        request["name"] = Value::from(attributes.known_name());
    }
    if !attributes.subresource.is_empty() {
        request["subResource"] = Value::from(attributes.subresource.clone());
        request["requestSubResource"] = Value::from(attributes.subresource.clone());
    }
    if !attributes.namespace.is_empty() {
        request["namespace"] = Value::from(attributes.namespace.clone());
    }
    request
}
