//! Images whose programs are processes of this machine.
//!
//! [`file`] says which; [`folder`] has the files that a program is given, [`process`] is one that runs. A program is given the
//! rights of its pod's service account, and its ports are ports of this machine: the pod's annotation says which.

mod file;
mod folder;
mod process;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use futures::FutureExt as _;
use kube::Client;
use nodes::{OutsideContainer, OutsideProgram, OutsidePrograms};

pub use file::{RunFile, RunFileError};
use process::Child;

/// The socket of a node, in the folder of all.
pub(super) fn socket(folder: &Path, node: &str) -> PathBuf {
    folder.join(format!("{node}.sock"))
}

/// How programs reach the server.
struct Reached {
    client: Client,
    address: SocketAddr,
    /// The certificate of the server's authority; none where it speaks plain HTTP.
    authority: Option<String>,
}

/// The processes behind the containers of some images. Clones are the same.
#[derive(Clone)]
pub struct Children(Arc<Shared>);

struct Shared {
    images: RunFile,
    /// The programs' files, a folder for each container.
    folder: PathBuf,
    /// The folder of the nodes' sockets, if they have some.
    sockets: Option<PathBuf>,
    reached: OnceLock<Reached>,
}

impl Children {
    /// The programs of `images`, whose files go below `folder`.
    /// `sockets` is the folder of the nodes' sockets, if they have some.
    #[must_use]
    pub fn new(images: RunFile, folder: PathBuf, sockets: Option<PathBuf>) -> Self {
        Self(Arc::new(Shared {
            images,
            folder,
            sockets,
            reached: OnceLock::new(),
        }))
    }

    /// Where the programs find the server. Until this is said, they wait.
    pub fn connect(&self, client: Client, address: SocketAddr, authority: Option<&str>) {
        let reached = Reached {
            client,
            address,
            authority: authority.map(str::to_owned),
        };
        // The server stays where it is.
        let _ = self.0.reached.set(reached);
    }
}

impl OutsidePrograms for Children {
    fn program(&self, container: &OutsideContainer<'_>) -> Option<OutsideProgram> {
        let image = container.spec.get("image")?.as_str()?;
        let image = self.0.images.find(image, &container.command)?.clone();
        let child = Child::new(self.clone(), image, container);
        Some(Box::new(move |log, asked| child.run(log, asked).boxed()))
    }
}
