//! Programs in Rust that stand for images: a user's own, and `agnhost`. [`server`] answers HTTP requests for them.

mod server;

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use client_kit::{Random, SharedClock};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{Request, Response};
use jiff::Timestamp;
use network::tls::Encryption;
use network::{Answer, Connection, Datagram, NoSuchHost, Untaken};
use tokio::io::DuplexStream;
use tokio::sync::watch;

use super::files::{FileError, Files};
use super::process::Run;
use super::shell::Streams;
use crate::nic::{Bound, DialError, Nic, Socket};
use server::{Answering, serve};

/// A program that containers of an image run. Functions from a [`Container`] to a future of an exit code are programs.
///
/// ```
/// use nodes::{Container, ContainerProgram};
///
/// let program = |container: Container| async move {
///     container.print("hello\n");
///     0
/// };
/// let _: &dyn ContainerProgram = &program;
/// ```
pub trait ContainerProgram: Send + Sync {
    /// Runs a container to its end; gives its exit code. The future is dropped when the container is killed.
    fn run(&self, container: Container) -> BoxFuture<'static, i32>;
}

impl<F, R> ContainerProgram for F
where
    F: Fn(Container) -> R + Send + Sync,
    R: Future<Output = i32> + Send + 'static,
{
    fn run(&self, container: Container) -> BoxFuture<'static, i32> {
        self(container).boxed()
    }
}

/// The world of a program in its container.
pub struct Container {
    /// The container's `command`, with its variables filled in.
    pub command: Vec<String>,
    /// The container's `args`.
    pub args: Vec<String>,
    /// Its environment, with the variables of Services.
    pub env: BTreeMap<String, String>,
    pub(super) files: Files,
    pub(super) nic: Nic,
    pub(super) hostname: String,
    pub(super) clock: SharedClock,
    pub(super) streams: Streams,
    pub(super) run: Option<Arc<Run>>,
    pub(super) term: watch::Receiver<bool>,
    pub(super) catches_term: Arc<AtomicBool>,
    pub(super) random: Random,
}

impl Container {
    /// The pod's hostname.
    #[must_use]
    pub fn hostname(&self) -> &str {
        &self.hostname
    }

    /// The cluster's time. A program waits with tokio's timers, which follow it.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// A number that follows from the cluster's seed.
    pub fn random(&mut self) -> u64 {
        self.random.next_u64()
    }

    /// Prints to the standard output.
    pub fn print(&self, text: &str) {
        self.streams.out.write(text.as_bytes());
    }

    /// Prints to the standard error.
    pub fn print_error(&self, text: &str) {
        self.streams.err.write(text.as_bytes());
    }

    /// A line of the standard input, without its end; none once nothing more comes.
    pub async fn read_line(&self) -> Option<String> {
        self.streams.input.line().await
    }

    /// Waits until the container is asked to end, as by `TERM`. A program that never asks for that ends at once then.
    pub async fn asked_to_end(&mut self) {
        self.catches_term.store(true, Ordering::Relaxed);
        if self.term.wait_for(|asked| *asked).await.is_err() {
            // Whoever would ask is gone, and with it soon the program.
            std::future::pending::<()>().await;
        }
    }

    /// The content of a file.
    ///
    /// # Errors
    /// If there is no such file.
    pub fn read_file(&self, path: &str) -> io::Result<Vec<u8>> {
        self.files.read(path).map_err(io_error)
    }

