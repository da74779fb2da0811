//! Programs outside of the simulation: an image may stand for one that somebody else runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::BoxFuture;
use shared_json::Value;
use tokio::sync::watch;

use super::pipe::Output;

/// Runs the programs of some images, by whatever means.
pub trait OutsidePrograms: Send + Sync {
    /// The program of a container, which is started at once; none if its image is not one of these.
    fn program(&self, container: &OutsideContainer<'_>) -> Option<OutsideProgram>;
}

/// A container that is about to start.
pub struct OutsideContainer<'a> {
    /// Its pod.
    pub pod: &'a Arc<Value>,
    /// The container in the pod's spec.
    pub spec: &'a Value,
    /// Its words after its image's own: `command` and `args`, with their variables filled in.
    pub command: Vec<String>,
    /// See `command`.
    pub args: Vec<String>,
    /// Its environment.
    pub env: &'a BTreeMap<String, String>,
    /// The files of its volumes, by path.
    pub files: &'a dyn Fn() -> Vec<(String, Vec<u8>)>,
}

/// Runs a program to its end, and gives its exit code. Dropping the future kills the program.
pub type OutsideProgram = Box<dyn FnOnce(ContainerLog, AskedToEnd) -> BoxFuture<'static, i32> + Send>;

/// The log of a container.
#[derive(Clone)]
pub struct ContainerLog(pub(super) Output);

impl ContainerLog {
    /// Appends what a program has printed.
    pub fn write(&self, bytes: &[u8]) {
        self.0.write(bytes);
    }
}

/// How a program hears that it is to end, as by the signal `TERM`.
pub struct AskedToEnd(pub(super) watch::Receiver<bool>);

impl AskedToEnd {
    /// Waits until it is.
    pub async fn wait(&mut self) {
        if self.0.wait_for(|asked| *asked).await.is_err() {
            // Whoever would ask is gone, and with it soon the program.
            std::future::pending::<()>().await;
        }
    }
}
