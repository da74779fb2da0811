//! Groups that other API servers answer.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use fake_apiserver::controllers::BuiltIn;
use fake_apiserver::pki::FrontProxy;
use fake_apiserver::{Cluster, Extension};
use futures::FutureExt as _;
use http::{Request, Response};
use rstest::rstest;
use shared_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig, crypto};

use crate::support::{head_of_request, repeat, repeated, request, simulate};

const API_SERVICES: &str = "/apis/apiregistration.k8s.io/v1/apiservices";
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

fn api_service() -> Value {
    json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": "v1.example.com"},
        "spec": {"group": "example.com", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 10,
            "service": {"name": "s", "namespace": "default"}},
    })
}

/// What the other server says of itself.
fn resources() -> Value {
    json!({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "example.com/v1", "resources": [
            {"name": "things", "singularName": "thing", "namespaced": true, "kind": "Thing", "verbs": ["get", "list"], "shortNames": ["th"]},
            {"name": "things/status", "singularName": "", "namespaced": true, "kind": "Thing", "verbs": ["get"]},
        ],
    })
}

/// Its `/openapi/v2`, with a path that is not of its group version, and an `ObjectMeta` that differs from Kubernetes'.
fn open_api_v2() -> Value {
    let refers = |name: &str| json!({"$ref": format!("#/definitions/{name}")});
    let list =
        json!({"get": {"responses": {"200": {"description": "OK", "schema": refers("example.Thing")}}}});
    json!({
        "swagger": "2.0", "info": {"title": "example", "version": "1"},
        "paths": {"/apis/example.com/v1/things": list, "/apis/": list},
        "definitions": {
            "example.Thing": {"type": "object", "properties": {"metadata": refers(OBJECT_META)}},
            OBJECT_META: {"type": "object", "description": "another one's"},
            "example.Other": {"type": "object"},
        },
    })
}

const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// What it answers to a request.
fn answer(path: &str) -> (u16, Value) {
    match path {
        "/apis/example.com/v1" => (200, resources()),
        "/openapi/v3" => (
            200,
            json!({"paths": {"apis/example.com/v1": {"serverRelativeURL": "/openapi/v3/apis/example.com/v1?hash=1"}}}),
        ),
        "/openapi/v3/apis/example.com/v1" => (200, json!({"openapi": "3.0.0"})),
        "/openapi/v2" => (200, open_api_v2()),
        "/apis/example.com/v1/namespaces/default/things" => (
            200,
            json!({"kind": "ThingList", "items": [{"metadata": {"name": "a"}}]}),
        ),
        _ => (418, json!({"message": "a teapot"})),
    }
}

/// The requests that a server of this process was sent: a line, and its headers.
type Heard = Arc<Mutex<Vec<(String, http::HeaderMap, Bytes)>>>;

fn extension(heard: &Heard) -> Extension {
    let heard = Arc::clone(heard);
    Arc::new(move |request: Request<Bytes>| {
        let line = format!("{} {}", request.method(), request.uri());
        let (head, body) = request.into_parts();
        heard.lock().expect("a lock").push((line, head.headers, body));
        let (code, value) = answer(head.uri.path());
        let response = Response::builder()
            .status(code)
            .header("content-type", "application/json")
            .body(Bytes::from(value.to_string()));
        async { response.expect("an answer") }.boxed()
    })
}

async fn condition(cluster: &Cluster) -> Value {
    let (_, found) = request(
        cluster,
        "GET",
        &format!("{API_SERVICES}/v1.example.com"),
        &Value::Null,
    )
    .await;
    found["status"]["conditions"][0].clone()
}

async fn aggregated(cluster: &Cluster) -> Value {
    let asked = Request::get("/apis")
        .header("accept", AGGREGATED)
        .body(Vec::new());
    cluster
        .client()
        .request(asked.expect("a request"))
        .await
        .expect("the groups")
}

