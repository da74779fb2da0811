//! The ends of the network: nodes, which have the addresses of pods and take connections to them.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
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

/// The protocols of the network. SCTP is not simulated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Protocol {
    /// Connections.
    Tcp,
    /// Datagrams.
    Udp,
}

impl Protocol {
    /// The name in Services, EndpointSlices, NetworkPolicies and the ports of containers.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
        }
    }
}

/// A datagram of UDP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Datagram {
    /// The sender's address.
    pub from: SocketAddr,
    /// The receiver's address.
    pub to: SocketAddr,
    /// The bytes.
    pub payload: Bytes,
}

/// Why a machine does not take a connection or a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Untaken {
    /// Nothing listens on the port.
    #[error("connection refused")]
    Refused,
    /// No pod has the address.
    #[error("no route to host")]
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

    /// Takes a datagram to one of the addresses here.
    ///
    /// # Errors
    /// If nothing listens there.
    fn receive(&self, datagram: Datagram) -> Result<(), Untaken>;
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