    /// Writes a file, whose directory must be there.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write_file(&self, path: &str, content: &[u8]) -> io::Result<()> {
        self.files.write(path, content, false).map_err(io_error)
    }

    /// Makes a directory, and those above it.
    ///
    /// # Errors
    /// If a file is there.
    pub fn make_dir(&self, path: &str) -> io::Result<()> {
        self.files.make_dir(path, true).map_err(io_error)
    }

    /// The names in a directory.
    ///
    /// # Errors
    /// If there is no such directory.
    pub fn list_dir(&self, path: &str) -> io::Result<Vec<String>> {
        self.files.list(path).map_err(io_error)
    }

    /// The pod's address.
    #[must_use]
    pub fn address(&self) -> Option<IpAddr> {
        self.nic.address()
    }

    /// The addresses of a name, as the pod looks it up. A host outside of the cluster has none.
    ///
    /// # Errors
    /// If nobody has the name.
    pub fn resolve(&self, host: &str) -> Result<Vec<IpAddr>, NoSuchHost> {
        Ok(match self.nic.resolve(host)? {
            Answer::Addresses(_, addresses) => addresses,
            Answer::Outside(_) => Vec::new(),
        })
    }

    /// Connects to a port of a host, by address or name.
    ///
    /// # Errors
    /// If nothing answers there.
    pub async fn connect(&self, host: &str, port: u16) -> Result<DuplexStream, DialError> {
        self.nic.connect(host, port).await
    }

    /// Listens on a port of the pod. None if another program of the pod does.
    #[must_use]
    pub fn listen(&self, port: u16) -> Option<Listener> {
        self.nic.listen(port).map(Listener)
    }

    /// A socket for datagrams of UDP, on a port of its own if none is given. None if another program of the pod has the port.
    #[must_use]
    pub fn datagrams(&self, port: Option<u16>) -> Option<DatagramSocket> {
        self.nic.socket(port).map(DatagramSocket)
    }

    /// Answers HTTP requests on a port, until dropped. The caller's address is an extension of the request. The future ends at once if
    /// another program of the pod listens there.
    pub fn serve<F, R>(&self, port: u16, answer: F) -> BoxFuture<'static, ()>
    where
        F: Fn(Request<Bytes>) -> R + Send + Sync + 'static,
        R: Future<Output = Response<Bytes>> + Send + 'static,
    {
        self.serve_by(port, None, Arc::new(move |request| answer(request).boxed()))
    }

    /// The same by HTTPS.
    pub fn serve_encrypted<F, R>(
        &self,
        port: u16,
        encryption: Encryption,
        answer: F,
    ) -> BoxFuture<'static, ()>
    where
        F: Fn(Request<Bytes>) -> R + Send + Sync + 'static,
        R: Future<Output = Response<Bytes>> + Send + 'static,
    {
        self.serve_by(
            port,
            Some(encryption),
            Arc::new(move |request| answer(request).boxed()),
        )
    }

    fn serve_by(
        &self,
        port: u16,
        encryption: Option<Encryption>,
        answer: Answering,
    ) -> BoxFuture<'static, ()> {
        match self.nic.listen(port) {
            Some(bound) => serve(bound, encryption, answer).boxed(),
            None => std::future::ready(()).boxed(),
        }
    }
}

/// A port on which a program listens, until this is dropped.
pub struct Listener(Bound);

impl Listener {
    /// The next connection; none once the pod is gone.
    pub async fn accept(&mut self) -> Option<Connection> {
        self.0.next().await
    }
}

/// A socket for datagrams of UDP. Its port is free once this is dropped.
pub struct DatagramSocket(Socket);

impl DatagramSocket {
    /// The pod's address, and the socket's port.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.0.address()
    }

    /// Sends a datagram. One that is lost on its way is sent as well.
    ///
    /// # Errors
    /// If the network answers that nothing is there.
    pub async fn send_to(&self, payload: impl Into<Bytes>, to: SocketAddr) -> Result<(), Untaken> {
        self.0.send(to, payload.into()).await
    }

    /// The next datagram; none once the pod is gone.
    pub async fn receive(&mut self) -> Option<Datagram> {
        self.0.receive().await
    }

    /// Answers each datagram from now on: with what is given, if anything is.
    pub async fn answer(&mut self, mut answer: impl FnMut(&Datagram) -> Option<Bytes>) {
        while let Some(datagram) = self.receive().await {
            if let Some(reply) = answer(&datagram) {
                // The sender may be gone.
                let _ = self.send_to(reply, datagram.from).await;
            }
        }
    }
}

fn io_error(error: FileError) -> io::Error {
    let kind = match error {
        FileError::Missing => io::ErrorKind::NotFound,
        FileError::Exists => io::ErrorKind::AlreadyExists,
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, error.to_string())
}

/// A program in Rust that waits to be run.
pub(crate) struct NativeLaunch {
    pub program: Arc<dyn ContainerProgram>,
    pub command: Vec<String>,
    pub args: Vec<String>,
    pub random: Random,
}
