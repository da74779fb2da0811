//! Connections to the ports of containers, from a node or from another pod.

use std::sync::Arc;

use thiserror::Error;
use tokio::io::DuplexStream;

use super::Containers;
use crate::access::{listens, serve};

/// How many bytes of a connection wait for their reader.
const BUFFER_BYTES: usize = 64 * 1024;

/// Why nothing answers at an address. The texts are those of Go.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ConnectError {
    /// No container with this address listens on the port.
    #[error("dial tcp {0}: connect: connection refused")]
    Refused(String),
    /// No pod has the address.
    #[error("dial tcp {0}: connect: no route to host")]
    NoRoute(String),
}

impl Containers {
    /// Connects to a port of a pod's address. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// If no container with this address runs that listens there.
    pub fn connect(&self, address: &str, port: u16) -> Result<DuplexStream, ConnectError> {
        let at = format!("{address}:{port}");
        let pods = self.lock();
        let here = pods
            .values()
            .flatten()
            .filter(|entry| entry.handle.place.address == address && !address.is_empty());
        let mut is_known = false;
        for entry in here {
            is_known = true;
            let (run, place) = (&entry.handle.run, &entry.handle.place);
            if !entry.info.running || !listens(run, &place.spec, port) {
                continue;
            }
            let (ours, theirs) = tokio::io::duplex(BUFFER_BYTES);
            let (namespace, name) = &place.pod;
            let who = format!("pod: {namespace}/{name}\ncontainer: {}\n", entry.info.name);
            tokio::spawn(serve(Arc::clone(run), who, theirs));
            return Ok(ours);
        }
        Err(if is_known {
            ConnectError::Refused(at)
        } else {
            ConnectError::NoRoute(at)
        })
    }
}
