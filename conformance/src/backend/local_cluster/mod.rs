//! Clusters that are made for a run, by tools that a machine may have, and taken away after it.

mod k3s;
mod kind;

use std::path::{Path, PathBuf};

use k3s::K3sCluster;
use kind::{KindCluster, run_program};

use crate::error::Error;

/// A cluster that goes when this is dropped, or when this process ends in another way.
pub enum LocalCluster {
    /// Made by the program `kind`, which needs Docker.
    Kind(KindCluster<'static>),
    /// k3s in a container.
    K3s(K3sCluster),
}

impl LocalCluster {
    /// Makes a cluster with kind; its node has this image, or kind's own.
    ///
    /// # Errors
    /// If there is no Docker engine, or kind is missing or fails; in its own words.
    pub fn kind(image: Option<&str>) -> Result<Self, Error> {
        KindCluster::make(image, &std::env::temp_dir(), &run_program).map(Self::Kind)
    }

    /// Makes a cluster of k3s in a container of this image, or of k3s' own.
    ///
    /// # Errors
    /// If the program that starts it cannot be built, there is no Docker engine, or the container fails.
    pub fn k3s(image: Option<&str>) -> Result<Self, Error> {
        K3sCluster::make(image, &std::env::temp_dir()).map(Self::K3s)
    }

    /// Where its kubeconfig is.
    #[must_use]
    pub fn kubeconfig(&self) -> &Path {
        match self {
            Self::Kind(cluster) => cluster.kubeconfig(),
            Self::K3s(cluster) => cluster.kubeconfig(),
        }
    }

    /// The address of this machine in the network of the cluster's container, if the engine tells it.
    #[must_use]
    pub fn host(&self) -> Option<String> {
        match self {
            Self::Kind(cluster) => cluster.host(),
            Self::K3s(cluster) => cluster.host(),
        }
    }
}

/// The name of the cluster that this process makes.
fn name() -> String {
    format!("seatrial-{}", std::process::id())
}

/// Where its kubeconfig is written.
fn kubeconfig(folder: &Path) -> PathBuf {
    folder.join(format!("{}.kubeconfig", name()))
}

fn failed(tool: &str, why: impl Into<String>) -> Error {
    Error::Backend {
        what: format!("make a cluster with {tool}"),
        why: why.into(),
        help: "start a cluster yourself and use --backend kubeconfig, or use the in-process one (--backend fake)"
            .to_owned(),
    }
}
