//! Ingresses, their classes, network policies, endpoint slices, addresses and networks of services.

use std::collections::BTreeSet;

use pod_rules::names;
use shared_json::Value;

use super::addresses::{self, Network};
use super::errors::{Errors, IMMUTABLE};
use super::fields::{Fields, NOTHING, same};
use super::jobs::domain_path;
use super::path::Path;
use super::{go, pod, selectors};

/// A NetworkPolicy.
pub(super) fn policy(object: &Value, errors: &mut Errors) {
    policy_spec(object, &[], errors);
}

/// A changed NetworkPolicy: networks that it had may stay.
pub(super) fn policy_update(new: &Value, old: &Value, errors: &mut Errors) {
    let mut known = Vec::new();
    let spec = old.part("spec").unwrap_or(&NOTHING);
    for (rules, peers) in [("ingress", "from"), ("egress", "to")] {
        for peer in spec.list(rules).iter().flat_map(|rule| rule.list(peers)) {
            if let Some(block) = peer.part("ipBlock") {
                known.push(block.text("cidr"));
                known.extend(block.texts("except"));
            }
        }
    }
    policy_spec(new, &known, errors);
}

fn policy_spec(object: &Value, known: &[&str], errors: &mut Errors) {
    let spec = object.part("spec").unwrap_or(&NOTHING);
    let path = Path::new("spec");
    selectors::selector(spec.part("podSelector"), &path.field("podSelector"), errors);
    for (rules, peers) in [("ingress", "from"), ("egress", "to")] {
        let list = path.field(rules);
        for (index, rule) in spec.list(rules).iter().enumerate() {
            let at = list.index(index);
            let ports = at.field("ports");
            for (index, port) in rule.list("ports").iter().enumerate() {
                policy_port(port, &ports.index(index), errors);
            }
            let list = at.field(peers);
            for (index, peer) in rule.list(peers).iter().enumerate() {
                policy_peer(peer, known, &list.index(index), errors);
            }
        }
    }
    let types = spec.list("policyTypes");
    let at = path.field("policyTypes");
    if types.len() > 2 {
        return errors.invalid(&at, types.to_vec(), "may not specify more than two policyTypes");
    }
    for (index, kind) in spec.texts("policyTypes").enumerate() {
        errors.one_of_or_empty(&at.index(index), kind, &["Ingress", "Egress"]);
    }
}

fn policy_port(port: &Value, path: &Path<'_>, errors: &mut Errors) {
    if let Some(protocol) = port.text_if_set("protocol") {
        errors.one_of_or_empty(&path.field("protocol"), protocol, &["TCP", "UDP", "SCTP"]);
    }
    let end = port.int("endPort");
    let end_path = path.field("endPort");
    match port.part("port") {
        None => {
            if let Some(end) = end {
                errors.invalid(
                    &end_path,
                    end,
                    "may not be specified when `port` is not specified",
                );
            }
        }
        Some(Value::String(name)) => {
            if let Some(end) = end {
                errors.invalid(&end_path, end, "may not be specified when `port` is non-numeric");
            }
            errors.problems(&path.field("port"), name, names::port_name_problems(name));
        }
        Some(number) => {
            let number = number.as_i64().unwrap_or_default();
            pod::port_number(number, &path.field("port"), errors);
            if let Some(end) = end {
                if end < number {
                    errors.invalid(&end_path, number, "must be greater than or equal to `port`");
                }
                pod::port_number(end, &end_path, errors);
            }
        }
    }
}

fn policy_peer(peer: &Value, known: &[&str], path: &Path<'_>, errors: &mut Errors) {
    let mut peers = 0;
    for field in ["podSelector", "namespaceSelector"] {
        if peer.has(field) {
            peers += 1;
            selectors::selector(peer.part(field), &path.field(field), errors);
        }
    }
    let block = peer.part("ipBlock");
    if let Some(block) = block {
        peers += 1;
        ip_block(block, known, &path.field("ipBlock"), errors);
    }
    if peers == 0 {
        errors.required(path, "must specify a peer");
    } else if peers > 1 && block.is_some() {
        errors.forbidden(path, "may not specify both ipBlock and another peer");
    }
}

