//! The user of a request: by its connection, its token, and impersonation headers.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use machinery::status::ApiError;
use machinery::user::{ANONYMOUS, UNAUTHENTICATED, User};

use super::service_account::{self, known, unauthorized};
use crate::message::params::unescape_path;
use crate::server::ServerState;
use crate::tokens::ISSUER;
use crate::websocket_token;

/// The server's knowledge of a connection on a socket. Requests without a `Peer` come from this process.
#[derive(Clone, Default)]
pub struct Peer {
    /// A client without a token is an administrator: for plain HTTP, which has no certificates.
    pub trusted: bool,
    /// The user that a client certificate names.
    pub certificate: Option<Arc<User>>,
    /// Users by tokens that were given to the server when it started.
    pub tokens: Arc<BTreeMap<String, Arc<User>>>,
}

impl Peer {
    /// The peer of requests from this process.
    pub(crate) fn in_process() -> Self {
        Self {
            trusted: true,
            ..Self::default()
        }
    }
}

/// Whether the headers of a request say who sends it, or for whom.
pub(crate) fn says_who(headers: &HeaderMap) -> bool {
    headers.contains_key(AUTHORIZATION)
        || headers
            .keys()
            .any(|name| name.as_str().starts_with("impersonate-"))
}

/// The user that sends a request, before impersonation.
///
/// # Errors
/// 401 for a token that is not good.
pub(crate) fn authenticate(
    state: &ServerState,
    peer: &Peer,
    headers: &HeaderMap,
) -> Result<Arc<User>, ApiError> {
    if let Some(user) = &peer.certificate {
        return Ok(Arc::clone(user));
    }
    let header = headers
        .get(AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let token = match header.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => token.trim(),
        _ => "",
    };
    let offered = match token {
        "" => websocket_token::token(headers).map_err(|_| unauthorized())?,
        _ => None,
    };
    let token = offered.as_deref().unwrap_or(token);
    if token.is_empty() {
        return Ok(if peer.trusted { User::master() } else { anonymous() });
    }
    if let Some(user) = peer.tokens.get(token) {
        return Ok(Arc::clone(user));
    }
    match service_account::authenticate(state, token, &[ISSUER.to_owned()]) {
        Some((user, _)) => Ok(known(user)),
        None => Err(unauthorized()),
    }
}

fn anonymous() -> Arc<User> {
    Arc::new(User {
        name: ANONYMOUS.to_owned(),
        groups: vec![UNAUTHENTICATED.to_owned()],
        ..User::default()
    })
}

/// The user that the request's headers say it is to be taken for; `None` if they say nothing. Whether that is allowed is for
/// authorization to say.
///
/// # Errors
/// 400 for groups and extras without a user.
pub(crate) fn impersonated(headers: &HeaderMap) -> Result<Option<User>, ApiError> {
    let all = |name: &str| -> Vec<String> {
        let values = headers
            .get_all(name)
            .iter()
            .filter_map(|value| value.to_str().ok());
        values.map(str::to_owned).collect()
    };
    let first = |name: &str| all(name).into_iter().next().unwrap_or_default();
    let mut user = User {
        name: first("impersonate-user"),
        uid: first("impersonate-uid"),
        groups: all("impersonate-group"),
        extra: BTreeMap::new(),
    };
    for (name, value) in headers {
        if let Some(key) = name.as_str().strip_prefix("impersonate-extra-") {
            let values = user.extra.entry(unescape_path(key).into_owned()).or_default();
            values.extend(value.to_str().ok().map(str::to_owned));
        }
    }
    if user.name.is_empty() {
        if user == User::default() {
            return Ok(None);
        }
        return Err(ApiError::bad_request(format!(
            "requested {} without impersonating a user name",
            in_go(&user)
        )));
    }
    Ok(Some(user))
}

/// The user as Go's `%#v` prints it.
fn in_go(user: &User) -> String {
    let list = |words: &[String]| {
        if words.is_empty() {
            return "[]string(nil)".to_owned();
        }
        let quoted: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
        format!("[]string{{{}}}", quoted.join(", "))
    };
    let extra = if user.extra.is_empty() {
        "map[string][]string(nil)".to_owned()
    } else {
        let pairs: Vec<String> = user
            .extra
            .iter()
            .map(|(key, values)| format!("{key:?}:{}", list(values)))
            .collect();
        format!("map[string][]string{{{}}}", pairs.join(", "))
    };
    format!(
        "&user.DefaultInfo{{Name:{:?}, UID:{:?}, Groups:{}, Extra:{extra}}}",
        user.name,
        user.uid,
        list(&user.groups)
    )
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            map.append(*name, value.parse().expect("a value"));
        }
        map
    }

    #[rstest]
    #[case(&[], "nobody")]
    #[case(&[("impersonate-user", "alice")], "alice [system:authenticated]")]
    #[case(&[("impersonate-user", "alice"), ("impersonate-group", "g")], "alice [g,system:authenticated]")]
    #[case(
        &[("impersonate-user", "system:serviceaccount:n:s")],
        "system:serviceaccount:n:s [system:serviceaccounts,system:serviceaccounts:n,system:authenticated]"
    )]
    #[case(&[("impersonate-user", "system:anonymous")], "system:anonymous [system:unauthenticated]")]
    #[case(
        &[("impersonate-group", "g")],
        "requested &user.DefaultInfo{Name:\"\", UID:\"\", Groups:[]string{\"g\"}, Extra:map[string][]string(nil)} without \
         impersonating a user name"
    )]
    fn reads_who_is_meant(#[case] pairs: &[(&'static str, &'static str)], #[case] expected: &str) {
        let got = match impersonated(&headers(pairs)) {
            Ok(None) => "nobody".to_owned(),
            Ok(Some(user)) => {
                let user = user.completed();
                format!("{} [{}]", user.name, user.groups.join(","))
            }
            Err(error) => error.message,
        };
        assert_eq!(got, expected);
    }
}
