//! The network itself: which machine has an address, and the way of a connection to it.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use client_kit::{Random, Seed};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use shared_json::Value;
use tokio::io::DuplexStream;
use tokio::time::Instant;

use crate::faults::{End, Faults};
use crate::flows::Flows;
use crate::machine::{ConnectError, Connection, Datagram, Machine, Protocol, Untaken};
use crate::names::{Answer, NoSuchHost, Resolver, names_of};
use crate::policy::Policies;
use crate::services::{Route, Services, Variables};

/// The address from which the API server calls.
pub const API_SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 99, 0, 1));
/// The address of the API server behind the Service `default/kubernetes`.
pub const API_SERVER_ENDPOINT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 99, 0, 2)), 6443);
/// How many bytes of a connection wait for their reader, in each direction.
const BUFFER_BYTES: usize = 64 << 10;
/// For how long Linux tries to connect to an address that does not answer (`tcp_syn_retries` 6).
const CONNECT_PATIENCE: Duration = Duration::from_secs(127);
/// The ports of callers (`ip_local_port_range`).
const CALLER_PORTS: (u32, u32) = (32_768, 28_232);

/// The kinds of objects that the network follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `v1` Service.
    Service,
    /// `discovery.k8s.io/v1` EndpointSlice.
    EndpointSlice,
    /// `networking.k8s.io/v1` NetworkPolicy.
    NetworkPolicy,
    /// `v1` Namespace.
    Namespace,
}

/// The network of a cluster. Clones are the same network.
#[derive(Clone)]
pub struct Network(Arc<Inner>);

/// A network as its own machines know it: it goes with its last other user.
#[derive(Clone)]
pub struct WeakNetwork(Weak<Inner>);

impl WeakNetwork {
    /// The network, if it is still there.
    #[must_use]
    pub fn upgrade(&self) -> Option<Network> {
        self.0.upgrade().map(Network)
    }
}

struct Inner {
    machines: Mutex<Machines>,
    services: Mutex<Services>,
    policies: Mutex<Policies>,
    flows: Mutex<Flows>,
    random: Mutex<Random>,
    faults: Faults,
    callers: AtomicU32,
}

#[derive(Default)]
struct Machines {
    /// By the first three numbers of its pods' addresses.
    by_pods: BTreeMap<[u8; 3], Arc<Attached>>,
    by_address: BTreeMap<IpAddr, Arc<Attached>>,
}

