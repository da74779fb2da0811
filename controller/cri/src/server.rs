//! A server: functions that answer calls.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{HeaderMap, Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::UnixListener;

use crate::authority::Hosts;
use crate::call::Call;
use crate::framing::{BODY_BYTES_MAX, pack, unpack};
use crate::status::{Code, Status};

/// A function from the body of a request to the body of its answer.
type Method = Arc<dyn Fn(Bytes) -> BoxFuture<'static, Result<Bytes, Status>> + Send + Sync>;

/// The methods of a server.
#[derive(Clone, Default)]
pub struct Service {
    methods: BTreeMap<&'static str, Method>,
}

impl Service {
    /// The same, which answers `C` by a function.
    #[must_use]
    pub fn on<C, F>(mut self, answer: impl Fn(C) -> F + Send + Sync + 'static) -> Self
    where
        C: Call,
        F: Future<Output = Result<C::Answer, Status>> + Send + 'static,
    {
        let method: Method = Arc::new(move |body| match unpack::<C>(body) {
            Ok(request) => {
                let answered = answer(request);
                async move { pack(&answered.await?) }.boxed()
            }
            Err(status) => futures::future::ready(Err(status)).boxed(),
        });
        self.methods.insert(C::METHOD, method);
        self
    }

    async fn answer(&self, request: Request<Incoming>) -> Result<Bytes, Status> {
        let (head, body) = request.into_parts();
        let path = head.uri.path();
        let Some(method) = self.methods.get(path) else {
            return Err(Status::new(Code::UNIMPLEMENTED, format!("unknown method {path}")));
        };
        let body = Limited::new(body, BODY_BYTES_MAX).collect().await;
        let body = body.map_err(|error| Status::new(Code::RESOURCE_EXHAUSTED, error.to_string()))?;
        method(body.to_bytes()).await
    }
}

/// Serves calls at a socket, until dropped.
pub async fn serve(listener: UnixListener, service: Service) {
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::debug!(%error, "accept a connection");
                return;
            }
        };
        let service = service.clone();
        let answer = service_fn(move |request: Request<Incoming>| {
            let service = service.clone();
            async move { Ok::<_, Infallible>(respond(service.answer(request).await)) }
        });
        connections.spawn(async move {
            let server = http2::Builder::new(TokioExecutor::new());
            let (reader, writer) = stream.into_split();
            let stream = TokioIo::new(tokio::io::join(Hosts::new(reader), writer));
            if let Err(error) = server.serve_connection(stream, answer).await {
                tracing::debug!(%error, "serve a connection");
            }
        });
        while connections.try_join_next().is_some() {}
    }
}

fn respond(result: Result<Bytes, Status>) -> Response<UnsyncBoxBody<Bytes, Infallible>> {
    let trailers: HeaderMap = Status::write(result.as_ref().map(|_| ()));
    let body = Full::new(result.unwrap_or_default());
    let body = body.with_trailers(std::future::ready(Some(Ok(trailers))));
    let mut response = Response::new(body.boxed_unsync());
    let kind = http::HeaderValue::from_static("application/grpc");
    response.headers_mut().insert(http::header::CONTENT_TYPE, kind);
    response
}
