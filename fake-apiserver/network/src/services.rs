//! Services and their endpoints: which endpoint an address of a Service stands for. [`objects`] reads them.

mod objects;

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use client_kit::Random;
use machinery::meta::ObjectMeta as _;
use shared_json::Value;
use tokio::time::Instant;

use crate::machine::Protocol;

pub(crate) use objects::{Endpoint, Port, Service, Slice};

/// The label of a slice that names its Service.
const SERVICE_NAME: &str = "kubernetes.io/service-name";
/// The address of the cluster's DNS server, unless a Service `kube-dns` has another one.
const NAME_SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 96, 0, 10));
/// How many choices of clients are remembered.
const REMEMBERED_MAX: usize = 10_000;

/// Variables by name, shared by those who have the same.
pub type Variables = Arc<BTreeMap<String, String>>;

/// Namespace and name.
pub(crate) type Key = (String, String);

/// Where a connection goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Route {
    /// The address is no Service's.
    Direct,
    /// To an endpoint.
    To(SocketAddr),
    /// The Service has no endpoint, or not this port.
    Nowhere,
    /// A traffic policy keeps it to a node without endpoints.
    Lost,
}

/// A slice as it was told, and as it was read when it was first needed: slices change more often than connections are made.
#[derive(Debug)]
struct Listed {
    service: Key,
    object: Arc<Value>,
    read: OnceCell<Slice>,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Services {
    services: BTreeMap<Key, Service>,
    slices: BTreeMap<Key, Listed>,
    /// The slices of each Service.
    of_service: BTreeSet<(Key, Key)>,
    addresses: BTreeSet<(IpAddr, Key)>,
    node_ports: BTreeMap<(String, u16), Key>,
    /// The endpoints of clients that stay with one, and when each was last asked.
    remembered: BTreeMap<(Key, Protocol, u16, IpAddr), (SocketAddr, Instant)>,
    /// The variables that were asked for since the last change, by namespace and by whether they are of its Services.
    variables: BTreeMap<(String, bool), Variables>,
}

fn key_of(object: &Value) -> Key {
    (object.namespace().to_owned(), object.name().to_owned())
}

impl Services {
    pub(crate) fn set_service(&mut self, object: &Value) {
        self.remove_service(object);
        self.variables.clear();
        let (key, service) = (key_of(object), Service::read(object));
        for address in service.cluster.iter().chain(&service.external) {
            self.addresses.insert((*address, key.clone()));
        }
        for port in service.ports.iter().filter(|port| port.node_port != 0) {
            let place = (port.protocol.clone(), port.node_port);
            self.node_ports.insert(place, key.clone());
        }
        self.services.insert(key, service);
    }

    pub(crate) fn remove_service(&mut self, object: &Value) {
        let key = key_of(object);
        if self.services.remove(&key).is_some() {
            self.variables.clear();
            self.addresses.retain(|(_, other)| *other != key);
            self.node_ports.retain(|_, other| *other != key);
        }
    }

    pub(crate) fn set_slice(&mut self, object: Arc<Value>) {
        self.remove_slice(&object);
        let labels = object.metadata().and_then(|meta| meta.get("labels"));
        let service = labels
            .and_then(|labels| labels.get(SERVICE_NAME))
            .and_then(Value::as_str);
        let service = (
            object.namespace().to_owned(),
            service.unwrap_or_default().to_owned(),
        );
        let key = key_of(&object);
        self.of_service.insert((service.clone(), key.clone()));
        let listed = Listed {
            service,
            object,
            read: OnceCell::new(),
        };
        self.slices.insert(key, listed);
    }

    pub(crate) fn remove_slice(&mut self, object: &Value) {
        let key = key_of(object);
        if let Some(old) = self.slices.remove(&key) {
            self.of_service.remove(&(old.service, key));
        }
    }

    pub(crate) fn service(&self, namespace: &str, name: &str) -> Option<&Service> {
        self.services.get(&(namespace.to_owned(), name.to_owned()))
    }