struct Attached {
    name: String,
    machine: Arc<dyn Machine>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Network {
    /// A network without machines. Among equal endpoints `seed` chooses.
    #[must_use]
    pub fn new(seed: Seed) -> Self {
        let seed = seed.fork("network");
        Self(Arc::new(Inner {
            machines: Mutex::default(),
            services: Mutex::default(),
            policies: Mutex::default(),
            flows: Mutex::default(),
            random: Mutex::new(seed.fork("endpoints").random()),
            faults: Faults::new(seed),
            callers: AtomicU32::new(0),
        }))
    }

    /// The same for its machines, which it holds.
    #[must_use]
    pub fn downgrade(&self) -> WeakNetwork {
        WeakNetwork(Arc::downgrade(&self.0))
    }

    /// Adds a machine: its name, its own address, and the first three numbers of its pods' addresses (nothing if it has none). Addresses
    /// that cannot be read are left out.
    pub fn attach(&self, name: &str, address: &str, pods: &str, machine: Arc<dyn Machine>) {
        let attached = Arc::new(Attached {
            name: name.to_owned(),
            machine,
        });
        let mut machines = lock(&self.0.machines);
        if let Ok(address) = address.parse() {
            machines.by_address.insert(address, Arc::clone(&attached));
        }
        if let Ok(first) = format!("{pods}.0").parse::<Ipv4Addr>() {
            let [a, b, c, _] = first.octets();
            machines.by_pods.insert([a, b, c], attached);
        }
    }

    /// Removes a machine without pods, by its address.
    pub fn detach(&self, address: IpAddr) {
        lock(&self.0.machines).by_address.remove(&address);
    }

    /// The faults of connections that a test adds.
    #[must_use]
    pub fn faults(&self) -> &Faults {
        &self.0.faults
    }

    /// Takes note of an object, as it is now.
    pub fn present(&self, kind: Kind, object: &Arc<Value>) {
        match kind {
            Kind::Service => lock(&self.0.services).set_service(object),
            Kind::EndpointSlice => lock(&self.0.services).set_slice(Arc::clone(object)),
            Kind::NetworkPolicy => lock(&self.0.policies).set(object),
            Kind::Namespace => lock(&self.0.policies).set_namespace(object),
        }
    }

    /// Takes note that an object is gone.
    pub fn gone(&self, kind: Kind, object: &Value) {
        match kind {
            Kind::Service => lock(&self.0.services).remove_service(object),
            Kind::EndpointSlice => lock(&self.0.services).remove_slice(object),
            Kind::NetworkPolicy => lock(&self.0.policies).remove(object),
            Kind::Namespace => lock(&self.0.policies).remove_namespace(object),
        }
    }

    /// Looks a name up as a program with these settings does.
    ///
    /// # Errors
    /// If the cluster's DNS does not know it.
    pub fn resolve(&self, host: &str, resolver: &Resolver) -> Result<Answer, NoSuchHost> {
        let services = lock(&self.0.services);
        let policies = lock(&self.0.policies);
        resolver.resolve(host, &services, &|name| policies.has_namespace(name))
    }

    /// The targets of an SRV name, each as port and name.
    #[must_use]
    pub fn service_records(&self, host: &str, resolver: &Resolver) -> Vec<(u16, String)> {
        resolver.service_records(host, &lock(&self.0.services))
    }

    /// The whole name of a Service with an external name, and that name; asked for as a program with these settings does.
    #[must_use]
    pub fn alias_of(&self, host: &str, resolver: &Resolver) -> Option<(String, String)> {
        resolver.alias_of(host, &lock(&self.0.services))
    }

    /// The names of an address, which is asked for as `4.3.2.1.in-addr.arpa`.
    #[must_use]
    pub fn names_of(&self, host: &str) -> Vec<String> {
        names_of(host, &lock(&self.0.services))
    }

    /// One of so many equal choices.
    #[must_use]
    pub fn pick(&self, count: usize) -> usize {
        if count < 2 {
            return 0;
        }
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        usize::try_from(lock(&self.0.random).below(count)).unwrap_or_default()
    }

    /// The address of the cluster's DNS server.
    #[must_use]
    pub fn name_server(&self) -> IpAddr {
        lock(&self.0.services).name_server()
    }

    /// The variables that tell the programs of a namespace of its Services (if they are to), and of the API server's.
    #[must_use]
    pub fn service_variables(&self, namespace: &str, of_namespace: bool) -> Variables {
        lock(&self.0.services).variables(namespace, of_namespace)
    }

    /// Whether a machine here has the address, or a Service.
    #[must_use]
    pub fn has(&self, address: IpAddr) -> bool {
        self.machine(address).is_some() || lock(&self.0.services).has_address(address)
    }

    fn machine(&self, address: IpAddr) -> Option<Arc<Attached>> {
        let machines = lock(&self.0.machines);
        if let Some(attached) = machines.by_address.get(&address) {
            return Some(Arc::clone(attached));
        }
        let IpAddr::V4(four) = address else { return None };
        let [a, b, c, _] = four.octets();
        machines.by_pods.get(&[a, b, c]).cloned()
    }

    /// The pod and the node at an address.
    fn end(&self, address: IpAddr) -> End {
        let attached = self.machine(address);
        End {
            address,
            pod: attached.as_ref().and_then(|at| at.machine.pod(address)),
            node: attached.map(|at| at.name.clone()),
        }
    }

    /// Connects an address to another one. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// If nothing answers there.
    #[must_use]
    pub fn connect(&self, from: IpAddr, to: SocketAddr) -> BoxFuture<'_, Result<DuplexStream, ConnectError>> {
        self.connected(from, to).boxed()
    }

    async fn connected(&self, from: IpAddr, to: SocketAddr) -> Result<DuplexStream, ConnectError> {
        let target = match self.route(from, Protocol::Tcp, to) {
            Route::To(target) => target,
            Route::Direct => to,
            Route::Nowhere => return Err(ConnectError::Refused(to)),
            Route::Lost => return lost(to).await,
        };
        match self.passes(from, Protocol::Tcp, target, false).await {
            Passage::Free => {}
            Passage::Refused => return Err(ConnectError::Refused(to)),
            Passage::Lost => return lost(to).await,
        }
        let Some(attached) = self.machine(target.ip()) else {
            return Err(ConnectError::NoRoute(to));
        };
        let (near, far) = tokio::io::duplex(BUFFER_BYTES);
        let connection = Connection {
            from: SocketAddr::new(from, self.caller_port()),
            to: target,
            stream: far,
        };
        match attached.machine.accept(connection).await {
            Ok(()) => Ok(near),
            Err(Untaken::Refused) => Err(ConnectError::Refused(to)),
            Err(Untaken::NoRoute) => Err(ConnectError::NoRoute(to)),
        }
    }

