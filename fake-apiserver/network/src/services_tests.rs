//! Rows: the endpoint behind an address of a Service.

use std::collections::BTreeSet;
use std::time::Duration;

use client_kit::Seed;
use rstest::rstest;
use shared_json::json;

use super::*;

const NODE: &str = "10.99.0.10";

/// Two ports, two endpoints on two nodes, and one that ends.
fn services(more: Value) -> Services {
    let mut services = Services::default();
    let mut service = json!({
        "metadata": {"namespace": "n", "name": "web"},
        "spec": {"clusterIP": "10.96.0.5", "clusterIPs": ["10.96.0.5"], "externalIPs": ["1.2.3.4"], "ports": [
            {"name": "http", "port": 80, "nodePort": 30_080}, {"name": "admin", "port": 81},
            {"name": "dns", "port": 53, "nodePort": 30_080, "protocol": "UDP"},
        ]},
        "status": {"loadBalancer": {"ingress": [{"ip": "5.6.7.8"}]}},
    });
    for (key, value) in more.as_object().into_iter().flatten() {
        service["spec"][&**key] = value.clone();
    }
    services.set_service(&service);
    let endpoint = |address: &str, node: &str, ready: bool| json!({"addresses": [address], "nodeName": node, "conditions": {"ready": ready, "serving": true}});
    services.set_slice(Arc::new(json!({
        "metadata": {"namespace": "n", "name": "web-1", "labels": {"kubernetes.io/service-name": "web"}},
        "ports": [
            {"name": "http", "port": 8080}, {"name": "admin", "port": 9090}, {"name": "dns", "port": 5353, "protocol": "UDP"},
        ],
        "endpoints": [
            endpoint("10.244.1.2", "node1", true), endpoint("10.244.2.2", "node2", true), endpoint("10.244.3.2", "node3", false),
        ],
    })));
    services.set_slice(Arc::new(json!({
        "metadata": {"namespace": "n", "name": "other-1", "labels": {"kubernetes.io/service-name": "other"}},
        "ports": [{"name": "http", "port": 1}], "endpoints": [endpoint("10.244.1.9", "node1", true)],
    })));
    services
}

/// The endpoints that forty connections to an address reach.
fn reached(services: &mut Services, caller: &str, to: &str) -> String {
    let mut random = Seed(1).random();
    // An address of UDP ends with it.
    let (to, protocol) = match to.strip_suffix("/udp") {
        Some(to) => (to, Protocol::Udp),
        None => (to, Protocol::Tcp),
    };
    let to: SocketAddr = to.parse().expect("an address");
    let entry = (to.ip().to_string() == NODE).then_some("node1");
    let from = "10.244.9.9".parse().expect("an address");
    let now = Instant::now();
    let all: BTreeSet<String> = (0..40)
        .map(
            |_| match services.route((from, Some(caller)), (protocol, to), entry, now, &mut random) {
                Route::To(address) => address.to_string(),
                other => format!("{other:?}"),
            },
        )
        .collect();
    Vec::from_iter(all).join(" ")
}

#[rstest]
#[case::first_port(json!({}), "10.96.0.5:80", "10.244.1.2:8080 10.244.2.2:8080")]
#[case::second_port(json!({}), "10.96.0.5:81", "10.244.1.2:9090 10.244.2.2:9090")]
#[case::unknown_port(json!({}), "10.96.0.5:82", "Nowhere")]
#[case::another_protocol(json!({}), "10.96.0.5:53", "Nowhere")]
#[case::datagrams(json!({}), "10.96.0.5:53/udp", "10.244.1.2:5353 10.244.2.2:5353")]
#[case::datagrams_of_another_protocol(json!({}), "10.96.0.5:80/udp", "Nowhere")]
#[case::node_port_of_two_protocols(json!({}), "10.99.0.10:30080/udp", "10.244.1.2:5353 10.244.2.2:5353")]
#[case::node_port(json!({}), "10.99.0.10:30080", "10.244.1.2:8080 10.244.2.2:8080")]
#[case::a_node_itself(json!({}), "10.99.0.10:80", "Direct")]
#[case::external(json!({}), "1.2.3.4:80", "10.244.1.2:8080 10.244.2.2:8080")]
#[case::balanced(json!({}), "5.6.7.8:80", "10.244.1.2:8080 10.244.2.2:8080")]
#[case::local(json!({"internalTrafficPolicy": "Local"}), "10.96.0.5:80", "10.244.2.2:8080")]
#[case::local_from_outside(json!({"externalTrafficPolicy": "Local"}), "10.99.0.10:30080", "10.244.1.2:8080")]
#[case::local_balanced(json!({"externalTrafficPolicy": "Local"}), "5.6.7.8:80", "10.244.1.2:8080 10.244.2.2:8080")]
fn routes(#[case] more: Value, #[case] to: &str, #[case] expected: &str) {
    assert_eq!(reached(&mut services(more), "node2", to), expected);
}

