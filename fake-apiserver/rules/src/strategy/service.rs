//! Services: addresses in the cluster and ports of nodes are given to them, and taken back when they no longer need them.
//!
//! Pure but for [`Pool`], which knows the addresses and ports of others. There is no list of free ones: an address is free if no
//! service has it.

use pod_rules::field_error::FieldError;
use shared_json::{Value, json};

use super::Strategy;
use crate::validation::fields::{Fields, NOTHING};
use crate::validation::{cluster_address_errors, is_headless, needs_health_check};

/// The ports of nodes that services may have.
pub(crate) const NODE_PORTS: std::ops::RangeInclusive<i64> = 30_000..=32_767;
/// The first port that a dry run gives.
const FIRST_DRY_PORT: i64 = 32_769;
/// The network of services.
const NETWORK: [u8; 2] = [10, 96];

pub(super) struct ServiceStrategy;

impl Strategy for ServiceStrategy {
    fn returns_deleted_object(&self) -> bool {
        true
    }

    fn allows_create_on_update(&self) -> bool {
        true
    }

    fn prepare_create(&self, object: &mut Value) {
        object["status"] = json!({"loadBalancer": {}});
    }

    fn prepare_update(&self, object: &mut Value, old: &Value) {
        super::copy_field(object, old, "status");
        drop_dependent(object, old);
        let kind = object.pointer("/spec/type").and_then(Value::as_str);
        if kind != Some("LoadBalancer") {
            object["status"]["loadBalancer"] = json!({});
        }
    }
}

/// The addresses and ports of other services, and a source of free ones.
pub trait Pool {
    /// Whether another service has this address.
    fn has_address(&self, address: &str) -> bool;
    /// Whether another service has this port of nodes.
    fn has_port(&self, port: i64) -> bool;
    /// A number in `low..=high`.
    fn draw(&self, low: u64, high: u64) -> u64;
    /// Whether it is a dry run: then the others' addresses and ports are not looked up, and those given are not real.
    fn is_dry(&self) -> bool {
        false
    }
}

/// Gives a new or changed service its addresses and ports.
///
/// # Errors
/// The addresses or ports that cannot be had.
pub fn allocate(service: &mut Value, old: Option<&Value>, pool: &dyn Pool) -> Result<(), Refusal> {
    let before = old.and_then(|old| old.part("spec"));
    let Some(spec) = service.get_mut("spec").filter(|spec| spec.is_object()) else {
        return Ok(());
    };
    if let Some(before) = before {
        keep_allocated(spec, before);
    }
    normalise(spec, before);
    families(spec, before)?;
    addresses(spec, before, pool)?;
    ports(spec, before, pool)
}

/// Why a service cannot have the addresses or ports that it asks for.
#[derive(Debug)]
pub enum Refusal {
    /// Errors in fields.
    Fields(Vec<FieldError>),
    /// An internal error of the real server.
    Internal(String),
}

impl From<Vec<FieldError>> for Refusal {
    fn from(errors: Vec<FieldError>) -> Self {
        Self::Fields(errors)
    }
}

fn is_named_outside(spec: &Value) -> bool {
    spec.text("type") == "ExternalName"
}

/// Whether the type is one of those whose ports the nodes have.
fn is_on_nodes(spec: &Value) -> bool {
    matches!(spec.text("type"), "NodePort" | "LoadBalancer")
}

/// Whether ports of the nodes are to be found for it.
fn needs_ports(spec: &Value) -> bool {
    match spec.text("type") {
        "NodePort" => true,
        "LoadBalancer" => spec.flag("allocateLoadBalancerNodePorts") != Some(false),
        _ => false,
    }
}

fn set(spec: &mut Value, field: &str, value: Option<Value>) {
    if let Some(spec) = spec.as_object_mut() {
        match value {
            Some(value) => spec.insert(field.to_owned(), value),
            None => spec.remove(field),
        };
    }
}

fn node_ports(spec: &Value) -> Vec<i64> {
    let ports = spec.list("ports").iter();
    ports
        .filter_map(|port| port.int("nodePort"))
        .filter(|port| *port != 0)
        .collect()
}

