//! Served mode: the same service behind a socket.
//!
//! TLS with a certificate authority of the server's own ([`Identity`]), HTTP/1.1 and HTTP/2, client certificates and bearer
//! tokens; or plain HTTP, which trusts a client without a token and is meant for loopback. A served cluster runs on an ordinary
//! runtime, so its time is real: let its clock begin now, as the binary does. [`ClusterTime`] lets it jump, or run faster.

#[cfg(unix)]
mod children;
mod clock;
mod in_cluster;
mod kubeconfig;
#[cfg(all(unix, feature = "cli"))]
mod node_sockets;
mod patience;
mod unread;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use http::Method;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt as _;

#[cfg(unix)]
pub use children::{Children, RunFile, RunFileError};
pub use clock::{CLOCK_PATH, ClusterTime, Speed};
pub use kubeconfig::kubeconfig;
#[cfg(all(unix, feature = "cli"))]
pub use node_sockets::NodeSockets;
pub use pki::{CertificateError, Identity};

use in_cluster::InCluster;
use machinery::user::{AUTHENTICATED, CREDENTIAL_ID, MASTERS, User};
use network::tls::Wire;
use patience::{Prompt, RealTimer};
use server::{Peer, Server};

/// The time for requests under way once the server is to stop.
const DRAIN: Duration = Duration::from_secs(2);
/// How long a client may take to agree on a connection's encryption.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// How long nothing is accepted after that has failed: twice as long each time, as Go's server does.
const ACCEPT_PAUSE_MIN: Duration = Duration::from_millis(5);
const ACCEPT_PAUSE_MAX: Duration = Duration::from_secs(1);

/// How a server is reached and the clients that it trusts.
#[derive(Clone, Default)]
pub struct Transport {
    /// The server's certificates; plain HTTP without them.
    pub identity: Option<Arc<Identity>>,
    /// Tokens of administrators, besides those of service accounts.
    pub tokens: Vec<String>,
}

impl Transport {
    fn peer(&self) -> Peer {
        let administrator = Arc::new(User {
            name: "kubernetes-admin".to_owned(),
            groups: vec![MASTERS.to_owned(), AUTHENTICATED.to_owned()],
            ..User::default()
        });
        let tokens: BTreeMap<String, Arc<User>> = self
            .tokens
            .iter()
            .map(|token| (token.clone(), Arc::clone(&administrator)))
            .collect();
        Peer {
            trusted: self.identity.is_none(),
            certificate: None,
            tokens: Arc::new(tokens),
        }
    }
}

/// Answers the connections of `listener` until `stop` is ready; then no more are taken, and those that are there have two
/// seconds for the requests under way.
///
/// # Errors
/// If the listener fails for good. A connection that fails ends alone, and where there are too many the next ones wait.
#[must_use]
pub fn serve<'a>(
    server: Server,
    listener: TcpListener,
    transport: Transport,
    stop: impl Future<Output = ()> + Send + 'a,
) -> BoxFuture<'a, io::Result<()>> {
    served(server, listener, transport, Box::pin(stop))
}

/// The same, compiled once and not in each program.
fn served(
    server: Server,
    listener: TcpListener,
    transport: Transport,
    stop: BoxFuture<'_, ()>,
) -> BoxFuture<'_, io::Result<()>> {
    Box::pin(accept(server, listener, transport, stop))
}

async fn accept(
    server: Server,
    listener: TcpListener,
    transport: Transport,
    mut stop: BoxFuture<'_, ()>,
) -> io::Result<()> {
    let acceptor = transport
        .identity
        .as_ref()
        .map(|identity| TlsAcceptor::from(identity.server_config_at(Arc::clone(server.clock()))));
    let peer = transport.peer();
    let graceful = GracefulShutdown::new();
    // Pods reach it by the network, for as long as it accepts connections.
    let _in_cluster = acceptor
        .as_ref()
        .and_then(|acceptor| InCluster::attach(&server, &peer, acceptor));
    let mut connections = JoinSet::new();
    let mut pause = ACCEPT_PAUSE_MIN;
    loop {
        let accepted = tokio::select! {
            biased;
            () = &mut stop => break,
            accepted = listener.accept() => accepted,
        };
        let (stream, address) = match accepted {
            Ok(accepted) => accepted,
            Err(error) if passes(&error) => {
                tracing::warn!(%error, ?pause, "accept a connection");
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(ACCEPT_PAUSE_MAX);
                continue;
            }
            Err(error) => return Err(error),
        };
        pause = ACCEPT_PAUSE_MIN;
        let connection = Connection {
            server: server.clone(),
            peer: peer.clone(),
            address,
        };
        // Small answers must not wait for the acknowledgement of others.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, peer = %address, "set up a connection");
        }
        connections.spawn(connection.run(acceptor.clone(), stream, graceful.watcher()));
        while connections.try_join_next().is_some() {}
    }
    drop(listener);
    if tokio::time::timeout(DRAIN, graceful.shutdown()).await.is_err() {
        // Watches never end by themselves.
        tracing::debug!("close what is still open");
    }
    Ok(())
}