    /// A port for a caller.
    #[must_use]
    pub fn caller_port(&self) -> u16 {
        let number = self.0.callers.fetch_add(1, Ordering::Relaxed) % CALLER_PORTS.1;
        u16::try_from(CALLER_PORTS.0 + number).unwrap_or(u16::MAX)
    }

    /// Sends a datagram. One that is lost is sent as well. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// If the network answers that nothing listens there, as by ICMP.
    #[must_use]
    pub fn send(
        &self,
        from: SocketAddr,
        to: SocketAddr,
        payload: Bytes,
    ) -> BoxFuture<'_, Result<(), Untaken>> {
        self.sent(from, to, payload).boxed()
    }

    async fn sent(&self, from: SocketAddr, to: SocketAddr, payload: Bytes) -> Result<(), Untaken> {
        let now = Instant::now();
        // An answer comes from the address that was asked, which may be a Service's.
        let asked = lock(&self.0.flows).answered(from, to, now);
        let known = lock(&self.0.flows).endpoint(from, to, now);
        let target = match known.filter(|endpoint| self.machine(endpoint.ip()).is_some()) {
            Some(endpoint) => endpoint,
            None => match self.route(from.ip(), Protocol::Udp, to) {
                Route::To(target) => target,
                Route::Direct => to,
                Route::Nowhere => return Err(Untaken::Refused),
                Route::Lost => return Ok(()),
            },
        };
        match self
            .passes(from.ip(), Protocol::Udp, target, asked.is_some())
            .await
        {
            Passage::Free => {}
            Passage::Refused => return Err(Untaken::Refused),
            Passage::Lost => return Ok(()),
        }
        if asked.is_none() {
            lock(&self.0.flows).sent(from, to, target, now);
        }
        let attached = self.machine(target.ip()).ok_or(Untaken::NoRoute)?;
        attached.machine.receive(Datagram {
            from: asked.unwrap_or(from),
            to: target,
            payload,
        })
    }

    /// Takes note that a machine has passed a datagram on to another address of its own: the answer comes from the one that was asked.
    pub fn passed_on(&self, sender: SocketAddr, to: SocketAddr, endpoint: SocketAddr) {
        lock(&self.0.flows).sent(sender, to, endpoint, Instant::now());
    }

    /// Waits as long as faults say, and says whether faults and policies let something through to a port. Policies let answers through.
    async fn passes(&self, from: IpAddr, protocol: Protocol, target: SocketAddr, is_answer: bool) -> Passage {
        if self.0.faults.is_idle() && lock(&self.0.policies).is_empty() {
            return Passage::Free;
        }
        let (caller, called) = (self.end(from), self.end(target.ip()));
        let fate = self.0.faults.fate(&caller, &called, target.port());
        tokio::time::sleep(fate.delay).await;
        if fate.refuses {
            return Passage::Refused;
        }
        let port = (protocol, target.port());
        let is_allowed = is_answer || lock(&self.0.policies).allow(&caller, &called, port);
        if fate.drops || !is_allowed {
            return Passage::Lost;
        }
        Passage::Free
    }

    fn route(&self, from: IpAddr, protocol: Protocol, to: SocketAddr) -> Route {
        let machine = |address| self.machine(address);
        let node_of = |address| machine(address).map(|attached| attached.name.clone());
        // Pods have addresses of their own: only a node's address can have node ports.
        let is_node = lock(&self.0.machines).by_address.contains_key(&to.ip());
        let mut services = lock(&self.0.services);
        if !is_node && !services.has_address(to.ip()) {
            return Route::Direct;
        }
        let entry = if is_node { node_of(to.ip()) } else { None };
        let caller = node_of(from);
        let mut random = lock(&self.0.random);
        services.route(
            (from, caller.as_deref()),
            (protocol, to),
            entry.as_deref(),
            Instant::now(),
            &mut random,
        )
    }
}

/// What faults and policies let through.
enum Passage {
    Free,
    Refused,
    Lost,
}

/// The end of a connection to an address that does not answer.
async fn lost(to: SocketAddr) -> Result<DuplexStream, ConnectError> {
    tokio::time::sleep(CONNECT_PATIENCE).await;
    Err(ConnectError::TimedOut(to))
}
