//! Services.

use std::collections::BTreeSet;

use pod_rules::names;
use shared_json::{Array, Value, json};

use super::addresses::{self, parse};
use super::errors::Errors;
use super::fields::{Fields, NOTHING};
use super::path::Path;
use super::{go, pod, selectors};

const FAMILIES: [&str; 2] = ["IPv4", "IPv6"];
const POLICIES: [&str; 3] = ["PreferDualStack", "RequireDualStack", "SingleStack"];
const HINTS: &str = "service.kubernetes.io/topology-aware-hints";
const MODE: &str = "service.kubernetes.io/topology-mode";
const SOURCE_RANGES: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";
const TIMEOUT_MOST: i64 = 86_400;

/// Whether the service has no address on purpose.
pub(crate) fn is_headless(spec: &Value) -> bool {
    matches!(spec.list("clusterIPs"), [only] if only == "None")
}

/// A Service.
pub(super) fn create(service: &Value, errors: &mut Errors) {
    check(service, None, errors);
}

/// A changed Service.
pub(super) fn update(service: &Value, old: &Value, errors: &mut Errors) {
    let (spec, before) = (
        service.part("spec").unwrap_or(&NOTHING),
        old.part("spec").unwrap_or(&NOTHING),
    );
    addresses_stay(spec, before, errors);
    families_stay(spec, before, errors);
    load_balancer_class(spec, Some(before), errors);
    if needs_health_check(spec)
        && needs_health_check(before)
        && spec.int("healthCheckNodePort") != before.int("healthCheckNodePort")
    {
        errors.forbidden(&Path::new("spec.healthCheckNodePort"), "field is immutable");
    }
    check(service, Some(before), errors);
}

fn check(service: &Value, before: Option<&Value>, errors: &mut Errors) {
    let spec = service.part("spec").unwrap_or(&NOTHING);
    let annotations = service.part("metadata").unwrap_or(&NOTHING).map("annotations");
    let path = Path::new("spec");
    if let (Some(mode), Some(hints)) = (annotations.text_if_set(MODE), annotations.text_if_set(HINTS))
        && mode != hints
    {
        let detail = format!("must match annotations[{HINTS}] when both are specified");
        errors.invalid(&Path::new("metadata.annotations").key(MODE), mode, detail);
    }
    let kind = spec.text("type");
    let headless = is_headless(spec);
    let ports = spec.list("ports");
    if ports.is_empty() && !headless && kind != "ExternalName" {
        errors.required(&path.field("ports"), "");
    }
    of_kind(spec, kind, headless, &path, errors);
    let list = path.field("ports");
    let mut port_names = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        service_port(port, ports.len() > 1, &mut port_names, &list.index(index), errors);
    }
    selectors::labels(spec.map("selector"), &path.field("selector"), errors);
    let affinity = spec.text("sessionAffinity");
    errors.one_of(&path.field("sessionAffinity"), affinity, &["ClientIP", "None"]);
    session_affinity(spec, affinity, &path.field("sessionAffinityConfig"), errors);
    cluster_addresses(spec, before, &path, errors);
    let external = path.field("externalIPs");
    let known: Vec<&str> = before.map_or_else(Vec::new, |before| before.texts("externalIPs").collect());
    for (index, address) in spec.texts("externalIPs").enumerate() {
        let at = external.index(index);
        if addresses::address(&at, address, &known, errors) {
            addresses::endpoint(&at, address, errors);
        }
    }
    errors.one_of(
        &path.field("type"),
        kind,
        &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"],
    );
    if kind == "ClusterIP" {
        for (index, port) in ports.iter().enumerate() {
            if port.int("nodePort").unwrap_or_default() != 0 {
                let detail = "may not be used when `type` is 'ClusterIP'";
                errors.forbidden(&list.index(index).field("nodePort"), detail);
            }
        }
    }
    repeated_ports(ports, &list, errors);
    source_ranges(spec, annotations, before, kind, errors);
    let at = path.field("allocateLoadBalancerNodePorts");
    match (kind, spec.has("allocateLoadBalancerNodePorts")) {
        ("LoadBalancer", false) => errors.required(&Path::new("allocateLoadBalancerNodePorts"), ""),
        ("LoadBalancer", true) | (_, false) => {}
        (_, true) => errors.forbidden(&at, ONLY_BALANCED),
    }
    load_balancer_class(spec, None, errors);
    traffic(spec, kind, &path, errors);
}

