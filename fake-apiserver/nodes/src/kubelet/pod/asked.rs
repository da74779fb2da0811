//! What a kubelet asks programs that listen on the network: probes, and hooks by HTTP.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, HOST, LOCATION, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Request};
use http_body_util::Full;
use machinery::meta::{ObjectMeta as _, at, list, text};
use network::Network;
use network::tls::{Wire, encrypt_unverified};
use shared_json::Value;

use super::dialled::rooted;
use super::worker::PodWorker;
use crate::programs::{HttpReply, exchange};

/// Why a kubelet asks.
#[derive(Debug, Clone, Copy)]
enum Purpose {
    Probe,
    /// Any answer will do.
    Hook,
}

impl Purpose {
    fn user_agent(self) -> &'static str {
        match self {
            Self::Probe => "kube-probe/1.36",
            Self::Hook => "kube-lifecycle/1.36",
        }
    }
}

/// The request of a hook, which its node makes.
pub(super) struct HookRequest {
    network: Network,
    own: IpAddr,
    to: SocketAddr,
    hook: Value,
}

impl HookRequest {
    /// Makes the request; the error is why there is no answer.
    pub(super) async fn make(&self) -> Result<(), String> {
        asked(&self.network, (self.own, self.to), &self.hook, Purpose::Hook).await
    }

    /// The path that is asked for.
    pub(super) fn path(&self) -> String {
        path_of(&self.hook)
    }
}

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
        let asked = Box::pin(asked(&network, (own, to), spec, Purpose::Probe));
        Some(match tokio::time::timeout(limit, asked).await {
            Ok(answer) => answer,
            Err(_) if spec.get("httpGet").is_some() => Err(format!(
                "Get \"{}\": context deadline exceeded (Client.Timeout exceeded while awaiting headers)",
                url(to, &path_of(spec))
            )),
            Err(_) => Err(format!("dial tcp {to}: i/o timeout")),
        })
    }

    /// The request of a container's hook by HTTP; none if it goes out of the cluster, or to this pod where no program listens by
    /// itself.
    pub(super) fn hook_request(&self, container: &str, hook: &Value) -> Option<HookRequest> {
        let port = self.port_of(container, at(hook, "httpGet.port")?).parse().ok()?;
        let access = &self.kubelet.access;
        let network = access.place()?.network.upgrade()?;
        let address = match text(hook, "httpGet.host") {
            "" if !access.is_bound(&self.pod.meta_text("uid"), port) => return None,
            "" => self.kubelet.host.address_of(self.pod.uid())?,
            host => host.parse().ok().filter(|address| network.has(*address))?,
        };
        Some(HookRequest {
            network,
            own: self.kubelet.spec.address.parse().ok()?,
            to: SocketAddr::new(address, port),
            hook: hook.clone(),
        })
    }
}

fn path_of(spec: &Value) -> String {
    rooted(text(spec, "httpGet.path"))
}

fn url(to: SocketAddr, path: &str) -> String {
    format!("http://{to}{path}")
}

async fn asked(
    network: &Network,
    (own, to): (IpAddr, SocketAddr),
    spec: &Value,
    purpose: Purpose,
) -> Result<(), String> {
    let by_http = at(spec, "httpGet").is_some();
    let mut path = path_of(spec);
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
        let request = request(to, &path, spec, purpose).ok_or_else(|| get("invalid path".to_owned()))?;
        let reply = exchange(stream, request)
            .await
            .map_err(|error| get(error.to_string()))?;
        match local_redirection(&reply) {
            Some(next) => path = next,
            None => return judged(&reply, purpose),
        }
    }
    Err(format!("Get \"{}\": stopped after 10 redirects", url(to, &path)))
}

fn judged(reply: &HttpReply, purpose: Purpose) -> Result<(), String> {
    match (purpose, reply.status.as_u16()) {
        (Purpose::Hook, _) | (Purpose::Probe, 200..400) => Ok(()),
        (Purpose::Probe, code) => Err(format!("HTTP probe failed with statuscode: {code}")),
    }
}

/// The path that an answer sends its client to on the same host. To another one a kubelet does not go, and is content.
fn local_redirection(reply: &HttpReply) -> Option<String> {
    let location = reply.headers.get(LOCATION)?.to_str().ok()?;
    (reply.status.is_redirection() && location.starts_with('/')).then(|| location.to_owned())
}

fn request(to: SocketAddr, path: &str, spec: &Value, purpose: Purpose) -> Option<Request<Full<Bytes>>> {
    let mut headers = HeaderMap::new();
    headers.insert(USER_AGENT, HeaderValue::from_static(purpose.user_agent()));
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
