//! `proxy`: passes requests on to pods, services and nodes, over the network of the cluster. [`super::place`] finds
//! out where they are.

use std::net::SocketAddr;

use bytes::Bytes;
use futures::StreamExt as _;
use http::header::{AUTHORIZATION, CONNECTION, CONTENT_LENGTH, HOST, LOCATION, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, BodyStream, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use machinery::status::ApiError;
use network::API_SERVER;
use network::tls::{Wire, encrypt_unverified};

use super::place::{place, unavailable};
use super::{Head, rewrite};
use crate::context::Context;
use crate::message::body::ResponseBody;
use crate::passed_upgrade;

/// The largest page whose links are rewritten.
const PAGE_BYTES_MAX: usize = 4 << 20;

/// Passes a request on, and its answer back.
pub(super) async fn answer(context: &Context, mut head: Head) -> Result<Response<ResponseBody>, ApiError> {
    let place = place(context)?;
    let (prefix, rest) = split_path(context, &head.path);
    // A page at the root needs a path under which its relative links are found.
    if rest.is_empty() && matches!(head.method, Method::GET | Method::HEAD) {
        return Ok(moved(&head));
    }
    let unreachable = |why: String| unavailable(format!("error trying to reach service: {why}"));
    let Some(network) = context.state().network() else {
        return Err(unreachable(format!(
            "dial tcp {}: connect: no route to host",
            place.to
        )));
    };
    let connected = network.connect(API_SERVER, place.to).await;
    let mut stream: Box<dyn Wire> = Box::new(connected.map_err(|error| unreachable(error.to_string()))?);
    if place.secure {
        let encrypted = encrypt_unverified(stream, &place.to.ip().to_string()).await;
        let not_so = |_| unreachable("tls: first record does not look like a TLS handshake".to_owned());
        stream = encrypted.map_err(not_so)?;
    }
    let request = request(context, &head, place.to, rest).map_err(&unreachable)?;
    let mut answer = exchange(stream, request).await.map_err(unreachable)?;
    if let Some(joined) = passed_upgrade::joined(head.upgrade.take(), &mut answer) {
        return Ok(joined);
    }
    passed_back(answer, &prefix).await
}

/// Sends a request over a connection, which a task of its own drives.
async fn exchange(
    stream: Box<dyn Wire>,
    request: Request<Full<Bytes>>,
) -> Result<Response<Incoming>, String> {
    let broken = |error: hyper::Error| match error.is_incomplete_message() {
        true => "EOF".to_owned(),
        false => error.to_string(),
    };
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
    tokio::spawn(async move {
        if let Err(error) = connection.with_upgrades().await {
            tracing::debug!(%error, "a passed-on connection has ended");
        }
    });
    sender.send_request(request).await.map_err(broken)
}

/// The answer for the client: the links of pages lead back through the proxy.
async fn passed_back(answer: Response<Incoming>, prefix: &str) -> Result<Response<ResponseBody>, ApiError> {
    let (mut head, body) = answer.into_parts();
    for name in [CONNECTION, TRANSFER_ENCODING] {
        head.headers.remove(name);
    }
    let location = head.headers.get(LOCATION).and_then(|place| place.to_str().ok());
    if let Some(location) = location {
        let rewritten = HeaderValue::from_str(&rewrite::link(location, prefix));
        if let Ok(rewritten) = rewritten {
            head.headers.insert(LOCATION, rewritten);
        }
    }
    if !rewrite::is_page(&head.headers) {
        let frames = BodyStream::new(body);
        // A connection that breaks ends the answer.
        let pieces = frames.filter_map(|frame| async { frame.ok().and_then(|frame| frame.into_data().ok()) });
        return Ok(Response::from_parts(head, ResponseBody::stream(pieces.boxed())));
    }
    let page = Limited::new(body, PAGE_BYTES_MAX).collect().await;
    let page = page.map_err(|error| unavailable(format!("error trying to reach service: {error}")))?;
    let text = String::from_utf8_lossy(&page.to_bytes()).into_owned();
    head.headers.remove(CONTENT_LENGTH);
    let body = ResponseBody::whole(Bytes::from(rewrite::page(&text, prefix)));
    Ok(Response::from_parts(head, body))
}

fn moved(head: &Head) -> Response<ResponseBody> {
    let query = if head.query.is_empty() {
        String::new()
    } else {
        format!("?{}", head.query)
    };
    let mut response = Response::new(ResponseBody::whole(Bytes::new()));
    *response.status_mut() = StatusCode::MOVED_PERMANENTLY;
    if let Ok(location) = HeaderValue::from_str(&format!("{}/{query}", head.path)) {
        response.headers_mut().insert(LOCATION, location);
    }
    response
}

/// The path up to `proxy`, and the path that the program sees; that is empty if nothing follows, not even a slash.
fn split_path<'p>(context: &Context, path: &'p str) -> (String, &'p str) {
    // `/api/v1/nodes/NAME/proxy`, or with `namespaces/NAME` before.
    let parts = if context.request.resource == "nodes" { 6 } else { 8 };
    let ends = path.char_indices().filter(|(_, c)| *c == '/').map(|(at, _)| at);
    match ends.chain(std::iter::once(path.len())).nth(parts - 1) {
        Some(end) => {
            let (prefix, rest) = path.split_at_checked(end).unwrap_or((path, ""));
            (prefix.to_owned(), rest)
        }
        None => (path.to_owned(), ""),
    }
}

fn request(
    context: &Context,
    head: &Head,
    to: SocketAddr,
    path: &str,
) -> Result<Request<Full<Bytes>>, String> {
    let path = if path.is_empty() { "/" } else { path };
    let target = if head.query.is_empty() {
        path.to_owned()
    } else {
        format!("{path}?{}", head.query)
    };
    let mut headers: HeaderMap = head.headers.clone();
    // The credentials were for this server, and lengths are those of the body that is sent.
    for name in [
        AUTHORIZATION,
        CONNECTION,
        UPGRADE,
        TRANSFER_ENCODING,
        CONTENT_LENGTH,
    ] {
        headers.remove(name);
    }
    if passed_upgrade::asks(&head.headers) {
        passed_upgrade::ask(&head.headers, &mut headers);
    }
    let host = HeaderValue::from_str(&to.to_string()).map_err(|error| error.to_string())?;
    let asked = headers.insert(HOST, host);
    if let Some(asked) = asked {
        headers.insert(HeaderName::from_static("x-forwarded-host"), asked);
    }
    if let Ok(uri) = HeaderValue::from_str(&head.path) {
        headers.insert(HeaderName::from_static("x-forwarded-uri"), uri);
    }
    let mut request = Request::new(Full::new(Bytes::copy_from_slice(&context.body)));
    *request.method_mut() = head.method.clone();
    *request.uri_mut() = target.parse().map_err(|_| format!("invalid path {target:?}"))?;
    *request.headers_mut() = headers;
    Ok(request)
}
