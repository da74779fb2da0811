//! A pod's place on the network, as its programs have it: listening, connecting, looking names up.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt as _;
use futures::channel::mpsc;
use futures::future::BoxFuture;
use machinery::meta::{ObjectMeta as _, at, list, text};
use network::Variables;
use network::{Answer, ConnectError, Connection, Datagram, Network, NoSuchHost, Resolver, Untaken};
use shared_json::{Text, Value};
use thiserror::Error;
use tokio::io::DuplexStream;

use crate::status::is_host_network;

/// How many bytes of a connection within a pod wait for their reader.
const BUFFER_BYTES: usize = 64 << 10;
/// The domain of the cluster.
const DOMAIN: &str = "cluster.local";

/// Why a program's connection is not made.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DialError {
    /// Nobody has the name.
    #[error(transparent)]
    Name(#[from] NoSuchHost),
    /// Nothing answers.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The host is outside of the cluster, where nothing is simulated.
    #[error("dial tcp {0}: the host is outside of the cluster")]
    Outside(String),
}

/// A node, as the programs of its pods use it.
pub(crate) trait Host: Send + Sync {
    /// The network that the node is on.
    fn network(&self) -> Option<Network>;
    /// The address of a pod: the node's if it has none of its own.
    fn address_of(&self, uid: &str) -> Option<IpAddr>;
    /// The newest version of a pod.
    fn pod_of(&self, uid: &str) -> Option<Arc<Value>>;
    /// Listens on a port of a pod. None if another program of the pod does.
    fn bind(&self, uid: &Text, number: u16) -> Option<Bound>;
    /// Receives the datagrams to a port of a pod. None if another program of the pod does.
    fn bind_datagrams(&self, uid: &Text, number: u16) -> Option<BoundDatagrams>;
    /// Gives a connection from within a pod to whatever listens on a port there.
    fn deliver<'a>(
        &'a self,
        pod: &'a Arc<Value>,
        number: u16,
        connection: Connection,
    ) -> BoxFuture<'a, Result<(), Untaken>>;
    /// Gives a datagram from within a pod to whatever listens on a port there.
    fn deliver_datagram(&self, pod: &Arc<Value>, datagram: Datagram) -> Result<(), Untaken>;
}

/// A port, which is free once this is dropped.
pub(crate) struct Hold(Box<dyn Fn() + Send + Sync>);

impl Hold {
    /// `release` frees the port.
    pub(crate) fn new(release: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Box::new(release))
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// A port on which a program listens, until this is dropped.
pub(crate) struct Bound {
    connections: mpsc::UnboundedReceiver<Connection>,
    _hold: Hold,
}

impl Bound {
    pub(crate) fn new(connections: mpsc::UnboundedReceiver<Connection>, hold: Hold) -> Self {
        Self {
            connections,
            _hold: hold,
        }
    }

    /// The next connection; none once the pod is gone.
    pub(crate) async fn next(&mut self) -> Option<Connection> {
        self.connections.next().await
    }
}

/// A port whose datagrams a program receives, until this is dropped.
pub(crate) struct BoundDatagrams {
    datagrams: mpsc::Receiver<Datagram>,
    _hold: Hold,
}

impl BoundDatagrams {
    pub(crate) fn new(datagrams: mpsc::Receiver<Datagram>, hold: Hold) -> Self {
        Self {
            datagrams,
            _hold: hold,
        }
    }
}

/// A program's socket for datagrams.
pub(crate) struct Socket {
    nic: Nic,
    port: u16,
    bound: BoundDatagrams,
}

impl Socket {
    /// Its own address, as receivers see it.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        Some(SocketAddr::new(self.nic.address()?, self.port))
    }

    /// Sends a datagram.
    pub(crate) async fn send(&self, to: SocketAddr, payload: Bytes) -> Result<(), Untaken> {
        if to.ip().is_loopback() {
            let (Some(host), Some(pod)) = (&self.nic.host, self.nic.pod()) else {
                return Err(Untaken::NoRoute);
            };
            let from = SocketAddr::new(to.ip(), self.port);
            return host.deliver_datagram(&pod, Datagram { from, to, payload });
        }
        let (Some(own), Some(network)) = (self.address(), self.nic.network()) else {
            return Err(Untaken::NoRoute);
        };
        network.send(own, to, payload).await
    }

    /// The next datagram; none once the pod is gone.
    pub(crate) async fn receive(&mut self) -> Option<Datagram> {
        self.bound.datagrams.next().await
    }
}

/// The network of a pod, by its node and its uid. Without a node there is nobody to connect to.
#[derive(Clone, Default)]
pub(crate) struct Nic {
    host: Option<Arc<dyn Host>>,
    uid: Text,
}

impl Nic {
    pub(crate) fn new(host: &Arc<dyn Host>, uid: Text) -> Self {
        Self {
            host: Some(Arc::clone(host)),
            uid,
        }
    }

    /// The pod's address.
    pub(crate) fn address(&self) -> Option<IpAddr> {
        self.host.as_ref()?.address_of(&self.uid)
    }