const ONLY_BALANCED: &str = "may only be used when `type` is 'LoadBalancer'";

fn of_kind(spec: &Value, kind: &str, headless: bool, path: &Path<'_>, errors: &mut Errors) {
    let cluster_ips = path.field("clusterIPs");
    match kind {
        "LoadBalancer" | "NodePort" if headless => {
            let detail = format!("may not be set to 'None' for {kind} services");
            errors.invalid(&cluster_ips.index(0), "None", detail);
        }
        "ExternalName" => {
            const NOT_SET: &str = "may not be set for ExternalName services";
            for field in ["clusterIPs", "ipFamilies"] {
                if !spec.list(field).is_empty() {
                    errors.forbidden(&path.field(field), NOT_SET);
                }
            }
            if spec.has("ipFamilyPolicy") {
                errors.forbidden(&path.field("ipFamilyPolicy"), NOT_SET);
            }
            let name = spec.text("externalName");
            let name = name.strip_suffix('.').unwrap_or(name);
            let at = path.field("externalName");
            if name.is_empty() {
                errors.required(&at, "");
            } else {
                errors.problems(&at, name, names::subdomain_problems(name));
            }
        }
        _ => {}
    }
}

fn service_port<'a>(
    port: &'a Value,
    needs_name: bool,
    known: &mut BTreeSet<&'a str>,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    let name = port.text("name");
    if !name.is_empty() {
        errors.problems(&path.field("name"), name, names::label_problems(name));
        if !known.insert(name) {
            errors.duplicate(&path.field("name"), name);
        }
    } else if needs_name {
        errors.required(&path.field("name"), "");
    }
    pod::port_number(port.int("port").unwrap_or_default(), &path.field("port"), errors);
    errors.one_of(&path.field("protocol"), port.text("protocol"), &pod::PROTOCOLS);
    pod::port_number_or_name(port.part("targetPort"), &path.field("targetPort"), errors);
    if let Some(protocol) = port.text_if_set("appProtocol") {
        errors.problems(
            &path.field("appProtocol"),
            protocol,
            names::qualified_problems(protocol),
        );
    }
}

fn repeated_ports(ports: &[Value], path: &Path<'_>, errors: &mut Errors) {
    let mut node_ports = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        let number = port.int("nodePort").unwrap_or_default();
        if number != 0 && !node_ports.insert((port.text("protocol"), number)) {
            errors.duplicate(&path.index(index).field("nodePort"), number);
        }
    }
    let mut own = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        let number = port.int("port").unwrap_or_default();
        if !own.insert((port.text("protocol"), number)) {
            let key = json!({"protocol": port.text("protocol"), "port": number});
            errors.duplicate_shown(&path.index(index), go::text("core.ServicePort", Some(&key)), "");
        }
    }
}

fn session_affinity(spec: &Value, affinity: &str, path: &Path<'_>, errors: &mut Errors) {
    let config = spec.part("sessionAffinityConfig");
    if affinity == "None" && config.is_some() {
        return errors.forbidden(path, "must not be set when session affinity is None");
    }
    if affinity != "ClientIP" {
        return;
    }
    const NEEDED: &str = "when session affinity type is ClientIP";
    let Some(config) = config else {
        return errors.required(path, NEEDED);
    };
    let at = path.field("clientIP");
    let Some(client) = config.part("clientIP") else {
        return errors.required(&at, NEEDED);
    };
    let at = at.field("timeoutSeconds");
    match client.int("timeoutSeconds") {
        None => errors.required(&at, NEEDED),
        Some(seconds) if !(1..=TIMEOUT_MOST).contains(&seconds) => {
            let detail = format!("must be greater than 0 and less than {TIMEOUT_MOST}");
            errors.invalid(&at, seconds, detail);
        }
        Some(_) => {}
    }
}

/// The errors in the addresses that a service asks for.
pub(crate) fn address_errors(
    spec: &Value,
    before: Option<&Value>,
) -> Vec<pod_rules::field_error::FieldError> {
    let mut errors = Errors::default();
    cluster_addresses(spec, before, &Path::new("spec"), &mut errors);
    errors.into_vec()
}

