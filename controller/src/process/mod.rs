//! The process around the controllers: the parts of `kruise-manager` beside [`Manager`](crate::Manager).
//!
//! `flags` (by `flag_table`) reads the command line, `election` holds the lease, `certs` makes the webhooks' certificates,
//! `secret` keeps them, `configurations` tells the API server of them, `webhooks` answers over TLS, `endpoints` serves
//! metrics, health and readiness, `definitions` asks which kinds are served, `install` and `install_daemon` know the manifests, `logs`
//! writes the log, and `run` puts all that together. Names, ports, flags and files are those of OpenKruise's own manager, so that
//! its chart runs this one. `kruise-daemon` shares `flags`, `logs` and `endpoints` with it, and `connect` (the way to the cluster),
//! `older_versions` (kinds that an older installation defined) and `stop` (signals). `uninstall` checks that no workload is left, `version` has the versions of a program.
//!
//! **Invariant:** the manager never waits for its own webhooks: everything it does at its start is let through by the
//! configurations' selectors, or is repeated until it works.

pub mod certs;
pub mod configurations;
pub mod connect;
mod definitions;
pub mod election;
pub mod endpoints;
mod flag_table;
pub mod flags;
pub mod install;
pub mod install_daemon;
pub mod logs;
mod older_versions;
pub mod run;
pub mod secret;
pub mod stop;
mod uninstall;
pub mod version;
pub mod webhooks;

pub use crate::gates;
use crate::gates::GateError;
use thiserror::Error;

/// Why the manager does not start, or ends.
#[derive(Debug, Error)]
pub enum ProcessError {
    /// The command line is wrong.
    #[error("{0}")]
    Flag(String),
    /// The feature gates are wrong.
    #[error(transparent)]
    Gate(#[from] GateError),
    /// There is no cluster to speak to.
    #[error("find a cluster: {0}")]
    Config(String),
    /// A request failed.
    #[error("{what}: {source}")]
    Request {
        /// The request.
        what: String,
        /// Its error.
        source: Box<kube::Error>,
    },
    /// An address cannot be listened at.
    #[error("listen at {address}: {source}")]
    Listen {
        /// The address.
        address: String,
        /// Why.
        source: std::io::Error,
    },
    /// Certificates cannot be made or read.
    #[error("certificates: {0}")]
    Certificates(String),
    /// OpenKruise cannot be uninstalled: these kinds have objects.
    #[error("there still exists some {0} in the cluster")]
    InUse(&'static str),
    /// Another manager leads now.
    #[error("leader election lost")]
    LeadershipLost,
}

impl ProcessError {
    /// A request failed.
    pub(crate) fn request(what: &str, source: kube::Error) -> Self {
        Self::Request {
            what: what.to_owned(),
            source: Box::new(source),
        }
    }
}