fn ip_block(block: &Value, known: &[&str], path: &Path<'_>, errors: &mut Errors) {
    let text = block.text("cidr");
    if text.is_empty() {
        return errors.required(&path.field("cidr"), "");
    }
    addresses::network(&path.field("cidr"), text, known, errors);
    let Some(network) = Network::parse(text) else {
        return;
    };
    let list = path.field("except");
    for (index, text) in block.texts("except").enumerate() {
        let at = list.index(index);
        addresses::network(&at, text, known, errors);
        let Some(except) = Network::parse(text) else {
            continue;
        };
        if !network.contains(except.first()) || network.prefix >= except.prefix {
            errors.invalid(&at, text, "must be a strict subset of `cidr`");
        }
    }
}

const CLASS: &str = "kubernetes.io/ingress.class";

/// An Ingress.
pub(super) fn ingress(object: &Value, errors: &mut Errors) {
    ingress_spec(object, errors);
    let annotations = object.part("metadata").unwrap_or(&NOTHING).map("annotations");
    let class = object.pointer("/spec/ingressClassName").and_then(Value::as_str);
    if let (Some(annotated), Some(class)) = (annotations.text_if_set(CLASS), class)
        && annotated != class
    {
        let detail = "must match `ingressClassName` when both are specified";
        errors.invalid(&Path::new("annotations").field(CLASS), annotated, detail);
    }
}

/// A changed Ingress.
pub(super) fn ingress_update(new: &Value, _old: &Value, errors: &mut Errors) {
    ingress_spec(new, errors);
}

fn host_problems(host: &str) -> Vec<String> {
    if host.contains('*') {
        names::wildcard_problems(host)
    } else {
        names::subdomain_problems(host)
    }
}

fn ingress_spec(object: &Value, errors: &mut Errors) {
    let spec = object.part("spec").unwrap_or(&NOTHING);
    let path = Path::new("spec");
    let rules = spec.list("rules");
    if rules.is_empty() && !spec.has("defaultBackend") {
        let detail = "either `defaultBackend` or `rules` must be specified";
        errors.invalid(&path, spec.part("rules").cloned().unwrap_or_default(), detail);
    }
    if let Some(backend) = spec.part("defaultBackend") {
        ingress_backend(backend, &path.field("defaultBackend"), errors);
    }
    let list = path.field("rules");
    for (index, rule) in rules.iter().enumerate() {
        let at = list.index(index);
        let host = rule.text("host");
        if !host.is_empty() {
            let at = at.field("host");
            if addresses::parse(host).is_some() {
                errors.invalid(&at, host, "must be a DNS name, not an IP address");
            }
            errors.problems(&at, host, host_problems(host));
        }
        let Some(http) = rule.part("http") else { continue };
        let list = at.field("http.paths");
        if http.list("paths").is_empty() {
            errors.required(&list, "");
        }
        for (index, place) in http.list("paths").iter().enumerate() {
            ingress_path(place, &list.index(index), errors);
        }
    }
    let list = path.field("tls");
    for (index, tls) in spec.list("tls").iter().enumerate() {
        let at = list.index(index);
        let hosts = at.field("hosts");
        for (index, host) in tls.texts("hosts").enumerate() {
            errors.problems(&hosts.index(index), host, host_problems(host));
        }
        let secret = tls.text("secretName");
        if !secret.is_empty() {
            errors.problems(&at.field("secretName"), secret, names::subdomain_problems(secret));
        }
    }
    if let Some(class) = spec.text_if_set("ingressClassName") {
        errors.problems(
            &path.field("ingressClassName"),
            class,
            names::subdomain_problems(class),
        );
    }
}

fn ingress_path(place: &Value, path: &Path<'_>, errors: &mut Errors) {
    let Some(kind) = place.text_if_set("pathType") else {
        return errors.required(&path.field("pathType"), "pathType must be specified");
    };
    let text = place.text("path");
    let at = path.field("path");
    match kind {
        "Exact" | "Prefix" => {
            if !text.starts_with('/') {
                errors.invalid(&at, text, "must be an absolute path");
            }
            for sequence in ["//", "/./", "/../", "%2f", "%2F"] {
                if text.contains(sequence) {
                    errors.invalid(&at, text, format!("must not contain '{sequence}'"));
                }
            }
            for suffix in ["/..", "/."] {
                if text.ends_with(suffix) {
                    errors.invalid(&at, text, format!("cannot end with '{suffix}'"));
                }
            }
        }
        "ImplementationSpecific" => {
            if !text.is_empty() && !text.starts_with('/') {
                errors.invalid(&at, text, "must be an absolute path");
            }
        }
        other => errors.not_supported(
            &path.field("pathType"),
            other,
            &["Exact", "ImplementationSpecific", "Prefix"],
        ),
    }
    let backend = place.part("backend").unwrap_or(&NOTHING);
    ingress_backend(backend, &path.field("backend"), errors);
}

