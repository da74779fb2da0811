//! Rows: connections that policies allow.

use std::sync::Arc;

use rstest::rstest;
use shared_json::json;

use super::*;

fn end(address: &str) -> End {
    let pod = |namespace: &str, app: &str| {
        Some(Arc::new(json!({
            "metadata": {"namespace": namespace, "name": app, "labels": {"app": app}},
            "spec": {"containers": [{"name": "c", "ports": [{"name": "http", "containerPort": 8080}]}]},
        })))
    };
    let (node, pod) = match address {
        "10.244.1.2" => ("node1", pod("n", "web")),
        "10.244.1.3" => ("node1", pod("n", "db")),
        "10.244.2.3" => ("node2", pod("m", "db")),
        "10.99.0.1" => ("node1", None),
        _ => ("node2", None),
    };
    End {
        address: address.parse().expect("an address"),
        pod,
        node: Some(node.to_owned()),
    }
}

const WEB: &str = "10.244.1.2";
const DB: &str = "10.244.1.3";
const FAR: &str = "10.244.2.3";

#[rstest]
#[case::none(json!(null), DB, WEB, true)]
#[case::closed(json!({"podSelector": {}}), DB, WEB, false)]
#[case::closed_to_the_other_node(json!({"podSelector": {}}), "10.99.0.2", WEB, false)]
#[case::open_to_its_node(json!({"podSelector": {}}), "10.99.0.1", WEB, true)]
#[case::of_another_pod(json!({"podSelector": {"matchLabels": {"app": "db"}}}), DB, WEB, true)]
#[case::of_another_namespace(json!({"podSelector": {}}), DB, FAR, true)]
#[case::ingress_leaves_egress(json!({"podSelector": {}}), WEB, FAR, true)]
#[case::egress(json!({"podSelector": {}, "policyTypes": ["Egress"]}), WEB, FAR, false)]
#[case::egress_leaves_ingress(json!({"podSelector": {}, "policyTypes": ["Egress"]}), FAR, WEB, true)]
#[case::open_to_all(json!({"podSelector": {}, "ingress": [{}]}), FAR, WEB, true)]
#[case::by_pod(json!({"podSelector": {}, "ingress": [{"from": [{"podSelector": {"matchLabels": {"app": "db"}}}]}]}), DB, WEB, true)]
#[case::by_pod_of_this_namespace(json!({"podSelector": {}, "ingress": [{"from": [{"podSelector": {"matchLabels": {"app": "db"}}}]}]}), FAR, WEB, false)]
#[case::by_namespace(json!({"podSelector": {}, "ingress": [{"from": [{"namespaceSelector": {"matchLabels": {"team": "m"}}}]}]}), FAR, WEB, true)]
#[case::by_both(
    json!({"podSelector": {}, "ingress": [{"from": [{"namespaceSelector": {"matchLabels": {"team": "m"}}, "podSelector": {"matchLabels": {"app": "web"}}}]}]}),
    FAR, WEB, false
)]
#[case::by_address(json!({"podSelector": {}, "ingress": [{"from": [{"ipBlock": {"cidr": "10.244.2.0/24"}}]}]}), FAR, WEB, true)]
#[case::by_any_address(json!({"podSelector": {}, "ingress": [{"from": [{"ipBlock": {"cidr": "0.0.0.0/0"}}]}]}), FAR, WEB, true)]
#[case::but_for_some(
    json!({"podSelector": {}, "ingress": [{"from": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.244.2.0/24"]}}]}]}),
    FAR, WEB, false
)]
#[case::by_port(json!({"podSelector": {}, "ingress": [{"ports": [{"port": 8080}]}]}), DB, WEB, true)]
#[case::by_another_port(json!({"podSelector": {}, "ingress": [{"ports": [{"port": 80}]}]}), DB, WEB, false)]
#[case::by_named_port(json!({"podSelector": {}, "ingress": [{"ports": [{"port": "http"}]}]}), DB, WEB, true)]
#[case::by_range(json!({"podSelector": {}, "ingress": [{"ports": [{"port": 8000, "endPort": 9000}]}]}), DB, WEB, true)]
#[case::by_another_protocol(json!({"podSelector": {}, "ingress": [{"ports": [{"port": 8080, "protocol": "UDP"}]}]}), DB, WEB, false)]
fn connections(#[case] spec: Value, #[case] from: &str, #[case] to: &str, #[case] expected: bool) {
    let mut policies = Policies::default();
    for name in ["n", "m"] {
        policies.set_namespace(&json!({"metadata": {"name": name, "labels": {"team": name}}}));
    }
    if !spec.is_null() {
        policies.set(&json!({"metadata": {"namespace": "n", "name": "p"}, "spec": spec}));
    }
    let port = (Protocol::Tcp, 8080);
    assert_eq!(policies.allow(&end(from), &end(to), port), expected);
}

#[rstest]
#[case::to_any_port(json!({}), true)]
#[case::to_a_port(json!({"ports": [{"port": 8080, "protocol": "UDP"}]}), true)]
#[case::to_a_port_of_connections(json!({"ports": [{"port": 8080}]}), false)]
#[case::to_a_named_port_of_connections(json!({"ports": [{"port": "http", "protocol": "UDP"}]}), false)]
fn datagrams(#[case] rule: Value, #[case] expected: bool) {
    let mut policies = Policies::default();
    let spec = json!({"podSelector": {}, "ingress": [rule]});
    policies.set(&json!({"metadata": {"namespace": "n", "name": "p"}, "spec": spec}));
    assert_eq!(
        policies.allow(&end(DB), &end(WEB), (Protocol::Udp, 8080)),
        expected
    );
}
