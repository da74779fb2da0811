//! Calls a webhook: a POST of JSON over HTTPS, to a URL or to a service.

mod pool;
mod tls;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST};
use http::response::Parts;
use http::{Request, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use machinery::meta::at;
use machinery::patch::json_type;
use network::tls::Wire;
use network::{API_SERVER, Network};
use node_access::dialled;
use shared_json::{Value, json};
use store::{GroupResource, ObjectKey, Store};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls;
use tokio_rustls::rustls::pki_types::ServerName;

use pool::Key;
pub(crate) use pool::{Connections, Sender};
pub(crate) use tls::{Trust, client_config};

use crate::message::TYPE_META;

/// The largest answer that is read: 3 MiB.
const ANSWER_BYTES_MAX: usize = 3 * 1024 * 1024;
const DEFAULT_PORT: u16 = 443;

/// The address of a webhook, and the authorities that may sign its certificate.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ClientConfig {
    url: String,
    service: Option<Service>,
    bundle: Vec<u8>,
}

/// A port of a Service, and a path there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Service {
    pub namespace: String,
    pub name: String,
    pub path: String,
    pub port: u16,
}

/// The address to connect to, the path, and the name that the certificate must be for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Place {
    address: String,
    port: u16,
    /// The URL as errors show it, without the timeout.
    url: String,
    server_name: String,
    path: String,
}

