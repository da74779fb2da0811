//! Metrics, health and readiness over plain HTTP.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use super::ProcessError;
use crate::metrics::Metrics;
use crate::protection;
use crate::workloads::ALL;

const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// What the endpoints tell.
#[derive(Clone)]
pub struct State {
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// Whether the webhooks have certificates and the API server trusts them.
    pub webhooks_ready: Arc<AtomicBool>,
}

/// Which paths a listener serves.
pub type Serves = fn(&str) -> bool;

/// A path's answer: status, type and text. Nothing for a path that is not served.
#[must_use]
pub fn answer(path: &str, state: &State) -> Option<(StatusCode, &'static str, String)> {
    let text = "text/plain; charset=utf-8";
    match path {
        "/metrics" => Some((
            StatusCode::OK,
            "text/plain; version=0.0.4; charset=utf-8",
            state.metrics.text(
                ALL.iter()
                    .flat_map(|workload| workload.metrics)
                    .chain(protection::METRICS),
            ),
        )),
        "/healthz" | "/healthz/ping" => Some((StatusCode::OK, text, "ok".to_owned())),
        "/readyz" | "/readyz/webhook-ready" => Some(if state.webhooks_ready.load(Ordering::Acquire) {
            (StatusCode::OK, text, "ok".to_owned())
        } else {
            (
                StatusCode::INTERNAL_SERVER_ERROR,
                text,
                "[-]webhook-ready failed: reason withheld\nhealthz check failed\n".to_owned(),
            )
        }),
        _ => None,
    }
}

/// Listens at `address` as Go writes it: `:8080` is every interface.
///
/// # Errors
/// If that cannot be done.
pub async fn listen(address: &str) -> Result<TcpListener, ProcessError> {
    let full = match address.strip_prefix(':') {
        Some(port) => format!("0.0.0.0:{port}"),
        None => address.to_owned(),
    };
    TcpListener::bind(&full)
        .await
        .map_err(|source| ProcessError::Listen {
            address: address.to_owned(),
            source,
        })
}

/// Serves the endpoints whose path `serves` accepts, until dropped.
pub async fn serve(listener: TcpListener, state: State, serves: Serves) {
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::debug!(%error, "accept a connection");
                tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
                continue;
            }
        };
        let state = state.clone();
        tokio::spawn(async move {
            let service = service_fn(move |request: Request<Incoming>| {
                let path = request.uri().path();
                let (status, kind, text) = answer(path, &state).filter(|_| serves(path)).unwrap_or((
                    StatusCode::NOT_FOUND,
                    "text/plain; charset=utf-8",
                    "404 page not found\n".to_owned(),
                ));
                let mut response = Response::new(Full::new(Bytes::from(text)));
                *response.status_mut() = status;
                response.headers_mut().insert(
                    hyper::header::CONTENT_TYPE,
                    hyper::header::HeaderValue::from_static(kind),
                );
                std::future::ready(Ok::<_, Infallible>(response))
            });
            let served = http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
            if let Err(error) = served {
                tracing::debug!(%error, "serve a connection");
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("/healthz", false, Some(200))]
    #[case("/readyz", false, Some(500))]
    #[case("/readyz", true, Some(200))]
    #[case("/metrics", false, Some(200))]
    #[case("/", true, None)]
    fn answers(#[case] path: &str, #[case] ready: bool, #[case] status: Option<u16>) {
        let state = State {
            metrics: Arc::default(),
            webhooks_ready: Arc::new(AtomicBool::new(ready)),
        };
        assert_eq!(answer(path, &state).map(|(status, _, _)| status.as_u16()), status);
    }

    /// OpenKruise's own metrics.
    #[rstest]
    #[case("kruise_manager_is_leader", "gauge", &[])]
    #[case("namespace_deletion_protection", "counter", &["name", "username"])]
    #[case("crd_deletion_protection", "counter", &["name", "username"])]
    #[case("workload_deletion_protection", "counter", &["kind_namespace_name", "username"])]
    #[case("pod_unavailable_budget", "counter", &["kind_namespace_name", "username"])]
    #[case("cloneset_scale_expectation_leakage", "counter", &["namespace", "name"])]
    fn metrics_have_openkruises_names(
        #[case] name: &'static str,
        #[case] kind: &str,
        #[case] labels: &[&str],
    ) {
        let state = State {
            metrics: Arc::default(),
            webhooks_ready: Arc::default(),
        };
        let pairs: Vec<(&str, &str)> = labels.iter().map(|label| (*label, "x")).collect();
        state.metrics.add(name, &pairs, 1.0);
        let (_, _, text) = answer("/metrics", &state).unwrap();
        let head = format!("# TYPE {name} {kind}");
        assert!(text.lines().any(|line| line == head), "{text}");
    }
}
