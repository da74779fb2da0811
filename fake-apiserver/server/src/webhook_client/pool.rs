//! Connections to webhooks, kept open between calls as the real server keeps them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use client_kit::Jumps;
use http_body_util::Full;
use hyper::client::conn::http1::SendRequest;

use super::Place;

/// How many idle connections are kept for one place: as many as the real server's client keeps.
const IDLE_MAX: usize = 25;

/// The client's end of a connection.
pub(crate) type Sender = SendRequest<Full<Bytes>>;

/// The place that a connection goes to, and the authorities by which its certificate was verified.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    address: String,
    port: u16,
    server_name: String,
    bundle: Vec<u8>,
}

impl Key {
    pub(super) fn new(place: &Place, bundle: &[u8]) -> Self {
        Self {
            address: place.address.clone(),
            port: place.port,
            server_name: place.server_name.clone(),
            bundle: bundle.to_vec(),
        }
    }
}

/// The idle connections of a server.
pub(crate) struct Connections {
    idle: Mutex<BTreeMap<Key, Vec<Sender>>>,
    /// The jumps of time, which wait while a webhook is asked.
    pub(super) jumps: Arc<Jumps>,
}

impl Connections {
    pub(crate) fn new(jumps: &Arc<Jumps>) -> Self {
        Self {
            idle: Mutex::default(),
            jumps: Arc::clone(jumps),
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, Vec<Sender>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An idle connection that is still open: the one that was used last.
    pub(super) fn take(&self, key: &Key) -> Option<Sender> {
        let mut all = self.lock();
        let idle = all.get_mut(key)?;
        let found = std::iter::from_fn(|| idle.pop()).find(|sender| !sender.is_closed());
        if idle.is_empty() {
            all.remove(key);
        }
        found
    }

    /// Keeps a connection whose last answer was read to its end.
    pub(super) fn keep(&self, key: Key, sender: Sender) {
        if sender.is_closed() {
            return;
        }
        let mut all = self.lock();
        let idle = all.entry(key).or_default();
        idle.retain(|other| !other.is_closed());
        if idle.len() < IDLE_MAX {
            idle.push(sender);
        }
    }
}
