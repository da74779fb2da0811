//! The requests of an API server to a node, as a kubelet answers them on its own port: logs, commands and ports of pods.
//!
//! Texts of refusals are the kubelet's own.

mod dial;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use jiff::Timestamp;
use shared_json::{Value, json};
use tokio::io::DuplexStream;

pub use dial::{BadDial, DIAL, dialled};

/// The way to the containers of a node.
pub trait NodeAccess: Send + Sync {
    /// The output of a container, and with `follow` its further output until it ends.
    ///
    /// # Errors
    /// If it has not run yet, or not often enough.
    fn logs(
        &self,
        pod: &Value,
        container: &str,
        query: &LogQuery,
    ) -> Result<BoxStream<'static, Bytes>, Refused>;

    /// Runs a command in a container.
    ///
    /// # Errors
    /// If the container does not run.
    fn exec(
        &self,
        pod: &Value,
        container: &str,
        argv: Vec<String>,
        wants: Wants,
    ) -> Result<Box<dyn Session>, Refused>;

    /// Joins a container's own program.
    ///
    /// # Errors
    /// If the container does not run.
    fn attach(&self, pod: &Value, container: &str, wants: Wants) -> Result<Box<dyn Session>, Refused>;

    /// Answers a connection to a port of a pod, until either side is done. The error is the kubelet's text if nothing listens there.
    fn forward<'a>(
        &'a self,
        pod: &'a Value,
        port: u16,
        stream: DuplexStream,
    ) -> BoxFuture<'a, Result<(), String>>;
}

/// A command that runs, seen by the client that has started it. It goes on as long as its end is polled; dropping it ends the input of
/// a program that reads once.
pub trait Session: Send {
    /// Hands over typed bytes.
    fn feed(&mut self, bytes: &[u8]);

    /// Nothing more will be typed.
    fn end_input(&mut self);

    /// How it ends: the `Status` for the client. To be taken once, and polled for the command to go on.
    fn take_end(&mut self) -> BoxFuture<'static, Value>;

    /// The outputs, standard output first; both are closed by [`Session::close`].
    fn outputs(&self) -> [Box<dyn Reader>; 2];

    /// Nothing more is printed.
    fn close(&self);
}

/// Reads one of a session's outputs.
pub trait Reader: Send + Sync {
    /// The next bytes; none at the end.
    fn next(&self) -> BoxFuture<'_, Option<Vec<u8>>>;
}

/// Which streams a session is to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Wants {
    /// Input.
    pub stdin: bool,
    /// Standard output.
    pub stdout: bool,
    /// Standard error.
    pub stderr: bool,
    /// A terminal, whose outputs are one.
    pub tty: bool,
}

/// Which part of a log is asked for. Lines of a log have the time at which they were written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogQuery {
    /// Whether to go on until the container ends.
    pub follow: bool,
    /// Of the run before.
    pub previous: bool,
    /// Each line begins with its time.
    pub timestamps: bool,
    /// Only lines written since then.
    pub since: Option<Timestamp>,
    /// So many lines from the end.
    pub tail: Option<usize>,
    /// So many bytes at most.
    pub limit_bytes: Option<usize>,
}

/// Why a node refuses a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// 400, with this text.
    #[error("{0}")]
    BadRequest(String),
    /// The container does not run.
    #[error("container not found (\"{0}\")")]
    NoContainer(String),
}

/// A failure that is not the command's own, as the node reports it to the client.
pub fn failure(message: &str) -> Value {
    json!({
        "metadata": {},
        "status": "Failure",
        "message": format!("Internal error occurred: {message}"),
        "reason": "InternalError",
        "details": {"causes": [{"message": message}]},
        "code": 500,
    })
}
