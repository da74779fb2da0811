//! A node for tests: its runtime answers commands by a script, and its network has one small server.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivatePkcs8KeyDer;

use super::runtime::{
    CommandOutput, Connection, ContainerRuntime, PodNetwork, RunningContainer, RuntimeError,
};

/// The node. Commands: `ok` prints `fine`, `fails` prints on both outputs and ends with 3, `hangs` takes too long, any other is not there.
/// The pods `runs`, `ended` and `young` have a container `main`; the last was started at second 95, the others at second 0.
/// Port 80 answers, port 443 by TLS with a certificate of its own, port 82 never does, all others refuse.
pub(super) struct TestNode;

impl ContainerRuntime for TestNode {
    fn containers<'a>(
        &'a self,
        pod_uid: &'a str,
    ) -> BoxFuture<'a, Result<Vec<RunningContainer>, RuntimeError>> {
        let container = |id: &str, running: bool, second: i64| RunningContainer {
            name: "main".to_owned(),
            id: format!("containerd://{id}"),
            restart_count: 0,
            hash: 0,
            started_at: Timestamp::from_second(second).unwrap(),
            pre_stop: None,
            running,
        };
        let containers = match pod_uid {
            "runs" => vec![container("a", true, 0)],
            "ended" => vec![container("a", false, 0)],
            "young" => vec![container("a", true, 95)],
            _ => Vec::new(),
        };
        std::future::ready(Ok(containers)).boxed()
    }

    fn exec<'a>(
        &'a self,
        _: &'a str,
        command: &'a [String],
        timeout: Duration,
    ) -> BoxFuture<'a, Result<CommandOutput, RuntimeError>> {
        async move {
            let output = |code: i32, out: &str, err: &str| CommandOutput {
                code,
                out: out.into(),
                err: err.into(),
            };
            match command.first().map(String::as_str) {
                Some("ok") => Ok(output(0, "fine", "")),
                Some("fails") => Ok(output(3, "half", "broken")),
                Some("hangs") => {
                    tokio::time::sleep(timeout).await;
                    Err(RuntimeError::TimedOut("context deadline exceeded".to_owned()))
                }
                _ => Err(RuntimeError::Failed(
                    "executable file not found in $PATH".to_owned(),
                )),
            }
        }
        .boxed()
    }

    fn stop<'a>(&'a self, _: &'a str, _: Duration) -> BoxFuture<'a, Result<(), RuntimeError>> {
        std::future::ready(Ok(())).boxed()
    }
}

/// A server of TLS with a self-signed certificate.
fn acceptor() -> TlsAcceptor {
    let made = rcgen::generate_simple_self_signed(["nobody".to_owned()]).unwrap();
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key.into())
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

/// The page of a path: its status, its `Location`, its body.
fn page(request: &Request<Incoming>) -> (u16, &str, String) {
    let header = |name: &str| {
        let value = request.headers().get(name);
        value
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
            .to_owned()
    };
    match request.uri().path() {
        "/" => (200, "", "welcome".to_owned()),
        "/agent" => (200, "", format!("{} {}", header("user-agent"), header("x-a"))),
        "/moved" => (302, "/", String::new()),
        "/moved-far" => (302, "http://10.0.0.1:80/", String::new()),
        "/away" => (302, "http://example.com/", "away".to_owned()),
        "/loop" => (302, "/loop", String::new()),
        _ => (404, "", "no such page".to_owned()),
    }
}

impl PodNetwork for TestNode {
    fn connect<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, Result<Box<dyn Connection>, String>> {
        async move {
            match port {
                80 | 443 => {}
                82 => std::future::pending().await,
                _ => return Err(format!("dial tcp {host}:{port}: connect: connection refused")),
            }
            let (near, far) = tokio::io::duplex(1024);
            let service = service_fn(|request: Request<Incoming>| async move {
                let (status, location, body) = page(&request);
                let mut response = Response::builder().status(status);
                if !location.is_empty() {
                    response = response.header("location", location);
                }
                Ok::<_, Infallible>(response.body(Full::new(Bytes::from(body))).unwrap())
            });
            tokio::spawn(async move {
                let server = hyper::server::conn::http1::Builder::new();
                if port == 443 {
                    let far = acceptor().accept(far).await.unwrap();
                    return server.serve_connection(TokioIo::new(far), service).await;
                }
                server.serve_connection(TokioIo::new(far), service).await
            });
            let near: Box<dyn Connection> = Box::new(near);
            Ok(near)
        }
        .boxed()
    }
}
