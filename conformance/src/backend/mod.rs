//! The kinds of clusters that the harness can drive. Each is a client, and the programs that were started for it.

mod collector;
mod fake;
mod kubeconfig;
mod local_cluster;
mod paced;

use std::sync::Arc;
use std::time::Duration;

use client_kit::SharedClock;
use fake_apiserver::faults::{Fault, FaultHandle};
use kube::Client;

pub use collector::Collector;
pub use fake::{FakeCluster, FakeOptions, ManagerTweak};
pub use kubeconfig::RealCluster;
pub use local_cluster::LocalCluster;

use crate::history::Change;

/// The manager that runs the controllers of OpenKruise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ManagerChoice {
    /// This process, with the `controller` crate.
    #[default]
    Own,
    /// Another manager: OpenKruise is installed already.
    External,
}

/// A cluster that is ready to be driven.
pub enum Backend {
    /// The in-process one.
    Fake(FakeCluster),
    /// One behind a kubeconfig.
    Real(RealCluster),
}

impl Backend {
    /// A client of the cluster.
    #[must_use]
    pub fn client(&self) -> Client {
        match self {
            Self::Fake(cluster) => cluster.client(),
            Self::Real(cluster) => cluster.client(),
        }
    }

    /// The clock by which the cluster's time goes.
    #[must_use]
    pub fn clock(&self) -> SharedClock {
        match self {
            Self::Fake(cluster) => cluster.clock(),
            Self::Real(cluster) => cluster.clock(),
        }
    }

    /// Hands out these suffixes to the next pods whose names begin with `prefix`.
    pub fn name_pods(&self, prefix: &str, suffixes: &[String]) {
        match self {
            Self::Fake(cluster) => cluster.names().push(prefix, suffixes.iter().cloned()),
            Self::Real(cluster) => cluster.names().push(prefix, suffixes.iter().cloned()),
        }
    }

    /// The run begins the step that began at `at_ms` of its recording: pods that are created from now on come as late after that as
    /// the recorded ones. A real cluster has a speed of its own.
    pub fn begin_step(&self, at_ms: i64) {
        if let Self::Fake(cluster) = self {
            cluster.pace().begin_step(at_ms);
        }
    }

    /// Has something go wrong from now on. A real cluster has faults of its own only: scenarios with some are skipped there.
    pub fn add_fault(&self, fault: Fault) -> Option<FaultHandle> {
        match self {
            Self::Fake(cluster) => Some(cluster.add_fault(fault)),
            Self::Real(_) => None,
        }
    }

    /// The changes so far.
    #[must_use]
    pub fn history(&self) -> Vec<Change> {
        self.collector().history()
    }

    /// When that began.
    #[must_use]
    pub fn began(&self) -> jiff::Timestamp {
        self.collector().began()
    }

    /// How much has happened so far.
    #[must_use]
    pub fn history_len(&self) -> usize {
        self.collector().len()
    }

    fn collector(&self) -> &Arc<Collector> {
        match self {
            Self::Fake(cluster) => cluster.collector(),
            Self::Real(cluster) => cluster.collector(),
        }
    }

    /// Lets the cluster come to rest after something was done to it: whatever can happen without waiting has happened.
    pub async fn settle(&self) {
        match self {
            Self::Fake(_) => tokio::time::sleep(Duration::from_millis(1)).await,
            // There is no telling on a real cluster; what follows waits for its own conditions.
            Self::Real(_) => tokio::time::sleep(Duration::from_millis(200)).await,
        }
    }

    /// Whether time costs nothing here.
    #[must_use]
    pub fn is_virtual(&self) -> bool {
        matches!(self, Self::Fake(_))
    }

    /// Deletes the objects that the harness put into the cluster.
    pub async fn clean_up(self) {
        if let Self::Real(cluster) = self {
            cluster.clean_up().await;
        }
    }
}
