//! `proxy`: passes requests on to pods, services and nodes, over the network of the cluster.

use std::net::{IpAddr, SocketAddr};

use bytes::Bytes;
use futures::StreamExt as _;
use http::header::{AUTHORIZATION, CONNECTION, CONTENT_LENGTH, HOST, LOCATION, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, BodyStream, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use machinery::meta::{at, list, text};
use machinery::status::ApiError;
use network::API_SERVER;
use shared_json::Value;
use store::{GroupResource, ObjectKey};
use tokio::io::DuplexStream;

use super::{Head, rewrite};
use crate::context::Context;
use crate::message::body::ResponseBody;

/// The kubelet's port.
const KUBELET_PORT: u16 = 10_250;
/// The largest page whose links are rewritten.
const PAGE_BYTES_MAX: usize = 4 << 20;

/// In which order the server tries a node's addresses (`--kubelet-preferred-address-types`).
const PREFERRED: [&str; 5] = [
    "Hostname",
    "InternalDNS",
    "InternalIP",
    "ExternalDNS",
    "ExternalIP",
];

/// Where a request is passed on to.
struct Place {
    to: SocketAddr,
    secure: bool,
}

/// Passes a request on, and its answer back.
pub(super) async fn answer(context: &Context, head: Head) -> Result<Response<ResponseBody>, ApiError> {
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
    let stream = connected.map_err(|error| unreachable(error.to_string()))?;
    if place.secure {
        return Err(unreachable(
            "tls: first record does not look like a TLS handshake".to_owned(),
        ));
    }
    let request = request(context, &head, place.to, rest).map_err(&unreachable)?;
    let answer = exchange(stream, request).await.map_err(unreachable)?;
    passed_back(answer, &prefix).await
}

/// Sends a request over a connection, which a task of its own drives.
async fn exchange(stream: DuplexStream, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, String> {
    let broken = |error: hyper::Error| match error.is_incomplete_message() {
        true => "EOF".to_owned(),
        false => error.to_string(),
    };
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
    tokio::spawn(async move {
        if let Err(error) = connection.await {
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

/// The place that a request names.
fn place(context: &Context) -> Result<Place, ApiError> {
    let resource = context.request.resource.as_str();
    let singular = resource.strip_suffix('s').unwrap_or(resource);
    let asked = context.request.name.as_str();
    let Some((name, port)) = split(asked) else {
        return Err(ApiError::bad_request(format!(
            "invalid {singular} request \"{asked}\""
        )));
    };
    let to = match resource {
        "pods" => pod(context, name, port)?,
        "nodes" => node(context, name, port)?,
        _ => service(context, name, port)?,
    };
    Ok(Place {
        to,
        // A kubelet's own port is reached as it is.
        secure: asked.starts_with("https:") && resource != "nodes",
    })
}

/// Name and port of `name`, `name:port` or `scheme:name:port`.
fn split(asked: &str) -> Option<(&str, &str)> {
    let parts: Vec<&str> = asked.split(':').collect();
    let (name, port) = match *parts.as_slice() {
        [name] => (name, ""),
        [name, port] => (name, port),
        ["http" | "https" | "", name, port] => (name, port),
        _ => return None,
    };
    (!name.is_empty()).then_some((name, port))
}

fn unavailable(message: impl Into<String>) -> ApiError {
    ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", message)
}

fn find(context: &Context, resource: &str, namespace: &str, name: &str) -> Result<Value, ApiError> {
    let table = GroupResource::new("", resource);
    let found = context
        .state()
        .store
        .get(&table, &ObjectKey::new(namespace, name));
    found
        .map(|stored| stored.value.clone())
        .ok_or_else(|| ApiError::not_found(&table, name))
}

/// Addresses of the server's own machine and unroutable ones are refused.
fn proxyable(address: IpAddr) -> Result<(), ApiError> {
    let link_local = match address {
        IpAddr::V4(four) => four.is_link_local(),
        IpAddr::V6(six) => six.is_unicast_link_local(),
    };
    if address.is_loopback() || address.is_unspecified() || address.is_multicast() || link_local {
        return Err(ApiError::bad_request("address not allowed"));
    }
    Ok(())
}

fn number(port: &str) -> Result<u16, ApiError> {
    let number = port.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| {
        unavailable(format!(
            "error trying to reach service: dial tcp: lookup tcp/{port}: unknown port"
        ))
    })
}

fn pod(context: &Context, name: &str, port: &str) -> Result<SocketAddr, ApiError> {
    let pod = find(context, "pods", &context.request.namespace, name)?;
    let address = at(&pod, "status.podIP")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let Ok(address) = address.parse() else {
        return Err(ApiError::bad_request("address not allowed"));
    };
    proxyable(address)?;
    let mut ports = list(&pod, "spec.containers")
        .iter()
        .flat_map(|container| list(container, "ports"));
    let first = ports.find_map(|port| port.get("containerPort")?.as_u64());
    let port = match (port, first) {
        ("", Some(first)) => first.to_string(),
        ("", None) => "80".to_owned(),
        (port, _) => port.to_owned(),
    };
    Ok(SocketAddr::new(address, number(&port)?))
}

fn node(context: &Context, name: &str, port: &str) -> Result<SocketAddr, ApiError> {
    let node = find(context, "nodes", "", name)?;
    let addresses: Vec<(&str, &str)> = at(&node, "status.addresses")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some((entry.get("type")?.as_str()?, entry.get("address")?.as_str()?)))
        .collect();
    let preferred = PREFERRED
        .iter()
        .find_map(|kind| addresses.iter().find(|(given, _)| given == kind));
    let Some((_, address)) = preferred else {
        let message = format!(
            "no preferred addresses found; known addresses: {}",
            listed(&addresses)
        );
        return Err(ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "", message));
    };
    let port = if port.is_empty() {
        KUBELET_PORT
    } else {
        number(port)?
    };
    if let Ok(address) = address.parse() {
        proxyable(address)?;
        return Ok(SocketAddr::new(address, port));
    }
    // Simulated nodes have names that only they know.
    let own = addresses.iter().find(|(kind, _)| *kind == "InternalIP");
    match own.and_then(|(_, own)| own.parse().ok()) {
        Some(own) if context.state().node_access(name).is_some() => Ok(SocketAddr::new(own, port)),
        _ => Err(ApiError::bad_request(format!("lookup {address}: no such host"))),
    }
}

fn listed(addresses: &[(&str, &str)]) -> String {
    let shown: Vec<String> = addresses
        .iter()
        .map(|(kind, address)| format!("{{{kind} {address}}}"))
        .collect();
    format!("[{}]", shown.join(" "))
}

fn service(context: &Context, name: &str, port: &str) -> Result<SocketAddr, ApiError> {
    let namespace = &context.request.namespace;
    let mut wanted = port.to_owned();
    let service = find(context, "services", namespace, name)?;
    if let Ok(number) = port.parse::<i64>() {
        let ports = at(&service, "spec.ports").and_then(Value::as_array);
        let known = ports
            .into_iter()
            .flatten()
            .find(|known| known.get("port").and_then(Value::as_i64) == Some(number));
        let Some(known) = known else {
            return Err(unavailable(format!(
                "no service port {number} found for service \"{name}\""
            )));
        };
        wanted = known
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
    }
    let endpoints = find(context, "endpoints", namespace, name)?;
    let mut found = Vec::new();
    for subset in list(&endpoints, "subsets") {
        let mut ports = list(subset, "ports").iter();
        let Some(port) = ports.find(|port| text(port, "name") == wanted) else {
            continue;
        };
        let port = port.get("port").and_then(Value::as_u64);
        let port = port.and_then(|port| u16::try_from(port).ok()).unwrap_or_default();
        let addresses = list(subset, "addresses").iter();
        let addresses = addresses.filter_map(|address| text(address, "ip").parse::<IpAddr>().ok());
        found.extend(addresses.map(|address| SocketAddr::new(address, port)));
    }
    let chosen = context
        .state()
        .network()
        .map_or(0, |network| network.pick(found.len()));
    let chosen = found.get(chosen).copied();
    let chosen =
        chosen.ok_or_else(|| unavailable(format!("no endpoints available for service \"{name}\"")))?;
    proxyable(chosen.ip())?;
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("web", Some(("web", "")))]
    #[case("web:http", Some(("web", "http")))]
    #[case("https:web:443", Some(("web", "443")))]
    #[case(":web:", Some(("web", "")))]
    #[case("ftp:web:21", None)]
    #[case("a:b:c:d", None)]
    #[case(":80", None)]
    fn names_may_have_a_scheme_and_a_port(#[case] asked: &str, #[case] expect: Option<(&str, &str)>) {
        assert_eq!(split(asked), expect);
    }
}
