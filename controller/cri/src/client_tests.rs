//! The client against the server of this crate, and against ones that break the protocol.

use std::convert::Infallible;

use futures::future::BoxFuture;
use hyper::server::conn::http2 as server;
use hyper::service::service_fn;
use rstest::rstest;
use tokio::net::UnixListener;

use super::*;
use crate::messages::{ListContainersRequest, VersionRequest, VersionResponse};
use crate::{Service, serve};

/// A folder for a socket, which is removed in the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("cri-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn socket(&self) -> PathBuf {
        self.0.join("cri.sock")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _gone = std::fs::remove_dir_all(&self.0);
    }
}

async fn version(request: VersionRequest) -> Result<VersionResponse, Status> {
    match &*request.version {
        "hangs" => std::future::pending().await,
        "fails" => Err(Status::new(Code::NOT_FOUND, "no \"ü\" here")),
        "long" => Ok(VersionResponse {
            runtime_version: "x".repeat(3_000_000),
            ..VersionResponse::default()
        }),
        version => Ok(VersionResponse {
            version: version.to_owned(),
            ..VersionResponse::default()
        }),
    }
}

fn service() -> Service {
    Service::default().on(version)
}

fn request(version: &str) -> VersionRequest {
    VersionRequest {
        version: version.to_owned(),
    }
}

/// The result of a call: the version, or the error.
fn shown(answer: Result<VersionResponse, Status>) -> String {
    match answer {
        Ok(answer) if answer.runtime_version.is_empty() => answer.version,
        Ok(answer) => format!("{} bytes", answer.runtime_version.len()),
        Err(status) => status.to_string(),
    }
}

#[rstest]
#[case::answer("a", "a")]
#[case::failure("fails", "rpc error: code = NotFound desc = no \"ü\" here")]
#[case::in_many_frames("long", "3000000 bytes")]
#[case::too_slow(
    "hangs",
    "rpc error: code = DeadlineExceeded desc = context deadline exceeded"
)]
#[tokio::test]
async fn calls(#[case] version: &str, #[case] expect: &str) {
    let folder = Folder::new(version);
    let listener = UnixListener::bind(folder.socket()).unwrap();
    let _server = tokio::spawn(serve(listener, service()));
    let client = Client::new(&folder.socket(), "test");
    let limit = if version == "hangs" { 50 } else { 60_000 };
    let answer = client
        .call(&request(version), Some(Duration::from_millis(limit)))
        .await;
    assert_eq!(shown(answer), expect);
}

#[tokio::test]
async fn a_method_that_is_not_there_is_unimplemented() {
    let folder = Folder::new("unimplemented");
    let listener = UnixListener::bind(folder.socket()).unwrap();
    let _server = tokio::spawn(serve(listener, service()));
    let client = Client::new(&folder.socket(), "test");
    let error = client.call(&ListContainersRequest::default(), None).await;
    assert_eq!(error.unwrap_err().code, Code::UNIMPLEMENTED);
}

#[tokio::test]
async fn a_server_that_comes_back_is_connected_to_again() {
    let folder = Folder::new("again");
    let client = Client::new(&folder.socket(), "test");
    let refused = client.call(&request("a"), None).await;
    assert_eq!(refused.unwrap_err().code, Code::UNAVAILABLE);
    for _ in 0..2 {
        let listener = UnixListener::bind(folder.socket()).unwrap();
        let server = tokio::spawn(serve(listener, service()));
        assert_eq!(shown(client.call(&request("a"), None).await), "a");
        server.abort();
        assert!(server.await.unwrap_err().is_cancelled());
        std::fs::remove_file(folder.socket()).unwrap();
        // The end of the connection is noticed once its task has run.
        while client.call(&request("a"), None).await.is_ok() {
            tokio::task::yield_now().await;
        }
    }
}

/// Servers that answer every request with this status, these headers and this body, and no trailers.
#[rstest]
#[case::not_found(404, &[], b"", "rpc error: code = Unknown desc = unexpected HTTP status code 404 Not Found")]
#[case::no_status(200, &[], b"\0\0\0\0\0", "rpc error: code = Internal desc = the answer ended without a status")]
#[case::with_the_headers(
    200, &[("grpc-status", "5"), ("grpc-message", "gone%21")], b"", "rpc error: code = NotFound desc = gone!")]
#[case::without_a_message(
    200, &[("grpc-status", "0")], b"", "rpc error: code = Internal desc = the answer ended without a status")]
#[tokio::test]
async fn broken_answers(
    #[case] status: u16,
    #[case] headers: &'static [(&'static str, &'static str)],
    #[case] body: &'static [u8],
    #[case] expect: &str,
) {
    let folder = Folder::new(&format!("broken-{status}-{}-{}", headers.len(), body.len()));
    let listener = UnixListener::bind(folder.socket()).unwrap();
    let answer =
        move |_: Request<Incoming>| -> BoxFuture<'static, Result<Response<Full<Bytes>>, Infallible>> {
            let mut response = Response::builder().status(status);
            for (name, value) in headers {
                response = response.header(*name, *value);
            }
            Box::pin(std::future::ready(Ok(response
                .body(Full::new(Bytes::from_static(body)))
                .unwrap())))
        };
    let _server = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let server = server::Builder::new(TokioExecutor::new());
        server
            .serve_connection(TokioIo::new(stream), service_fn(answer))
            .await
    });
    let client = Client::new(&folder.socket(), "test");
    assert_eq!(shown(client.call(&request("a"), None).await), expect);
}

#[rstest]
#[case(0, "0m")]
#[case(1_500, "1500m")]
#[case(99_999_999, "99999999m")]
#[case(100_000_000, "100000S")]
fn timeouts(#[case] ms: u64, #[case] text: &str) {
    assert_eq!(timeout_text(Duration::from_millis(ms)), text);
}