    /// The slices of a Service, by name.
    pub(crate) fn slices<'a>(&'a self, service: &'a Key) -> impl Iterator<Item = &'a Slice> {
        let from = (service.clone(), Key::default());
        let known = self.of_service.range(from..);
        known
            .take_while(move |(of, _)| of == service)
            .filter_map(|(_, slice)| self.slices.get(slice))
            .map(|listed| listed.read.get_or_init(|| Slice::read(&listed.object)))
    }

    pub(crate) fn has_address(&self, address: IpAddr) -> bool {
        self.keys_at(address).next().is_some()
    }

    /// The ready endpoints that have an address, with their Services.
    pub(crate) fn endpoints_at(&self, address: IpAddr) -> impl Iterator<Item = (&Key, &Endpoint)> {
        let read = self.slices.values().map(|listed| {
            (
                &listed.service,
                listed.read.get_or_init(|| Slice::read(&listed.object)),
            )
        });
        read.flat_map(|(service, slice)| slice.endpoints.iter().map(move |endpoint| (service, endpoint)))
            .filter(move |(_, endpoint)| endpoint.ready && endpoint.addresses.contains(&address))
    }

    pub(crate) fn keys_at(&self, address: IpAddr) -> impl Iterator<Item = &Key> {
        let from = (address, Key::default());
        let known = self.addresses.range(from..);
        known
            .take_while(move |(at, _)| *at == address)
            .map(|(_, key)| key)
    }

    pub(crate) fn name_server(&self) -> IpAddr {
        let known = self.service("kube-system", "kube-dns");
        known
            .and_then(|service| service.cluster.first().copied())
            .unwrap_or(NAME_SERVER)
    }

    /// The variables of `docker run --link`, as a kubelet makes them of Services with an address.
    pub(crate) fn variables(&mut self, namespace: &str, of_namespace: bool) -> Variables {
        let place = (namespace.to_owned(), of_namespace);
        if let Some(known) = self.variables.get(&place) {
            return Arc::clone(known);
        }
        let made = Arc::new(self.linked(namespace, of_namespace));
        self.variables.insert(place, Arc::clone(&made));
        made
    }

    fn linked(&self, namespace: &str, of_namespace: bool) -> BTreeMap<String, String> {
        let mut out = BTreeMap::new();
        let api = ("default".to_owned(), "kubernetes".to_owned());
        let own = self
            .services
            .iter()
            .filter(|((of, _), _)| of_namespace && of == namespace);
        let api = self.services.get_key_value(&api);
        for ((_, name), service) in own.chain(api) {
            let (Some(address), Some(first)) = (service.cluster.first(), service.ports.first()) else {
                continue;
            };
            let name = name.to_uppercase().replace('-', "_");
            let host = match address {
                IpAddr::V4(four) => four.to_string(),
                IpAddr::V6(six) => format!("[{six}]"),
            };
            let mut put =
                |variable: String, value: String| _ = out.insert(format!("{name}_{variable}"), value);
            put("SERVICE_HOST".to_owned(), address.to_string());
            put("SERVICE_PORT".to_owned(), first.port.to_string());
            for port in service.ports.iter().filter(|port| !port.name.is_empty()) {
                let of = port.name.to_uppercase().replace('-', "_");
                put(format!("SERVICE_PORT_{of}"), port.port.to_string());
            }
            let url = |port: &Port| format!("{}://{host}:{}", port.protocol.to_lowercase(), port.port);
            put("PORT".to_owned(), url(first));
            for port in &service.ports {
                let prefix = format!("PORT_{}_{}", port.port, port.protocol);
                put(prefix.clone(), url(port));
                put(format!("{prefix}_PROTO"), port.protocol.to_lowercase());
                put(format!("{prefix}_PORT"), port.port.to_string());
                put(format!("{prefix}_ADDR"), address.to_string());
            }
        }
        out
    }