fn cluster_addresses(spec: &Value, before: Option<&Value>, path: &Path<'_>, errors: &mut Errors) {
    if spec.text("type") == "ExternalName" {
        return;
    }
    let at = path.field("clusterIPs");
    let all = spec.list("clusterIPs");
    let shown = || Value::from(all.to_vec());
    let first = spec.text("clusterIP");
    match (first.is_empty(), all.first()) {
        (false, None) => errors.required(&at, ""),
        (false, Some(other)) if other != first => {
            errors.invalid(&at, shown(), "first value must match `clusterIP`");
        }
        (true, Some(_)) => {
            errors.invalid(&at, shown(), "must be empty when `clusterIP` is not specified");
        }
        _ => {}
    }
    let families = path.field("ipFamilies");
    let mut seen = BTreeSet::new();
    for (index, family) in spec.texts("ipFamilies").enumerate() {
        let at = families.index(index);
        errors.one_of_or_empty(&at, family, &FAMILIES);
        if !seen.insert(family) {
            errors.duplicate(&at, family);
        }
    }
    if let Some(policy) = spec.text_if_set("ipFamilyPolicy") {
        errors.one_of_or_empty(&path.field("ipFamilyPolicy"), policy, &POLICIES);
    }
    let known: Vec<&str> = before.map_or_else(Vec::new, |before| before.texts("clusterIPs").collect());
    let mut usable = true;
    for (index, address) in spec.texts("clusterIPs").enumerate() {
        if index == 0 && address == "None" {
            if all.len() > 1 {
                usable = false;
                errors.invalid(&at, shown(), "'None' must be the first and only value");
            }
            continue;
        }
        usable &= addresses::address(&at.index(index), address, &known, errors);
    }
    if all.len() > 2 {
        errors.invalid(&at, shown(), "may only hold up to 2 values");
    }
    if !usable {
        return;
    }
    let kinds: Vec<bool> = spec
        .texts("clusterIPs")
        .filter_map(parse)
        .map(|address| address.is_ipv4())
        .collect();
    if all.len() > 1 && kinds.first() == kinds.get(1) {
        let detail = "may specify no more than one IP for each IP family";
        errors.invalid(&at, shown(), detail);
    }
    if is_headless(spec) {
        return;
    }
    for (index, (address, family)) in spec.texts("clusterIPs").zip(spec.texts("ipFamilies")).enumerate() {
        let is_v6 = address.contains(':');
        if (family == "IPv4" && is_v6) || (family == "IPv6" && !is_v6) {
            let detail = format!("expected an {family} value as indicated by `ipFamilies[{index}]`");
            errors.invalid(&at.index(index), address, detail);
        }
    }
}

fn source_ranges(
    spec: &Value,
    annotations: &shared_json::Map,
    before: Option<&Value>,
    kind: &str,
    errors: &mut Errors,
) {
    let path = Path::new("spec.LoadBalancerSourceRanges");
    if !spec.list("loadBalancerSourceRanges").is_empty() {
        if kind != "LoadBalancer" {
            errors.forbidden(&path, ONLY_BALANCED);
        }
        let known: Vec<&str> = before.map_or_else(Vec::new, |before| {
            before.texts("loadBalancerSourceRanges").map(str::trim).collect()
        });
        for (index, range) in spec.texts("loadBalancerSourceRanges").enumerate() {
            addresses::network(&path.index(index), range.trim(), &known, errors);
        }
    } else if let Some(ranges) = annotations.text_if_set(SOURCE_RANGES) {
        let at = Path::new("metadata.annotations");
        let at = at.key(SOURCE_RANGES);
        if kind != "LoadBalancer" {
            errors.forbidden(&at, ONLY_BALANCED);
        }
        for range in ranges.trim().split(',').filter(|range| !range.is_empty()) {
            addresses::network(&at, range.trim(), &[], errors);
        }
    }
}

fn load_balancer_class(spec: &Value, before: Option<&Value>, errors: &mut Errors) {
    let path = Path::new("spec.loadBalancerClass");
    let class = spec.text_if_set("loadBalancerClass");
    let balanced = spec.text("type") == "LoadBalancer";
    if let Some(before) = before
        && balanced
        && before.text("type") == "LoadBalancer"
        && before.text_if_set("loadBalancerClass") != class
    {
        let shown = class.map_or(Value::Null, Value::from);
        errors.invalid(&path, shown, "may not change once set");
    }
    match class {
        Some(class) if balanced => errors.problems(&path, class, names::qualified_problems(class)),
        Some(_) => errors.forbidden(&path, ONLY_BALANCED),
        None => {}
    }
}

