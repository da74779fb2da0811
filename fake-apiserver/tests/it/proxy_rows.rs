//! Rows: requests that the API server passes on to pods, services and nodes.

use std::time::Duration;

use fake_apiserver::Cluster;
use fake_apiserver::nodes::Container;
use rstest::rstest;
use shared_json::{Value, json};
use tokio::io::AsyncWriteExt as _;

use crate::network_rows::{create, pod, service};
use crate::support::{exchange, head_of_request, repeat, repeated, simulate};

const IMAGE: &str = "registry.k8s.io/e2e-test-images/agnhost:2.56";
const PODS: &str = "/api/v1/namespaces/default/pods";
const SERVICES: &str = "/api/v1/namespaces/default/services";

/// A cluster with a server of several ports, and one that echoes, each with a Service.
async fn cluster() -> Cluster {
    let cluster = Cluster::builder().nodes(1).start().await.expect("a cluster");
    let porter = json!({
        "name": "c", "image": IMAGE, "args": ["porter", "--json-response"],
        "env": [{"name": "SERVE_TLS_PORT_443", "value": "secret"}, {"name": "SERVE_PORT_80", "value": "eighty"}, {"name": "SERVE_PORT_81", "value": "eightyone"}],
        "ports": [{"name": "first", "containerPort": 80}, {"name": "second", "containerPort": 81}],
    });
    let linked = json!({
        "name": "c", "image": IMAGE, "args": ["porter"], "ports": [{"containerPort": 80}],
        "env": [{"name": "SERVE_PORT_80", "value": "<a href=\"/rewriteme\">test</a>"}],
    });
    let netexec =
        json!({"name": "c", "image": IMAGE, "args": ["netexec"], "ports": [{"containerPort": 8080}]});
    create(&cluster, &pod("web", porter)).await;
    create(&cluster, &pod("linked", linked)).await;
    create(&cluster, &pod("echo", netexec)).await;
    create(
        &cluster,
        &pod(
            "quiet",
            json!({"name": "c", "image": "busybox", "command": ["sleep", "1000"]}),
        ),
    )
    .await;
    let ports = json!([
        {"name": "one", "port": 8000, "targetPort": "first"}, {"name": "two", "port": 8001, "targetPort": 81},
        {"name": "tls", "port": 443, "targetPort": 443},
    ]);
    create(
        &cluster,
        &service("web", json!({"selector": {"app": "web"}, "ports": ports})),
    )
    .await;
    let none = json!({"selector": {"app": "none"}, "ports": [{"port": 80}]});
    create(&cluster, &service("none", none)).await;
    cluster.run_for(Duration::from_secs(10)).await;
    cluster
}

#[rstest]
#[case::pod("GET", &format!("{PODS}/web/proxy/"), 200, r#"{"Body":"eighty","Method":"GET"}"#)]
#[case::port("GET", &format!("{PODS}/web:81/proxy/a"), 200, r#"{"Body":"eightyone","Method":"GET"}"#)]
#[case::scheme("GET", &format!("{PODS}/http:web:81/proxy/"), 200, r#"{"Body":"eightyone","Method":"GET"}"#)]
#[case::service("GET", &format!("{SERVICES}/web:two/proxy/"), 200, r#"{"Body":"eightyone","Method":"GET"}"#)]
#[case::service_port("GET", &format!("{SERVICES}/web:8000/proxy/"), 200, r#"{"Body":"eighty","Method":"GET"}"#)]
#[case::post("POST", &format!("{PODS}/web/proxy/x"), 200, r#"{"Body":"eighty","Method":"POST"}"#)]
#[case::put("PUT", &format!("{PODS}/web/proxy"), 200, r#"{"Body":"eighty","Method":"PUT"}"#)]
#[case::patch("PATCH", &format!("{PODS}/web/proxy"), 200, r#"{"Body":"eighty","Method":"PATCH"}"#)]
#[case::delete("DELETE", &format!("{SERVICES}/web:one/proxy"), 200, r#"{"Body":"eighty","Method":"DELETE"}"#)]
#[case::options("OPTIONS", &format!("{SERVICES}/web:one/proxy"), 200, r#"{"Body":"eighty","Method":"OPTIONS"}"#)]
#[case::head("HEAD", &format!("{SERVICES}/web:one/proxy/"), 200, "")]
#[case::without_a_slash("GET", &format!("{PODS}/web/proxy?a=b"), 301, "")]
#[case::encrypted("GET", &format!("{PODS}/https:web:443/proxy/"), 200, r#"{"Body":"secret","Method":"GET"}"#)]
#[case::encrypted_service("GET", &format!("{SERVICES}/https:web:tls/proxy/"), 200, r#"{"Body":"secret","Method":"GET"}"#)]
#[case::query("GET", &format!("{PODS}/echo/proxy/echo?msg=a%20b&code=404"), 404, "a b")]
#[case::links("GET", &format!("{PODS}/linked/proxy/"), 200, r#"<a href="/api/v1/namespaces/default/pods/linked/proxy/rewriteme">test</a>"#)]
#[case::node("GET", "/api/v1/nodes/node1:10250/proxy/healthz", 200, "ok")]
#[case::node_alone("GET", "/api/v1/nodes/node1/proxy/healthz", 200, "ok")]
#[case::node_page("GET", "/api/v1/nodes/node1/proxy/nosuch", 404, "404 page not found\n")]
fn passed_on(#[case] method: &str, #[case] path: &str, #[case] code: u16, #[case] expected: &str) {
    simulate(move || async move {
        let cluster = cluster().await;
        let (got, body) = exchange(&cluster, method, path, "text/plain", &Value::Null).await;
        assert_eq!((got, body.as_str()), (code, expected));
    });
}

