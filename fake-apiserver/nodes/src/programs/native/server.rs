//! The HTTP server of programs in Rust.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use network::tls::{Encryption, Wire};
use tokio::io::DuplexStream;

use crate::nic::Bound;

/// The largest body of a request that a program reads.
const BODY_BYTES_MAX: usize = 16 << 20;

/// The answers of a server.
pub(super) type Answering = Arc<dyn Fn(Request<Bytes>) -> BoxFuture<'static, Response<Bytes>> + Send + Sync>;

/// Takes connections for as long as the pod is there.
pub(super) async fn serve(mut bound: Bound, encryption: Option<Encryption>, answer: Answering) {
    // Connections end with the server.
    let mut connections = tokio::task::JoinSet::new();
    loop {
        tokio::select! {
            biased;
            Some(_) = connections.join_next() => {}
            next = bound.next() => match next {
                Some(connection) => _ = connections.spawn(serve_one(connection.stream, connection.from, encryption.clone(), Arc::clone(&answer))),
                None => return,
            },
        }
    }
}

async fn serve_one(
    stream: DuplexStream,
    from: SocketAddr,
    encryption: Option<Encryption>,
    answer: Answering,
) {
    let stream: Box<dyn Wire> = match encryption {
        None => Box::new(stream),
        Some(encryption) => match encryption.accept(Box::new(stream)).await {
            Ok(stream) => stream,
            Err(error) => return tracing::debug!(%error, "encrypt a connection"),
        },
    };

    let service = service_fn(move |request: Request<Incoming>| {
        let answer = Arc::clone(&answer);
        async move {
            let (mut head, body) = request.into_parts();
            head.extensions.insert(from);
            let response = match Limited::new(body, BODY_BYTES_MAX).collect().await {
                Ok(body) => answer(Request::from_parts(head, body.to_bytes())).await,
                Err(_) => {
                    let mut response = Response::new(Bytes::new());
                    *response.status_mut() = StatusCode::PAYLOAD_TOO_LARGE;
                    response
                }
            };
            Ok::<_, Infallible>(response.map(Full::new))
        }
    });
    // A simulated program sends no date.
    let connection = hyper::server::conn::http1::Builder::new()
        .auto_date_header(false)
        .half_close(true)
        .serve_connection(TokioIo::new(stream), service);
    if let Err(error) = connection.await {
        tracing::debug!(%error, "answer on a port");
    }
}