/// Whether the service is reached from outside the cluster.
fn is_external(spec: &Value) -> bool {
    match spec.text("type") {
        "LoadBalancer" | "NodePort" => true,
        "ClusterIP" => !spec.list("externalIPs").is_empty(),
        _ => false,
    }
}

/// Whether nodes report to a load balancer if they have endpoints.
pub(crate) fn needs_health_check(spec: &Value) -> bool {
    spec.text("type") == "LoadBalancer" && spec.text("externalTrafficPolicy") == "Local"
}

fn traffic(spec: &Value, kind: &str, path: &Path<'_>, errors: &mut Errors) {
    let policy = spec.text("externalTrafficPolicy");
    let at = path.field("externalTrafficPolicy");
    if is_external(spec) {
        errors.one_of(&at, policy, &["Cluster", "Local"]);
    } else if !policy.is_empty() {
        errors.invalid(&at, policy, "may only be set for externally-accessible services");
    }
    let port = spec.int("healthCheckNodePort").unwrap_or_default();
    let at = path.field("healthCheckNodePort");
    match (needs_health_check(spec), port) {
        (false, 0) => {}
        (false, port) => {
            let detail =
                "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
            errors.invalid(&at, port, detail);
        }
        (true, 0) => errors.required(&at, ""),
        (true, port) => pod::port_number(port, &at, errors),
    }
    let at = path.field("internalTrafficPolicy");
    match spec.text_if_set("internalTrafficPolicy") {
        None if matches!(kind, "NodePort" | "LoadBalancer" | "ClusterIP") => errors.required(&at, ""),
        None => {}
        Some(policy) => errors.one_of_or_empty(&at, policy, &["Cluster", "Local"]),
    }
    if let Some(distribution) = spec.text_if_set("trafficDistribution") {
        errors.one_of_or_empty(
            &path.field("trafficDistribution"),
            distribution,
            &["PreferClose", "PreferSameZone", "PreferSameNode"],
        );
    }
}

fn is_named_outside(spec: &Value) -> bool {
    spec.text("type") == "ExternalName"
}

/// Addresses of a service stay, but the second may come and go.
fn addresses_stay(spec: &Value, before: &Value, errors: &mut Errors) {
    if is_named_outside(spec) || is_named_outside(before) || (is_headless(spec) && is_headless(before)) {
        return;
    }
    let (new, old) = (spec.list("clusterIPs"), before.list("clusterIPs"));
    let path = Path::new("spec.clusterIPs");
    const STAY: &str = "may not change once set";
    let shown = || Value::from(new.to_vec());
    if old.len() == new.len() {
        for (index, (new, old)) in new.iter().zip(old).enumerate() {
            if new != old {
                errors.invalid(&path.index(index), shown(), STAY);
            }
        }
        return;
    }
    if new.is_empty() {
        errors.invalid(&path.index(0), shown(), "primary clusterIP can not be unset");
    } else if !old.is_empty() && new.first() != old.first() {
        errors.invalid(&path.index(0), shown(), STAY);
    }
    if old.len() > new.len() && new.len() == 1 {
        single(
            spec,
            "must be set to 'SingleStack' when releasing the secondary clusterIP",
            errors,
        );
    }
}

fn families_stay(spec: &Value, before: &Value, errors: &mut Errors) {
    if is_named_outside(spec) || is_named_outside(before) || is_headless(spec) || is_headless(before) {
        return;
    }
    let (new, old) = (spec.list("ipFamilies"), before.list("ipFamilies"));
    let path = Path::new("spec.ipFamilies");
    const STAY: &str = "may not change once set";
    let addresses = || Value::from(spec.list("clusterIPs").to_vec());
    if old.len() == new.len() {
        for (new_family, old_family) in new.iter().zip(old) {
            if new_family != old_family {
                errors.invalid(&path.index(0), new.to_vec(), STAY);
            }
        }
        return;
    }
    if old.len() > new.len() && spec.list("clusterIPs").is_empty() {
        errors.invalid(&path.index(0), new.to_vec(), "primary ipFamily can not be unset");
    }
    if !new.is_empty() && !old.is_empty() && new.first() != old.first() {
        errors.invalid(&path.index(0), addresses(), STAY);
    }
    if old.len() > new.len() && new.len() == 1 {
        single(
            spec,
            "must be set to 'SingleStack' when releasing the secondary ipFamily",
            errors,
        );
    }
}

