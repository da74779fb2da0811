//! The node on the network: connections to the addresses of its pods, and to its own.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, PoisonError};

use futures::FutureExt as _;
use futures::channel::mpsc;
use futures::future::BoxFuture;
use machinery::meta::ObjectMeta as _;
use network::{Connection, Datagram, Machine, Network, Protocol, Untaken, WeakNetwork};
use node_access::dialled;
use shared_json::{Text, Value};
use tokio::net::TcpStream;

use super::super::nic::{Bound, BoundDatagrams, Hold, Host};
use super::super::programs::Run;
use super::super::status::{is_host_network, items};
use super::forward::{carry, listens, serve};
use super::{KubeletPort, kubelet_service};

/// The kubelet's own port.
const KUBELET_PORT: u16 = 10_250;

/// How many datagrams wait for a program. More are lost.
const DATAGRAMS_MAX: usize = 512;

/// The place of a node on the network.
#[derive(Clone)]
pub(crate) struct NodePlace {
    pub network: WeakNetwork,
    pub address: String,
}

impl KubeletPort {
    /// Whether a program of the pod listens on a port by itself.
    pub(crate) fn is_bound(&self, uid: &Text, number: u16) -> bool {
        self.lock_bound().contains_key(&(uid.clone(), number))
    }

    fn pod_at(&self, address: IpAddr) -> Option<Arc<Value>> {
        let IpAddr::V4(address) = address else { return None };
        let uid = self.lock_addresses().get(&address).cloned()?;
        self.pod_of(&uid)
    }

    /// The pods of the node's own network, and the pods whose containers have a port of the node at this address, with the containers'
    /// port.
    fn behind(&self, protocol: Protocol, at: SocketAddr) -> Vec<(Arc<Value>, u16)> {
        let uids: Vec<Box<str>> = self.lock().keys().cloned().collect();
        let mut out = Vec::new();
        for pod in uids.iter().filter_map(|uid| self.pod_of(uid)) {
            if is_host_network(&pod) {
                out.push((pod, at.port()));
            } else if let Some(target) = host_port(&pod, protocol, at) {
                out.push((pod, target));
            }
        }
        out
    }

    async fn delivered(
        &self,
        pod: &Arc<Value>,
        number: u16,
        mut connection: Connection,
    ) -> Result<(), Untaken> {
        let key = (pod.meta_text("uid"), number);
        if let Some(sender) = self.lock_bound().get(&key) {
            match sender.unbounded_send(connection) {
                Ok(()) => return Ok(()),
                Err(refused) => connection = refused.into_inner(),
            }
        }
        // An annotation that cannot be read leads nowhere.
        if let Some((host, port)) = dialled(pod, number).map_err(|_| Untaken::Refused)? {
            let other = TcpStream::connect((host.as_str(), port)).await;
            let other = other.map_err(|_| Untaken::Refused)?;
            tokio::spawn(async move { carry(other, connection.stream).await });
            return Ok(());
        }
        let (run, who) = self.listener(pod, number).ok_or(Untaken::Refused)?;
        tokio::spawn(serve(run, who, connection.stream));
        Ok(())
    }

    /// The program without a listener of its own that answers on a port, and its name.
    pub(super) fn listener(&self, pod: &Value, number: u16) -> Option<(Arc<Run>, String)> {
        items(pod, "containers").iter().find_map(|spec| {
            let name = spec.get("name").and_then(Value::as_str)?;
            let (run, _) = self.running(pod, name).ok()?;
            let who = || format!("pod: {}/{}\ncontainer: {name}\n", pod.namespace(), pod.name());
            listens(&run, spec, number).then(|| (run, who()))
        })
    }

    async fn take(&self, connection: Connection) -> Result<(), Untaken> {
        let (address, number) = (connection.to.ip(), connection.to.port());
        if !self.is_own(address) {
            let pod = self.pod_at(address).ok_or(Untaken::NoRoute)?;
            return self.delivered(&pod, number, connection).await;
        }
        self.taken_by_node(connection).await
    }

    /// Whether an address is the node's, and no pod's.
    fn is_own(&self, address: IpAddr) -> bool {
        let own = self
            .place()
            .and_then(|place| place.address.parse::<IpAddr>().ok());
        own == Some(address)
    }

    /// Gives a connection to an address of the node to what listens there.
    async fn taken_by_node(&self, connection: Connection) -> Result<(), Untaken> {
        if connection.to.port() == KUBELET_PORT {
            tokio::spawn(kubelet_service::serve(self.clone(), connection.stream));
            return Ok(());
        }
        for (pod, target) in self.behind(Protocol::Tcp, connection.to) {
            let key = (pod.meta_text("uid"), target);
            let is_bound = self.lock_bound().contains_key(&key);
            let is_elsewhere = matches!(dialled(&pod, target), Ok(Some(_)));
            if is_bound || is_elsewhere || self.listener(&pod, target).is_some() {
                return self.delivered(&pod, target, connection).await;
            }
        }
        Err(Untaken::Refused)
    }

    /// Gives a datagram to the program that receives those of a pod's port. It is lost if too many wait there.
    fn received(&self, pod: &Value, number: u16, datagram: Datagram) -> Result<(), Untaken> {
        let key = (pod.meta_text("uid"), number);
        let mut sockets = self.lock_sockets();
        let sender = sockets.get_mut(&key).ok_or(Untaken::Refused)?;
        match sender.try_send(datagram) {
            Err(error) if !error.is_full() => Err(Untaken::Refused),
            _ => Ok(()),
        }
    }