fn ingress_backend(backend: &Value, path: &Path<'_>, errors: &mut Errors) {
    match (backend.part("resource"), backend.part("service")) {
        (Some(_), Some(_)) => errors.invalid(path, "", "cannot set both resource and service backends"),
        (Some(resource), None) => {
            let at = path.field("resource");
            group(resource, "apiGroup", &at, errors);
            for field in ["kind", "name"] {
                segment(resource, field, &at, errors);
            }
        }
        (None, Some(service)) => {
            let at = path.field("service");
            let name = service.text("name");
            if name.is_empty() {
                errors.required(&at.field("name"), "");
            } else {
                errors.problems(&at.field("name"), name, names::label_problems(name));
            }
            let port = service.part("port").unwrap_or(&NOTHING);
            let (name, number) = (port.text("name"), port.int("number").unwrap_or_default());
            match (name.is_empty(), number) {
                (true, 0) => errors.required(path, "port name or number is required"),
                (true, number) => pod::port_number(number, &at.field("port.number"), errors),
                (false, 0) => {
                    errors.problems(&at.field("port.name"), name, names::port_name_problems(name));
                }
                (false, _) => errors.invalid(path, "", "cannot set both port name & port number"),
            }
        }
        (None, None) => errors.invalid(path, "", "resource or service backend is required"),
    }
}

fn group(reference: &Value, field: &str, path: &Path<'_>, errors: &mut Errors) {
    if let Some(group) = reference.text_if_set(field) {
        errors.problems(&path.field(field), group, names::subdomain_problems(group));
    }
}

fn segment(reference: &Value, field: &str, path: &Path<'_>, errors: &mut Errors) {
    let text = reference.text(field);
    if text.is_empty() {
        errors.required(&path.field(field), "");
    } else {
        errors.problems(&path.field(field), text, names::path_segment_problems(text));
    }
}

/// A changed status of an Ingress.
pub(super) fn ingress_status(new: &Value, old: &Value, errors: &mut Errors) {
    super::service::ingress(new, old, None, errors);
}

const CONTROLLER_MAX: usize = 250;

/// An IngressClass.
pub(super) fn ingress_class(object: &Value, errors: &mut Errors) {
    let spec = object.part("spec").unwrap_or(&NOTHING);
    let path = Path::new("spec");
    let controller = spec.text("controller");
    if controller.len() > CONTROLLER_MAX {
        errors.too_long(&path.field("controller"), CONTROLLER_MAX);
    }
    domain_path(controller, &path.field("controller"), errors);
    let Some(parameters) = spec.part("parameters") else {
        return;
    };
    let at = path.field("parameters");
    group(parameters, "apiGroup", &at, errors);
    for field in ["kind", "name"] {
        segment(parameters, field, &at, errors);
    }
    let namespace = parameters.text_if_set("namespace");
    match parameters.text_if_set("scope") {
        None => errors.required(&at.field("scope"), ""),
        Some("Namespace") => match namespace {
            None => errors.required(&at.field("namespace"), "`parameters.scope` is set to 'Namespace'"),
            Some(name) => errors.problems(&at.field("namespace"), name, names::label_problems(name)),
        },
        Some("Cluster") => {
            if namespace.is_some() {
                errors.forbidden(&at.field("namespace"), "`parameters.scope` is set to 'Cluster'");
            }
        }
        Some(other) => errors.not_supported(&at.field("scope"), other, &["Cluster", "Namespace"]),
    }
}

/// A changed IngressClass.
pub(super) fn ingress_class_update(new: &Value, old: &Value, errors: &mut Errors) {
    let controller = |class: &Value| {
        class
            .part("spec")
            .unwrap_or(&NOTHING)
            .text("controller")
            .to_owned()
    };
    if controller(new) != controller(old) {
        errors.invalid(&Path::new("spec.controller"), controller(new), IMMUTABLE);
    }
    ingress_class(new, errors);
}

