//! Served mode: the same service behind a socket.
//!
//! Plain HTTP/1.1 and HTTP/2 (with prior knowledge), meant for loopback. A served cluster runs on an ordinary runtime, so
//! its time is real: let its clock begin now, as the binary does.

use std::io;
use std::net::SocketAddr;

use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::server::Server;

/// Answers the connections of `listener` until the future is dropped, which closes all of them.
///
/// # Errors
/// If the listener fails. A connection that fails ends alone.
pub async fn serve(server: Server, listener: TcpListener) -> io::Result<()> {
    let mut connections = JoinSet::new();
    loop {
        let (stream, peer) = listener.accept().await?;
        // Small answers must not wait for the acknowledgement of others.
        stream.set_nodelay(true)?;
        let service = TowerToHyperService::new(server.clone());
        connections.spawn(async move {
            let builder = auto::Builder::new(TokioExecutor::new());
            if let Err(error) = builder.serve_connection(TokioIo::new(stream), service).await {
                tracing::debug!(%error, %peer, "serve a connection");
            }
        });
        while connections.try_join_next().is_some() {}
    }
}

/// A kubeconfig for a server that answers plain HTTP at `address`.
#[must_use]
pub fn kubeconfig(address: SocketAddr) -> Value {
    let name = "fake-apiserver";
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": format!("http://{address}")}}],
        "users": [{"name": name, "user": {}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": "default"}}],
        "current-context": name,
    })
}