fn single(spec: &Value, detail: &str, errors: &mut Errors) {
    let policy = spec.text_if_set("ipFamilyPolicy");
    if policy != Some("SingleStack") {
        let shown = policy.map_or(Value::Null, Value::from);
        errors.invalid(&Path::new("spec.ipFamilyPolicy"), shown, detail);
    }
}

/// A changed status: where load balancers are reached.
pub(super) fn status(service: &Value, old: &Value, errors: &mut Errors) {
    let kind = service.pointer("/spec/type").and_then(Value::as_str);
    let balanced = kind == Some("LoadBalancer");
    ingress(service, old, Some(balanced), errors);
}

/// Points of ingress; `balanced` says whether a service may have any.
pub(super) fn ingress(object: &Value, old: &Value, balanced: Option<bool>, errors: &mut Errors) {
    let of = |object: &Value| -> Array {
        object
            .pointer("/status/loadBalancer/ingress")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default()
    };
    let (new, old) = (of(object), of(old));
    let path = Path::new("status.loadBalancer.ingress");
    if balanced == Some(false) && !new.is_empty() {
        return errors.forbidden(&path, "may only be used when `spec.type` is 'LoadBalancer'");
    }
    let known: Vec<&str> = old.iter().map(|point| point.text("ip")).collect();
    for (index, point) in new.iter().enumerate() {
        let at = path.index(index);
        let (address, host) = (point.text("ip"), point.text("hostname"));
        if !address.is_empty() {
            addresses::address(&at.field("ip"), address, &known, errors);
        }
        if balanced.is_some() {
            let at = at.field("ipMode");
            match (point.text_if_set("ipMode"), address.is_empty()) {
                (None, false) => errors.required(&at, "must be specified when `ip` is set"),
                (Some(_), true) => errors.forbidden(&at, "may not be specified when `ip` is not set"),
                (Some(mode), false) => errors.one_of_or_empty(&at, mode, &["Proxy", "VIP"]),
                (None, true) => {}
            }
        }
        if !host.is_empty() {
            let at = at.field("hostname");
            errors.problems(&at, host, names::subdomain_problems(host));
            if parse(host).is_some() {
                errors.invalid(&at, host, "must be a DNS name, not an IP address");
            }
        }
    }
}

/// The warnings for a client about a valid service.
pub(super) fn warnings(service: &Value) -> Vec<String> {
    let mut out = Vec::new();
    let spec = service.part("spec").unwrap_or(&NOTHING);
    let annotations = service.part("metadata").unwrap_or(&NOTHING).map("annotations");
    if annotations.has(HINTS) {
        out.push(format!(
            "annotation {HINTS} is deprecated, please use {MODE} instead"
        ));
    }
    let path = Path::new("spec");
    let headless = is_headless(spec);
    let list = path.field("clusterIPs");
    if !headless {
        for (index, address) in spec.texts("clusterIPs").enumerate() {
            out.extend(pod::address_warning(&list.index(index), address));
        }
    }
    let external = !spec.list("externalIPs").is_empty();
    if headless {
        if !spec.text("loadBalancerIP").is_empty() {
            out.push("spec.loadBalancerIP is ignored for headless services".to_owned());
        }
        if external {
            out.push("spec.externalIPs is ignored for headless services".to_owned());
        }
        if spec.text("sessionAffinity") != "None" {
            out.push("spec.SessionAffinity is ignored for headless services".to_owned());
        }
    }
    let list = path.field("externalIPs");
    for (index, address) in spec.texts("externalIPs").enumerate() {
        out.extend(pod::address_warning(&list.index(index), address));
    }
    if external && !headless && !is_named_outside(spec) {
        out.push(
            "spec.externalIPs is deprecated and may no longer be implemented in some clusters".to_owned(),
        );
    }
    let address = spec.text("loadBalancerIP");
    if !address.is_empty() {
        out.extend(pod::address_warning(&path.field("loadBalancerIP"), address));
    }
    if is_named_outside(spec) && external {
        out.push("spec.externalIPs is ignored when spec.type is \"ExternalName\"".to_owned());
    }
    if !is_named_outside(spec) && !spec.text("externalName").is_empty() {
        out.push("spec.externalName is ignored when spec.type is not \"ExternalName\"".to_owned());
    }
    if spec.text("trafficDistribution") == "PreferClose" {
        out.push(
            "spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"".to_owned(),
        );
    }
    out
}
