//! Impersonation: the modes in which the real server allows it, and the rights that each needs.
//!
//! The newer modes ask twice: for the right to act so as a user of that sort (`impersonate-on:<mode>:<verb>`), and for the
//! right to be that user (`impersonate:<mode>`). The old one asks for the latter alone (`impersonate`). The mode that worked
//! last for a user comes first, so that they get its refusal.

use std::sync::Arc;

use machinery::status::ApiError;
use machinery::user::service_account;

use super::{Act, MASTERS, allows, forbidden, is_master};
use crate::authn::User;
use crate::impersonation_mode::{MODES, Mode};
use crate::server::ServerState;

const AUTHENTICATION: &str = "authentication.k8s.io";
/// The sorts of user names.
enum Sort<'a> {
    Node(&'a str),
    Account(&'a str, &'a str),
    Other,
}

fn sort(name: &str) -> Sort<'_> {
    if let Some(node) = name.strip_prefix("system:node:").filter(|node| !node.is_empty()) {
        return Sort::Node(node);
    }
    match service_account(name) {
        Some((namespace, name)) => Sort::Account(namespace, name),
        None => Sort::Other,
    }
}

impl Mode {
    fn name(self) -> &'static str {
        match self {
            Self::ArbitraryNode => "arbitrary-node",
            Self::ServiceAccount => "serviceaccount",
            Self::UserInfo => "user-info",
            Self::Legacy => "",
        }
    }

    fn applies(self, wanted: &User) -> bool {
        let only_name = wanted.uid.is_empty() && wanted.groups.is_empty() && wanted.extra.is_empty();
        match (self, sort(&wanted.name)) {
            (Self::Legacy, _) | (Self::UserInfo, Sort::Other) => true,
            (Self::ArbitraryNode, Sort::Node(_)) | (Self::ServiceAccount, Sort::Account(..)) => only_name,
            _ => false,
        }
    }

    /// # Errors
    /// 403: the right that the user lacks.
    fn check(self, state: &ServerState, user: &User, wanted: &User, act: &Act) -> Result<(), ApiError> {
        let ask = |act: Act| match allows(state, user, &act) {
            true => Ok(()),
            false => Err(forbidden(user, &act)),
        };
        let is_new = self != Self::Legacy;
        if is_new {
            ask(Act {
                verb: format!("impersonate-on:{}:{}", self.name(), act.verb),
                ..act.clone()
            })?;
        }
        let of = |group: &str, resource: &str, name: &str| Act {
            verb: match self {
                Self::Legacy => "impersonate".to_owned(),
                _ => format!("impersonate:{}", self.name()),
            },
            group: group.to_owned(),
            resource: resource.to_owned(),
            name: name.to_owned(),
            ..Act::default()
        };
        let group = if is_new { AUTHENTICATION } else { "" };
        ask(match sort(&wanted.name) {
            Sort::Node(name) if is_new => of(group, "nodes", name),
            Sort::Account(namespace, name) => Act {
                namespace: namespace.to_owned(),
                ..of(group, "serviceaccounts", name)
            },
            Sort::Node(_) | Sort::Other => of(group, "users", &wanted.name),
        })?;
        if !wanted.uid.is_empty() {
            ask(of(AUTHENTICATION, "uids", &wanted.uid))?;
        }
        if is_new
            && wanted
                .groups
                .iter()
                .any(|name| name.is_empty() || name == MASTERS)
        {
            return Err(forbidden(user, &of(group, "groups", MASTERS)));
        }
        for name in &wanted.groups {
            ask(of(group, "groups", name))?;
        }
        for (key, values) in &wanted.extra {
            for value in values {
                ask(Act {
                    subresource: key.clone(),
                    ..of(AUTHENTICATION, "userextras", value)
                })?;
            }
        }
        Ok(())
    }
}

/// The impersonated user for one that asks to be `wanted`.
///
/// # Errors
/// 403: the first refusal.
pub(crate) fn become_user(
    state: &ServerState,
    user: &User,
    wanted: User,
    act: &Act,
) -> Result<Arc<User>, ApiError> {
    if is_master(user) {
        return Ok(Arc::new(wanted.completed()));
    }
    let last = state.impersonations.last(user);
    let modes = last
        .into_iter()
        .chain(MODES.into_iter().filter(|mode| Some(*mode) != last));
    let mut refusal = None;
    for mode in modes.filter(|mode| mode.applies(&wanted)) {
        match mode.check(state, user, &wanted, act) {
            Ok(()) => {
                state.impersonations.remember(user, mode);
                return Ok(Arc::new(wanted.completed()));
            }
            Err(error) => {
                refusal.get_or_insert(error);
            }
        }
    }
    // The old mode applies to everybody.
    Err(refusal.unwrap_or_else(|| forbidden(user, act)))
}
