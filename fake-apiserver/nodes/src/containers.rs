//! The containers that run on simulated nodes, for programs that talk to a node's container runtime beside the kubelet.
//!
//! `exec` runs commands in them, `connect` reaches their ports. Neither needs the pod's object.

mod connect;
mod exec;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt as _;
use futures::channel::mpsc;
use futures::future::BoxFuture;
use jiff::Timestamp;
use shared_json::Value;
use tokio::sync::watch;

use super::programs::{Exit, Run};

pub use connect::ConnectError;
pub use exec::ExecError;

/// The exit code of a program that was killed.
const KILLED: i32 = 137;

/// A container of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerInfo {
    /// Its name in the pod.
    pub name: String,
    /// Its id, `containerd://…`.
    pub id: String,
    /// The image that it was created with, as the pod's spec had it.
    pub image: String,
    /// How often it was started before.
    pub restarts: u32,
    /// Its environment.
    pub env: BTreeMap<String, String>,
    /// Its hook before it is stopped; null if it has none.
    pub pre_stop: Value,
    /// When it was started.
    pub started: Timestamp,
    /// Whether it runs.
    pub running: bool,
}

/// A container, and the pod that it is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeContainer {
    /// The uid of its pod.
    pub pod_uid: String,
    /// The pod's namespace.
    pub namespace: String,
    /// The pod's name.
    pub pod: String,
    /// The container.
    pub info: ContainerInfo,
}

/// The pod of a container, and the container in its spec.
pub(crate) struct Place {
    /// The node.
    pub(crate) node: String,
    /// The pod's address.
    pub(crate) address: String,
    /// The pod's namespace and name.
    pub(crate) pod: (String, String),
    /// The container.
    pub(crate) spec: Value,
}

/// How a container is reached, and asked to end.
pub(crate) struct Handle {
    /// Its pod.
    pub(crate) place: Place,
    /// Its program.
    pub(crate) run: Arc<Run>,
    /// Asks its program.
    pub(crate) term: Option<watch::Sender<bool>>,
    /// How long one takes to end that simply serves.
    pub(crate) serves: Option<Duration>,
    /// The channel for its end.
    pub(crate) exits: mpsc::UnboundedSender<((String, u32), Exit)>,
}

struct Entry {
    info: ContainerInfo,
    handle: Handle,
}

/// The containers of all nodes of a cluster; clones share them. The newest of each name of a pod is known.
#[derive(Clone, Default)]
pub struct Containers(Arc<Mutex<BTreeMap<String, Vec<Entry>>>>);

impl Containers {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Vec<Entry>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The containers of the pod with this uid, in the order in which they were started first.
    #[must_use]
    pub fn of_pod(&self, uid: &str) -> Vec<ContainerInfo> {
        let pods = self.lock();
        let entries = pods.get(uid).into_iter().flatten();
        entries.map(|entry| entry.info.clone()).collect()
    }

    /// The container with this id.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<ContainerInfo> {
        let pods = self.lock();
        let mut entries = pods.values().flatten();
        entries
            .find(|entry| entry.info.id == id)
            .map(|entry| entry.info.clone())
    }

    /// The containers on a node, in the order of their pods' uids.
    #[must_use]
    pub fn on_node(&self, node: &str) -> Vec<NodeContainer> {
        let pods = self.lock();
        let entries = pods
            .iter()
            .flat_map(|(uid, entries)| entries.iter().map(move |entry| (uid, entry)));
        let here = entries.filter(|(_, entry)| entry.handle.place.node == node);
        here.map(|(uid, entry)| {
            let (namespace, pod) = entry.handle.place.pod.clone();
            NodeContainer {
                pod_uid: uid.clone(),
                namespace,
                pod,
                info: entry.info.clone(),
            }
        })
        .collect()
    }

    /// Asks a container that runs to end, and ends it after `grace`. The kubelet finds out as it does of any end. The future is ready
    /// when the container has ended; the container ends without it, too. Must be called within a tokio runtime.
    pub fn stop(&self, id: &str, grace: Duration) -> BoxFuture<'static, ()> {
        let pods = self.lock();
        let Some(entry) = pods
            .values()
            .flatten()
            .find(|entry| entry.info.id == id && entry.info.running)
        else {
            return std::future::ready(()).boxed();
        };
        let (run, exits) = (
            (entry.info.name.clone(), entry.info.restarts),
            entry.handle.exits.clone(),
        );
        let (delay, code) = match entry.handle.serves {
            Some(stop) if stop < grace => (stop, 0),
            _ => (grace, KILLED),
        };
        if let Some(term) = &entry.handle.term {
            term.send_replace(true);
        }
        let program = Arc::clone(&entry.handle.run);
        let clock = Arc::clone(&program.clock);
        tokio::spawn(async move {
            tokio::time::sleep(delay).await;
            // A container that has ended meanwhile, or whose pod is gone, takes no notice.
            let _ = exits.unbounded_send((run, Exit::now(code, &clock)));
        });
        async move { program.logs.closed().await }.boxed()
    }

    pub(crate) fn started(&self, uid: &str, info: ContainerInfo, handle: Handle) {
        let mut pods = self.lock();
        let entries = pods.entry(uid.to_owned()).or_default();
        let entry = Entry { info, handle };
        match entries
            .iter_mut()
            .find(|known| known.info.name == entry.info.name)
        {
            Some(known) => *known = entry,
            None => entries.push(entry),
        }
    }

    pub(crate) fn ended(&self, uid: &str, name: &str) {
        let mut pods = self.lock();
        let entries = pods.get_mut(uid).into_iter().flatten();
        for entry in entries.filter(|entry| entry.info.name == name) {
            entry.info.running = false;
        }
    }

    pub(crate) fn forget(&self, uid: &str) {
        self.lock().remove(uid);
    }
}

#[cfg(test)]
#[path = "containers/tests.rs"]
mod tests;
