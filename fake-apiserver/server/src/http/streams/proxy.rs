//! `proxy`: resolves the target as the real server does, and then answers that nothing carries requests there.

use std::net::IpAddr;

use http::StatusCode;
use machinery::meta::at;
use machinery::status::ApiError;
use shared_json::Value;
use store::{GroupResource, ObjectKey};

use crate::context::Context;

/// In which order the server tries a node's addresses (`--kubelet-preferred-address-types`).
const PREFERRED: [&str; 5] = [
    "Hostname",
    "InternalDNS",
    "InternalIP",
    "ExternalDNS",
    "ExternalIP",
];

/// Why a request is not passed on.
pub(super) fn refusal(context: &Context) -> ApiError {
    let resource = context.request.resource.as_str();
    let singular = resource.strip_suffix('s').unwrap_or(resource);
    let asked = context.request.name.as_str();
    let Some((name, port)) = split(asked) else {
        return ApiError::bad_request(format!("invalid {singular} request \"{asked}\""));
    };
    let outcome = match resource {
        "pods" => pod(context, name),
        "nodes" => node(context, name),
        _ => service(context, name, port),
    };
    outcome.err().unwrap_or_else(|| {
        unavailable("error trying to reach service: simulated nodes have no network; use port-forward")
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

fn unavailable(message: impl Into<String>) -> ApiError {
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

fn pod(context: &Context, name: &str) -> Result<(), ApiError> {
    let pod = find(context, "pods", &context.request.namespace, name)?;
    let address = at(&pod, "status.podIP")
        .and_then(Value::as_str)
        .unwrap_or_default();
    match address.parse() {
        Ok(address) => proxyable(address),
        Err(_) => Err(ApiError::bad_request("address not allowed")),
    }
}

fn node(context: &Context, name: &str) -> Result<(), ApiError> {
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
    match address.parse() {
        Ok(address) => proxyable(address),
        // Simulated nodes have names that only they know.
        Err(_) if context.state().node_access(name).is_some() => Ok(()),
        Err(_) => Err(ApiError::bad_request(format!("lookup {address}: no such host"))),
    }
}

fn listed(addresses: &[(&str, &str)]) -> String {
    let shown: Vec<String> = addresses
        .iter()
        .map(|(kind, address)| format!("{{{kind} {address}}}"))
        .collect();
    format!("[{}]", shown.join(" "))
}

fn service(context: &Context, name: &str, port: &str) -> Result<(), ApiError> {
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
    let subsets = at(&endpoints, "subsets").and_then(Value::as_array);
    let serves = |subset: &&Value| {
        let ports = subset.get("ports").and_then(Value::as_array);
        let named = ports
            .into_iter()
            .flatten()
            .any(|port| port.get("name").and_then(Value::as_str).unwrap_or_default() == wanted);
        let ready = subset.get("addresses").and_then(Value::as_array);
        named && ready.is_some_and(|ready| !ready.is_empty())
    };
    if subsets.into_iter().flatten().any(|subset| serves(&subset)) {
        return Ok(());
    }
    Err(unavailable(format!(
        "no endpoints available for service \"{name}\""
    )))
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
