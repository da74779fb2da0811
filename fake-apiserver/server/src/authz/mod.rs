//! Authorization: role-based access control, as the real server's.
//!
//! [`check`] refuses a request. [`node`] has the rights of kubelets, [`become_user`] those of impersonation, [`devices`] those of
//! device claims. [`escalation`] refuses roles and bindings beyond their writer's rights. [`rbac`] has the rights that roles give.

pub(crate) mod devices;
pub(crate) mod escalation;
mod impersonation;
mod node;
pub(crate) mod rbac;

use http::StatusCode;
use shared_json::json;

pub(crate) use impersonation::become_user;
use machinery::status::ApiError;
pub(crate) use node::identity as node_of;
pub(crate) use rbac::allows;

use crate::authn::{MASTERS, User};
use crate::context::Context;
use crate::message::request::ResourceRequest;
use crate::server::ServerState;

/// An action that a user asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Act {
    pub verb: String,
    pub group: String,
    pub resource: String,
    pub subresource: String,
    pub namespace: String,
    pub name: String,
    /// The path of a non-resource request.
    pub path: String,
    /// Of which objects alone, where many are asked for.
    pub field_selector: String,
}

impl Act {
    pub(crate) fn of(request: &ResourceRequest) -> Self {
        // A namespace is authorized as if it were in itself.
        let namespace = if request.group.is_empty() && request.resource == "namespaces" {
            request.name.clone()
        } else {
            request.namespace.clone()
        };
        Self {
            verb: request.verb.as_str().to_owned(),
            group: request.group.clone(),
            resource: request.resource.clone(),
            // What comes after it is the business of whoever serves it.
            subresource: request
                .subresource
                .split('/')
                .next()
                .unwrap_or_default()
                .to_owned(),
            namespace,
            name: request.name.clone(),
            ..Self::default()
        }
    }

    pub(crate) fn path(method: &http::Method, path: &str) -> Self {
        Self {
            verb: method.as_str().to_lowercase(),
            path: path.to_owned(),
            ..Self::default()
        }
    }
}

/// Whether a user may do everything.
pub(crate) fn is_master(user: &User) -> bool {
    user.groups.iter().any(|group| group == MASTERS)
}

/// Refuses an action that the user may not take.
///
/// # Errors
/// 403.
pub(crate) fn check(state: &ServerState, user: &User, act: &Act) -> Result<(), ApiError> {
    if is_master(user) || node::decide(state, user, act) == Some(Ok(())) || allows(state, user, act) {
        return Ok(());
    }
    let mut error = forbidden(user, act);
    if let Some(why) = why_not(state, user, act) {
        error.message = format!("{}: {why}", error.message);
    }
    Err(error)
}

/// Whether a user may do something, and why or why not, where there is something to say of it.
pub(crate) fn decision(state: &ServerState, user: &User, act: &Act) -> (bool, String) {
    if is_master(user) || node::decide(state, user, act) == Some(Ok(())) {
        return (true, String::new());
    }
    match rbac::reason(state, user, act) {
        Some(reason) => (true, reason),
        None => (false, why_not(state, user, act).unwrap_or_default()),
    }
}

/// Why a user may not do something, as far as anything is known of it.
fn why_not(state: &ServerState, user: &User, act: &Act) -> Option<String> {
    let of_node = node::decide(state, user, act).and_then(Result::err);
    let of_roles = rbac::why_not(state, user, act);
    match (of_roles, of_node.filter(|why| !why.is_empty())) {
        (Some(of_roles), Some(of_node)) => Some(format!("{of_roles}: {of_node}")),
        (of_roles, of_node) => of_roles.or(of_node),
    }
}

/// Refuses a request that turned out to create an object, where its user may not.
///
/// # Errors
/// 403.
pub(crate) fn check_create(context: &Context) -> Result<(), ApiError> {
    if is_master(&context.user) {
        return Ok(());
    }
    let act = Act {
        verb: "create".to_owned(),
        ..Act::of(&context.request)
    };
    check(context.state(), &context.user, &act)
}

fn forbidden(user: &User, act: &Act) -> ApiError {
    let name = &user.name;
    let mut error = if act.resource.is_empty() {
        let message = format!("forbidden: User {name:?} cannot {} path {:?}", act.verb, act.path);
        let mut error = ApiError::new(StatusCode::FORBIDDEN, "Forbidden", message);
        error.details = Some(json!({}));
        return error;
    } else {
        ApiError::new(StatusCode::FORBIDDEN, "Forbidden", "")
    };
    let kind = if act.group.is_empty() {
        act.resource.clone()
    } else {
        format!("{}.{}", act.resource, act.group)
    };
    let object = if act.name.is_empty() {
        kind
    } else {
        format!("{kind} {:?}", act.name)
    };
    let resource = if act.subresource.is_empty() {
        act.resource.clone()
    } else {
        format!("{}/{}", act.resource, act.subresource)
    };
    let scope = if act.namespace.is_empty() {
        "at the cluster scope".to_owned()
    } else {
        format!("in the namespace {:?}", act.namespace)
    };
    error.message = format!(
        "{object} is forbidden: User {name:?} cannot {} resource {resource:?} in API group {:?} {scope}",
        act.verb, act.group
    );
    let mut details = json!({"kind": act.resource});
    for (field, text) in [("name", &act.name), ("group", &act.group)] {
        if !text.is_empty() {
            details[field] = text.clone().into();
        }
    }
    error.details = Some(details);
    error
}
