//! The node on the network: connections to the addresses of its pods, and to its own.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, PoisonError};

use futures::FutureExt as _;
use futures::channel::mpsc;
use futures::future::BoxFuture;
use machinery::meta::ObjectMeta as _;
use network::{Connection, Machine, Network, Untaken, WeakNetwork};
use node_access::dialled;
use shared_json::{Text, Value};
use tokio::net::TcpStream;

use super::super::nic::{Bound, Host};
use super::super::programs::Run;
use super::super::status::{is_host_network, items};
use super::forward::{carry, listens, serve};
use super::{KubeletPort, kubelet_service};

/// The kubelet's own port.
const KUBELET_PORT: u16 = 10_250;

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

    /// The pods of the node's own network, and the pods whose containers have ports of the node, with the containers' port.
    fn behind(&self, number: u16) -> Vec<(Arc<Value>, u16)> {
        let uids: Vec<Box<str>> = self.lock().keys().cloned().collect();
        let mut out = Vec::new();
        for pod in uids.iter().filter_map(|uid| self.pod_of(uid)) {
            if is_host_network(&pod) {
                out.push((pod, number));
            } else if let Some(target) = host_port(&pod, number) {
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
        let own = self
            .place()
            .and_then(|place| place.address.parse::<IpAddr>().ok());
        if own != Some(address) {
            let pod = self.pod_at(address).ok_or(Untaken::NoRoute)?;
            return self.delivered(&pod, number, connection).await;
        }
        if number == KUBELET_PORT {
            tokio::spawn(kubelet_service::serve(self.clone(), connection.stream));
            return Ok(());
        }
        for (pod, target) in self.behind(number) {
            let key = (pod.meta_text("uid"), target);
            let is_bound = self.lock_bound().contains_key(&key);
            let is_elsewhere = matches!(dialled(&pod, target), Ok(Some(_)));
            if is_bound || is_elsewhere || self.listener(&pod, target).is_some() {
                return self.delivered(&pod, target, connection).await;
            }
        }
        Err(Untaken::Refused)
    }

    /// Whether an address of the node's network is a pod's own.
    pub(super) fn own_address(pod: &Value, address: &str) -> Option<Ipv4Addr> {
        (!is_host_network(pod)).then(|| address.parse().ok()).flatten()
    }
}

/// The container's port behind a port of the node.
fn host_port(pod: &Value, number: u16) -> Option<u16> {
    let ports = items(pod, "containers")
        .iter()
        .filter_map(|spec| spec.get("ports").and_then(Value::as_array))
        .flatten();
    let mut ports = ports.filter(|port| {
        port.get("protocol")
            .and_then(Value::as_str)
            .is_none_or(|name| name == "TCP")
    });
    let found = ports.find(|port| port.get("hostPort").and_then(Value::as_u64) == Some(u64::from(number)))?;
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
        Some(Bound::new(connections, move || {
            port.lock_bound().remove(&key);
        }))
    }

    fn deliver<'a>(
        &'a self,
        pod: &'a Arc<Value>,
        number: u16,
        connection: Connection,
    ) -> BoxFuture<'a, Result<(), Untaken>> {
        self.delivered(pod, number, connection).boxed()
    }
}

impl Machine for KubeletPort {
    fn pod(&self, address: IpAddr) -> Option<Arc<Value>> {
        self.pod_at(address)
    }

    fn accept(&self, connection: Connection) -> BoxFuture<'_, Result<(), Untaken>> {
        self.take(connection).boxed()
    }
}