impl ClientConfig {
    /// Reads a `WebhookClientConfig`.
    pub(crate) fn read(config: &Value) -> Self {
        let text = |path: &str| {
            at(config, path)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let service = config
            .get("service")
            .filter(|service| service.is_object())
            .map(|service| Service {
                namespace: text("service.namespace"),
                name: text("service.name"),
                path: text("service.path"),
                port: service
                    .get("port")
                    .and_then(Value::as_u64)
                    .and_then(|port| u16::try_from(port).ok())
                    .unwrap_or(DEFAULT_PORT),
            });
        Self {
            url: text("url"),
            service,
            bundle: STANDARD.decode(text("caBundle")).unwrap_or_default(),
        }
    }

    fn place(&self, store: &Store) -> Result<Place, String> {
        match &self.service {
            Some(service) => service.place(store),
            None => from_url(&self.url),
        }
    }
}

fn from_url(url: &str) -> Result<Place, String> {
    let parsed: Uri = url.parse().map_err(|error| format!("parse {url:?}: {error}"))?;
    let host = parsed.host().unwrap_or_default().trim_matches(['[', ']']);
    if parsed.scheme_str() != Some("https") || host.is_empty() {
        return Err(format!("Post {url:?}: unsupported protocol scheme"));
    }
    let path = clean_path(parsed.path());
    let url = match (parsed.authority(), path == parsed.path()) {
        (Some(authority), false) => format!("https://{authority}{path}"),
        _ => url.to_owned(),
    };
    Ok(Place {
        address: host.to_owned(),
        port: parsed.port_u16().unwrap_or(DEFAULT_PORT),
        url,
        server_name: host.to_owned(),
        path,
    })
}

/// A path without empty parts, `.`, `..` and a slash at its end, as Go's `path.Join("/", path)` gives it: so client-go writes the paths
/// of its requests.
fn clean_path(path: &str) -> String {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => _ = parts.pop(),
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

impl Service {
    /// The service as its clients name it.
    fn named(&self) -> Place {
        let server_name = format!("{}.{}.svc", self.name, self.namespace);
        let path = clean_path(&self.path);
        Place {
            address: server_name.clone(),
            port: self.port,
            url: format!("https://{server_name}:{}{path}", self.port),
            server_name,
            path,
        }
    }

    /// A service is where its first endpoint is, or where the pod behind it says that it is.
    ///
    /// # Errors
    /// Without such a Service, port or address.
    pub(crate) fn place(&self, store: &Store) -> Result<Place, String> {
        let key = ObjectKey::new(&self.namespace, &self.name);
        let found = store.get(&GroupResource::new("", "services"), &key);
        let Some(service) = found else {
            return Err(format!("service {:?} not found", self.name));
        };
        let Place {
            url,
            server_name,
            path,
            ..
        } = self.named();
        let ports = at(&service.value, "spec.ports").and_then(Value::as_array);
        let served = ports
            .into_iter()
            .flatten()
            .find(|port| port.get("port").and_then(Value::as_u64) == Some(u64::from(self.port)));
        let Some(served) = served else {
            return Err(format!(
                "no service port {} found for service {:?}",
                self.port, self.name
            ));
        };
        let place = |address: &str, port: u16| Place {
            address: address.to_owned(),
            port,
            url: url.clone(),
            server_name: server_name.clone(),
            path: path.clone(),
        };
        if at(&service.value, "spec.type").and_then(Value::as_str) == Some("ExternalName") {
            let host = at(&service.value, "spec.externalName")
                .and_then(Value::as_str)
                .unwrap_or_default();
            return Ok(place(host, self.port));
        }
        let name = served.get("name").and_then(Value::as_str).unwrap_or_default();
        let target = served
            .get("targetPort")
            .and_then(Value::as_u64)
            .and_then(|port| u16::try_from(port).ok());
        match self.endpoint(store, name, target.unwrap_or(self.port))? {
            Some((address, port)) => Ok(place(&address, port)),
            None => Err(format!("no endpoints available for service {:?}", self.name)),
        }
    }

    /// The first ready address of the service's slices, or of its endpoints. A pod that stands for a port of this machine is there.
    fn endpoint(
        &self,
        store: &Store,
        port_name: &str,
        default_port: u16,
    ) -> Result<Option<(String, u16)>, String> {
        let Some((address, port, pod)) = self.listed(store, port_name, default_port) else {
            return Ok(None);
        };
        let key = ObjectKey::new(&self.namespace, &pod);
        let pod = store.get(&GroupResource::new("", "pods"), &key);
        let elsewhere = match pod {
            Some(pod) => dialled(&pod.value, port).map_err(|error| error.to_string())?,
            None => None,
        };
        Ok(Some(elsewhere.unwrap_or((address, port))))
    }

    /// The first ready address, its port, and the name of the pod that has it; empty if no pod does.
    fn listed(&self, store: &Store, port_name: &str, default_port: u16) -> Option<(String, u16, String)> {
        let pod_of = |endpoint: &Value| {
            let target = endpoint.get("targetRef")?;
            let is_pod = target.get("kind").and_then(Value::as_str) == Some("Pod");
            target
                .get("name")
                .and_then(Value::as_str)
                .filter(|_| is_pod)
                .map(str::to_owned)
        };
        let number = |ports: Option<&Value>| {
            let ports = ports.and_then(Value::as_array);
            let named = ports
                .into_iter()
                .flatten()
                .find(|port| port.get("name").and_then(Value::as_str).unwrap_or_default() == port_name);
            let given = named.and_then(|port| port.get("port")).and_then(Value::as_u64);
            given
                .and_then(|port| u16::try_from(port).ok())
                .unwrap_or(default_port)
        };
        let slices = GroupResource::new("discovery.k8s.io", "endpointslices");
        let slices = store.list(&slices, Some(&self.namespace), None, None).ok()?.items;
        for slice in slices {
            let labels = at(&slice.value, "metadata.labels");
            let of = labels
                .and_then(|labels| labels.get("kubernetes.io/service-name"))
                .and_then(Value::as_str);
            if of != Some(self.name.as_str()) {
                continue;
            }
            let endpoints = slice.value.get("endpoints").and_then(Value::as_array);
            for endpoint in endpoints.into_iter().flatten() {
                let ready = at(endpoint, "conditions.ready")
                    .and_then(Value::as_bool)
                    .unwrap_or(true);
                let address = endpoint.pointer("/addresses/0").and_then(Value::as_str);
                if let (true, Some(address)) = (ready, address) {
                    let pod = pod_of(endpoint).unwrap_or_default();
                    return Some((address.to_owned(), number(slice.value.get("ports")), pod));
                }
            }
        }
        let key = ObjectKey::new(&self.namespace, &self.name);
        let endpoints = store.get(&GroupResource::new("", "endpoints"), &key)?;
        let subset = endpoints.value.pointer("/subsets/0")?;
        let first = subset.pointer("/addresses/0")?;
        let address = first.get("ip").and_then(Value::as_str)?;
        let pod = pod_of(first).unwrap_or_default();
        Some((address.to_owned(), number(subset.get("ports")), pod))
    }
}

/// Posts a document to a webhook and reads the one that it answers with. The errors are in the real server's words.
pub(crate) async fn post(
    store: &Store,
    network: Option<&Network>,
    connections: &Connections,
    config: &ClientConfig,
    document: &Value,
    timeout: Duration,
) -> Result<Value, String> {
    let posted = |url: &str, why: String| format!("Post \"{url}?timeout={}s\": {why}", timeout.as_secs());
    let place = config.place(store).map_err(|why| match &config.service {
        Some(service) => posted(&service.named().url, why),
        None => why,
    })?;
    let failed = |why: String| posted(&place.url, why);
    let inside = inside(network, &place);
    // A webhook outside of the cluster takes real time.
    let _outside = inside.is_none().then(|| connections.jumps.outside());
    // Apart, because every request that may ask a webhook, and hardly any does, would have room for a connection.
    let exchange = Box::pin(exchange(
        connections,
        (&place, inside),
        &config.bundle,
        document,
        timeout,
    ));
    match tokio::time::timeout(timeout, exchange).await {
        Err(_) => Err(failed("context deadline exceeded".to_owned())),
        Ok(Err(Failure::Transport(why))) => Err(failed(why)),
        Ok(Err(Failure::Answer(why))) => Err(why),
        Ok(Ok(answer)) => Ok(answer),
    }
}

/// The way to a place on the network of the cluster; none if it is outside.
pub(crate) type Inside<'a> = Option<(&'a Network, SocketAddr)>;

pub(crate) fn inside<'a>(network: Option<&'a Network>, place: &Place) -> Inside<'a> {
    let network = network?;
    let address: IpAddr = place.address.parse().ok()?;
    network
        .has(address)
        .then(|| (network, SocketAddr::new(address, place.port)))
}

