//! The webhooks over TLS.

use std::convert::Infallible;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

use crate::webhook::{CONVERT_PATH, Surroundings, convert, review, rules};

/// The most that is read of a review: an object and its predecessor, at most 3 MiB each, and the fields around them.
const BODY_BYTES_MAX: usize = 7 * 1024 * 1024;
/// How long a client may take for its handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// After a failure to accept a connection, such as too many open files.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// The certificates that new connections get; they may be replaced while the server runs.
#[derive(Clone, Default)]
pub struct Tls(Arc<RwLock<Option<Arc<ServerConfig>>>>);

impl Tls {
    /// New connections get these from now on.
    pub fn set(&self, config: Arc<ServerConfig>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(config);
    }

    /// The configuration of new connections; none before there are certificates.
    #[must_use]
    pub fn get(&self) -> Option<Arc<ServerConfig>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Answers admission and conversion reviews at `listener` until dropped. Connections that come before there are certificates are closed.
pub async fn serve(listener: TcpListener, tls: Tls, surroundings: Surroundings) {
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::debug!(%error, "accept a connection");
                tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
                continue;
            }
        };
        if let Some(config) = tls.get() {
            tokio::spawn(connection(stream, config, surroundings.clone()));
        }
    }
}

async fn connection(stream: TcpStream, config: Arc<ServerConfig>, surroundings: Surroundings) {
    // The end of an answer must not wait for the acknowledgement of its beginning.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "set up a connection");
    }
    let accepted = tokio::time::timeout(HANDSHAKE_TIMEOUT, TlsAcceptor::from(config).accept(stream)).await;
    let stream = match accepted {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return tracing::debug!(%error, "shake hands"),
        Err(_) => return,
    };
    let service = service_fn(move |request| {
        let surroundings = surroundings.clone();
        async move { Ok::<_, Infallible>(answer(request, &surroundings).await) }
    });
    let served = Builder::new(TokioExecutor::new())
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "serve a connection");
    }
}

fn plain(status: StatusCode, text: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(text.into()));
    *response.status_mut() = status;
    response
}

async fn answer(request: Request<Incoming>, surroundings: &Surroundings) -> Response<Full<Bytes>> {
    let path = request.uri().path().to_owned();
    if path == "/healthz" {
        return plain(StatusCode::OK, "ok");
    }
    if path != CONVERT_PATH && !rules().any(|rule| rule.is_at(&path)) {
        return plain(StatusCode::NOT_FOUND, "404 page not found\n");
    }
    if request.method() != Method::POST {
        return plain(StatusCode::METHOD_NOT_ALLOWED, "only POST is served\n");
    }
    let body = match Limited::new(request.into_body(), BODY_BYTES_MAX).collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) => return plain(StatusCode::BAD_REQUEST, format!("{error}\n")),
    };
    let asked: Value = match serde_json::from_slice(&body) {
        Ok(asked) => asked,
        Err(error) => return plain(StatusCode::BAD_REQUEST, format!("{error}\n")),
    };
    let answered = match path.as_str() {
        CONVERT_PATH => convert(&asked),
        _ => review(&path, &asked, surroundings).await,
    };
    let mut response = plain(StatusCode::OK, serde_json::to_vec(&answered).unwrap_or_default());
    response.headers_mut().insert(
        hyper::header::CONTENT_TYPE,
        hyper::header::HeaderValue::from_static("application/json"),
    );
    response
}
