//! The containers that run on simulated nodes, for programs that talk to a node's container runtime beside the kubelet.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::channel::mpsc;
use tokio::sync::watch;

use super::programs::Exit;

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
    /// Whether it runs.
    pub running: bool,
}

/// How a container is asked to end.
pub(crate) struct Handle {
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

    /// Asks a container that runs to end, and ends it after `grace`. The kubelet finds out as it does of any end. Must be
    /// called within a tokio runtime.
    pub fn stop(&self, id: &str, grace: Duration) {
        let pods = self.lock();
        let Some(entry) = pods
            .values()
            .flatten()
            .find(|entry| entry.info.id == id && entry.info.running)
        else {
            return;
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
        tokio::spawn(async move {
            tokio::time::sleep(delay).await;
            // A container that has ended meanwhile, or whose pod is gone, takes no notice.
            let _ = exits.unbounded_send((
                run,
                Exit {
                    code,
                    ..Exit::default()
                },
            ));
        });
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