pub(crate) enum Failure {
    Transport(String),
    Answer(String),
}

async fn exchange(
    connections: &Connections,
    (place, inside): (&Place, Inside<'_>),
    bundle: &[u8],
    document: &Value,
    timeout: Duration,
) -> Result<Value, Failure> {
    let key = Key::new(place, bundle);
    let request = || {
        Request::post(format!("{}?timeout={}s", place.path, timeout.as_secs()))
            .header(HOST, target(place))
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(Bytes::from(document.to_string())))
            .map_err(|error| Failure::Transport(error.to_string()))
    };
    let kept = match connections.take(&key) {
        Some(sender) => Some(answered(sender, request()?).await),
        None => None,
    };
    // A kept connection may have been closed meanwhile: that is seen when it is used.
    let answer = match kept {
        None | Some(Err(Broken::Unanswered(_))) => {
            let tls = client_config(Trust::Bundle(bundle), None).map_err(Failure::Answer)?;
            answered(connect(place, inside, tls).await?, request()?).await
        }
        Some(answer) => answer,
    };
    let (sender, head, body) = answer.map_err(|broken| Failure::Transport(broken.to_string()))?;
    connections.keep(key, sender);
    let code = head.status;
    if !code.is_success() {
        return Err(Failure::Answer(said(&body).unwrap_or_else(|| refused(code))));
    }
    if body.is_empty() {
        let kind = head.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        return Err(Failure::Answer(format!(
            "0-length response with status code: {} and content type: {}",
            code.as_u16(),
            kind.unwrap_or_default()
        )));
    }
    decoded(&body).map_err(Failure::Answer)
}

/// Host and port as the address of a connection.
pub(crate) fn target(place: &Place) -> String {
    if place.address.contains(':') {
        format!("[{}]:{}", place.address, place.port)
    } else {
        format!("{}:{}", place.address, place.port)
    }
}

/// Opens a connection, which a task of its own drives.
pub(crate) async fn connect(
    place: &Place,
    inside: Inside<'_>,
    tls: Arc<rustls::ClientConfig>,
) -> Result<Sender, Failure> {
    let dialled = |why: &str| Failure::Transport(format!("dial tcp {}: {why}", target(place)));
    let stream: Box<dyn Wire> = if let Some((network, to)) = inside {
        let connected = network.connect(API_SERVER, to).await;
        Box::new(connected.map_err(|error| Failure::Transport(error.to_string()))?)
    } else {
        let stream = TcpStream::connect((place.address.as_str(), place.port))
            .await
            .map_err(|error| match error.kind() {
                std::io::ErrorKind::ConnectionRefused => dialled("connect: connection refused"),
                _ => dialled(&error.to_string()),
            })?;
        // The end of a question must not wait for the acknowledgement of its beginning.
        stream
            .set_nodelay(true)
            .map_err(|error| dialled(&error.to_string()))?;
        Box::new(stream)
    };
    let name = match place.server_name.parse::<IpAddr>() {
        Ok(address) => ServerName::from(address),
        Err(_) => {
            ServerName::try_from(place.server_name.clone()).map_err(|error| dialled(&error.to_string()))?
        }
    };
    let stream = TlsConnector::from(tls).connect(name, stream).await;
    let stream =
        stream.map_err(|error| Failure::Transport(format!("tls: failed to verify certificate: {error}")))?;
    let (sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|error| Failure::Transport(error.to_string()))?;
    tokio::spawn(async move {
        // A server that is asked for another protocol may change it.
        if let Err(error) = connection.with_upgrades().await {
            tracing::debug!(%error, "a connection to a webhook has ended");
        }
    });
    Ok(sender)
}

