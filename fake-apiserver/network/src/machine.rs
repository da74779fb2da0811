//! The ends of the network: nodes, which have the addresses of pods and take connections to them.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use futures::future::BoxFuture;
use shared_json::Value;
use thiserror::Error;
use tokio::io::DuplexStream;

/// A connection, as the side sees it that was called.
pub struct Connection {
    /// The calling address.
    pub from: SocketAddr,
    /// The called address.
    pub to: SocketAddr,
    /// The bytes of both directions.
    pub stream: DuplexStream,
}

/// Why a machine does not take a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Untaken {
    /// Nothing listens on the port.
    Refused,
    /// No pod has the address.
    NoRoute,
}

/// A node of the network.
pub trait Machine: Send + Sync {
    /// The pod with this address; none if it is the machine's own address, or nobody's.
    fn pod(&self, address: IpAddr) -> Option<Arc<Value>>;

    /// Takes a connection to one of the addresses here.
    ///
    /// # Errors
    /// If nothing listens there.
    fn accept(&self, connection: Connection) -> BoxFuture<'_, Result<(), Untaken>>;
}

/// Why there is no connection. The texts are those of Go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ConnectError {
    /// Nothing listens there.
    #[error("dial tcp {0}: connect: connection refused")]
    Refused(SocketAddr),
    /// No machine has the address.
    #[error("dial tcp {0}: connect: no route to host")]
    NoRoute(SocketAddr),
    /// Nobody has answered for as long as Linux tries.
    #[error("dial tcp {0}: connect: connection timed out")]
    TimedOut(SocketAddr),
}
