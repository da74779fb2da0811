//! Probes of programs that listen on the network.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, HOST, LOCATION, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Request};
use http_body_util::Full;
use machinery::meta::{ObjectMeta as _, at, list, text};
use network::Network;
use network::tls::{Wire, encrypt_unverified};
use shared_json::Value;

use super::worker::PodWorker;
use crate::programs::{HttpReply, exchange};

/// How many redirections a kubelet follows.
const REDIRECTIONS_MAX: u32 = 10;

impl PodWorker {
    /// Asks the program that listens on the probe's port; none if none does that listens by itself.
    pub(super) async fn ask_listener(
        &self,
        port: u16,
        spec: &Value,
        limit: Duration,
    ) -> Option<Result<(), String>> {
        let access = &self.kubelet.access;
        if !access.is_bound(&self.pod.meta_text("uid"), port) {
            return None;
        }
        let network = access.place()?.network.upgrade()?;
        let own = self.kubelet.spec.address.parse().ok()?;
        let to = SocketAddr::new(self.kubelet.host.address_of(self.pod.uid())?, port);
        let asked = Box::pin(asked(&network, (own, to), spec));
        Some(match tokio::time::timeout(limit, asked).await {
            Ok(answer) => answer,
            Err(_) if spec.get("httpGet").is_some() => Err(format!(
                "Get \"{}\": context deadline exceeded (Client.Timeout exceeded while awaiting headers)",
                url(to, path_of(spec))
            )),
            Err(_) => Err(format!("dial tcp {to}: i/o timeout")),
        })
    }
}

fn path_of(spec: &Value) -> &str {
    match text(spec, "httpGet.path") {
        "" => "/",
        path => path,
    }
}

fn url(to: SocketAddr, path: &str) -> String {
    format!("http://{to}{path}")
}

async fn asked(
    network: &Network,
    (own, to): (std::net::IpAddr, SocketAddr),
    spec: &Value,
) -> Result<(), String> {
    let by_http = at(spec, "httpGet").is_some();
    let mut path = path_of(spec).to_owned();
    for _ in 0..REDIRECTIONS_MAX {
        let get = |why: String| format!("Get \"{}\": {why}", url(to, &path));
        let connected = network.connect(own, to).await.map_err(|error| error.to_string());
        if !by_http {
            return connected.map(|_| ());
        }
        let mut stream: Box<dyn Wire> = Box::new(connected.map_err(get)?);
        if text(spec, "httpGet.scheme") == "HTTPS" {
            // A kubelet does not look at certificates.
            let encrypted = encrypt_unverified(stream, &to.ip().to_string()).await;
            stream = encrypted.map_err(|error| get(error.to_string()))?;
        }
        let request = request(to, &path, spec).ok_or_else(|| get("invalid path".to_owned()))?;
        let reply = exchange(stream, request)
            .await
            .map_err(|error| get(error.to_string()))?;
        match local_redirection(&reply) {
            Some(next) => path = next,
            None => return judged(&reply),
        }
    }
    Err(format!("Get \"{}\": stopped after 10 redirects", url(to, &path)))
}

fn judged(reply: &HttpReply) -> Result<(), String> {
    match reply.status.as_u16() {
        200..400 => Ok(()),
        code => Err(format!("HTTP probe failed with statuscode: {code}")),
    }
}

/// The path that an answer sends its client to on the same host. To another one a kubelet does not go, and is content.
fn local_redirection(reply: &HttpReply) -> Option<String> {
    let location = reply.headers.get(LOCATION)?.to_str().ok()?;
    (reply.status.is_redirection() && location.starts_with('/')).then(|| location.to_owned())
}

fn request(to: SocketAddr, path: &str, spec: &Value) -> Option<Request<Full<Bytes>>> {
    let mut headers = HeaderMap::new();
    headers.insert(USER_AGENT, HeaderValue::from_static("kube-probe/1.36"));
    headers.insert(HOST, HeaderValue::from_str(&to.to_string()).ok()?);
    headers.insert(http::header::ACCEPT, HeaderValue::from_static("*/*"));
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    for header in list(spec, "httpGet.httpHeaders") {
        let name = HeaderName::from_bytes(text(header, "name").as_bytes()).ok()?;
        headers.insert(name, HeaderValue::from_str(text(header, "value")).ok()?);
    }
    let mut request = Request::new(Full::new(Bytes::new()));
    *request.uri_mut() = path.parse().ok()?;
    *request.headers_mut() = headers;
    Some(request)
}
