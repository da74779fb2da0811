//! The reasons why the daemon does not start.

use controller::process::ProcessError;
use miette::Diagnostic;
use thiserror::Error;

/// Why the daemon does not start.
#[derive(Debug, Error, Diagnostic)]
pub enum DaemonError {
    /// The command line is wrong.
    #[error("read the command line: {0}")]
    #[diagnostic(help("kruise-daemon --help lists the flags"))]
    Usage(ProcessError),
    /// The name of the node is not known.
    #[error("find the name of the node: the environment variable NODE_NAME is not set")]
    #[diagnostic(help(
        "set NODE_NAME to the name of the Node object; a DaemonSet does so with valueFrom.fieldRef.fieldPath: spec.nodeName"
    ))]
    NodeName,
    /// There is no socket.
    #[error("find a container runtime: {0}")]
    #[diagnostic(help(
        "mount the host's /var/run at /hostvarrun, or name the socket: --socket-file=/run/containerd/containerd.sock"
    ))]
    NoSocket(String),
    /// No runtime answers.
    #[error("speak to a container runtime:\n{0}")]
    #[diagnostic(help(
        "the runtime has to serve CRI v1 (containerd 1.6, CRI-O 1.23, cri-dockerd 0.2 or later), and the daemon has to run as root; \
         containerd serves CRI unless its configuration lists `cri` in `disabled_plugins`"
    ))]
    NoRuntime(String),
    /// The cluster cannot be found.
    #[error(transparent)]
    #[diagnostic(help(
        "run the daemon in a pod with a service account, set KUBECONFIG, or name the file: --kubeconfig=FILE"
    ))]
    Cluster(ProcessError),
    /// An address cannot be listened at.
    #[error(transparent)]
    #[diagnostic(help("another program listens there: give --addr another port, such as --addr=:10231"))]
    Listen(ProcessError),
    /// The system refuses timers or polls.
    #[error("start tokio's runtime: {0}")]
    Runtime(std::io::Error),
}

impl DaemonError {
    /// The exit code of a command line that is wrong, as Go's flag package has it.
    const USAGE: u8 = 2;

    /// The exit code of the program.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => Self::USAGE,
            _ => 1,
        }
    }
}