    /// The Service at an address, its port, and whether that is an address for callers outside of the cluster.
    fn at(&self, protocol: Protocol, to: SocketAddr, is_node: bool) -> Option<(&Key, &Port, bool)> {
        let is_of_protocol = |port: &&Port| port.protocol == protocol.name();
        if is_node {
            let key = self.node_ports.get(&(protocol.name().to_owned(), to.port()))?;
            let mut ports = self.services.get(key)?.ports.iter().filter(is_of_protocol);
            return Some((key, ports.find(|port| port.node_port == to.port())?, true));
        }
        self.keys_at(to.ip()).find_map(|key| {
            let service = self.services.get(key)?;
            let mut ports = service.ports.iter().filter(is_of_protocol);
            let port = ports.find(|port| port.port == to.port())?;
            Some((key, port, !service.cluster.contains(&to.ip())))
        })
    }

    /// The endpoint that a connection or a datagram goes to: from an address on a node, to an address, which may be that of the node
    /// `entry`.
    pub(crate) fn route(
        &mut self,
        (from, caller): (IpAddr, Option<&str>),
        (protocol, to): (Protocol, SocketAddr),
        entry: Option<&str>,
        now: Instant,
        random: &mut Random,
    ) -> Route {
        let Some((key, port, is_external)) = self.at(protocol, to, entry.is_some()) else {
            return if entry.is_some() {
                Route::Direct
            } else {
                Route::Nowhere
            };
        };
        let Some(service) = self.services.get(key) else {
            return Route::Nowhere;
        };
        let is_local = if is_external {
            service.external_local
        } else {
            service.internal_local
        };
        // Callers inside of the cluster reach all endpoints by an external address, but for a node's own.
        let node = match (is_local, is_external, entry) {
            (false, ..) => None,
            (true, true, Some(entry)) => Some(entry),
            (true, true, None) => None,
            (true, false, _) => Some(caller.unwrap_or_default()),
        };
        let found = self.candidates(key, port, node);
        if found.is_empty() {
            return if node.is_some() {
                Route::Lost
            } else {
                Route::Nowhere
            };
        }
        let affinity = service.affinity;
        let place = (key.clone(), protocol, port.port, from);
        if let Some(life) = affinity
            && let Some((kept, since)) = self.remembered.get_mut(&place)
            && now.duration_since(*since) <= life
            && found.contains(kept)
        {
            *since = now;
            return Route::To(*kept);
        }
        let count = u64::try_from(found.len()).unwrap_or(u64::MAX);
        let index = usize::try_from(random.below(count)).unwrap_or_default();
        let Some(chosen) = found.get(index).copied() else {
            return Route::Nowhere;
        };
        if affinity.is_some() {
            if self.remembered.len() >= REMEMBERED_MAX {
                self.remembered.clear();
            }
            self.remembered.insert(place, (chosen, now));
        }
        Route::To(chosen)
    }

    /// The endpoints of a port: those that are ready, or else those that end and still serve; on one node, if one is given.
    fn candidates(&self, key: &Key, port: &Port, node: Option<&str>) -> Vec<SocketAddr> {
        let of = |wanted: fn(&Endpoint) -> bool| -> Vec<SocketAddr> {
            let mut out = Vec::new();
            for slice in self.slices(key) {
                let named = slice
                    .ports
                    .iter()
                    .find(|(name, protocol, _)| *name == port.name && *protocol == port.protocol);
                let Some((_, _, number)) = named else { continue };
                let endpoints = slice
                    .endpoints
                    .iter()
                    .filter(|endpoint| wanted(endpoint) && node.is_none_or(|node| node == endpoint.node));
                let first = endpoints.filter_map(|endpoint| endpoint.addresses.first());
                out.extend(first.map(|address| SocketAddr::new(*address, *number)));
            }
            out
        };
        let ready = of(|endpoint| endpoint.ready);
        if ready.is_empty() {
            of(|endpoint| endpoint.serving)
        } else {
            ready
        }
    }
}

#[cfg(test)]
#[path = "services_tests.rs"]
mod tests;