/// Addresses and ports that a change does not mention stay.
fn keep_allocated(spec: &mut Value, before: &Value) {
    if !is_named_outside(spec) && !is_named_outside(before) {
        if spec.text("clusterIP").is_empty() {
            set(spec, "clusterIP", before.part("clusterIP").cloned());
        }
        if spec.list("clusterIPs").is_empty() {
            set(spec, "clusterIPs", before.part("clusterIPs").cloned());
        }
    }
    if needs_ports(spec) && needs_ports(before) {
        let (new, old) = (node_ports(spec), node_ports(before));
        let known: Vec<(String, i64)> = before
            .list("ports")
            .iter()
            .map(|port| {
                (
                    port.text("name").to_owned(),
                    port.int("nodePort").unwrap_or_default(),
                )
            })
            .collect();
        let ports = spec.get_mut("ports").and_then(Value::as_array_mut);
        for port in ports.into_iter().flatten() {
            let kept = known.iter().rev().find(|(name, _)| *name == port.text("name"));
            if let Some((_, number)) = kept
                && port.int("nodePort").unwrap_or_default() == 0
                && *number != 0
                && !(new.contains(number) && old.contains(number))
            {
                port["nodePort"] = Value::from(*number);
            }
        }
    }
    if needs_health_check(spec) && needs_health_check(before) && !spec.has("healthCheckNodePort") {
        set(
            spec,
            "healthCheckNodePort",
            before.part("healthCheckNodePort").cloned(),
        );
    }
}

/// `clusterIP` is the first of `clusterIPs`; a client that sets only one of them means both.
fn normalise(spec: &mut Value, before: Option<&Value>) {
    let address = spec.text("clusterIP").to_owned();
    let Some(before) = before else {
        if !address.is_empty() && spec.list("clusterIPs").is_empty() {
            set(spec, "clusterIPs", Some(json!([address])));
        }
        return;
    };
    let same = spec.list("clusterIPs") == before.list("clusterIPs");
    if address == before.text("clusterIP") || !same {
        return;
    }
    let all = if address.is_empty() && !before.text("clusterIP").is_empty() {
        None
    } else {
        Some(json!([address]))
    };
    set(spec, "clusterIPs", all);
}

fn invalid(path: impl Into<String>, value: Value, detail: impl Into<String>) -> FieldError {
    FieldError::invalid(path, value, detail)
}

