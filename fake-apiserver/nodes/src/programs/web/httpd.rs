//! `httpd`: busybox' web server.

use std::convert::Infallible;

use ::http::header::CONTENT_TYPE;
use ::http::{HeaderValue, Request, Response, StatusCode};
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::DuplexStream;

use super::super::files::{Files, resolve};
use super::super::shell::{Shell, Streams, TERMINATED};
use super::{Arguments, complain};
use crate::nic::Bound;

/// Answers requests for the files below a directory.
async fn serve(files: Files, root: String, stream: DuplexStream) {
    let service = service_fn(|request: Request<Incoming>| {
        std::future::ready(Ok::<_, Infallible>(page(&files, &root, request.uri().path())))
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .auto_date_header(false)
        .half_close(true)
        .serve_connection(TokioIo::new(stream), service);
    if let Err(error) = connection.await {
        tracing::debug!(%error, "answer on a port");
    }
}

/// The file that a path names below a directory, or that directory's `index.html`.
pub(in super::super) fn page(files: &Files, root: &str, path: &str) -> Response<Full<Bytes>> {
    let inner = resolve("/", path);
    let path = resolve("/", &format!("{root}{inner}"));
    let path = if files.is_dir(&path) {
        resolve(&path, "index.html")
    } else {
        path
    };
    let (status, body) = match files.read(&path) {
        Ok(content) => (StatusCode::OK, content),
        Err(_) => (StatusCode::NOT_FOUND, b"404 Not Found\n".to_vec()),
    };
    let kind = match path.rsplit('.').next() {
        _ if status != StatusCode::OK => "text/plain",
        Some("html" | "htm") => "text/html",
        Some("json") => "application/json",
        _ => "text/plain",
    };
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// Takes connections for as long as the pod is there.
pub(super) async fn serve_files(mut bound: Bound, files: Files, root: String) {
    while let Some(connection) = bound.next().await {
        tokio::spawn(serve(files.clone(), root.clone(), connection.stream));
    }
}

impl Shell {
    pub(super) async fn httpd(&mut self, arguments: &[String], streams: &Streams) -> i32 {
        let read = Arguments::read(arguments, "phucr", &[]);
        let port = read.value(&["p"]).unwrap_or("80");
        let port = port.rsplit(':').next().and_then(|text| text.parse::<u16>().ok());
        let Some(bound) = port.and_then(|port| self.nic().listen(port)) else {
            return complain(streams, "httpd: bind: Address in use", 1);
        };
        let root = resolve(&self.cwd, read.value(&["h"]).unwrap_or("."));
        let serving = serve_files(bound, self.files.clone(), root);
        if !read.has(&["f"]) {
            self.spawn(serving);
            return 0;
        }
        // The first process of a container ends by signals that it asks for, as this one does.
        tokio::select! {
            biased;
            () = serving => 1,
            () = self.wait_term() => TERMINATED,
        }
    }
}
