//! Admission webhooks that configurations name, called over HTTPS.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fake_apiserver::Cluster;
use fake_apiserver::controllers::BuiltIn;
use rstest::rstest;
use shared_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::rustls::{ServerConfig, crypto};

use super::support::request;

/// From a review to its answer.
type Answer = dyn Fn(&Value) -> Value + Send + Sync;

/// A webhook that remembers the requests.
struct Hook {
    address: SocketAddr,
    bundle: String,
    asked: Arc<Mutex<Vec<Value>>>,
    /// How many connections were opened.
    connections: Arc<AtomicUsize>,
}

impl Hook {
    async fn start(response: Value) -> Self {
        Self::start_as("127.0.0.1", response).await
    }

    /// With a certificate for this name.
    async fn start_as(name: &str, response: Value) -> Self {
        let certified = rcgen::generate_simple_self_signed([name.to_owned()]).expect("a certificate");
        Self::start_with(&certified.cert, &certified.signing_key, response).await
    }

    /// A webhook that closes a connection after so many answers.
    async fn start_lasting(answers: usize, response: Value) -> Self {
        let certified = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
        Self::serve((&certified.cert, &certified.signing_key), answers, same(response)).await
    }

    /// A webhook with an answer of its own to every review.
    async fn start_answering(answer: impl Fn(&Value) -> Value + Send + Sync + 'static) -> Self {
        let certified = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
        Self::serve((&certified.cert, &certified.signing_key), 1, Box::new(answer)).await
    }

    /// With a serving certificate, which is also the bundle.
    async fn start_with(certificate: &rcgen::Certificate, key: &rcgen::KeyPair, response: Value) -> Self {
        Self::serve((certificate, key), 1, same(response)).await
    }

    async fn serve(
        (certificate, key): (&rcgen::Certificate, &rcgen::KeyPair),
        answers: usize,
        answer: Box<Answer>,
    ) -> Self {
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let config = ServerConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .expect("a configuration");
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let asked: Arc<Mutex<Vec<Value>>> = Arc::default();
        let heard = Arc::clone(&asked);
        let connections: Arc<AtomicUsize> = Arc::default();
        let opened = Arc::clone(&connections);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let Ok(mut stream) = acceptor.accept(stream).await else {
                    continue;
                };
                opened.fetch_add(1, Ordering::Relaxed);
                for _ in 0..answers {
                    let review = read(&mut stream).await;
                    let answer = answer(&review).to_string();
                    heard.lock().expect("a lock").push(review);
                    let text = format!(
                        "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{answer}",
                        answer.len()
                    );
                    stream.write_all(text.as_bytes()).await.expect("an answer sent");
                }
                let _ = stream.shutdown().await;
            }
        });
        let bundle = STANDARD.encode(certificate.pem());
        Self {
            address,
            bundle,
            asked,
            connections,
        }
    }

    fn configuration(&self, kind: &str, more: Value) -> Value {
        let mut webhook = json!({
            "name": "h.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": {"url": format!("https://{}/hook", self.address), "caBundle": self.bundle},
            "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["*"], "resources": ["configmaps"]}],
        });
        for (key, value) in more.as_object().expect("an object") {
            webhook[key] = value.clone();
        }
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": format!("{kind}WebhookConfiguration"),
            "metadata": {"name": "hooks"}, "webhooks": [webhook],
        })
    }

    fn asked(&self) -> Vec<Value> {
        self.asked.lock().expect("a lock").clone()
    }
}

/// The same response to every AdmissionReview.
fn same(response: Value) -> Box<Answer> {
    Box::new(move |review| {
        let mut response = response.clone();
        response["uid"] = review["request"]["uid"].clone();
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
    })
}

