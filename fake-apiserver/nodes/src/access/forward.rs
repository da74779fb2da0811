//! The server on a simulated container's ports: a small HTTP server.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use shared_json::{Array, Value};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, DuplexStream};
use tokio::net::TcpStream;

use crate::programs::{Run, STOCK_PAGE};

/// Where servers of files keep them.
const ROOTS: [&str; 3] = [
    "/usr/share/nginx/html",
    "/usr/local/apache2/htdocs",
    "/var/www/html",
];

/// Whether the program of a container answers on a port: on those of a known server's image, else on those that the container
/// names, on any if it names none.
pub(crate) fn listens(run: &Run, spec: &Value, port: u16) -> bool {
    if let Some(listens) = run.listens_by_image(port) {
        return listens;
    }
    let ports = spec.get("ports").and_then(Value::as_array).map(Array::as_slice);
    let named = |entry: &Value| entry.get("containerPort").and_then(Value::as_u64) == Some(u64::from(port));
    run.listens() && ports.is_none_or(|ports| ports.is_empty() || ports.iter().any(named))
}

/// Joins a connection with one to a port of this machine, for which the pod stands, until that one ends.
pub(crate) async fn join((host, port): &(String, u16), stream: DuplexStream) -> Result<(), String> {
    let dialled = TcpStream::connect((host.as_str(), *port)).await;
    let other = dialled.map_err(|error| match error.kind() {
        std::io::ErrorKind::ConnectionRefused => {
            format!("dial tcp {host}:{port}: connect: connection refused")
        }
        _ => format!("dial tcp {host}:{port}: {error}"),
    })?;
    carry(other, stream).await;
    Ok(())
}

/// Carries the bytes of both directions, until the program on this machine is done.
pub(crate) async fn carry(other: TcpStream, stream: DuplexStream) {
    let (mut from_client, mut to_client) = tokio::io::split(stream);
    let (mut from_program, mut to_program) = tokio::io::split(other);
    let there = async {
        // The program hears that nothing more comes, and may still answer.
        let _ = tokio::io::copy(&mut from_client, &mut to_program).await;
        let _ = to_program.shutdown().await;
        std::future::pending().await
    };
    let back = tokio::io::copy(&mut from_program, &mut to_client);
    let result = tokio::select! {
        biased;
        result = back => result,
        result = there => result,
    };
    if let Err(error) = result {
        tracing::debug!(%error, "carry a connection");
    }
}

/// Answers the requests of one connection: with a page of the program's script, a file, or else the pod's name and the request.
pub(crate) async fn serve<S>(run: Arc<Run>, who: String, stream: S)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let service = service_fn(|request: Request<Incoming>| {
        let (status, page) = page(&run, &who, request.method().as_str(), request.uri().path());
        let mut response = Response::new(Full::new(Bytes::from(page)));
        *response.status_mut() = status;
        std::future::ready(Ok::<_, Infallible>(response))
    });
    // The simulated program has no clock to send a date by.
    let connection = hyper::server::conn::http1::Builder::new()
        .auto_date_header(false)
        .half_close(true)
        .serve_connection(TokioIo::new(stream), service);
    if let Err(error) = connection.await {
        tracing::debug!(%error, "answer on a port");
    }
}

fn page(run: &Run, who: &str, method: &str, path: &str) -> (StatusCode, Vec<u8>) {
    let pages = run.program.as_ref().map(|program| &program.pages);
    if let Some(pages) = pages.filter(|pages| !pages.is_empty()) {
        return match pages.get(path) {
            Some(page) => (StatusCode::OK, page.clone().into_bytes()),
            None => (StatusCode::NOT_FOUND, b"404 page not found\n".to_vec()),
        };
    }
    let name = if path.ends_with('/') {
        format!("{path}index.html")
    } else {
        path.to_owned()
    };
    // A path that leads out of the folder is just not found there.
    let file = ROOTS
        .iter()
        .filter(|_| !name.contains(".."))
        .find_map(|root| run.files.read(&format!("{root}{name}")).ok());
    if run.files.finds_page(&name) == Some(false) {
        return (StatusCode::NOT_FOUND, b"404 page not found\n".to_vec());
    }
    // The stock page of an image says less than the pod's name.
    let file = file.filter(|content| content != STOCK_PAGE);
    let told = || format!("{who}request: {method} {path}\n").into_bytes();
    (StatusCode::OK, file.unwrap_or_else(told))
}