#[rstest]
#[case::no_listener(&format!("{PODS}/quiet:80/proxy/"), 503, "connect: connection refused")]
#[case::no_endpoints(&format!("{SERVICES}/none/proxy/"), 503, "no endpoints available for service \\\"none\\\"")]
#[case::no_port(&format!("{SERVICES}/web:9/proxy/"), 503, "no service port 9 found for service \\\"web\\\"")]
#[case::no_pod(&format!("{PODS}/nosuch/proxy/"), 404, "pods \\\"nosuch\\\" not found")]
#[case::not_encrypted(&format!("{PODS}/https:web:80/proxy/"), 503, "tls: first record does not look like a TLS handshake")]
#[case::unknown_port(&format!("{PODS}/web:nosuch/proxy/"), 503, "unknown port")]
fn refused(#[case] path: &str, #[case] code: u16, #[case] expected: &str) {
    simulate(move || async move {
        let cluster = cluster().await;
        let (got, body) = exchange(&cluster, "GET", path, "text/plain", &Value::Null).await;
        assert!(got == code && body.contains(expected), "{got} {body}");
    });
}

/// A program that speaks another protocol on each connection, if it is asked to.
async fn repeats(container: Container) -> i32 {
    let Some(mut listener) = container.listen(80) else {
        return 1;
    };
    while let Some(mut connection) = listener.accept().await {
        let head = head_of_request(&mut connection.stream).await;
        tokio::spawn(async move {
            match head.contains("upgrade: repeat") && head.starts_with("GET /repeat ") {
                true => repeat(&mut connection.stream).await,
                false => {
                    let refusal = b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n";
                    connection.stream.write_all(refusal).await
                }
            }
        });
    }
    0
}

#[rstest]
#[case::pod("pods/web", "repeat", (101, "repeat", "hello"))]
#[case::service("services/web:8000", "repeat", (101, "repeat", "hello"))]
#[case::refused("pods/web", "nosuch", (404, "", ""))]
fn protocols_change(#[case] place: &str, #[case] path: &str, #[case] expected: (u16, &str, &str)) {
    simulate(move || async move {
        let builder = Cluster::builder()
            .nodes(1)
            .program("example.com/repeats", repeats);
        let cluster = builder.start().await.expect("a cluster");
        let container =
            json!({"name": "c", "image": "example.com/repeats:1", "ports": [{"containerPort": 80}]});
        create(&cluster, &pod("web", container)).await;
        let ports = json!([{"port": 8000, "targetPort": 80}]);
        create(
            &cluster,
            &service("web", json!({"selector": {"app": "web"}, "ports": ports})),
        )
        .await;
        cluster.run_for(Duration::from_secs(10)).await;
        let path = format!("/api/v1/namespaces/default/{place}/proxy/{path}");
        let (code, protocol, heard) = repeated(&cluster, &path).await;
        assert_eq!((code, protocol.as_str(), heard.as_str()), expected);
    });
}

/// A connection that is forwarded reaches a program that listens.
#[test]
fn forwarded_ports_reach_the_program() {
    use k8s_openapi::api::core::v1::Pod;
    use kube::api::Api;
    use tokio::io::AsyncReadExt as _;
    simulate(|| async {
        let cluster = cluster().await;
        let pods: Api<Pod> = Api::default_namespaced(cluster.client());
        let mut forwarder = pods.portforward("echo", &[8080]).await.expect("ports");
        let mut port = forwarder.take_stream(8080).expect("a port");
        port.write_all(b"GET /hostname HTTP/1.0\r\n\r\n")
            .await
            .expect("to write");
        let mut answer = String::new();
        port.read_to_string(&mut answer).await.expect("to read");
        assert!(
            answer.starts_with("HTTP/1.0 200 OK\r\n") && answer.ends_with("\r\n\r\necho"),
            "{answer}"
        );
    });
}