#[test]
fn a_server_of_this_process_is_found_and_asked() {
    simulate(|| async {
        let cluster = Cluster::builder().nodes(0).start().await.expect("a cluster");
        let heard = Heard::default();
        cluster.server().add_extension("default", "s", extension(&heard));
        let (code, made) = request(&cluster, "POST", API_SERVICES, &api_service()).await;
        assert_eq!(code, 201, "{made}");
        cluster.run_for(Duration::from_secs(1)).await;
        let mut available = condition(&cluster).await;
        let since = available
            .as_object_mut()
            .and_then(|of| of.remove("lastTransitionTime"));
        assert!(since.is_some());
        let expected = json!({"type": "Available", "status": "True", "reason": "Passed", "message": "all checks passed"});
        assert_eq!(available, expected);

        let get = async |path: &str| request(&cluster, "GET", path, &Value::Null).await;
        let (_, groups) = get("/apis").await;
        let entry = json!({"groupVersion": "example.com/v1", "version": "v1"});
        let group = json!({"name": "example.com", "versions": [entry], "preferredVersion": entry});
        assert_eq!(
            groups["groups"].as_array().and_then(|groups| groups.last()),
            Some(&group)
        );
        let (code, found) = get("/apis/example.com").await;
        assert_eq!(
            (code, &found["kind"], &found["preferredVersion"]),
            (200, &json!("APIGroup"), &entry)
        );
        assert_eq!(get("/apis/example.com/v1").await, (200, resources()));
        let (_, index) = get("/").await;
        let paths = index["paths"].as_array().expect("paths");
        assert!(paths.contains(&json!("/apis/example.com/v1")), "{index}");
        let (_, index) = get("/openapi/v3").await;
        assert!(
            index["paths"].get("apis/example.com/v1").is_some()
                && index["paths"].get("apis/apps/v1").is_some()
        );
        assert_eq!(
            get("/openapi/v3/apis/example.com/v1?hash=1").await.1["openapi"],
            "3.0.0"
        );
        let (_, document) = get("/openapi/v2").await;
        let paths = document["paths"].as_object().expect("paths");
        let has = |prefix: &str| paths.keys().any(|path| path.starts_with(prefix));
        assert!(has("/apis/apps/v1/") && has("/apis/example.com/v1/things"));
        let definitions = &document["definitions"];
        assert_eq!(
            definitions["example.Thing"]["properties"]["metadata"]["$ref"],
            format!("#/definitions/{OBJECT_META}_v2")
        );
        assert_eq!(
            definitions[format!("{OBJECT_META}_v2")]["description"],
            "another one's"
        );
        assert_ne!(definitions[OBJECT_META]["description"], "another one's");
        assert!(definitions.get("example.Other").is_none());

        let document = aggregated(&cluster).await;
        let found = document["items"].as_array().and_then(|items| items.last());
        let kind = json!({"group": "example.com", "version": "v1", "kind": "Thing"});
        assert_eq!(
            found,
            Some(&json!({
                "metadata": {"name": "example.com"},
                "versions": [{"version": "v1", "freshness": "Current", "resources": [{
                    "resource": "things", "responseKind": kind, "scope": "Namespaced", "singularResource": "thing",
                    "verbs": ["get", "list"], "shortNames": ["th"],
                    "subresources": [{"subresource": "status", "responseKind": kind, "verbs": ["get"]}],
                }]}],
            }))
        );

        let things = "/apis/example.com/v1/namespaces/default/things";
        let (code, list) = get(&format!("{things}?limit=5")).await;
        assert_eq!((code, &list["items"][0]["metadata"]["name"]), (200, &json!("a")));
        let (code, refusal) = request(&cluster, "PUT", &format!("{things}/a"), &json!({"x": 1})).await;
        assert_eq!((code, refusal), (418, json!({"message": "a teapot"})));
        let heard = heard.lock().expect("a lock");
        let [.., (list, headers, _), (put, _, body)] = heard.as_slice() else {
            panic!("{heard:?}");
        };
        assert_eq!(*list, format!("GET {things}?limit=5"));
        assert_eq!(headers["x-remote-user"], "system:admin");
        let groups: Vec<_> = headers.get_all("x-remote-group").iter().collect();
        assert_eq!(groups, ["system:masters", "system:authenticated"]);
        assert_eq!(
            (put.as_str(), &**body),
            (format!("PUT {things}/a").as_str(), &b"{\"x\":1}"[..])
        );
    });
}

#[test]
fn nothing_is_left_of_a_registration_that_is_deleted() {
    simulate(|| async {
        let cluster = Cluster::builder().nodes(0).start().await.expect("a cluster");
        cluster
            .server()
            .add_extension("default", "s", extension(&Heard::default()));
        assert_eq!(
            request(&cluster, "POST", API_SERVICES, &api_service()).await.0,
            201
        );
        cluster.run_for(Duration::from_secs(1)).await;
        let path = format!("{API_SERVICES}/v1.example.com");
        assert_eq!(request(&cluster, "DELETE", &path, &Value::Null).await.0, 200);
        cluster.run_for(Duration::from_secs(1)).await;
        assert_eq!(
            request(&cluster, "GET", "/apis/example.com/v1", &Value::Null)
                .await
                .0,
            404
        );
        let text = aggregated(&cluster).await.to_string();
        assert!(!text.contains("example.com"), "{text}");
    });
}

