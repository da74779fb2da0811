//! The HTTP service on a kubelet's own port, as far as clients reach it through `nodes/proxy`.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use machinery::meta::ObjectMeta as _;
use shared_json::{Value, json};
use tokio::io::DuplexStream;

use super::super::nic::Host as _;
use super::KubeletPort;

/// Answers the requests of one connection.
pub(super) async fn serve(port: KubeletPort, stream: DuplexStream) {
    let service = service_fn(|request: Request<Incoming>| {
        std::future::ready(Ok::<_, Infallible>(answer(&port, request.uri().path())))
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .auto_date_header(false)
        .serve_connection(TokioIo::new(stream), service);
    if let Err(error) = connection.await {
        tracing::debug!(%error, "answer on a kubelet's port");
    }
}

fn answer(port: &KubeletPort, path: &str) -> Response<Full<Bytes>> {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let (kind, body) = match parts.as_slice() {
        ["healthz"] => ("text/plain; charset=utf-8", Some("ok".to_owned())),
        ["pods"] => ("application/json", Some(pods(port).to_string())),
        ["containerLogs", namespace, pod, container] => {
            let log = port.log_of(namespace, pod, container);
            ("text/plain", log)
        }
        ["logs"] => ("text/html; charset=utf-8", Some("<pre>\n</pre>\n".to_owned())),
        _ => ("text/plain; charset=utf-8", None),
    };
    let status = if body.is_some() {
        StatusCode::OK
    } else {
        StatusCode::NOT_FOUND
    };
    let body = body.unwrap_or_else(|| "404 page not found\n".to_owned());
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, http::HeaderValue::from_static(kind));
    response
}

/// The node's pods, as a list.
fn pods(port: &KubeletPort) -> Value {
    let mut pods: Vec<Arc<Value>> = port.pods();
    pods.sort_by(|a, b| (a.namespace(), a.name()).cmp(&(b.namespace(), b.name())));
    let items: Vec<Value> = pods.iter().map(|pod| Value::clone(pod)).collect();
    json!({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items})
}

impl KubeletPort {
    /// The node's pods that have containers.
    fn pods(&self) -> Vec<Arc<Value>> {
        let uids: Vec<Box<str>> = self.lock().keys().cloned().collect();
        uids.iter().filter_map(|uid| self.pod_of(uid)).collect()
    }

    /// The log of a container, by names.
    fn log_of(&self, namespace: &str, name: &str, container: &str) -> Option<String> {
        let pods = self.pods();
        let pod = pods
            .iter()
            .find(|pod| pod.namespace() == namespace && pod.name() == name)?;
        let pods = self.lock();
        let runs = pods.get(pod.uid())?.containers.get(container)?;
        Some(runs.current.logs.text())
    }
}