/// Reads one request and gives its body.
async fn read(stream: &mut (impl tokio::io::AsyncRead + Unpin)) -> Value {
    let mut bytes = Vec::new();
    loop {
        let mut part = [0; 4096];
        let count = stream.read(&mut part).await.expect("a request");
        bytes.extend_from_slice(&part[..count]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((_, body)) = text.split_once("\r\n\r\n")
            && let Ok(value) = shared_json::from_str(body)
        {
            return value;
        }
        assert!(count > 0, "the request is cut short: {text}");
    }
}

const CONFIGURATIONS: &str = "/apis/admissionregistration.k8s.io/v1";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn cluster() -> Cluster {
    let builder = Cluster::builder().nodes(0).controllers(false);
    builder.start().await.expect("a cluster")
}

#[tokio::test]
async fn a_validating_webhook_refuses_in_its_own_words() {
    let hook =
        Hook::start(json!({"allowed": false, "status": {"message": "not on my watch", "code": 403}})).await;
    let cluster = cluster().await;
    let selector = json!({"objectSelector": {"matchLabels": {"check": "me"}}});
    let path = format!("{CONFIGURATIONS}/validatingwebhookconfigurations");
    let (code, made) = request(
        &cluster,
        "POST",
        &path,
        &hook.configuration("Validating", selector),
    )
    .await;
    assert_eq!(code, 201, "{made}");
    let unselected = json!({"metadata": {"name": "a"}});
    assert_eq!(request(&cluster, "POST", MAPS, &unselected).await.0, 201);
    let selected = json!({"metadata": {"name": "b", "labels": {"check": "me"}}});
    let (code, refusal) = request(&cluster, "POST", MAPS, &selected).await;
    let expected = "admission webhook \"h.example.com\" denied the request: not on my watch";
    assert_eq!((code, refusal["message"].as_str()), (403, Some(expected)));
    let asked = hook.asked();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0]["request"]["object"]["metadata"]["name"], "b");
    assert_eq!(asked[0]["request"]["userInfo"]["username"], "system:admin");
}

/// Answers a ConversionReview: widgets have their text in `spec.a` in `v1` and in `spec.b` in `v2`.
fn moved(review: &Value) -> Value {
    let request = &review["request"];
    let wanted = &request["desiredAPIVersion"];
    let (from, to) = if *wanted == "e.com/v1" {
        ("b", "a")
    } else {
        ("a", "b")
    };
    let mut objects = request["objects"].clone();
    for object in objects.as_array_mut().expect("objects") {
        object["apiVersion"] = wanted.clone();
        let text = object["spec"].as_object_mut().and_then(|spec| spec.remove(from));
        object["spec"][to] = text.unwrap_or_default();
    }
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "response": {
        "uid": request["uid"], "convertedObjects": objects, "result": {"status": "Success"}}})
}

/// A webhook whose rule is about another version than that of the request is asked about the object as the definition's own webhook converts
/// it, and so are its conditions; its patch is for that version.
#[rstest]
#[case::conditions_hold("object.spec.a == 'x'", 1)]
#[case::conditions_do_not_hold("object.spec.a == 'y'", 0)]
#[tokio::test]
async fn a_webhook_is_asked_in_the_version_of_its_rule(#[case] condition: &str, #[case] asked: usize) {
    let patch = json!([{"op": "add", "path": "/spec/c", "value": "patched"}]);
    let hook = Hook::start(
        json!({"allowed": true, "patchType": "JSONPatch", "patch": STANDARD.encode(patch.to_string())}),
    )
    .await;
    let converter = Hook::start_answering(moved).await;
    let cluster = cluster().await;
    let version = |name: &str, field: &str| {
        let spec =
            json!({"type": "object", "properties": {field: {"type": "string"}, "c": {"type": "string"}}});
        json!({"name": name, "served": true, "storage": name == "v2",
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}})
    };
    let definition = json!({
        "metadata": {"name": "widgets.e.com"},
        "spec": {"group": "e.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [version("v1", "a"), version("v2", "b")],
            "conversion": {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {
                "url": format!("https://{}/convert", converter.address), "caBundle": converter.bundle}}}},
    });
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let (code, answer) = request(&cluster, "POST", definitions, &definition).await;
    assert_eq!(code, 201, "{answer}");
    let configuration = hook.configuration(
        "Mutating",
        json!({
            "rules": [{"operations": ["CREATE"], "apiGroups": ["e.com"], "apiVersions": ["v1"], "resources": ["widgets"]}],
            "matchConditions": [{"name": "c", "expression": condition}],
        }),
    );
    let path = format!("{CONFIGURATIONS}/mutatingwebhookconfigurations");
    let (code, answer) = request(&cluster, "POST", &path, &configuration).await;
    assert_eq!(code, 201, "{answer}");
    let widget =
        json!({"apiVersion": "e.com/v2", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"b": "x"}});
    let path = "/apis/e.com/v2/namespaces/default/widgets";
    let (code, made) = request(&cluster, "POST", path, &widget).await;
    assert_eq!((code, &made["spec"]["b"]), (201, &json!("x")), "{made}");
    let added = (asked == 1).then_some("patched");
    assert_eq!(made["spec"].get("c").and_then(Value::as_str), added);
    let reviews = hook.asked();
    assert_eq!(reviews.len(), asked);
    for review in reviews {
        let object = &review["request"]["object"];
        assert_eq!(
            (&object["apiVersion"], &object["spec"]),
            (&json!("e.com/v1"), &json!({"a": "x"}))
        );
    }
}