#[test]
fn a_policy_keeps_callers_to_nodes_without_endpoints() {
    let mut services = services(json!({"internalTrafficPolicy": "Local"}));
    assert_eq!(reached(&mut services, "node4", "10.96.0.5:80"), "Lost");
}

#[test]
fn endpoints_that_end_serve_while_no_other_does() {
    let mut services = services(json!({}));
    services.set_slice(Arc::new(json!({
        "metadata": {"namespace": "n", "name": "web-1", "labels": {"kubernetes.io/service-name": "web"}},
        "ports": [{"name": "http", "port": 8080}],
        "endpoints": [{"addresses": ["10.244.3.2"], "conditions": {"ready": false, "serving": true, "terminating": true}}],
    })));
    assert_eq!(reached(&mut services, "node1", "10.96.0.5:80"), "10.244.3.2:8080");
    let gone = json!({"metadata": {"namespace": "n", "name": "web-1"}});
    services.remove_slice(&gone);
    assert_eq!(reached(&mut services, "node1", "10.96.0.5:80"), "Nowhere");
    services.remove_service(&json!({"metadata": {"namespace": "n", "name": "web"}}));
    assert!(!services.has_address("10.96.0.5".parse().expect("an address")));
    assert_eq!(reached(&mut services, "node1", "10.99.0.10:30080"), "Direct");
}

#[tokio::test(start_paused = true)]
async fn clients_stay_with_an_endpoint() {
    let affinity =
        json!({"sessionAffinity": "ClientIP", "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 10}}});
    let mut services = services(affinity);
    let mut random = Seed(1).random();
    let to = "10.96.0.5:80".parse().expect("an address");
    let mut ask = |from: &str| {
        let from = from.parse().expect("an address");
        services.route(
            (from, None),
            (Protocol::Tcp, to),
            None,
            Instant::now(),
            &mut random,
        )
    };
    let first = ask("10.244.9.1");
    assert!((0..20).all(|_| ask("10.244.9.1") == first), "one client");
    assert!((2..20).any(|n| ask(&format!("10.244.9.{n}")) != first), "others");
    tokio::time::sleep(Duration::from_secs(11)).await;
    let mut later = Vec::new();
    for _ in 0..20 {
        later.push(ask("10.244.9.1"));
        tokio::time::sleep(Duration::from_secs(11)).await;
    }
    assert!(
        later.iter().any(|route| *route != first),
        "after the time is over"
    );
}

#[test]
fn programs_are_told_of_services() {
    let told: Vec<String> = services(json!({}))
        .variables("n", true)
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    for expected in [
        "WEB_SERVICE_HOST=10.96.0.5",
        "WEB_SERVICE_PORT=80",
        "WEB_SERVICE_PORT_ADMIN=81",
        "WEB_PORT=tcp://10.96.0.5:80",
        "WEB_PORT_53_UDP_PROTO=udp",
        "WEB_PORT_81_TCP=tcp://10.96.0.5:81",
    ] {
        assert!(told.iter().any(|line| line == expected), "{expected}: {told:?}");
    }
}
