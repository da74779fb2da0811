//! The server as pods reach it: behind the Service `default/kubernetes`, over the cluster's network.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use hyper_util::server::graceful::GracefulShutdown;
use network::{API_SERVER_ENDPOINT, Datagram, Machine, Untaken, WeakNetwork};
use server::{Peer, Server};
use shared_json::Value;
use tokio_rustls::TlsAcceptor;

use super::Connection;

/// The name of the machine.
const NAME: &str = "kube-apiserver";

/// The server's place on the network, until this is dropped.
pub(super) struct InCluster(WeakNetwork);

impl InCluster {
    /// Takes the place. None if the server has no network.
    pub(super) fn attach(server: &Server, peer: &Peer, acceptor: &TlsAcceptor) -> Option<Self> {
        let network = server.network()?;
        let front = Front {
            server: server.clone(),
            peer: peer.clone(),
            acceptor: acceptor.clone(),
            connections: GracefulShutdown::new(),
        };
        network.attach(NAME, &API_SERVER_ENDPOINT.ip().to_string(), "", Arc::new(front));
        Some(Self(network.downgrade()))
    }
}

impl Drop for InCluster {
    fn drop(&mut self) {
        if let Some(network) = self.0.upgrade() {
            network.detach(API_SERVER_ENDPOINT.ip());
        }
    }
}

/// The side that takes connections.
struct Front {
    server: Server,
    peer: Peer,
    acceptor: TlsAcceptor,
    /// Those that are open: they end with this.
    connections: GracefulShutdown,
}

impl Machine for Front {
    fn pod(&self, _: IpAddr) -> Option<Arc<Value>> {
        None
    }

    fn accept(&self, connection: network::Connection) -> BoxFuture<'_, Result<(), Untaken>> {
        let taken = if connection.to.port() == API_SERVER_ENDPOINT.port() {
            self.take(connection.from, connection.stream);
            Ok(())
        } else {
            Err(Untaken::Refused)
        };
        std::future::ready(taken).boxed()
    }

    fn receive(&self, _: Datagram) -> Result<(), Untaken> {
        Err(Untaken::Refused)
    }
}

impl Front {
    fn take(&self, address: SocketAddr, stream: tokio::io::DuplexStream) {
        let connection = Connection {
            server: self.server.clone(),
            peer: self.peer.clone(),
            address,
        };
        let watcher = self.connections.watcher();
        tokio::spawn(connection.run(Some(self.acceptor.clone()), stream, watcher));
    }
}