#[test]
fn a_served_cluster_registers_definitions() {
    simulate(|| async {
        let builder = Cluster::builder().nodes(0).system_objects(true);
        let cluster = builder.start().await.expect("a cluster");
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.example.com"},
            "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"}, "versions": [
                {"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}},
            ]},
        });
        let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        assert_eq!(request(&cluster, "POST", definitions, &definition).await.0, 201);
        cluster.run_for(Duration::from_secs(1)).await;
        assert_eq!(condition(&cluster).await["reason"], "Local");
        let path = format!("{definitions}/things.example.com");
        assert_eq!(request(&cluster, "DELETE", &path, &Value::Null).await.0, 200);
        cluster.run_for(Duration::from_secs(1)).await;
        let path = format!("{API_SERVICES}/v1.example.com");
        assert_eq!(request(&cluster, "GET", &path, &Value::Null).await.0, 404);
    });
}

/// The reasons and texts of kube-aggregator.
#[rstest]
#[case::no_service(&[], "ServiceNotFound", "service/s in \"default\" is not present")]
#[case::another_port(
    &[("services", json!({"ports": [{"port": 80}]}))],
    "ServicePortError",
    "service/s in \"default\" is not listening on port 443"
)]
#[case::no_slices(
    &[("services", json!({"ports": [{"port": 443}]}))],
    "EndpointsNotFound",
    "cannot find endpointslices for service/s in \"default\""
)]
#[case::no_address(
    &[("services", json!({"ports": [{"port": 443, "name": "https"}], "selector": {"a": "b"}}))],
    "MissingEndpoints",
    "endpointslices for service/s in \"default\" have no addresses with port name \"https\""
)]
#[case::elsewhere(
    &[("services", json!({"type": "ExternalName", "externalName": "127.0.0.1", "ports": [{"port": 443}]}))],
    "FailedDiscoveryCheck",
    "failing or missing response from https://s.default.svc:443/apis/example.com/v1: Get \"https://s.default.svc:443/apis/example.com/v1\": "
)]
#[tokio::test]
async fn a_server_that_does_not_answer(
    #[case] objects: &[(&str, Value)],
    #[case] reason: &str,
    #[case] message: &str,
) {
    let cluster = Cluster::builder()
        .nodes(0)
        .built_in(&[BuiltIn::EndpointSlice])
        .start()
        .await;
    let cluster = cluster.expect("a cluster");
    for (resource, spec) in objects {
        let object = json!({"metadata": {"name": "s"}, "spec": spec});
        let (code, made) = request(
            &cluster,
            "POST",
            &format!("/api/v1/namespaces/default/{resource}"),
            &object,
        )
        .await;
        assert_eq!(code, 201, "{made}");
    }
    let mut service = api_service();
    service["spec"]["insecureSkipTLSVerify"] = json!(true);
    assert_eq!(request(&cluster, "POST", API_SERVICES, &service).await.0, 201);
    let found = until(&cluster, |condition| condition["reason"] == reason).await;
    assert_eq!(found["status"], "False", "{found}");
    assert!(
        found["message"].as_str().unwrap_or_default().starts_with(message),
        "{found}"
    );
    let asked = Request::get("/apis/example.com/v1/things")
        .body(Vec::new())
        .expect("a request");
    let refusal = cluster.client().request_text(asked).await.expect_err("a refusal");
    assert!(
        format!("{refusal:?}").contains("service unavailable"),
        "{refusal:?}"
    );
}

/// The condition once it is so.
async fn until(cluster: &Cluster, is_so: impl Fn(&Value) -> bool) -> Value {
    let patience = tokio::time::Instant::now() + Duration::from_secs(30);
    loop {
        let found = condition(cluster).await;
        if is_so(&found) || patience < tokio::time::Instant::now() {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Serves over TLS to clients with a certificate of this authority.
async fn serve(name: &str, authority_pem: &str) -> (u16, String) {
    let certified = rcgen::generate_simple_self_signed([name.to_owned()]).expect("a certificate");
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der()));
    let provider = Arc::new(crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    let authority = CertificateDer::from_pem_slice(authority_pem.as_bytes()).expect("a certificate");
    roots.add(authority).expect("an authority");
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_client_cert_verifier(verifier.build().expect("a verifier"))
        .with_single_cert(vec![certified.cert.der().clone()], key)
        .expect("a configuration");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(stream).await else {
                continue;
            };
            let head = head_of_request(&mut stream).await;
            if head.contains("upgrade: repeat") {
                tokio::spawn(async move { repeat(&mut stream).await });
                continue;
            }
            let path = head.split(' ').nth(1).unwrap_or_default();
            let (code, value) = answer(path);
            let text = value.to_string();
            let length = text.len();
            let text = format!(
                "HTTP/1.1 {code} Said\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{text}"
            );
            let _ = stream.write_all(text.as_bytes()).await;
            let _ = stream.shutdown().await;
        }
    });
    (port, STANDARD.encode(certified.cert.pem()))
}

