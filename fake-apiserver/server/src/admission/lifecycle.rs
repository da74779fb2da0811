//! NamespaceLifecycle: nothing is created in a namespace that does not exist or is ending.

use machinery::meta::ObjectMeta;
use machinery::status::ApiError;
use shared_json::json;
use store::{GroupResource, ObjectKey};

use super::{Attributes, Operation};
use crate::server::ServerState;

/// Namespaces that cannot be deleted.
const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

pub(super) fn admit(server: &ServerState, attributes: &Attributes) -> Result<(), ApiError> {
    let namespaces = GroupResource::new("", "namespaces");
    if attributes.operation == Operation::Delete && attributes.is("", "namespaces") {
        if IMMORTAL.contains(&attributes.name.as_str()) {
            return Err(ApiError::forbidden(
                &namespaces,
                &attributes.name,
                "this namespace may not be deleted",
            ));
        }
        return Ok(());
    }
    if attributes.operation != Operation::Create || !attributes.resource.namespaced {
        return Ok(());
    }
    let Some(namespace) = server
        .store
        .get(&namespaces, &ObjectKey::new("", &attributes.namespace))
    else {
        return Err(ApiError::not_found(&namespaces, &attributes.namespace));
    };
    if !namespace.value.is_terminating() {
        return Ok(());
    }
    let table = attributes.resource.group_resource();
    let name = &attributes.namespace;
    let mut error = ApiError::forbidden(
        &table,
        attributes.shown_name(),
        &format!("unable to create new content in namespace {name} because it is being terminated"),
    );
    if let Some(details) = error.details.as_mut() {
        details["causes"] = json!([{
            "reason": "NamespaceTerminating",
            "message": format!("namespace {name} is being terminated"),
            "field": "metadata.namespace",
        }]);
    }
    Err(error)
}