    /// Gives a datagram to an address of the node to what receives it there.
    fn received_by_node(&self, mut datagram: Datagram) -> Result<(), Untaken> {
        for (pod, target) in self.behind(Protocol::Udp, datagram.to) {
            if !self.lock_sockets().contains_key(&(pod.meta_text("uid"), target)) {
                continue;
            }
            let own = self.address_of(pod.uid()).filter(|_| !is_host_network(&pod));
            if let (Some(own), Some(network)) = (own, self.network()) {
                // A pod sees the node's address where it would see the node's loopback.
                if datagram.from.ip().is_loopback()
                    && let Some(node) = self.place().and_then(|place| place.address.parse().ok())
                {
                    datagram.from.set_ip(node);
                }
                network.passed_on(datagram.from, datagram.to, SocketAddr::new(own, target));
            }
            return self.received(&pod, target, datagram);
        }
        Err(Untaken::Refused)
    }

    /// Whether an address of the node's network is a pod's own.
    pub(super) fn own_address(pod: &Value, address: &str) -> Option<Ipv4Addr> {
        (!is_host_network(pod)).then(|| address.parse().ok()).flatten()
    }
}

/// The container's port behind a port of the node at this address.
fn host_port(pod: &Value, protocol: Protocol, at: SocketAddr) -> Option<u16> {
    let ports = items(pod, "containers")
        .iter()
        .filter_map(|spec| spec.get("ports").and_then(Value::as_array))
        .flatten();
    let of_protocol = |port: &Value| {
        let name = port.get("protocol").and_then(Value::as_str);
        name.unwrap_or("TCP") == protocol.name()
    };
    // Without an address, or with the unspecified one, a port is at all addresses of the node.
    let is_here = |port: &Value| match port.get("hostIP").and_then(Value::as_str) {
        None | Some("") => true,
        Some(address) => address
            .parse::<IpAddr>()
            .is_ok_and(|address| address.is_unspecified() || address == at.ip()),
    };
    let mut ports = ports.filter(|port| of_protocol(port) && is_here(port));
    let number = u64::from(at.port());
    let found = ports.find(|port| port.get("hostPort").and_then(Value::as_u64) == Some(number))?;
    u16::try_from(found.get("containerPort")?.as_u64()?).ok()
}

impl Host for KubeletPort {
    fn network(&self) -> Option<Network> {
        self.place()?.network.upgrade()
    }

    fn address_of(&self, uid: &str) -> Option<IpAddr> {
        let own = self.lock().get(uid)?.address;
        match own {
            Some(address) => Some(IpAddr::V4(address)),
            None => self.place()?.address.parse().ok(),
        }
    }

    fn pod_of(&self, uid: &str) -> Option<Arc<Value>> {
        let known = self.0.mailboxes.get()?;
        let known = known.lock().unwrap_or_else(PoisonError::into_inner);
        known
            .get(uid)
            .map(|mailbox| mailbox.look(|mail| Arc::clone(&mail.pod)))
    }

    fn bind(&self, uid: &Text, number: u16) -> Option<Bound> {
        let key = (uid.clone(), number);
        let mut bound = self.lock_bound();
        if bound.contains_key(&key) {
            return None;
        }
        let (sender, connections) = mpsc::unbounded();
        bound.insert(key.clone(), sender);
        let port = self.clone();
        let hold = Hold::new(move || _ = port.lock_bound().remove(&key));
        Some(Bound::new(connections, hold))
    }

    fn bind_datagrams(&self, uid: &Text, number: u16) -> Option<BoundDatagrams> {
        let key = (uid.clone(), number);
        let mut sockets = self.lock_sockets();
        if sockets.contains_key(&key) {
            return None;
        }
        let (sender, datagrams) = mpsc::channel(DATAGRAMS_MAX);
        sockets.insert(key.clone(), sender);
        let port = self.clone();
        let hold = Hold::new(move || _ = port.lock_sockets().remove(&key));
        Some(BoundDatagrams::new(datagrams, hold))
    }

    fn deliver<'a>(
        &'a self,
        pod: &'a Arc<Value>,
        number: u16,
        connection: Connection,
    ) -> BoxFuture<'a, Result<(), Untaken>> {
        // The node's loopback is that of all pods on its network.
        if is_host_network(pod) {
            return self.taken_by_node(connection).boxed();
        }
        self.delivered(pod, number, connection).boxed()
    }

    fn deliver_datagram(&self, pod: &Arc<Value>, datagram: Datagram) -> Result<(), Untaken> {
        if is_host_network(pod) {
            return self.received_by_node(datagram);
        }
        self.received(pod, datagram.to.port(), datagram)
    }
}

impl Machine for KubeletPort {
    fn pod(&self, address: IpAddr) -> Option<Arc<Value>> {
        self.pod_at(address)
    }

    fn accept(&self, connection: Connection) -> BoxFuture<'_, Result<(), Untaken>> {
        self.take(connection).boxed()
    }

    fn receive(&self, datagram: Datagram) -> Result<(), Untaken> {
        let address = datagram.to.ip();
        if self.is_own(address) {
            return self.received_by_node(datagram);
        }
        let pod = self.pod_at(address).ok_or(Untaken::NoRoute)?;
        self.received(&pod, datagram.to.port(), datagram)
    }
}