#[rstest]
#[case::its_certificate_is_in_the_bundle("s.default.svc", true, false, "Passed")]
#[case::every_certificate_will_do("other", false, true, "Passed")]
#[case::its_certificate_is_for_another_name("other", true, false, "FailedDiscoveryCheck")]
#[tokio::test]
async fn a_server_that_a_pod_stands_for(
    #[case] name: &str,
    #[case] bundled: bool,
    #[case] skips: bool,
    #[case] reason: &str,
) {
    let proxy = Arc::new(FrontProxy::generate().expect("certificates"));
    let (port, bundle) = serve(name, proxy.authority_pem()).await;
    let builder = Cluster::builder()
        .nodes(1)
        .quick(true)
        .built_in(&[BuiltIn::EndpointSlice]);
    let cluster = builder.front_proxy(Some(proxy)).start().await.expect("a cluster");
    let pod = json!({
        "metadata": {"name": "p", "labels": {"a": "b"}, "annotations": {"network.fake-apiserver/dial": format!("127.0.0.1:{port}")}},
        "spec": {"containers": [{"name": "c", "image": "server:1"}]},
    });
    let service = json!({
        "metadata": {"name": "s"}, "spec": {"selector": {"a": "b"}, "ports": [{"port": 443, "targetPort": 8443}]},
    });
    let mut registration = api_service();
    if bundled {
        registration["spec"]["caBundle"] = json!(bundle);
    }
    registration["spec"]["insecureSkipTLSVerify"] = json!(skips);
    for (path, object) in [
        ("/api/v1/namespaces/default/pods", pod),
        ("/api/v1/namespaces/default/services", service),
        (API_SERVICES, registration),
    ] {
        let (code, made) = request(&cluster, "POST", path, &object).await;
        assert_eq!(code, 201, "{made}");
    }
    let found = until(&cluster, |condition| condition["reason"] == reason).await;
    assert_eq!(found["reason"], reason, "{found}");
    let path = "/apis/example.com/v1/namespaces/default/things";
    let asked = Request::get(path).body(Vec::new()).expect("a request");
    let list = cluster.client().request::<Value>(asked).await;
    assert_eq!(list.is_ok(), reason == "Passed", "{list:?}");
    let expected = match reason {
        "Passed" => (101, "repeat".to_owned(), "hello".to_owned()),
        _ => (503, String::new(), String::new()),
    };
    assert_eq!(repeated(&cluster, &format!("{path}/t/log")).await, expected);
    let map = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication";
    let (_, map) = request(&cluster, "GET", map, &Value::Null).await;
    assert_eq!(
        map["data"]["requestheader-allowed-names"],
        "[\"front-proxy-client\"]"
    );
}

#[test]
fn usage_is_what_annotations_say() {
    simulate(|| async {
        let builder = Cluster::builder().nodes(1).metrics_api(true);
        let cluster = builder.start().await.expect("a cluster");
        for (name, annotations) in [
            (
                "busy",
                json!({"metrics.fake-apiserver/cpu": "250m", "metrics.fake-apiserver/memory": "64Mi"}),
            ),
            ("silent", json!({})),
        ] {
            let pod = json!({
                "metadata": {"name": name, "annotations": annotations, "labels": {"app": name}},
                "spec": {"containers": [{"name": "c", "image": "nginx"}]},
            });
            assert_eq!(
                request(&cluster, "POST", "/api/v1/namespaces/default/pods", &pod)
                    .await
                    .0,
                201
            );
        }
        cluster.run_for(Duration::from_secs(30)).await;
        let get = async |path: &str| {
            request(
                &cluster,
                "GET",
                &format!("/apis/metrics.k8s.io/v1beta1{path}"),
                &Value::Null,
            )
            .await
        };
        let usage = json!({"cpu": "250000000n", "memory": "65536Ki"});
        let (code, list) = get("/namespaces/default/pods").await;
        assert_eq!((code, &list["kind"]), (200, &json!("PodMetricsList")));
        let items = list["items"].as_array().expect("items");
        assert_eq!(items.len(), 1, "{list}");
        assert_eq!(items[0]["containers"], json!([{"name": "c", "usage": usage}]));
        let (_, none) = get("/pods?labelSelector=app%3Dsilent").await;
        assert_eq!(none["items"], json!([]));
        let (_, node) = get("/nodes/node1").await;
        assert_eq!(
            (&node["kind"], &node["usage"]),
            (&json!("NodeMetrics"), &usage),
            "{node}"
        );
        let (code, missing) = get("/namespaces/default/pods/silent").await;
        assert_eq!(
            (code, &missing["message"]),
            (404, &json!("pods.metrics.k8s.io \"silent\" not found"))
        );
    });
}