#[rstest]
#[case::one_each(1, 6)]
#[case::three_each(3, 2)]
#[case::one_for_all(6, 1)]
#[tokio::test]
async fn a_connection_is_kept_until_the_webhook_closes_it(
    #[case] answers: usize,
    #[case] connections: usize,
) {
    let hook = Hook::start_lasting(answers, json!({"allowed": true})).await;
    let cluster = cluster().await;
    let path = format!("{CONFIGURATIONS}/validatingwebhookconfigurations");
    let configuration = hook.configuration("Validating", json!({}));
    request(&cluster, "POST", &path, &configuration).await;
    for number in 0..6 {
        let map = json!({"metadata": {"name": format!("m{number}")}});
        assert_eq!(request(&cluster, "POST", MAPS, &map).await.0, 201);
    }
    assert_eq!(
        (hook.asked().len(), hook.connections.load(Ordering::Relaxed)),
        (6, connections)
    );
}

#[tokio::test]
async fn a_mutating_webhook_changes_the_object() {
    let patch = json!([{"op": "add", "path": "/data", "value": {"k": "v"}}, {"op": "add", "path": "/unknown", "value": 1}]);
    let response =
        json!({"allowed": true, "patchType": "JSONPatch", "patch": STANDARD.encode(patch.to_string())});
    let hook = Hook::start(response).await;
    let cluster = cluster().await;
    let path = format!("{CONFIGURATIONS}/mutatingwebhookconfigurations");
    request(
        &cluster,
        "POST",
        &path,
        &hook.configuration("Mutating", json!({})),
    )
    .await;
    let (code, made) = request(&cluster, "POST", MAPS, &json!({"metadata": {"name": "a"}})).await;
    assert_eq!((code, &made["data"]), (201, &json!({"k": "v"})));
    assert_eq!(made.get("unknown"), None);
}

#[tokio::test]
async fn a_webhook_that_cannot_be_reached_fails_the_write_unless_it_may_be_ignored() {
    let hook = Hook::start(json!({"allowed": true})).await;
    let cluster = cluster().await;
    let path = format!("{CONFIGURATIONS}/validatingwebhookconfigurations");
    let gone = json!({"clientConfig": {"url": "https://127.0.0.1:1/x", "caBundle": hook.bundle}});
    request(&cluster, "POST", &path, &hook.configuration("Validating", gone)).await;
    let (code, refusal) = request(&cluster, "POST", MAPS, &json!({"metadata": {"name": "a"}})).await;
    let expected = "Internal error occurred: failed calling webhook \"h.example.com\": failed to call webhook: Post \
                    \"https://127.0.0.1:1/x?timeout=10s\": dial tcp 127.0.0.1:1: connect: connection refused";
    assert_eq!((code, refusal["message"].as_str()), (500, Some(expected)));
    let ignoring = json!({"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Ignore"});
    let one = format!("{path}/hooks");
    super::support::send(
        &cluster,
        "PATCH",
        &one,
        "application/json-patch+json",
        &json!([ignoring]),
    )
    .await;
    assert_eq!(
        request(&cluster, "POST", MAPS, &json!({"metadata": {"name": "a"}}))
            .await
            .0,
        201
    );
}

