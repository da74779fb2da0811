//! The sockets of simulated nodes at which their container runtimes answer, as containerd does on a real node.
//!
//! [`runtime`] has the calls about containers, [`images`] those about images: what OpenKruise's daemon asks for. The containers are
//! those that the nodes' kubelets run; nobody makes one through a socket.

mod images;
mod runtime;

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cri::Service;
use nodes::{Containers, ImageRegistry};
use tokio::net::UnixListener;
use tokio::task::JoinSet;

use super::children::socket;

/// A node, as its container runtime knows it.
struct Node {
    name: String,
    containers: Containers,
    images: ImageRegistry,
}

/// The sockets of a cluster's nodes. They go when this is dropped.
pub struct NodeSockets {
    folder: PathBuf,
    sockets: Vec<PathBuf>,
    _tasks: JoinSet<()>,
}

impl NodeSockets {
    /// Answers at `NODE.sock` in `folder` for each of these nodes, whose kubelets run `containers`. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// If the folder or a socket cannot be made.
    pub fn listen(
        folder: &Path,
        nodes: &[String],
        containers: &Containers,
        images: &ImageRegistry,
    ) -> io::Result<Self> {
        // Who may write to a socket may do everything with its node.
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let mut sockets = Vec::new();
        let mut tasks = JoinSet::new();
        for name in nodes {
            let path = socket(folder, name);
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let listener = UnixListener::bind(&path)?;
            sockets.push(path);
            let node = Arc::new(Node {
                name: name.clone(),
                containers: containers.clone(),
                images: images.clone(),
            });
            let service = images::on(runtime::on(Service::default(), &node), &node);
            tasks.spawn(cri::serve(listener, service));
        }
        Ok(Self {
            folder: folder.to_owned(),
            sockets,
            _tasks: tasks,
        })
    }
}

impl Drop for NodeSockets {
    fn drop(&mut self) {
        for path in &self.sockets {
            // What is left over harms nobody.
            let _ = fs::remove_file(path);
        }
        // Unless something else is in it.
        let _ = fs::remove_dir(&self.folder);
    }
}
