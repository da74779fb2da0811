//! Rows: what names stand for.

use std::sync::Arc;

use rstest::rstest;
use shared_json::{Value, json};

use super::*;

fn services() -> Services {
    let mut services = Services::default();
    let mut add = |namespace: &str, name: &str, spec: Value| {
        services.set_service(&json!({"metadata": {"namespace": namespace, "name": name}, "spec": spec}));
    };
    let ports = json!([{"name": "http", "port": 80}]);
    add("n", "web", json!({"clusterIP": "10.96.0.5", "ports": ports}));
    add("n", "db", json!({"clusterIP": "None", "ports": ports}));
    add(
        "n",
        "former",
        json!({"type": "ClusterIP", "clusterIP": "10.96.0.6", "externalName": "db.example.com"}),
    );
    add(
        "n",
        "away",
        json!({"type": "ExternalName", "externalName": "db.example.com"}),
    );
    add(
        "n",
        "alias",
        json!({"type": "ExternalName", "externalName": "web.n.svc.cluster.local"}),
    );
    add(
        "n",
        "circle",
        json!({"type": "ExternalName", "externalName": "circle.n.svc.cluster.local"}),
    );
    services.set_slice(Arc::new(json!({
        "metadata": {"namespace": "n", "name": "db-1", "labels": {"kubernetes.io/service-name": "db"}},
        "ports": [{"name": "http", "port": 8080}],
        "endpoints": [
            {"addresses": ["10.244.1.2"], "hostname": "db-0"}, {"addresses": ["10.244.1.3"]},
            {"addresses": ["10.244.1.4"], "hostname": "db-2", "conditions": {"ready": false}},
        ],
    })));
    services
}

#[rstest]
#[case::short("web", "web.n.svc.cluster.local 10.96.0.5")]
#[case::upper_case("Web", "web.n.svc.cluster.local 10.96.0.5")]
#[case::with_namespace("web.n", "web.n.svc.cluster.local 10.96.0.5")]
#[case::with_svc("web.n.svc", "web.n.svc.cluster.local 10.96.0.5")]
#[case::whole("web.n.svc.cluster.local", "web.n.svc.cluster.local 10.96.0.5")]
#[case::with_a_dot_at_its_end("web.n.svc.cluster.local.", "web.n.svc.cluster.local 10.96.0.5")]
#[case::short_with_a_dot("web.", "nobody")]
#[case::another_namespace("web.m", "nobody")]
#[case::headless("db", "db.n.svc.cluster.local 10.244.1.2 10.244.1.3")]
#[case::hostname("db-0.db", "db-0.db.n.svc.cluster.local 10.244.1.2")]
#[case::address_below("10-244-1-3.db", "10-244-1-3.db.n.svc.cluster.local 10.244.1.3")]
#[case::not_ready("db-2.db", "nobody")]
#[case::pod("10-244-1-9.n.pod", "10-244-1-9.n.pod.cluster.local 10.244.1.9")]
#[case::external("away", "outside db.example.com")]
#[case::former_alias("former", "former.n.svc.cluster.local 10.96.0.6")]
#[case::alias("alias", "web.n.svc.cluster.local 10.96.0.5")]
#[case::circle("circle", "nobody")]
#[case::world("www.example.com", "outside www.example.com")]
#[case::missing("nosuch", "nobody")]
#[case::missing_svc("nosuch.n.svc", "nobody")]
#[case::own_host("me", "me 10.244.1.1")]
#[case::address("10.0.0.1", "10.0.0.1 10.0.0.1")]
fn lookups(#[case] host: &str, #[case] expected: &str) {
    let mut resolver = Resolver::of_namespace("n");
    resolver
        .hosts
        .push(("10.244.1.1".parse().expect("an address"), "me".to_owned()));
    let answer = resolver.resolve(host, &services(), &|name| name == "n" || name == "m");
    let told = match answer {
        Ok(Answer::Addresses(name, addresses)) => {
            let addresses = addresses.iter().map(ToString::to_string);
            let words: Vec<String> = std::iter::once(name).chain(addresses).collect();
            words.join(" ")
        }
        Ok(Answer::Outside(name)) => format!("outside {name}"),
        Err(_) => "nobody".to_owned(),
    };
    assert_eq!(told, expected);
}

#[rstest]
#[case("_http._tcp.web", "80 web.n.svc.cluster.local")]
#[case(
    "_http._tcp.db.n.svc.cluster.local",
    "8080 10-244-1-3.db.n.svc.cluster.local, 8080 db-0.db.n.svc.cluster.local"
)]
#[case("_https._tcp.web", "")]
#[case("_http._udp.web", "")]
fn records_of_services(#[case] host: &str, #[case] expected: &str) {
    let found = Resolver::of_namespace("n").service_records(host, &services());
    let told: Vec<String> = found
        .into_iter()
        .map(|(port, name)| format!("{port} {name}"))
        .collect();
    assert_eq!(told.join(", "), expected);
}

#[test]
fn without_the_cluster_only_the_world_is_known() {
    let resolver = Resolver::default();
    let ask = |host: &str| resolver.resolve(host, &services(), &|_| false).is_ok();
    assert_eq!(["web", "www.example.com"].map(ask), [false, true]);
}

#[rstest]
#[case::of_a_service("5.0.96.10.in-addr.arpa.", "web.n.svc.cluster.local")]
#[case::without_a_dot_at_its_end("5.0.96.10.in-addr.arpa", "web.n.svc.cluster.local")]
#[case::of_an_endpoint_with_a_hostname("2.1.244.10.in-addr.arpa.", "db-0.db.n.svc.cluster.local")]
#[case::of_an_endpoint("3.1.244.10.in-addr.arpa.", "10-244-1-3.db.n.svc.cluster.local")]
#[case::not_ready("4.1.244.10.in-addr.arpa.", "")]
#[case::unknown("9.9.9.9.in-addr.arpa.", "")]
#[case::no_address("web.in-addr.arpa.", "")]
#[case::no_reversed_name("web.n.svc.cluster.local.", "")]
fn names_of_addresses(#[case] host: &str, #[case] expected: &str) {
    assert_eq!(names_of(host, &services()).join(" "), expected);
}