/// Nothing forwards cluster addresses here: a service stands for its endpoints, or for another name.
#[tokio::test]
async fn a_service_is_where_its_endpoints_are() {
    let refusal = json!({"allowed": false, "status": {"message": "not today"}});
    let hook = Hook::start_as("hooks.default.svc", refusal).await;
    let cluster = cluster().await;
    let port = hook.address.port();
    let service = json!({"name": "hooks", "namespace": "default", "path": "/hook", "port": port});
    let client = json!({"caBundle": hook.bundle, "service": service});
    let configuration = hook.configuration("Validating", json!({"clientConfig": client}));
    let configurations = format!("{CONFIGURATIONS}/validatingwebhookconfigurations");
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}});
    let refused = async || {
        let (code, answer) = request(&cluster, "POST", MAPS, &map).await;
        let message = answer["message"].as_str().unwrap_or_default().to_owned();
        (code, message)
    };
    assert_eq!(
        request(&cluster, "POST", &configurations, &configuration).await.0,
        201
    );
    assert!(
        refused().await.1.ends_with("service \"hooks\" not found"),
        "{:?}",
        refused().await
    );

    let services = "/api/v1/namespaces/default/services";
    let service = |spec: Value| json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "hooks"}, "spec": spec});
    let plain = service(json!({"ports": [{"port": port}]}));
    assert_eq!(request(&cluster, "POST", services, &plain).await.0, 201);
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {"name": "hooks-1", "labels": {"kubernetes.io/service-name": "hooks"}},
        "ports": [{"port": port}], "endpoints": [{"addresses": ["10.9.9.9"], "conditions": {"ready": false}}],
    });
    let slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
    assert_eq!(request(&cluster, "POST", slices, &slice).await.0, 201);
    let message = refused().await.1;
    assert!(
        message.ends_with("no endpoints available for service \"hooks\""),
        "{message}"
    );

    assert_eq!(
        request(&cluster, "DELETE", &format!("{services}/hooks"), &Value::Null)
            .await
            .0,
        200
    );
    let named =
        service(json!({"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]}));
    assert_eq!(request(&cluster, "POST", services, &named).await.0, 201);
    let (code, message) = refused().await;
    assert_eq!((code, hook.asked().len()), (400, 1), "{message}");
    assert!(message.ends_with("denied the request: not today"), "{message}");
}

/// A pod with an annotation stands for a port of this machine: a Service that selects the pod leads there once the pod is ready.
/// The certificate must be for the Service's name.
#[rstest]
#[case::this_port(
    "hooks.default.svc",
    Some("127.0.0.1:{port}"),
    400,
    "denied the request: not today"
)]
#[case::this_port_for_one_of_its_own(
    "hooks.default.svc",
    Some("8443=127.0.0.1:{port}"),
    400,
    "denied the request: not today"
)]
#[case::for_another_of_its_own(
    "hooks.default.svc",
    Some("80=127.0.0.1:{port}"),
    500,
    "failed to call webhook: Post \"https://hooks.default.svc:443/hook?timeout=1s\": "
)]
#[case::another_name(
    "127.0.0.1",
    Some("127.0.0.1:{port}"),
    500,
    "tls: failed to verify certificate"
)]
#[case::not_an_address(
    "hooks.default.svc",
    Some("somewhere"),
    500,
    "of pod default/hook has \"somewhere\", which is neither"
)]
#[tokio::test]
async fn a_pod_may_stand_for_a_port_of_this_machine(
    #[case] name: &str,
    #[case] annotation: Option<&str>,
    #[case] code: u16,
    #[case] expected: &str,
) {
    let hook = Hook::start_as(
        name,
        json!({"allowed": false, "status": {"message": "not today"}}),
    )
    .await;
    let built_in = [BuiltIn::EndpointSlice];
    let cluster = Cluster::builder()
        .nodes(1)
        .quick(true)
        .built_in(&built_in)
        .start()
        .await;
    let cluster = cluster.expect("a cluster");
    let mut pod = json!({
        "metadata": {"name": "hook", "labels": {"app": "hook"}},
        "spec": {"containers": [{"name": "c", "image": "hook:1"}]},
    });
    if let Some(annotation) = annotation {
        let annotation = annotation.replace("{port}", &hook.address.port().to_string());
        pod["metadata"]["annotations"] = json!({"network.fake-apiserver/dial": annotation});
    }
    let service = json!({
        "metadata": {"name": "hooks"},
        "spec": {"selector": {"app": "hook"}, "ports": [{"port": 443, "targetPort": 8443}]},
    });
    let client = json!({"caBundle": hook.bundle, "service": {"name": "hooks", "namespace": "default", "path": "/hook"}});
    let only = json!({"clientConfig": client, "timeoutSeconds": 1, "objectSelector": {"matchLabels": {"check": "me"}}});
    let configuration = hook.configuration("Validating", only);
    for (path, object) in [
        ("/api/v1/namespaces/default/services", &service),
        ("/api/v1/namespaces/default/pods", &pod),
        (
            &format!("{CONFIGURATIONS}/validatingwebhookconfigurations"),
            &configuration,
        ),
    ] {
        let (code, answer) = request(&cluster, "POST", path, object).await;
        assert_eq!(code, 201, "{answer}");
    }
    let map = json!({"metadata": {"name": "m", "labels": {"check": "me"}}});
    let patience = tokio::time::Instant::now() + std::time::Duration::from_secs(30);
    let (found, message) = loop {
        let (code, answer) = request(&cluster, "POST", MAPS, &map).await;
        let message = answer["message"].as_str().unwrap_or_default().to_owned();
        if !message.contains("no endpoints available") || patience < tokio::time::Instant::now() {
            break (code, message);
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    };
    assert_eq!(found, code, "{message}");
    assert!(message.contains(expected), "{message}");
}

/// As Go does it: a certificate in the bundle is trusted when a server shows it, regardless of its issuer. Its name still counts.
#[tokio::test]
async fn a_bundle_may_be_the_serving_certificate_itself() {
    for (name, is_authority, expected) in [
        ("127.0.0.1", false, 201),
        ("127.0.0.1", true, 201),
        ("192.0.2.1", false, 500),
        ("192.0.2.1", true, 500),
    ] {
        let issuer_key = rcgen::KeyPair::generate().expect("a key");
        let mut authority = rcgen::CertificateParams::default();
        authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let issuer = rcgen::Issuer::new(authority, issuer_key);
        let key = rcgen::KeyPair::generate().expect("a key");
        let mut params = rcgen::CertificateParams::new([name.to_owned()]).expect("a name");
        params
            .distinguished_name
            .push(rcgen::DnType::CommonName, "webhook");
        if is_authority {
            params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        }
        let leaf = params.signed_by(&key, &issuer).expect("a certificate");
        let hook = Hook::start_with(&leaf, &key, json!({"allowed": true})).await;
        let cluster = cluster().await;
        let path = format!("{CONFIGURATIONS}/validatingwebhookconfigurations");
        let configuration = hook.configuration("Validating", json!({}));
        assert_eq!(request(&cluster, "POST", &path, &configuration).await.0, 201);
        let (code, answer) = request(&cluster, "POST", MAPS, &json!({"metadata": {"name": "a"}})).await;
        assert_eq!(code, expected, "{name} {is_authority}: {answer}");
    }
}

#[tokio::test]
async fn without_a_bundle_no_authority_is_trusted() {
    let hook = Hook::start(json!({"allowed": true})).await;
    let cluster = cluster().await;
    let client = json!({"url": format!("https://{}/hook", hook.address)});
    let configuration = hook.configuration("Validating", json!({"clientConfig": client}));
    let path = format!("{CONFIGURATIONS}/validatingwebhookconfigurations");
    assert_eq!(request(&cluster, "POST", &path, &configuration).await.0, 201);
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}});
    let (code, answer) = request(&cluster, "POST", MAPS, &map).await;
    assert_eq!(code, 500, "{answer}");
    let message = answer["message"].as_str().expect("a message");
    assert!(
        message.contains("failed calling webhook \"h.example.com\""),
        "{message}"
    );
    assert!(message.contains("certificate"), "{message}");
    assert!(hook.asked().is_empty());
}
