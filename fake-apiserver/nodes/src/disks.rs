//! The files that outlive pods: those of PersistentVolumes and of nodes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::programs::{Files, Volume};

/// A node's own `/etc/hosts`.
const HOSTS: &[u8] = b"127.0.0.1\tlocalhost\n";

/// The disks of a cluster, shared by its nodes. A PersistentVolume's files are found on every node, and stay as long as the disks.
#[derive(Debug, Clone, Default)]
pub struct Disks(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    /// By the name of the PersistentVolume.
    volumes: BTreeMap<String, Volume>,
    /// The root directories, by node.
    hosts: BTreeMap<String, Volume>,
}

impl Disks {
    /// The files of a PersistentVolume.
    pub(super) fn of_volume(&self, name: &str) -> Volume {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        inner.volumes.entry(name.to_owned()).or_default().clone()
    }

    /// A directory of a node (`hostPath`), or a file of it, which is made if there is none. Every node has a file of names.
    pub(super) fn of_node(&self, node: &str, path: &str, is_file: bool) -> Volume {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let root = inner.hosts.entry(node.to_owned()).or_insert_with(|| {
            let root = Volume::default();
            let files = Files::with_mounts(vec![(String::new(), root.clone())]);
            let _ = files.make_dir("/etc", true);
            let _ = files.write("/etc/hosts", HOSTS, false);
            root
        });
        if is_file { root.file(path) } else { root.part(path) }
    }
}