    /// The newest version of the pod.
    pub(crate) fn pod(&self) -> Option<Arc<Value>> {
        self.host.as_ref()?.pod_of(&self.uid)
    }

    fn network(&self) -> Option<Network> {
        self.host.as_ref()?.network()
    }

    /// The variables that tell the pod's programs of Services, as of now.
    pub(crate) fn service_variables(&self) -> Variables {
        let (Some(network), Some(pod)) = (self.network(), self.pod()) else {
            return Variables::default();
        };
        let links = at(&pod, "spec.enableServiceLinks").and_then(Value::as_bool);
        network.service_variables(pod.namespace(), links != Some(false))
    }

    /// Listens on a port. None if it is taken.
    pub(crate) fn listen(&self, port: u16) -> Option<Bound> {
        self.host.as_ref()?.bind(&self.uid, port)
    }

    /// A socket for datagrams, on a port of its own if none is given. None if the port is taken.
    pub(crate) fn socket(&self, port: Option<u16>) -> Option<Socket> {
        let port = match port {
            Some(port) => port,
            None => self.network()?.caller_port(),
        };
        Some(Socket {
            nic: self.clone(),
            port,
            bound: self.host.as_ref()?.bind_datagrams(&self.uid, port)?,
        })
    }

    /// The address of the cluster's DNS server.
    pub(crate) fn name_server(&self) -> IpAddr {
        let network = self.network();
        network.map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), |network| network.name_server())
    }

    /// The pod's settings for names.
    pub(crate) fn resolver(&self) -> Resolver {
        let Some(pod) = self.pod() else {
            return Resolver::default();
        };
        let mut resolver = settings(&pod);
        resolver.hosts = self.hosts(&pod);
        resolver
    }

    /// What a name stands for.
    pub(crate) fn resolve(&self, host: &str) -> Result<Answer, NoSuchHost> {
        let none = || NoSuchHost {
            host: host.to_owned(),
        };
        let network = self.network().ok_or_else(none)?;
        network.resolve(host, &self.resolver())
    }

    /// The targets of an SRV name.
    pub(crate) fn service_records(&self, host: &str) -> Vec<(u16, String)> {
        let network = self.network();
        network.map_or_else(Vec::new, |network| {
            network.service_records(host, &self.resolver())
        })
    }

    /// The whole name of a Service with an external name, and that name.
    pub(crate) fn alias_of(&self, host: &str) -> Option<(String, String)> {
        self.network()?.alias_of(host, &self.resolver())
    }

    /// The names of an address, which is asked for as `4.3.2.1.in-addr.arpa`.
    pub(crate) fn names_of(&self, host: &str) -> Vec<String> {
        self.network()
            .map_or_else(Vec::new, |network| network.names_of(host))
    }

    /// Whether an address is one of the cluster.
    pub(crate) fn is_inside(&self, address: IpAddr) -> bool {
        address.is_loopback() || self.network().is_some_and(|network| network.has(address))
    }

    /// The address that a connection to a host goes to: one of the name's.
    pub(crate) fn target(&self, host: &str) -> Result<IpAddr, DialError> {
        match self.resolve(host)? {
            Answer::Outside(name) => Err(DialError::Outside(name)),
            Answer::Addresses(_, addresses) => {
                let chosen = self.network().map_or(0, |network| network.pick(addresses.len()));
                let chosen = addresses.get(chosen).copied();
                let chosen = chosen.ok_or_else(|| NoSuchHost {
                    host: host.to_owned(),
                })?;
                if self.is_inside(chosen) {
                    Ok(chosen)
                } else {
                    Err(DialError::Outside(chosen.to_string()))
                }
            }
        }
    }

    /// Connects to a port of a host.
    pub(crate) async fn connect(&self, host: &str, port: u16) -> Result<DuplexStream, DialError> {
        let to = SocketAddr::new(self.target(host)?, port);
        Ok(self.connect_to(to).await?)
    }

    /// Connects to an address.
    pub(crate) async fn connect_to(&self, to: SocketAddr) -> Result<DuplexStream, ConnectError> {
        let (Some(own), Some(network)) = (self.address(), self.network()) else {
            return Err(ConnectError::NoRoute(to));
        };
        if !to.ip().is_loopback() {
            return network.connect(own, to).await;
        }
        let pod = self.pod().ok_or(ConnectError::Refused(to))?;
        let (near, far) = tokio::io::duplex(BUFFER_BYTES);
        let connection = Connection {
            from: SocketAddr::new(to.ip(), to.port().wrapping_add(30_000)),
            to,
            stream: far,
        };
        let host = self.host.as_ref().ok_or(ConnectError::Refused(to))?;
        let taken = host.deliver(&pod, to.port(), connection).await;
        taken.map(|()| near).map_err(|_| ConnectError::Refused(to))
    }

    /// The names in `/etc/hosts`.
    fn hosts(&self, pod: &Value) -> Vec<(IpAddr, String)> {
        let mut out = vec![(IpAddr::V4(Ipv4Addr::LOCALHOST), "localhost".to_owned())];
        if let Some(address) = self.address() {
            out.extend(own_names(pod).into_iter().map(|name| (address, name)));
        }
        for alias in list(pod, "spec.hostAliases") {
            let Ok(address) = text(alias, "ip").parse() else {
                continue;
            };
            let names = list(alias, "hostnames").iter().filter_map(Value::as_str);
            out.extend(names.map(|name| (address, name.to_owned())));
        }
        out
    }

    /// The files that a kubelet and a container runtime put into `/etc`.
    pub(crate) fn files(&self) -> Vec<(&'static str, Vec<u8>)> {
        let (Some(pod), Some(_)) = (self.pod(), self.network()) else {
            return Vec::new();
        };
        let hostname = own_names(&pod).pop().unwrap_or_default();
        vec![
            ("/etc/hostname", format!("{hostname}\n").into_bytes()),
            ("/etc/hosts", self.hosts_file(&pod).into_bytes()),
            ("/etc/resolv.conf", self.resolver_file(&pod).into_bytes()),
        ]
    }

    fn hosts_file(&self, pod: &Value) -> String {
        let head = if is_host_network(pod) {
            "# Kubernetes-managed hosts file (host network).\n"
        } else {
            "# Kubernetes-managed hosts file.\n"
        };
        let mut out = format!(
            "{head}127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\nfe00::0\tip6-localnet\n\
             fe00::0\tip6-mcastprefix\nfe00::1\tip6-allnodes\nfe00::2\tip6-allrouters\n"
        );
        if let Some(address) = self.address().filter(|_| !is_host_network(pod)) {
            out.push_str(&format!("{address}\t{}\n", own_names(pod).join("\t")));
        }
        let aliases = list(pod, "spec.hostAliases");
        if !aliases.is_empty() {
            out.push_str("\n# Entries added by HostAliases.\n");
        }
        for alias in aliases {
            let names: Vec<&str> = list(alias, "hostnames")
                .iter()
                .filter_map(Value::as_str)
                .collect();
            out.push_str(&format!("{}\t{}\n", text(alias, "ip"), names.join("\t")));
        }
        out
    }

    fn resolver_file(&self, pod: &Value) -> String {
        let resolver = settings(pod);
        let mut out = String::new();
        if !resolver.search.is_empty() {
            out.push_str(&format!("search {}\n", resolver.search.join(" ")));
        }
        let mut servers: Vec<String> = Vec::new();
        if asks_cluster(pod) {
            servers.push(self.name_server().to_string());
        }
        let more = list(pod, "spec.dnsConfig.nameservers")
            .iter()
            .filter_map(Value::as_str);
        servers.extend(more.map(str::to_owned));
        for server in servers {
            out.push_str(&format!("nameserver {server}\n"));
        }
        let mut options: Vec<String> = list(pod, "spec.dnsConfig.options").iter().map(option).collect();
        if asks_cluster(pod) && !options.iter().any(|option| option.starts_with("ndots")) {
            options.insert(0, format!("ndots:{}", resolver.dots));
        }
        if !options.is_empty() {
            out.push_str(&format!("options {}\n", options.join(" ")));
        }
        out
    }
}

