//! Commands in containers, as a container runtime runs them (`ExecSync` of CRI).

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use thiserror::Error;

use super::Containers;
use crate::programs::{Ran, run_to_end};

/// Why a command could not be run to its end.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ExecError {
    /// There is no such container, or it does not run.
    #[error("container {0} does not run")]
    NotRunning(String),
    /// The container does not have the command.
    #[error("{0}")]
    NoCommand(String),
    /// The command took too long.
    #[error("command {command:?} timed out: context deadline exceeded")]
    TimedOut {
        /// The command.
        command: String,
    },
}

impl Containers {
    /// Runs a command in a container, for at most `timeout`. Without the pod's object: the id is enough. A program that is only known to
    /// serve has commands of its own, which succeed.
    pub fn exec(
        &self,
        id: &str,
        argv: Vec<String>,
        timeout: Duration,
    ) -> BoxFuture<'static, Result<Ran, ExecError>> {
        let found = {
            let pods = self.lock();
            let mut entries = pods.values().flatten();
            let entry = entries.find(|entry| entry.info.id == id && entry.info.running);
            entry.map(|entry| (Arc::clone(&entry.handle.run), entry.handle.serves.is_some()))
        };
        let id = id.to_owned();
        async move {
            let Some((run, serves)) = found else {
                return Err(ExecError::NotRunning(id));
            };
            let command = argv.join(" ");
            match tokio::time::timeout(timeout, run_to_end(run, id, argv)).await {
                Ok(Ok(ran)) => Ok(ran),
                Ok(Err(_)) if serves => Ok(Ran::default()),
                Ok(Err(message)) => Err(ExecError::NoCommand(message)),
                Err(_) => Err(ExecError::TimedOut { command }),
            }
        }
        .boxed()
    }
}