/// The families of addresses, of which there is one in this cluster: IPv4.
fn families(spec: &mut Value, before: Option<&Value>) -> Result<(), Vec<FieldError>> {
    if is_named_outside(spec) {
        return Ok(());
    }
    let selectorless = spec.text("clusterIP") == "None" && spec.map("selector").is_empty();
    if !spec.has("ipFamilyPolicy") {
        let policy = match before.and_then(|before| before.text_if_set("ipFamilyPolicy")) {
            Some(policy) => policy,
            None if selectorless => "RequireDualStack",
            None => "SingleStack",
        };
        set(spec, "ipFamilyPolicy", Some(Value::from(policy)));
    }
    let found = cluster_address_errors(spec, before);
    if !found.is_empty() {
        return Err(found);
    }
    let policy = spec.text("ipFamilyPolicy").to_owned();
    let policy_path = "spec.ipFamilyPolicy";
    let mut errors = Vec::new();
    if let Some(before) = before {
        for (field, what) in [("clusterIPs", "cluster IP"), ("ipFamilies", "IP family")] {
            let (new, old) = (spec.list(field).to_vec(), before.list(field));
            if policy == "SingleStack" {
                if new == old && new.len() > 1 {
                    set(spec, field, new.first().map(|first| json!([first])));
                }
            } else if !new.is_empty() && new.len() < old.len() {
                let detail = format!("must be 'SingleStack' to release the secondary {what}");
                errors.push(invalid(policy_path, Value::from(policy.as_str()), detail));
            }
        }
    }
    if policy == "SingleStack" {
        for (field, what) in [("clusterIPs", "cluster IPs"), ("ipFamilies", "IP families")] {
            if spec.list(field).len() == 2 {
                let detail = format!(
                    "must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are specified"
                );
                errors.push(invalid(policy_path, Value::from(policy.as_str()), detail));
            }
        }
    }
    let mut known: Vec<Value> = spec.list("ipFamilies").to_vec();
    for (index, address) in spec.texts("clusterIPs").enumerate() {
        if address == "None" {
            break;
        }
        if index < known.len() {
            continue;
        }
        if address.contains(':') {
            let shown = Value::from(spec.list("clusterIPs").to_vec());
            let path = format!("spec.clusterIPs[{index}]");
            errors.push(invalid(path, shown, "IPv6 is not configured on this cluster"));
        } else {
            known.push(Value::from("IPv4"));
        }
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    if selectorless {
        if known.is_empty() {
            known.push(Value::from("IPv4"));
        }
        if known.len() < 2 && policy != "SingleStack" {
            let other = if known.first() == Some(&Value::from("IPv4")) {
                "IPv6"
            } else {
                "IPv4"
            };
            known.push(Value::from(other));
        }
        set(spec, "ipFamilies", Some(Value::from(known)));
        return Ok(());
    }
    if policy == "RequireDualStack" {
        let detail = "this cluster is not configured for dual-stack services";
        errors.push(invalid(policy_path, Value::from(policy.as_str()), detail));
    }
    for (index, family) in known.iter().enumerate() {
        if family != "IPv4" {
            let path = format!("spec.ipFamilies[{index}]");
            errors.push(invalid(path, family.clone(), "not configured on this cluster"));
        }
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    if known.is_empty() {
        known.push(Value::from("IPv4"));
    }
    set(spec, "ipFamilies", Some(Value::from(known)));
    Ok(())
}

fn addresses(spec: &mut Value, before: Option<&Value>, pool: &dyn Pool) -> Result<(), Vec<FieldError>> {
    let held = before.is_some_and(|before| !is_named_outside(before));
    if held || is_named_outside(spec) || is_headless(spec) {
        return Ok(());
    }
    let asked = spec.texts("clusterIPs").next().unwrap_or_default().to_owned();
    let address = if asked.is_empty() && pool.is_dry() {
        format!("{}.{}.0.0", NETWORK[0], NETWORK[1])
    } else if asked.is_empty() {
        draw_address(pool)
    } else {
        let refuse = |why: &str| {
            let shown = Value::from(spec.list("clusterIPs").to_vec());
            let detail = format!("failed to allocate IP {asked}: {why}");
            Err(vec![invalid("spec.clusterIPs", shown, detail)])
        };
        let octets: Vec<u8> = asked.split('.').filter_map(|part| part.parse().ok()).collect();
        match octets.as_slice() {
            [a, b, c, d] if [*a, *b] == NETWORK && !matches!((c, d), (0, 0) | (255, 255)) => {}
            _ if pool.is_dry() => {
                let [a, b] = NETWORK;
                return refuse(&format!(
                    "the provided IP ({asked}) is not in the valid range. The range of valid IPs is {a}.{b}.0.0/16"
                ));
            }
            _ => return refuse("the provided network does not match the current range"),
        }
        if !pool.is_dry() && pool.has_address(&asked) {
            return refuse("provided IP is already allocated");
        }
        asked
    };
    set(spec, "clusterIP", Some(Value::from(address.as_str())));
    set(spec, "clusterIPs", Some(json!([address])));
    Ok(())
}

/// An address that no service has. The first of the network are left to services that ask for one.
fn draw_address(pool: &dyn Pool) -> String {
    const FIRST: u64 = 257;
    const LAST: u64 = 65_534;
    let at = |number: u64| format!("{}.{}.{}.{}", NETWORK[0], NETWORK[1], number / 256, number % 256);
    let start = pool.draw(FIRST, LAST);
    let mut candidates = (start..=LAST).chain(FIRST..start).map(at);
    candidates
        .find(|address| !pool.has_address(address))
        .unwrap_or_else(|| at(start))
}

/// Why nothing gets this port of the nodes.
fn not_to_be_had(port: i64, taken: &[i64], pool: &dyn Pool) -> Option<String> {
    if !pool.is_dry() && !NODE_PORTS.contains(&port) {
        let (first, last) = (NODE_PORTS.start(), NODE_PORTS.end());
        return Some(format!(
            "provided port is not in the valid range. The range of valid ports is {first}-{last}"
        ));
    }
    let is_taken = pool.has_port(port) || taken.contains(&port);
    is_taken.then(|| "provided port is already allocated".to_owned())
}

fn ports(spec: &mut Value, before: Option<&Value>, pool: &dyn Pool) -> Result<(), Refusal> {
    let own: Vec<i64> = before.map(node_ports).unwrap_or_default();
    let own_check = before
        .and_then(|before| before.int("healthCheckNodePort"))
        .unwrap_or_default();
    let mut taken: Vec<i64> = Vec::new();
    if is_on_nodes(spec) {
        let draw = needs_ports(spec);
        let list = spec.list("ports").to_vec();
        let mut out = Vec::with_capacity(list.len());
        // Two protocols of one port share a port of the nodes.
        let mut by_port: Vec<(i64, i64)> = Vec::new();
        for (index, mut port) in list.iter().cloned().enumerate() {
            let number = port.int("port").unwrap_or_default();
            let asked = match port.int("nodePort").unwrap_or_default() {
                0 => list
                    .iter()
                    .filter(|_| before.is_none())
                    .filter(|other| other.int("port") == Some(number))
                    .find_map(|other| other.int("nodePort").filter(|port| *port != 0))
                    .unwrap_or_default(),
                asked => asked,
            };
            if asked == 0 && !draw {
                out.push(port);
                continue;
            }
            let shared = by_port
                .iter()
                .find(|(other, _)| *other == number)
                .map(|(_, node)| *node);
            let given = match (asked, shared) {
                (0, Some(shared)) if before.is_none() => shared,
                (0, _) => draw_port(pool, &taken, &own),
                (asked, Some(shared)) if asked == shared => asked,
                (asked, _) if own.contains(&asked) => asked,
                (asked, _) if before.is_some() && taken.contains(&asked) => asked,
                (asked, _) => {
                    if let Some(why) = not_to_be_had(asked, &taken, pool) {
                        let path = format!("spec.ports[{index}].nodePort");
                        return Err(vec![invalid(path, Value::from(asked), why)].into());
                    }
                    asked
                }
            };
            taken.push(given);
            by_port.push((number, given));
            port["nodePort"] = Value::from(given);
            out.push(port);
        }
        if !out.is_empty() {
            set(spec, "ports", Some(Value::from(out)));
        }
    }
    let checked = before.is_some_and(needs_health_check);
    if needs_health_check(spec) && !checked {
        let asked = spec.int("healthCheckNodePort").unwrap_or_default();
        if asked == 0 {
            if own_check != 0 {
                taken.push(own_check);
            }
            let port = draw_port(pool, &taken, &own);
            set(spec, "healthCheckNodePort", Some(Value::from(port)));
        } else if let Some(why) = not_to_be_had(asked, &taken, pool) {
            return Err(Refusal::Internal(format!(
                "failed to allocate requested HealthCheck NodePort {asked}: {why}"
            )));
        }
    }
    Ok(())
}

fn draw_port(pool: &dyn Pool, taken: &[i64], own: &[i64]) -> i64 {
    if pool.is_dry() {
        return taken.iter().max().map_or(FIRST_DRY_PORT, |last| last + 1);
    }
    let (first, last) = (*NODE_PORTS.start(), *NODE_PORTS.end());
    let drawn = pool.draw(first.unsigned_abs(), last.unsigned_abs());
    let start = i64::try_from(drawn).unwrap_or(first);
    let free = |port: &i64| !taken.contains(port) && !own.contains(port) && !pool.has_port(*port);
    (start..=last).chain(first..start).find(free).unwrap_or(start)
}

/// Removes fields that a service of another type no longer needs, unless the client set them anew.
fn drop_dependent(object: &mut Value, old: &Value) {
    let before = old.part("spec").unwrap_or(&NOTHING);
    let Some(spec) = object.get_mut("spec").filter(|spec| spec.is_object()) else {
        return;
    };
    let same = |spec: &Value, field: &str| spec.part(field) == before.part(field);
    if !is_named_outside(before) && is_named_outside(spec) {
        if same(spec, "clusterIP") && same(spec, "clusterIPs") {
            set(spec, "clusterIP", None);
            set(spec, "clusterIPs", None);
        }
        for field in ["ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"] {
            if same(spec, field) {
                set(spec, field, None);
            }
        }
    }
    if is_on_nodes(before) && !is_on_nodes(spec) && node_ports(spec) == node_ports(before) {
        let ports = spec.get_mut("ports").and_then(Value::as_array_mut);
        for port in ports.into_iter().flatten().filter_map(Value::as_object_mut) {
            port.remove("nodePort");
        }
    }
    if needs_health_check(before) && !needs_health_check(spec) && same(spec, "healthCheckNodePort") {
        set(spec, "healthCheckNodePort", None);
    }
    let balanced = |spec: &Value| spec.text("type") == "LoadBalancer";
    if balanced(before) && !balanced(spec) {
        for field in ["allocateLoadBalancerNodePorts", "loadBalancerClass"] {
            if same(spec, field) {
                set(spec, field, None);
            }
        }
    }
    let external = |spec: &Value| match spec.text("type") {
        "LoadBalancer" | "NodePort" => true,
        "ClusterIP" => !spec.list("externalIPs").is_empty(),
        _ => false,
    };
    if external(before) && !external(spec) && same(spec, "externalTrafficPolicy") {
        set(spec, "externalTrafficPolicy", None);
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// A pool in which one address and one port are taken, and that draws the least.
    struct Least;

    impl Pool for Least {
        fn has_address(&self, address: &str) -> bool {
            address == "10.96.1.1"
        }
        fn has_port(&self, port: i64) -> bool {
            port == 30_000
        }
        fn draw(&self, low: u64, _high: u64) -> u64 {
            low
        }
    }

    fn made(spec: Value) -> Value {
        let mut service = json!({"spec": spec});
        match allocate(&mut service, None, &Least) {
            Ok(()) => service["spec"].take(),
            Err(Refusal::Fields(errors)) => {
                json!(errors.iter().map(ToString::to_string).collect::<Vec<_>>())
            }
            Err(Refusal::Internal(why)) => json!([why]),
        }
    }

    #[rstest]
    #[case(json!({"type": "ClusterIP"}), "10.96.1.2")]
    #[case(json!({"type": "ClusterIP", "clusterIP": "10.96.0.9"}), "10.96.0.9")]
    #[case(json!({"type": "ClusterIP", "clusterIP": "None", "selector": {"a": "b"}}), "None")]
    fn addresses_are_given(#[case] spec: Value, #[case] address: &str) {
        let spec = made(spec);
        assert_eq!(spec["clusterIP"], address);
        assert_eq!(spec["clusterIPs"], json!([address]));
        assert_eq!(spec["ipFamilies"], json!(["IPv4"]));
    }

    #[rstest]
    #[case(
        json!({"type": "ClusterIP", "clusterIP": "1.2.3.4"}),
        "spec.clusterIPs: Invalid value: [\"1.2.3.4\"]: failed to allocate IP 1.2.3.4: the provided network does not match \
         the current range"
    )]
    #[case(
        json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": 30000}]}),
        "spec.ports[0].nodePort: Invalid value: 30000: provided port is already allocated"
    )]
    fn what_cannot_be_had(#[case] spec: Value, #[case] error: &str) {
        assert_eq!(made(spec), json!([error]));
    }

    #[test]
    fn two_protocols_share_a_port_of_the_nodes() {
        let ports = json!([{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}, {"port": 80}]);
        let spec = made(json!({"type": "NodePort", "ports": ports}));
        let given: Vec<&Value> = spec["ports"]
            .as_array()
            .unwrap()
            .iter()
            .map(|port| &port["nodePort"])
            .collect();
        assert_eq!(given, [30_001, 30_001, 30_002]);
    }

    #[test]
    fn a_service_of_another_type_gives_back_what_it_had() {
        let old = json!({"spec": {"type": "NodePort", "clusterIP": "10.96.0.9", "clusterIPs": ["10.96.0.9"],
            "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack", "externalTrafficPolicy": "Cluster",
            "ports": [{"port": 80, "nodePort": 30005}]}, "status": {"loadBalancer": {}}});
        let mut new = old.clone();
        new["spec"]["type"] = json!("ClusterIP");
        allocate(&mut new, Some(&old), &Least).unwrap();
        ServiceStrategy.prepare_update(&mut new, &old);
        assert_eq!(new["spec"]["ports"], json!([{"port": 80}]));
        assert_eq!(new["spec"].get("externalTrafficPolicy"), None);
        assert_eq!(new["spec"]["clusterIP"], "10.96.0.9");
    }
}
