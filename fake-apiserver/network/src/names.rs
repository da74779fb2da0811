//! The cluster's DNS: names of Services, of pods behind them, and of pods by their address.

use std::net::IpAddr;

use thiserror::Error;

use crate::services::{Endpoint, Key, Service, Services};

/// The cluster's domain.
const DOMAIN: &str = "cluster.local";
/// The domain of addresses, whose parts stand in it in reverse.
const REVERSED: &str = ".in-addr.arpa";
/// How many names of `ExternalName` Services are followed.
const ALIASES_MAX: usize = 8;

/// Domains of the world, besides those of countries.
const DOMAINS: [&str; 16] = [
    "app", "biz", "cloud", "com", "dev", "edu", "gov", "info", "int", "mil", "net", "org", "page", "run",
    "tech", "xyz",
];

/// How a program looks names up: `/etc/hosts` and `/etc/resolv.conf`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resolver {
    /// The names in `/etc/hosts`, with their addresses.
    pub hosts: Vec<(IpAddr, String)>,
    /// The domains in which a name is looked up.
    pub search: Vec<String>,
    /// A name with so many dots is looked up as it is first.
    pub dots: usize,
    /// Whether it asks the cluster's DNS.
    pub asks_cluster: bool,
}

/// What a name stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Addresses, and the whole name that has them.
    Addresses(String, Vec<IpAddr>),
    /// A host outside of the cluster, by its name.
    Outside(String),
}

/// Nobody has the name. The text is that of Go.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("lookup {host}: no such host")]
pub struct NoSuchHost {
    /// The name.
    pub host: String,
}

/// The result of one whole name.
enum Found {
    Addresses(Vec<IpAddr>),
    Alias(String),
}

impl Resolver {
    /// The settings of a pod of a namespace, with the policy `ClusterFirst`.
    #[must_use]
    pub fn of_namespace(namespace: &str) -> Self {
        Self {
            hosts: Vec::new(),
            search: vec![
                format!("{namespace}.svc.{DOMAIN}"),
                format!("svc.{DOMAIN}"),
                DOMAIN.to_owned(),
            ],
            dots: 5,
            asks_cluster: true,
        }
    }

    /// The whole names that a name may stand for, in their order.
    fn whole_names(&self, host: &str) -> Vec<String> {
        if let Some(whole) = host.strip_suffix('.') {
            return vec![whole.to_lowercase()];
        }
        let host = host.to_lowercase();
        let searched = self.search.iter().map(|domain| format!("{host}.{domain}"));
        let as_it_is = std::iter::once(host.clone());
        if host.matches('.').count() >= self.dots {
            as_it_is.chain(searched).collect()
        } else {
            searched.chain(as_it_is).collect()
        }
    }

    pub(crate) fn resolve(
        &self,
        host: &str,
        services: &Services,
        is_namespace: &dyn Fn(&str) -> bool,
    ) -> Result<Answer, NoSuchHost> {
        if let Ok(address) = host.parse() {
            return Ok(Answer::Addresses(host.to_owned(), vec![address]));
        }
        let own: Vec<IpAddr> = self
            .hosts
            .iter()
            .filter(|(_, name)| name.eq_ignore_ascii_case(host))
            .map(|(address, _)| *address)
            .collect();
        if !own.is_empty() {
            return Ok(Answer::Addresses(host.to_owned(), own));
        }
        let none = || NoSuchHost {
            host: host.to_owned(),
        };
        if self.asks_cluster {
            for name in self.whole_names(host) {
                let mut at = name;
                for _ in 0..ALIASES_MAX {
                    match lookup(services, &at) {
                        Some(Found::Addresses(addresses)) => return Ok(Answer::Addresses(at, addresses)),
                        Some(Found::Alias(other)) => {
                            if !is_inside(&other) {
                                return Ok(Answer::Outside(other));
                            }
                            at = other;
                        }
                        None => break,
                    }
                }
            }
        }
        // A name with a dot that cannot be meant for the cluster is one of the world outside.
        let plain = host.trim_end_matches('.').to_lowercase();
        let last = plain.rsplit('.').next().unwrap_or_default();
        let is_service = |search: &String| {
            let own = search.split('.').next().unwrap_or_default();
            services.service(own, last).is_some()
        };
        let is_outside = plain.contains('.')
            && !is_inside(&plain)
            && is_domain(last)
            && !is_namespace(last)
            && !self.search.first().is_some_and(is_service);
        if is_outside {
            Ok(Answer::Outside(plain))
        } else {
            Err(none())
        }
    }

    /// The whole name that a name stands for if it is that of a Service with an external name, and the external name.
    pub(crate) fn alias_of(&self, host: &str, services: &Services) -> Option<(String, String)> {
        self.whole_names(host)
            .into_iter()
            .find_map(|name| match lookup(services, &name)? {
                Found::Alias(other) => Some((name, other)),
                Found::Addresses(_) => None,
            })
    }

    pub(crate) fn service_records(&self, host: &str, services: &Services) -> Vec<(u16, String)> {
        for name in self.whole_names(host) {
            let found = records(services, &name);
            if !found.is_empty() {
                return found;
            }
        }
        Vec::new()
    }
}