/// An IPAddress.
pub(super) fn ip_address(object: &Value, errors: &mut Errors) {
    let path = Path::new("spec.parentRef");
    let Some(parent) = object
        .pointer("/spec/parentRef")
        .filter(|parent| !parent.is_null())
    else {
        return errors.required(&path, "");
    };
    if !parent.text("group").is_empty() {
        group(parent, "group", &path, errors);
    }
    for field in ["resource", "name"] {
        segment(parent, field, &path, errors);
    }
    let namespace = parent.text("namespace");
    if !namespace.is_empty() {
        let problems = names::path_segment_problems(namespace);
        errors.problems(&path.field("namespace"), namespace, problems);
    }
}

/// A changed IPAddress.
pub(super) fn ip_address_update(new: &Value, old: &Value, errors: &mut Errors) {
    ip_address(new, errors);
    let of = |object| super::fields::path(object, "/spec/parentRef");
    if !same(of(new), of(old)) {
        let shown = of(new).map_or_else(
            || "null".to_owned(),
            |parent| go::text("networking.ParentReference", Some(parent)),
        );
        errors.invalid_shown(&Path::new("spec.parentRef"), shown, IMMUTABLE);
    }
}

/// A ServiceCIDR.
pub(super) fn service_cidr(object: &Value, errors: &mut Errors) {
    let spec = object.part("spec").unwrap_or(&NOTHING);
    let path = Path::new("spec.cidrs");
    let networks = spec.list("cidrs");
    if networks.is_empty() {
        return errors.required(&path, "at least one CIDR required");
    }
    if networks.len() > 2 {
        let shown = go::text("networking.ServiceCIDRSpec", Some(spec));
        return errors.invalid_shown(&path, shown, "may only hold up to 2 values");
    }
    for (index, network) in spec.texts("cidrs").enumerate() {
        addresses::canonical_network(&path.index(index), network, errors);
    }
    let kinds: Vec<bool> = spec
        .texts("cidrs")
        .filter_map(Network::parse)
        .map(|network| network.address.is_ipv4())
        .collect();
    if kinds.len() == 2 && kinds.first() == kinds.get(1) {
        let detail =
            "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64";
        errors.invalid(&path, networks.to_vec(), detail);
    }
}

/// A changed ServiceCIDR.
pub(super) fn service_cidr_update(new: &Value, old: &Value, errors: &mut Errors) {
    let of = |object: &Value| -> Vec<Value> {
        object
            .part("spec")
            .map(|spec| spec.list("cidrs").to_vec())
            .unwrap_or_default()
    };
    let (new_list, old_list) = (of(new), of(old));
    let path = Path::new("spec.cidrs");
    if old_list.len() == 1 && new_list.len() == 2 {
        if new_list.first() != old_list.first() {
            let first = new_list.first().cloned().unwrap_or_default();
            errors.invalid(&path.index(0), first, IMMUTABLE);
        }
        return service_cidr(new, errors);
    }
    if old_list.len() != new_list.len() {
        let shown = Some(new_list).filter(|list| !list.is_empty());
        return errors.invalid(&path, Value::from(shown), IMMUTABLE);
    }
    for (index, (new, old)) in new_list.iter().zip(&old_list).enumerate() {
        if new != old {
            errors.invalid(&path.index(index), new.clone(), IMMUTABLE);
        }
    }
}

/// An EndpointSlice.
pub(super) fn slice(object: &Value, errors: &mut Errors) {
    slice_base(object, errors);
    slice_endpoints(object, errors);
}

/// A changed EndpointSlice: endpoints that were wrong may stay.
pub(super) fn slice_update(new: &Value, old: &Value, errors: &mut Errors) {
    slice_base(new, errors);
    if !same(new.part("endpoints"), old.part("endpoints")) {
        slice_endpoints(new, errors);
    }
    if new.text("addressType") != old.text("addressType") {
        errors.invalid(&Path::new("addressType"), new.text("addressType"), IMMUTABLE);
    }
}

