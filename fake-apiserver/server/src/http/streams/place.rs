//! The pod, service or node that a request is passed on to, and its port, as the real server finds them.

use std::net::{IpAddr, SocketAddr};

use http::StatusCode;
use machinery::meta::{at, list, text};
use machinery::status::ApiError;
use shared_json::Value;
use store::{GroupResource, ObjectKey};

use crate::context::Context;

/// The kubelet's port.
const KUBELET_PORT: u16 = 10_250;
/// In which order the server tries a node's addresses (`--kubelet-preferred-address-types`).
const PREFERRED: [&str; 5] = [
    "Hostname",
    "InternalDNS",
    "InternalIP",
    "ExternalDNS",
    "ExternalIP",
];

/// Where a request is passed on to.
pub(super) struct Place {
    pub to: SocketAddr,
    pub secure: bool,
}

/// The place that a request names.
pub(super) fn place(context: &Context) -> Result<Place, ApiError> {
    let resource = context.request.resource.as_str();
    let singular = resource.strip_suffix('s').unwrap_or(resource);
    let asked = context.request.name.as_str();
    let Some((name, port)) = split(asked) else {
        return Err(ApiError::bad_request(format!(
            "invalid {singular} request \"{asked}\""
        )));
    };
    let to = match resource {
        "pods" => pod(context, name, port)?,
        "nodes" => node(context, name, port)?,
        _ => service(context, name, port)?,
    };
    Ok(Place {
        to,
        // A kubelet's own port is reached as it is.
        secure: asked.starts_with("https:") && resource != "nodes",
    })
}

/// Name and port of `name`, `name:port` or `scheme:name:port`.
fn split(asked: &str) -> Option<(&str, &str)> {
    let parts: Vec<&str> = asked.split(':').collect();
    let (name, port) = match *parts.as_slice() {
        [name] => (name, ""),
        [name, port] => (name, port),
        ["http" | "https" | "", name, port] => (name, port),
        _ => return None,
    };
    (!name.is_empty()).then_some((name, port))
}

pub(super) fn unavailable(message: impl Into<String>) -> ApiError {
    ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", message)
}

fn find(context: &Context, resource: &str, namespace: &str, name: &str) -> Result<Value, ApiError> {
    let table = GroupResource::new("", resource);
    let found = context
        .state()
        .store
        .get(&table, &ObjectKey::new(namespace, name));
    found
        .map(|stored| stored.value.clone())
        .ok_or_else(|| ApiError::not_found(&table, name))
}

/// Addresses of the server's own machine and unroutable ones are refused.
fn proxyable(address: IpAddr) -> Result<(), ApiError> {
    let link_local = match address {
        IpAddr::V4(four) => four.is_link_local(),
        IpAddr::V6(six) => six.is_unicast_link_local(),
    };
    if address.is_loopback() || address.is_unspecified() || address.is_multicast() || link_local {
        return Err(ApiError::bad_request("address not allowed"));
    }
    Ok(())
}

fn number(port: &str) -> Result<u16, ApiError> {
    let number = port.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| {
        unavailable(format!(
            "error trying to reach service: dial tcp: lookup tcp/{port}: unknown port"
        ))
    })
}

fn pod(context: &Context, name: &str, port: &str) -> Result<SocketAddr, ApiError> {
    let pod = find(context, "pods", &context.request.namespace, name)?;
    let address = at(&pod, "status.podIP")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let Ok(address) = address.parse() else {
        return Err(ApiError::bad_request("address not allowed"));
    };
    proxyable(address)?;
    let mut ports = list(&pod, "spec.containers")
        .iter()
        .flat_map(|container| list(container, "ports"));
    let first = ports.find_map(|port| port.get("containerPort")?.as_u64());
    let port = match (port, first) {
        ("", Some(first)) => first.to_string(),
        ("", None) => "80".to_owned(),
        (port, _) => port.to_owned(),
    };
    Ok(SocketAddr::new(address, number(&port)?))
}

fn node(context: &Context, name: &str, port: &str) -> Result<SocketAddr, ApiError> {
    let node = find(context, "nodes", "", name)?;
    let addresses: Vec<(&str, &str)> = at(&node, "status.addresses")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some((entry.get("type")?.as_str()?, entry.get("address")?.as_str()?)))
        .collect();
    let preferred = PREFERRED
        .iter()
        .find_map(|kind| addresses.iter().find(|(given, _)| given == kind));
    let Some((_, address)) = preferred else {
        let message = format!(
            "no preferred addresses found; known addresses: {}",
            listed(&addresses)
        );
        return Err(ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "", message));
    };
    let port = if port.is_empty() {
        KUBELET_PORT
    } else {
        number(port)?
    };
    if let Ok(address) = address.parse() {
        proxyable(address)?;
        return Ok(SocketAddr::new(address, port));
    }
    // Simulated nodes have names that only they know.
    let own = addresses.iter().find(|(kind, _)| *kind == "InternalIP");
    match own.and_then(|(_, own)| own.parse().ok()) {
        Some(own) if context.state().node_access(name).is_some() => Ok(SocketAddr::new(own, port)),
        _ => Err(ApiError::bad_request(format!("lookup {address}: no such host"))),
    }
}

fn listed(addresses: &[(&str, &str)]) -> String {
    let shown: Vec<String> = addresses
        .iter()
        .map(|(kind, address)| format!("{{{kind} {address}}}"))
        .collect();
    format!("[{}]", shown.join(" "))
}

fn service(context: &Context, name: &str, port: &str) -> Result<SocketAddr, ApiError> {
    let namespace = &context.request.namespace;
    let mut wanted = port.to_owned();
    let service = find(context, "services", namespace, name)?;
    if let Ok(number) = port.parse::<i64>() {
        let ports = at(&service, "spec.ports").and_then(Value::as_array);
        let known = ports
            .into_iter()
            .flatten()
            .find(|known| known.get("port").and_then(Value::as_i64) == Some(number));
        let Some(known) = known else {
            return Err(unavailable(format!(
                "no service port {number} found for service \"{name}\""
            )));
        };
        wanted = known
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
    }
    let endpoints = find(context, "endpoints", namespace, name)?;
    let mut found = Vec::new();
    for subset in list(&endpoints, "subsets") {
        let mut ports = list(subset, "ports").iter();
        let Some(port) = ports.find(|port| text(port, "name") == wanted) else {
            continue;
        };
        let port = port.get("port").and_then(Value::as_u64);
        let port = port.and_then(|port| u16::try_from(port).ok()).unwrap_or_default();
        let addresses = list(subset, "addresses").iter();
        let addresses = addresses.filter_map(|address| text(address, "ip").parse::<IpAddr>().ok());
        found.extend(addresses.map(|address| SocketAddr::new(address, port)));
    }
    let chosen = context
        .state()
        .network()
        .map_or(0, |network| network.pick(found.len()));
    let chosen = found.get(chosen).copied();
    let chosen =
        chosen.ok_or_else(|| unavailable(format!("no endpoints available for service \"{name}\"")))?;
    proxyable(chosen.ip())?;
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("web", Some(("web", "")))]
    #[case("web:http", Some(("web", "http")))]
    #[case("https:web:443", Some(("web", "443")))]
    #[case(":web:", Some(("web", "")))]
    #[case("ftp:web:21", None)]
    #[case("a:b:c:d", None)]
    #[case(":80", None)]
    fn names_may_have_a_scheme_and_a_port(#[case] asked: &str, #[case] expect: Option<(&str, &str)>) {
        assert_eq!(split(asked), expect);
    }
}
