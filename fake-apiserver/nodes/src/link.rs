//! A node's connection to the API server, which a test can cut.

use std::task::{Context, Poll};

use bytes::Bytes;
use client_kit::ObjectClient;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{Request, Response};
use kube::client::Body;
use tokio::sync::watch;
use tower::{BoxError, Service};

/// The switch of a connection. Its clones see it opened and cut.
#[derive(Debug, Clone)]
pub struct Switch(watch::Sender<bool>);

impl Default for Switch {
    /// The switch of a connection that stands.
    fn default() -> Self {
        Self(watch::Sender::new(true))
    }
}

impl Switch {
    /// Cuts or restores the connection.
    pub fn set(&self, connected: bool) {
        self.0.send_replace(connected);
    }

    /// A client whose requests wait while the connection is cut. Must be called within a tokio runtime.
    pub fn client<S, B>(&self, server: S) -> ObjectClient
    where
        S: Service<Request<Body>, Response = Response<B>> + Clone + Send + Sync + 'static,
        S::Future: Send + 'static,
        S::Error: Into<BoxError>,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let service = Link {
            server,
            connected: self.0.subscribe(),
        };
        ObjectClient::of_service(service)
    }

    pub(super) fn watch(&self) -> Connected {
        Connected {
            state: Some(self.0.subscribe()),
            was_cut: false,
        }
    }
}

/// Whether a node is connected.
pub(super) struct Connected {
    state: Option<watch::Receiver<bool>>,
    /// Whether it was seen cut, and its restoration has not been reported yet.
    was_cut: bool,
}

impl Connected {
    /// A connection that is never cut.
    pub(super) fn always() -> Self {
        Self {
            state: None,
            was_cut: false,
        }
    }

    /// Waits until the connection has been cut and is restored again.
    pub(super) async fn restored(&mut self) {
        if !self.was_cut {
            self.is(false).await;
            self.was_cut = true;
        }
        self.is(true).await;
        self.was_cut = false;
    }

    /// Waits while the connection is cut.
    pub(super) async fn hold(&mut self) {
        let cut = self.state.as_ref().is_some_and(|connected| !*connected.borrow());
        if cut {
            self.was_cut = true;
            self.is(true).await;
        }
    }

    async fn is(&mut self, wanted: bool) {
        let Some(state) = &mut self.state else {
            return std::future::pending().await;
        };
        if state.wait_for(|connected| *connected == wanted).await.is_err() {
            // Whoever could change it is gone.
            std::future::pending().await
        }
    }
}

/// The server behind a connection.
#[derive(Clone)]
struct Link<S> {
    server: S,
    connected: watch::Receiver<bool>,
}

impl<S> Service<Request<Body>> for Link<S>
where
    S: Service<Request<Body>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<BoxError>,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let mut link = self.clone();
        async move {
            link.connected.wait_for(|connected| *connected).await?;
            link.server.call(request).await.map_err(Into::into)
        }
        .boxed()
    }
}