fn slice_base(object: &Value, errors: &mut Errors) {
    errors.one_of(
        &Path::new("addressType"),
        object.text("addressType"),
        &["FQDN", "IPv4", "IPv6"],
    );
    let path = Path::new("ports");
    let ports = object.list("ports");
    if ports.len() > 20_000 {
        return errors.too_many(&path, ports.len(), 20_000);
    }
    let mut known = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        let at = path.index(index);
        let name = port.text("name");
        if !name.is_empty() {
            errors.problems(&at.field("name"), name, names::label_problems(name));
        }
        if !known.insert(name) {
            errors.duplicate(&at.field("name"), name);
        }
        errors.one_of_if_set(
            &at.field("protocol"),
            port.text_if_set("protocol"),
            &pod::PROTOCOLS,
        );
        if let Some(protocol) = port.text_if_set("appProtocol") {
            let problems = names::qualified_problems(protocol);
            errors.problems(&at.field("appProtocol"), protocol, problems);
        }
    }
}

fn slice_endpoints(object: &Value, errors: &mut Errors) {
    let path = Path::new("endpoints");
    let endpoints = object.list("endpoints");
    if endpoints.len() > 1000 {
        return errors.too_many(&path, endpoints.len(), 1000);
    }
    for (index, endpoint) in endpoints.iter().enumerate() {
        let at = path.index(index);
        let list = at.field("addresses");
        let count = endpoint.list("addresses").len();
        if count == 0 {
            errors.required(&list, "must contain at least 1 address");
        } else if count > 100 {
            errors.too_many(&list, count, 100);
        }
        for (index, address) in endpoint.texts("addresses").enumerate() {
            let at = list.index(index);
            slice_address(object.text("addressType"), address, &list, &at, errors);
        }
        if let Some(node) = endpoint.text_if_set("nodeName") {
            errors.problems(&at.field("nodeName"), node, names::subdomain_problems(node));
        }
        let topology = endpoint.map("deprecatedTopology");
        let topology_path = at.field("deprecatedTopology");
        if topology.len() > 16 {
            errors.too_many(&topology_path, topology.len(), 16);
        }
        selectors::labels(topology, &topology_path, errors);
        if let Some(host) = endpoint.text_if_set("hostname") {
            errors.problems(&at.field("hostname"), host, names::label_problems(host));
        }
        if let Some(hints) = endpoint.part("hints") {
            self::hints(hints, &at.field("hints"), errors);
        }
    }
}

/// An address of the slice's kind; `list` is the path that a wrong kind is complained about at.
fn slice_address(kind: &str, address: &str, list: &Path<'_>, path: &Path<'_>, errors: &mut Errors) {
    let fits = match kind {
        "IPv4" => addresses::address(path, address, &[], errors),
        "IPv6" => addresses::canonical_address(path, address, errors),
        "FQDN" => return domain_name(address, path, errors),
        _ => return,
    };
    if !fits {
        return;
    }
    if address.contains(':') != (kind == "IPv6") {
        errors.invalid(list, address, format!("must be an {kind} address"));
    }
    addresses::endpoint(path, address, errors);
}

fn hints(hints: &Value, path: &Path<'_>, errors: &mut Errors) {
    type Problems = fn(&str) -> Vec<String>;
    for (field, problems) in [
        ("forZones", names::label_value_problems as Problems),
        ("forNodes", names::subdomain_problems as Problems),
    ] {
        let list = path.field(field);
        let entries = hints.list(field);
        if entries.len() > 8 {
            return errors.too_many(&list, entries.len(), 8);
        }
        let mut known = BTreeSet::new();
        for (index, entry) in entries.iter().enumerate() {
            let at = list.index(index);
            let at = at.field("name");
            let name = entry.text("name");
            if !known.insert(name) {
                errors.duplicate(&at, name);
            }
            errors.problems(&at, name, problems(name));
        }
    }
}

/// A full name of a host: two labels at least.
fn domain_name(name: &str, path: &Path<'_>, errors: &mut Errors) {
    if name.is_empty() {
        return errors.required(path, "");
    }
    let name = name.strip_suffix('.').unwrap_or(name);
    let problems = names::subdomain_problems(name);
    if !problems.is_empty() {
        return errors.invalid(path, name, problems.join(","));
    }
    if !name.contains('.') {
        let detail = "should be a domain with at least two segments separated by dots";
        return errors.invalid(path, name, detail);
    }
    for label in name.split('.') {
        let problems = names::label_problems(label);
        if !problems.is_empty() {
            return errors.invalid(path, label, problems.join(","));
        }
    }
}