/// The whole names of an address that is asked for by its name in `in-addr.arpa`: those of the Services that have it, or else of
/// the ready endpoints that do.
pub(crate) fn names_of(host: &str, services: &Services) -> Vec<String> {
    let host = host.trim_end_matches('.').to_lowercase();
    let Some(parts) = host.strip_suffix(REVERSED) else {
        return Vec::new();
    };
    let parts: Vec<&str> = parts.rsplit('.').collect();
    let Ok(address) = parts.join(".").parse::<IpAddr>() else {
        return Vec::new();
    };
    let whole = |key: &Key| format!("{}.{}.svc.{DOMAIN}", key.1, key.0);
    let has_it = |key: &&Key| {
        let service = services.service(&key.0, &key.1);
        service.is_some_and(|service| service.cluster.contains(&address))
    };
    let mut out: Vec<String> = services.keys_at(address).filter(has_it).map(whole).collect();
    if out.is_empty() {
        for (key, endpoint) in services.endpoints_at(address) {
            out.extend(own_name(endpoint).map(|own| format!("{own}.{}", whole(key))));
        }
    }
    out.sort();
    out.dedup();
    out
}

fn is_inside(name: &str) -> bool {
    name == DOMAIN || name.ends_with(".cluster.local")
}

/// Whether a name's last part is one of the domains of the world that programs ask for.
fn is_domain(last: &str) -> bool {
    let is_country = last.len() == 2 && last.chars().all(|c| c.is_ascii_alphabetic());
    is_country || DOMAINS.contains(&last)
}

/// The parts of a name before the domain of Services, if it is in there: those before the Service's, the Service, the namespace.
fn in_services(name: &str) -> Option<(Vec<&str>, Key)> {
    let rest = name.strip_suffix(DOMAIN)?.strip_suffix(".svc.")?;
    let mut parts: Vec<&str> = rest.split('.').collect();
    let namespace = parts.pop()?;
    let service = parts.pop()?;
    Some((parts, (namespace.to_owned(), service.to_owned())))
}

/// An endpoint's own name below its Service: its hostname, or its address with dashes.
fn own_name(endpoint: &Endpoint) -> Option<String> {
    if !endpoint.hostname.is_empty() {
        return Some(endpoint.hostname.to_lowercase());
    }
    let address = endpoint.addresses.first()?;
    Some(address.to_string().replace(['.', ':'], "-"))
}

fn lookup(services: &Services, name: &str) -> Option<Found> {
    if let Some(rest) = name.strip_suffix(".pod.cluster.local") {
        let (address, namespace) = rest.split_once('.')?;
        let address: IpAddr = address.replace('-', ".").parse().ok()?;
        return (!namespace.contains('.')).then(|| Found::Addresses(vec![address]));
    }
    let (parts, key) = in_services(name)?;
    let service = services.service(&key.0, &key.1)?;
    match parts.as_slice() {
        [] if !service.external_name.is_empty() => Some(Found::Alias(service.external_name.to_lowercase())),
        [] if service.is_headless => found(endpoints(services, &key, |_| true)),
        [] => found(service.cluster.clone()),
        [own] => found(endpoints(services, &key, |endpoint| {
            own_name(endpoint).as_deref() == Some(*own)
        })),
        _ => None,
    }
}

fn found(addresses: Vec<IpAddr>) -> Option<Found> {
    (!addresses.is_empty()).then_some(Found::Addresses(addresses))
}

/// The addresses of a Service's ready endpoints, in their order.
fn endpoints(services: &Services, key: &Key, wanted: impl Fn(&Endpoint) -> bool) -> Vec<IpAddr> {
    let all = services.slices(key).flat_map(|slice| &slice.endpoints);
    let mut out: Vec<IpAddr> = all
        .filter(|endpoint| endpoint.ready && wanted(endpoint))
        .flat_map(|endpoint| endpoint.addresses.iter().copied())
        .collect();
    out.sort();
    out.dedup();
    out
}

/// The targets of `_port._protocol.service.namespace.svc.cluster.local`.
fn records(services: &Services, name: &str) -> Vec<(u16, String)> {
    let Some((parts, key)) = in_services(name) else {
        return Vec::new();
    };
    let (Some(service), [port, protocol]) = (services.service(&key.0, &key.1), parts.as_slice()) else {
        return Vec::new();
    };
    let (Some(port), Some(protocol)) = (port.strip_prefix('_'), protocol.strip_prefix('_')) else {
        return Vec::new();
    };
    let of_service = format!("{}.{}.svc.{DOMAIN}", key.1, key.0);
    if !service.is_headless {
        return numbers(service, port, protocol)
            .map(|number| (number, of_service.clone()))
            .collect();
    }
    let mut out = Vec::new();
    for slice in services.slices(&key) {
        let number = slice
            .ports
            .iter()
            .find(|(name, of, _)| name == port && of.eq_ignore_ascii_case(protocol));
        let Some((_, _, number)) = number else { continue };
        let ready = slice.endpoints.iter().filter(|endpoint| endpoint.ready);
        out.extend(
            ready.filter_map(|endpoint| Some((*number, format!("{}.{of_service}", own_name(endpoint)?)))),
        );
    }
    out.sort();
    out
}

fn numbers<'a>(service: &'a Service, name: &'a str, protocol: &'a str) -> impl Iterator<Item = u16> {
    let ports = service.ports.iter();
    ports
        .filter(move |port| port.name == name && port.protocol.eq_ignore_ascii_case(protocol))
        .map(|port| port.port)
}

#[cfg(test)]
#[path = "names_tests.rs"]
mod tests;
