//! Service accounts as users: their names, and the tokens they show.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::StatusCode;
use machinery::meta::{ObjectMeta as _, at};
use machinery::status::ApiError;
use machinery::user::{CREDENTIAL_ID, SERVICE_ACCOUNT_PREFIX, User, groups_of};
use shared_json::Value;
use store::{GroupResource, ObjectKey};

use crate::server::ServerState;
use crate::tokens::ISSUER;

/// The user of a token, if it is one of this server's, still valid, and for one of these audiences; with the audiences
/// that it is for.
pub(crate) fn authenticate(
    state: &ServerState,
    token: &str,
    audiences: &[String],
) -> Option<(User, Vec<String>)> {
    let claims = state.tokens.claims(token)?;
    let text = |path: &str| at(&claims, path).and_then(Value::as_str).unwrap_or_default();
    let now = state.clock.now().as_second();
    let expires = claims.get("exp").and_then(Value::as_i64)?;
    if text("iss") != ISSUER || expires <= now {
        return None;
    }
    let given: Vec<&str> = claims
        .get("aud")?
        .as_array()?
        .iter()
        .filter_map(Value::as_str)
        .collect();
    let common: Vec<String> = audiences
        .iter()
        .filter(|wanted| given.contains(&wanted.as_str()))
        .cloned()
        .collect();
    if common.is_empty() {
        return None;
    }
    let own = claims.get("kubernetes.io")?;
    let of = |path: &str| at(own, path).and_then(Value::as_str).unwrap_or_default();
    let (namespace, name, uid) = (
        of("namespace"),
        of("serviceaccount.name"),
        of("serviceaccount.uid"),
    );
    let exists = |resource: &str, name: &str, uid: &str| {
        let found = state.store.get(
            &GroupResource::new("", resource),
            &ObjectKey::new(if resource == "nodes" { "" } else { namespace }, name),
        );
        found.is_some_and(|stored| stored.value.uid() == uid)
    };
    if !exists("serviceaccounts", name, uid) {
        return None;
    }
    let mut extra = BTreeMap::from([(CREDENTIAL_ID.to_owned(), vec![format!("JTI={}", text("jti"))])]);
    for (part, resource) in [("pod", "pods"), ("secret", "secrets"), ("node", "nodes")] {
        let (name, uid) = (of(&format!("{part}.name")), of(&format!("{part}.uid")));
        if name.is_empty() {
            continue;
        }
        // A token that is bound to a pod stays good when the pod's node is gone.
        let is_told = part == "node" && !of("pod.name").is_empty();
        if !is_told && !exists(resource, name, uid) {
            return None;
        }
        let told = [("name", name), ("uid", uid)];
        for (field, value) in told
            .into_iter()
            .filter(|(_, value)| !value.is_empty() && part != "secret")
        {
            extra.insert(
                format!("authentication.kubernetes.io/{part}-{field}"),
                vec![value.to_owned()],
            );
        }
    }
    let name = format!("{SERVICE_ACCOUNT_PREFIX}{namespace}:{name}");
    let user = User {
        groups: groups_of(&name).unwrap_or_default(),
        name,
        uid: uid.to_owned(),
        extra,
    };
    Some((user, common))
}

/// The refusal of an invalid token.
pub(crate) fn unauthorized() -> ApiError {
    ApiError::new(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized")
}

/// A user behind an `Arc`, with the group `system:authenticated`.
pub(super) fn known(mut user: User) -> Arc<User> {
    if !user
        .groups
        .iter()
        .any(|group| group == machinery::user::AUTHENTICATED)
    {
        user.groups.push(machinery::user::AUTHENTICATED.to_owned());
    }
    Arc::new(user)
}
