//! A manager's way to the server, on which creations of pods, and deletions of requests that have ended, take as long as in a recording.

use std::sync::Arc;
use std::task::{Context, Poll};

use client_kit::LocalObjects;
use fake_apiserver::Server;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{Method, Request};
use http_body_util::BodyExt as _;
use kube::client::Body;
use shared_json::Value;
use tower::Service;

use crate::history::text;
use crate::recording::creations::{CreationPace, REQUESTS};

/// A server whose clients wait until the pods that they create are due, and the requests that they delete.
#[derive(Clone)]
pub(super) struct PacedServer {
    pub(super) server: Server,
    pub(super) pace: Arc<CreationPace>,
}

/// The name of the ContainerRecreateRequest that a client deletes.
fn deleted(request: &Request<Body>) -> Option<&str> {
    let (folder, name) = request.uri().path().rsplit_once('/')?;
    let is_request = request.method() == Method::DELETE && folder.ends_with(&format!("/{REQUESTS}"));
    is_request.then_some(name)
}

impl Service<Request<Body>> for PacedServer {
    type Response = <Server as Service<Request<Body>>>::Response;
    type Error = <Server as Service<Request<Body>>>::Error;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        <Server as Service<Request<Body>>>::poll_ready(&mut self.server, context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (mut server, pace) = (self.server.clone(), Arc::clone(&self.pace));
        if let Some(due) = deleted(&request).and_then(|name| pace.deletion_due(name)) {
            return async move {
                tokio::time::sleep_until(due).await;
                server.call(request).await
            }
            .boxed();
        }
        if request.method() != Method::POST || !request.uri().path().ends_with("/pods") {
            return server.call(request).boxed();
        }
        async move {
            let (head, body) = request.into_parts();
            // A body of this process does not fail; the server refuses an empty one.
            let body = body
                .collect()
                .await
                .map(|body| body.to_bytes())
                .unwrap_or_default();
            let local = head.extensions.get::<LocalObjects>();
            let pod = match local.and_then(|local| local.sent(&body)) {
                Some(pod) => pod.clone(),
                None => shared_json::from_slice::<Value>(&body).unwrap_or_default(),
            };
            if let Some(due) = pace.due(&text(&pod, "/metadata/name")) {
                tokio::time::sleep_until(due).await;
            }
            server.call(Request::from_parts(head, Body::from(body))).await
        }
        .boxed()
    }
}