/// Whether accepting may succeed later: a connection was given up before it was accepted, or there are too many open files.
fn passes(error: &io::Error) -> bool {
    const TOO_MANY: [i32; 4] = [libc::EMFILE, libc::ENFILE, libc::ENOBUFS, libc::ENOMEM];
    let gone = [
        io::ErrorKind::ConnectionAborted,
        io::ErrorKind::ConnectionReset,
        io::ErrorKind::Interrupted,
    ];
    gone.contains(&error.kind()) || error.raw_os_error().is_some_and(|code| TOO_MANY.contains(&code))
}

struct Connection {
    server: Server,
    peer: Peer,
    address: SocketAddr,
}

impl Connection {
    async fn run<S: Wire + 'static>(
        mut self,
        acceptor: Option<TlsAcceptor>,
        stream: S,
        watcher: hyper_util::server::graceful::Watcher,
    ) {
        let Some(acceptor) = acceptor else {
            return self.answer(Box::new(stream), watcher).await;
        };
        let jumps = Arc::clone(self.server.jumps());
        match jumps.real_timeout(HANDSHAKE, acceptor.accept(stream)).await {
            Some(Ok(stream)) => {
                let shown = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
                self.peer.certificate = shown.and_then(|certificate| user_of(certificate)).map(Arc::new);
                self.answer(Box::new(stream), watcher).await;
            }
            Some(Err(error)) => tracing::debug!(%error, peer = %self.address, "agree on encryption"),
            None => tracing::debug!(peer = %self.address, "agree on encryption in time"),
        }
    }

    async fn answer(self, stream: Box<dyn Wire>, watcher: hyper_util::server::graceful::Watcher) {
        let Self {
            server,
            peer,
            address,
            ..
        } = self;
        let jumps = Arc::clone(server.jumps());
        let service = server.map_request(move |mut request: http::Request<hyper::body::Incoming>| {
            request.extensions_mut().insert(peer.clone());
            request.map(unread::ReadToEnd::new)
        });
        // Whoever else has written meanwhile is heard before the answer goes out: the answers then go out together, and a client
        // that waits for several is woken once.
        let service = tower::service_fn(move |request: http::Request<hyper::body::Incoming>| {
            let writes = matches!(*request.method(), Method::POST | Method::PUT | Method::PATCH);
            let answer = service.clone().oneshot(request);
            async move {
                let answer = answer.await;
                if writes {
                    tokio::task::yield_now().await;
                }
                answer
            }
        });
        let mut builder = auto::Builder::new(TokioExecutor::new());
        builder
            .http1()
            .timer(RealTimer(Arc::clone(&jumps)))
            .header_read_timeout(patience::HEAD_WAIT_MAX);
        // Watches are streams: an HTTP/2 connection carries many.
        builder.http2().max_concurrent_streams(1000);
        let connection = builder.serve_connection_with_upgrades(
            TokioIo::new(Prompt::new(stream, &jumps)),
            TowerToHyperService::new(service),
        );
        if let Err(error) = watcher.watch(connection.into_owned()).await {
            tracing::debug!(%error, peer = %address, "serve a connection");
        }
    }
}

/// The user that a client certificate names: the common name, and each organization as a group. The certificate's hash tells
/// which one was shown.
fn user_of(certificate: &[u8]) -> Option<User> {
    let subject = pki::subject(certificate)?;
    let mut groups = subject.organizations;
    groups.push(AUTHENTICATED.to_owned());
    let mut id = String::from("X509SHA256=");
    for byte in ring::digest::digest(&ring::digest::SHA256, certificate).as_ref() {
        // Writing into a text cannot fail.
        let _infallible = write!(id, "{byte:02x}");
    }
    Some(User {
        name: subject.common_name,
        groups,
        extra: BTreeMap::from([(CREDENTIAL_ID.to_owned(), vec![id])]),
        ..User::default()
    })
}