/// Why there is no whole answer.
#[derive(Debug, thiserror::Error)]
enum Broken {
    /// The connection ended before the answer began.
    #[error("{}", unanswered(.0))]
    Unanswered(hyper::Error),
    #[error("{0}")]
    Body(Box<dyn std::error::Error + Send + Sync>),
}

/// Go says this of a connection that was closed without an answer.
fn unanswered(error: &hyper::Error) -> String {
    if error.is_incomplete_message() {
        return "EOF".to_owned();
    }
    error.to_string()
}

/// Sends a request and reads the answer to its end. The connection can be used again then.
async fn answered(
    mut sender: Sender,
    request: Request<Full<Bytes>>,
) -> Result<(Sender, Parts, Bytes), Broken> {
    let answer = sender.send_request(request).await;
    let (head, body) = answer.map_err(Broken::Unanswered)?.into_parts();
    let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
    Ok((sender, head, body.map_err(Broken::Body)?.to_bytes()))
}

/// An answer, which the real server reads as it reads a request: YAML will do.
fn decoded(body: &[u8]) -> Result<Value, String> {
    if let Ok(answer) = shared_json::from_slice::<Value>(body)
        && answer.is_object()
    {
        return Ok(answer);
    }
    let text = String::from_utf8_lossy(body);
    let answer: Value =
        serde_saphyr::from_str(&text).map_err(|error| format!("decode the answer: {error}"))?;
    match answer {
        Value::Object(_) => Ok(answer),
        Value::Null => Ok(json!({})),
        other => Err(format!(
            "couldn't get version/kind; json parse error: json: cannot unmarshal {} into Go value of type {TYPE_META}",
            json_type(&other)
        )),
    }
}

/// The message of an answer that is a refusal by itself.
fn said(body: &[u8]) -> Option<String> {
    let status: Value = shared_json::from_slice(body).ok()?;
    let text = |field: &str| status.get(field).and_then(Value::as_str);
    let is_refusal = text("kind") == Some("Status") && text("status") != Some("Success");
    text("message")
        .filter(|message| is_refusal && !message.is_empty())
        .map(str::to_owned)
}

/// The real client's text for an answer that is no success.
fn refused(code: StatusCode) -> String {
    match code.as_u16() {
        400 => "the server rejected our request for an unknown reason".to_owned(),
        401 => "the server has asked for the client to provide credentials".to_owned(),
        403 => "forbidden: unknown".to_owned(),
        404 => "the server could not find the requested resource".to_owned(),
        405 => "the server does not allow this method on the requested resource".to_owned(),
        409 => "the server reported a conflict".to_owned(),
        422 => "the server rejected our request due to an error in our request".to_owned(),
        429 => "the server has received too many requests and has asked us to try again later".to_owned(),
        503 => "the server is currently unable to handle the request".to_owned(),
        504 => "the server was unable to return a response in the time allotted, but may still be processing the request".to_owned(),
        500.. => "an error on the server (\"unknown\") has prevented the request from succeeding".to_owned(),
        code => format!("the server responded with the status code {code} but did not return more information"),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("https://127.0.0.1:8443/v", Ok(("127.0.0.1", 8443, "/v")))]
    #[case("https://hook.example.com", Ok(("hook.example.com", 443, "/")))]
    #[case("https://[::1]:1/x", Ok(("::1", 1, "/x")))]
    #[case("https://h//a/./b/../c/", Ok(("h", 443, "/a/c")))]
    #[case("http://127.0.0.1/v", Err(()))]
    #[case("not a url", Err(()))]
    fn places(#[case] url: &str, #[case] expected: Result<(&str, u16, &str), ()>) {
        let place = from_url(url);
        let got = place
            .as_ref()
            .map(|place| (place.address.as_str(), place.port, place.path.as_str()))
            .map_err(|_| ());
        assert_eq!(got, expected);
    }

    #[test]
    fn reads_a_service() {
        let config = ClientConfig::read(
            &json!({"service": {"namespace": "n", "name": "s", "path": "/p"}, "caBundle": "AQI="}),
        );
        let service = config.service.expect("a service");
        assert_eq!(
            (service.port, service.path.as_str(), config.bundle.as_slice()),
            (443, "/p", [1_u8, 2].as_slice())
        );
    }
}
