//! Metrics, health and readiness over plain HTTP: [`answer`] has the manager's paths, [`serve`] serves those of any program.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http_body_util::Full;
pub use hyper::StatusCode;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use super::ProcessError;
use crate::metrics::{Family, Metrics};
use crate::protection;
use crate::workloads::ALL;

const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// The state that the endpoints report.
#[derive(Clone)]
pub struct State {
    /// The metrics.
    pub metrics: Arc<Metrics>,
    /// Whether the webhooks have certificates and the API server trusts them.
    pub webhooks_ready: Arc<AtomicBool>,
}

/// A path's answer: status, type and text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// The type.
    kind: &'static str,
    /// The text.
    pub text: String,
}

impl Answer {
    /// An answer in plain text.
    #[must_use]
    pub fn plain(status: StatusCode, text: &str) -> Self {
        Self {
            status,
            kind: "text/plain; charset=utf-8",
            text: text.to_owned(),
        }
    }

    /// The metrics, those of families that not every controller has among them.
    pub fn metrics<'a>(metrics: &Metrics, families: impl Iterator<Item = &'a Family>) -> Self {
        Self {
            status: StatusCode::OK,
            kind: "text/plain; version=0.0.4; charset=utf-8",
            text: metrics.text(families),
        }
    }
}

/// The manager's answer of a path. Nothing for a path that is not served.
#[must_use]
pub fn answer(path: &str, state: &State) -> Option<Answer> {
    match path {
        "/metrics" => {
            let families = ALL.iter().flat_map(|workload| workload.metrics);
            Some(Answer::metrics(
                &state.metrics,
                families.chain(protection::METRICS),
            ))
        }
        "/healthz" | "/healthz/ping" => Some(Answer::plain(StatusCode::OK, "ok")),
        "/readyz" | "/readyz/webhook-ready" if state.webhooks_ready.load(Ordering::Acquire) => {
            Some(Answer::plain(StatusCode::OK, "ok"))
        }
        "/readyz" | "/readyz/webhook-ready" => Some(Answer::plain(
            StatusCode::INTERNAL_SERVER_ERROR,
            "[-]webhook-ready failed: reason withheld\nhealthz check failed\n",
        )),
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

/// Serves the paths that `answer` knows, until dropped.
pub async fn serve<A>(listener: TcpListener, answer: A)
where
    A: Fn(&str) -> Option<Answer> + Clone + Send + 'static,
{
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::debug!(%error, "accept a connection");
                tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
                continue;
            }
        };
        let answer = answer.clone();
        tokio::spawn(async move {
            let service = service_fn(move |request: Request<Incoming>| {
                let answer = answer(request.uri().path());
                let not_found = || Answer::plain(StatusCode::NOT_FOUND, "404 page not found\n");
                let answer = answer.unwrap_or_else(not_found);
                let mut response = Response::new(Full::new(Bytes::from(answer.text)));
                *response.status_mut() = answer.status;
                response.headers_mut().insert(
                    hyper::header::CONTENT_TYPE,
                    hyper::header::HeaderValue::from_static(answer.kind),
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
        assert_eq!(answer(path, &state).map(|answer| answer.status.as_u16()), status);
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
        let text = answer("/metrics", &state)
            .map(|answer| answer.text)
            .unwrap_or_default();
        let head = format!("# TYPE {name} {kind}");
        assert!(text.lines().any(|line| line == head), "{text}");
    }
}
