//! A connection within the process, for requests that change its protocol.
//!
//! A client of this process calls the server as a function, and a function's answer cannot become a stream of frames. So
//! such a request goes over a pair of pipes in memory, with HTTP at both ends, as over a socket.

use bytes::Bytes;
use http::header::UPGRADE;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tower::Service as _;

use crate::message::body::ResponseBody;
use crate::message::respond;
use crate::server::Server;

const BUFFER_BYTES: usize = 64 << 10;

/// Whether a request wants to change the protocol of a connection that it does not have.
pub(in crate::http) fn is_needed(headers: &HeaderMap, extensions: &http::Extensions) -> bool {
    headers.contains_key(UPGRADE) && extensions.get::<OnUpgrade>().is_none()
}

/// Sends a request (without its body, which such requests do not have) over a connection of its own.
pub(in crate::http) async fn through_a_connection(
    server: Server,
    head: http::request::Parts,
) -> Response<ResponseBody> {
    match send(server, head).await {
        Ok(response) => response,
        Err(error) => {
            let mut response = respond::text(format!("{error}\n"));
            *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
            response
        }
    }
}

async fn send(server: Server, head: http::request::Parts) -> Result<Response<ResponseBody>, hyper::Error> {
    let (near, far) = tokio::io::duplex(BUFFER_BYTES);
    let service = service_fn(move |request: Request<Incoming>| server.clone().call(request));
    let serving = hyper::server::conn::http1::Builder::new()
        .auto_date_header(false)
        .serve_connection(TokioIo::new(far), service)
        .with_upgrades();
    tokio::spawn(async move {
        if let Err(error) = serving.await {
            tracing::debug!(%error, "serve a connection of this process");
        }
    });
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(near)).await?;
    tokio::spawn(async move {
        if let Err(error) = connection.with_upgrades().await {
            tracing::debug!(%error, "hold a connection of this process");
        }
    });
    let request = Request::from_parts(head, Empty::<Bytes>::new());
    let (head, body) = sender.send_request(request).await?.into_parts();
    let body = if head.status == StatusCode::SWITCHING_PROTOCOLS {
        Bytes::new()
    } else {
        body.collect().await?.to_bytes()
    };
    Ok(Response::from_parts(head, ResponseBody::whole(body)))
}
