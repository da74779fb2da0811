//! Services and slices, as they are read from objects.

use std::net::IpAddr;
use std::time::Duration;

use machinery::meta::{list, text};
use shared_json::Value;

/// How long a client keeps its endpoint if the Service says no more than `ClientIP`.
const AFFINITY_SECONDS: u64 = 10_800;

/// A Service.
#[derive(Debug, Default)]
pub(crate) struct Service {
    /// Empty for a headless one.
    pub cluster: Vec<IpAddr>,
    pub external: Vec<IpAddr>,
    pub external_name: String,
    pub is_headless: bool,
    pub ports: Vec<Port>,
    pub affinity: Option<Duration>,
    pub internal_local: bool,
    pub external_local: bool,
}

/// A port of a Service.
#[derive(Debug, Default)]
pub(crate) struct Port {
    pub name: String,
    pub protocol: String,
    pub port: u16,
    pub node_port: u16,
}

/// An endpoint in a slice.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub addresses: Vec<IpAddr>,
    pub hostname: String,
    pub ready: bool,
    pub serving: bool,
    pub node: String,
}

/// An EndpointSlice.
#[derive(Debug, Default)]
pub(crate) struct Slice {
    /// Name, protocol and number.
    pub ports: Vec<(String, String, u16)>,
    pub endpoints: Vec<Endpoint>,
}

fn addresses<'a>(values: impl IntoIterator<Item = &'a Value>) -> Vec<IpAddr> {
    let texts = values.into_iter().filter_map(Value::as_str);
    texts.filter_map(|text| text.parse().ok()).collect()
}

fn number(object: &Value, field: &str) -> u16 {
    let number = object.get(field).and_then(Value::as_u64).unwrap_or_default();
    u16::try_from(number).unwrap_or_default()
}

impl Service {
    pub(super) fn read(object: &Value) -> Self {
        let is_outside = text(object, "spec.type") == "ExternalName";
        let mut cluster = addresses(list(object, "spec.clusterIPs"));
        if cluster.is_empty() {
            cluster.extend(text(object, "spec.clusterIP").parse::<IpAddr>().ok());
        }
        let balanced = list(object, "status.loadBalancer.ingress").iter();
        let mut external = addresses(list(object, "spec.externalIPs"));
        external.extend(addresses(balanced.filter_map(|ingress| ingress.get("ip"))));
        let seconds = object
            .pointer("/spec/sessionAffinityConfig/clientIP/timeoutSeconds")
            .and_then(Value::as_u64);
        let affinity = (text(object, "spec.sessionAffinity") == "ClientIP")
            .then(|| Duration::from_secs(seconds.unwrap_or(AFFINITY_SECONDS)));
        let ports = list(object, "spec.ports").iter().map(|port| Port {
            name: text(port, "name").to_owned(),
            protocol: match text(port, "protocol") {
                "" => "TCP".to_owned(),
                protocol => protocol.to_owned(),
            },
            port: number(port, "port"),
            node_port: number(port, "nodePort"),
        });
        Self {
            is_headless: cluster.is_empty() && !is_outside,
            cluster,
            external,
            external_name: match is_outside {
                true => text(object, "spec.externalName").trim_end_matches('.').to_owned(),
                // It may be left from before the type was changed, and says nothing.
                false => String::new(),
            },
            ports: ports.collect(),
            affinity,
            internal_local: text(object, "spec.internalTrafficPolicy") == "Local",
            external_local: text(object, "spec.externalTrafficPolicy") == "Local",
        }
    }
}

impl Slice {
    pub(super) fn read(object: &Value) -> Self {
        let endpoint = |endpoint: &Value| {
            let condition = |name: &str| {
                endpoint
                    .pointer(&format!("/conditions/{name}"))
                    .and_then(Value::as_bool)
            };
            let ready = condition("ready").unwrap_or(true);
            Endpoint {
                addresses: addresses(list(endpoint, "addresses")),
                hostname: text(endpoint, "hostname").to_owned(),
                ready,
                serving: condition("serving").unwrap_or(ready),
                node: text(endpoint, "nodeName").to_owned(),
            }
        };
        let port = |port: &Value| {
            let protocol = match text(port, "protocol") {
                "" => "TCP",
                protocol => protocol,
            };
            (
                text(port, "name").to_owned(),
                protocol.to_owned(),
                number(port, "port"),
            )
        };
        Self {
            ports: list(object, "ports").iter().map(port).collect(),
            endpoints: list(object, "endpoints").iter().map(endpoint).collect(),
        }
    }
}
