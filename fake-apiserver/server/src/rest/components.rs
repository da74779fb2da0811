//! `componentstatuses`: what the server says of the programs beside it. Nothing of them is stored.
//!
//! The real server asks the health paths of the scheduler and of kube-controller-manager on loopback, and etcd by a request of its own.
//! Here whoever starts one of the two in this process [says so](crate::Server::report_running); one that was not started answers as a port
//! on which nothing listens. Source: `pkg/registry/core/componentstatus` of Kubernetes.

use std::sync::Arc;

use http::StatusCode;
use machinery::status::ApiError;
use shared_json::{Value, json};
use store::{ObjectKey, Stored};

use super::read::Selection;
use crate::components::Component;
use crate::context::{Context, Page};
use crate::resources::Resource;

/// Names of the objects with what stands behind each, by name. The store is this server's own, and runs as long as it does.
const NAMES: [(&str, Option<Component>); 3] = [
    ("controller-manager", Some(Component::ControllerManager)),
    ("etcd-0", None),
    ("scheduler", Some(Component::Scheduler)),
];

pub(crate) fn is_status(resource: &Resource) -> bool {
    resource.group.is_empty() && resource.kind == "ComponentStatus"
}

/// The status of one component.
///
/// # Errors
/// 500: there is no such component (the real server does not say 404).
pub(crate) fn get(context: &Context) -> Result<Value, ApiError> {
    let name = &context.request.name;
    let known = NAMES.iter().find(|(known, _)| known == name);
    known
        .map(|(name, component)| status(context, name, *component))
        .ok_or_else(|| {
            let message = format!("component not found: {name}");
            ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "", message)
        })
}

/// The statuses that the selectors select. The list has no revision.
pub(crate) fn list(context: &Context) -> Result<Page, ApiError> {
    let selection = Selection::parse(context, false)?;
    let items = NAMES
        .iter()
        .map(|(name, component)| (name, status(context, name, *component)))
        .filter(|(_, object)| selection.matches(object))
        .map(|(name, object)| Arc::new(Stored::unkept(ObjectKey::new("", name), object)))
        .collect();
    Ok(Page {
        revision: None,
        items,
        continue_token: String::new(),
        remaining: None,
    })
}

fn status(context: &Context, name: &str, component: Option<Component>) -> Value {
    let running = &context.state().running;
    let unreached = component.filter(|component| !running.has(*component)).map(port);
    let (status, message) = match unreached {
        None => ("True", "ok".to_owned()),
        Some(port) => {
            let address = format!("127.0.0.1:{port}");
            let message =
                format!("Get \"https://{address}/healthz\": dial tcp {address}: connect: connection refused");
            ("False", message)
        }
    };
    json!({
        "kind": "ComponentStatus", "apiVersion": "v1", "metadata": {"name": name},
        "conditions": [{"type": "Healthy", "status": status, "message": message}],
    })
}

/// The port of its health path.
fn port(component: Component) -> u16 {
    match component {
        Component::ControllerManager => 10257,
        Component::Scheduler => 10259,
    }
}