fn option(option: &Value) -> String {
    match text(option, "value") {
        "" => text(option, "name").to_owned(),
        value => format!("{}:{value}", text(option, "name")),
    }
}

/// Whether a pod asks the cluster's DNS.
fn asks_cluster(pod: &Value) -> bool {
    match text(pod, "spec.dnsPolicy") {
        "None" | "Default" => false,
        "ClusterFirstWithHostNet" => true,
        _ => !is_host_network(pod),
    }
}

/// A pod's settings for names, but for its hosts.
fn settings(pod: &Value) -> Resolver {
    let mut resolver = Resolver::default();
    if asks_cluster(pod) {
        resolver = Resolver::of_namespace(pod.namespace());
    }
    // Whatever servers a pod names for itself, only the cluster's can be asked here.
    resolver.asks_cluster |= !list(pod, "spec.dnsConfig.nameservers").is_empty();
    let searches = list(pod, "spec.dnsConfig.searches")
        .iter()
        .filter_map(Value::as_str);
    for search in searches {
        if !resolver.search.iter().any(|known| known == search) {
            resolver.search.push(search.to_owned());
        }
    }
    let dots = list(pod, "spec.dnsConfig.options")
        .iter()
        .find(|option| text(option, "name") == "ndots")
        .and_then(|option| text(option, "value").parse().ok());
    resolver.dots = dots.unwrap_or(if resolver.dots == 0 { 1 } else { resolver.dots });
    resolver
}

/// The names of a pod itself: the whole one if it has a subdomain, and its hostname.
fn own_names(pod: &Value) -> Vec<String> {
    let hostname = at(pod, "spec.hostname")
        .and_then(Value::as_str)
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| pod.name());
    let mut out = Vec::new();
    let subdomain = text(pod, "spec.subdomain");
    if !subdomain.is_empty() {
        out.push(format!("{hostname}.{subdomain}.{}.svc.{DOMAIN}", pod.namespace()));
    }
    out.push(hostname.to_owned());
    out
}
