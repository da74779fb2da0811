//! Requests that another server answers: they are passed on with the user in headers, and without the client's credentials.

use bytes::Bytes;
use http::header::{
    AUTHORIZATION, CONNECTION, CONTENT_LENGTH, HOST, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode};
use hyper::upgrade::OnUpgrade;
use machinery::user::User;

use super::api_service::ApiService;
use super::backend::Ways;
use crate::message::body::ResponseBody;
use crate::message::respond;
use crate::passed_upgrade;

/// Headers that concern one connection only.
const OF_A_CONNECTION: [HeaderName; 5] = [CONNECTION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE];
const USER: &str = "x-remote-user";
const UID: &str = "x-remote-uid";
const GROUP: &str = "x-remote-group";
const EXTRA: &str = "x-remote-extra-";

/// A request, and the user that sends it.
pub(crate) struct Asker<'a> {
    pub head: &'a Parts,
    pub user: &'a User,
    pub body: Bytes,
    /// The client's connection, if it can change its protocol.
    pub upgrade: Option<OnUpgrade>,
}

/// Passes a request on. `is_available` is whether the server has answered when it was asked last.
pub(crate) async fn forward(
    ways: Ways<'_>,
    (to, is_available): &(ApiService, bool),
    mut asker: Asker<'_>,
) -> Response<ResponseBody> {
    if !is_available {
        return unavailable("service unavailable");
    }
    let upgrade = asker.upgrade.take();
    let Ok(request) = request(asker) else {
        return unavailable("the request cannot be passed on");
    };
    match ways.send(to, request, upgrade).await {
        Err(super::backend::Unanswered::NoAddress(_)) => unavailable("service unavailable"),
        Err(broken) => unavailable(&broken.to_string()),
        Ok(joined) if joined.status() == StatusCode::SWITCHING_PROTOCOLS => joined,
        Ok(mut answer) => {
            for name in &OF_A_CONNECTION {
                answer.headers_mut().remove(name);
            }
            answer
        }
    }
}

fn unavailable(why: &str) -> Response<ResponseBody> {
    let mut response = respond::text(format!("{why}\n"));
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    response
}

fn request(asker: Asker<'_>) -> Result<Request<Bytes>, http::Error> {
    let Asker { head, user, body, .. } = asker;
    let target = head.uri.path_and_query().map_or("/", |target| target.as_str());
    let mut request = Request::builder()
        .method(head.method.clone())
        .uri(target)
        .body(body)?;
    let headers = request.headers_mut();
    for (name, value) in &head.headers {
        if is_passed_on(name) {
            headers.append(name.clone(), value.clone());
        }
    }
    if passed_upgrade::asks(&head.headers) {
        passed_upgrade::ask(&head.headers, headers);
    }
    write_user(user, headers);
    Ok(request)
}

/// Whether a header of the client says something to another server.
fn is_passed_on(name: &HeaderName) -> bool {
    let text = name.as_str();
    !OF_A_CONNECTION.contains(name)
        && ![AUTHORIZATION, CONTENT_LENGTH, HOST].contains(name)
        && !text.starts_with("x-remote-")
        && !text.starts_with("impersonate-")
}

/// Names the user of the request. A value that no header can have is left out.
fn write_user(user: &User, headers: &mut HeaderMap) {
    let mut add = |name: &str, value: &str| {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::from_str(value)) {
            headers.append(name, value);
        }
    };
    add(USER, &user.name);
    if !user.uid.is_empty() {
        add(UID, &user.uid);
    }
    for group in &user.groups {
        add(GROUP, group);
    }
    for (key, values) in &user.extra {
        for value in values {
            add(&format!("{EXTRA}{}", escaped(key)), value);
        }
    }
}

/// A key as part of a header's name: characters that no name can have are percent-encoded.
fn escaped(key: &str) -> String {
    let mut out = String::new();
    for byte in key.bytes() {
        match byte {
            b'!' | b'#' | b'$' | b'&' | b'\'' | b'*' | b'+' | b'-' | b'.' | b'^' | b'_' | b'`' | b'|'
            | b'~' => {
                out.push(char::from(byte));
            }
            byte if byte.is_ascii_alphanumeric() => out.push(char::from(byte)),
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(&[("authorization", "Bearer t"), ("accept", "a/b")], &["accept: a/b"])]
    #[case(&[("x-remote-user", "root"), ("x-remote-extra-a", "b"), ("x-other", "c")], &["x-other: c"])]
    #[case(&[("impersonate-user", "root"), ("connection", "close"), ("content-length", "7")], &[])]
    #[case(&[("connection", "upgrade"), ("upgrade", "websocket")], &["connection: Upgrade", "upgrade: websocket"])]
    fn headers_of_the_client(#[case] given: &[(&str, &str)], #[case] expected: &[&str]) {
        let mut incoming = Request::get("/apis/g/v1/things?watch=1");
        for (name, value) in given {
            incoming = incoming.header(*name, *value);
        }
        let (head, ()) = incoming.body(()).expect("a request").into_parts();
        let user = User {
            name: "jane".to_owned(),
            uid: "42".to_owned(),
            groups: vec!["a".to_owned(), "b".to_owned()],
            extra: BTreeMap::from([("example.com/scopes".to_owned(), vec!["x".to_owned()])]),
        };
        let asker = Asker {
            head: &head,
            user: &user,
            body: Bytes::new(),
            upgrade: None,
        };
        let request = request(asker).expect("a request");
        assert_eq!(request.uri(), "/apis/g/v1/things?watch=1");
        let mut lines: Vec<String> = request
            .headers()
            .iter()
            .map(|(name, value)| format!("{name}: {}", value.to_str().expect("a text")))
            .collect();
        lines.sort();
        let mut all: Vec<String> = expected.iter().map(|line| (*line).to_owned()).collect();
        all.extend(
            [
                "x-remote-extra-example.com%2fscopes: x",
                "x-remote-group: a",
                "x-remote-group: b",
                "x-remote-uid: 42",
                "x-remote-user: jane",
            ]
            .map(str::to_owned),
        );
        assert_eq!(lines, all);
    }
}
