//! The manager's process against an API server: its installation, its webhooks over TLS, its endpoints, its election.

use std::sync::Arc;
use std::time::Duration;

use client_kit::SharedClock;
use controller::Options;
use controller::process::election::{Election, Timings};
use controller::process::flags::Flags;
use controller::process::gates::FeatureGates;
use controller::process::install::install;
use controller::process::run::{Environment, run_with};
use fake_apiserver::Cluster;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Namespace, Pod, Secret};
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Client, Config};
use rstest::rstest;
use shared_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::Instant;

const NAMESPACE: &str = "kruise-system";

/// A port without a listener.
fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}

/// The answer to a plain GET; empty while there is no listener.
async fn get(port: u16, path: &str) -> String {
    let Ok(mut stream) = tokio::net::TcpStream::connect(("127.0.0.1", port)).await else {
        return String::new();
    };
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    answer
}

/// Asks again and again until the answer is right.
async fn until<T, F: Future<Output = Option<T>>>(what: &str, mut ask: impl FnMut() -> F) -> T {
    for _ in 0..200 {
        if let Some(found) = ask().await {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("waited in vain for {what}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_manager_installs_itself_leads_and_answers_over_tls() {
    let cluster = Cluster::builder().nodes(0).start().await.expect("a cluster");
    let client = cluster.client();
    let (webhooks, health, metrics) = (free_port(), free_port(), free_port());
    let flags = [
        "--install".to_owned(),
        format!("--webhook-url=https://127.0.0.1:{webhooks}"),
        format!("--health-probe-addr=127.0.0.1:{health}"),
        format!("--metrics-addr=127.0.0.1:{metrics}"),
    ];
    let flags = Flags::parse(flags).expect("flags");
    let environment = Environment::read(|name| (name == "WEBHOOK_PORT").then(|| webhooks.to_string()));
    let environment = environment.expect("an environment");
    let options = Options {
        clock: cluster.clock(),
        ..Options::default()
    };
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let manager = tokio::spawn({
        let client = client.clone();
        async move { run_with(client, &flags, &environment, options, stopped).await }
    });

    until("readiness", || async {
        get(health, "/readyz")
            .await
            .starts_with("HTTP/1.1 200")
            .then_some(())
    })
    .await;
    // What the API server trusts is in place by then.
    let secrets: Api<Secret> = Api::namespaced(client.clone(), NAMESPACE);
    let secret = secrets.get("kruise-webhook-certs").await.expect("the Secret");
    let authority = secret
        .data
        .expect("data")
        .remove("ca-cert.pem")
        .expect("an authority")
        .0;
    let mutating: Api<MutatingWebhookConfiguration> = Api::all(client.clone());
    let mutating = mutating
        .get("kruise-mutating-webhook-configuration")
        .await
        .expect("there");
    let validating: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    let validating = validating
        .get("kruise-validating-webhook-configuration")
        .await
        .expect("there");
    let clients = mutating
        .webhooks
        .into_iter()
        .flatten()
        .map(|webhook| webhook.client_config);
    let others = validating
        .webhooks
        .into_iter()
        .flatten()
        .map(|webhook| webhook.client_config);
    let mut urls = Vec::new();
    for config in clients.chain(others) {
        assert_eq!(config.ca_bundle.expect("a caBundle").0, authority);
        assert_eq!(config.service, None);
        urls.push(config.url.expect("an address"));
    }
    urls.sort();
    let paths = controller::webhook::rules().map(|rule| rule.path);
    let mut expected: Vec<String> = paths
        .map(|path| format!("https://127.0.0.1:{webhooks}{path}"))
        .collect();
    expected.sort();
    assert_eq!(urls, expected);

    // A review, as the API server would send it.
    let mut config = Config::new(
        format!("https://127.0.0.1:{webhooks}")
            .parse()
            .expect("an address"),
    );
    config.root_cert = Some(vec![der(&authority)]);
    let over_tls = Client::try_from(config).expect("a client");
    let mut wrong = set("a");
    wrong["spec"]["replicas"] = json!(-1);
    let answer = review(&over_tls, "/validate-apps-kruise-io-v1alpha1-cloneset", &wrong).await;
    assert_eq!(answer["response"]["allowed"], json!(false), "{answer}");
    let message = answer["response"]["status"]["message"]
        .as_str()
        .expect("a message");
    assert!(
        message.contains("spec.replicas: Invalid value: -1: must be greater than or equal to 0"),
        "{message}"
    );
    let answer = review(&over_tls, "/mutate-apps-kruise-io-v1alpha1-cloneset", &set("a")).await;
    assert_eq!(
        (&answer["response"]["allowed"], &answer["response"]["patchType"]),
        (&json!(true), &json!("JSONPatch"))
    );

    // It leads, and works.
    let leads = "leader_election_master_status{name=\"kruise-manager\"} 1";
    until("leadership", || async {
        get(metrics, "/metrics").await.contains(leads).then_some(())
    })
    .await;
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("apps.kruise.io", "v1alpha1", "CloneSet"));
    let sets: Api<DynamicObject> = Api::namespaced_with(client.clone(), "default", &resource);
    let object = shared_json::from_value(set("a")).expect("an object");
    sets.create(&PostParams::default(), &object).await.expect("a set");
    let pods: Api<Pod> = Api::namespaced(client.clone(), "default");
    until("two pods", || async {
        let list = pods.list(&ListParams::default()).await.expect("a list");
        (list.items.len() == 2).then_some(())
    })
    .await;
    // It converts versions.
    let of = |version| GroupVersionKind::gvk("apps.kruise.io", version, "DaemonSet");
    let daemons = |version| -> Api<DynamicObject> {
        Api::namespaced_with(client.clone(), "default", &ApiResource::from_gvk(&of(version)))
    };
    let daemon = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "DaemonSet", "metadata": {"name": "d"}, "spec": {
        "selector": {"matchLabels": {"app": "d"}}, "scaleStrategy": {"partitionedScaling": true},
        "template": {"metadata": {"labels": {"app": "d"}}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}}}});
    let daemon = shared_json::from_value(daemon).expect("an object");
    let created = daemons("v1beta1").create(&PostParams::default(), &daemon).await;
    created.expect("a set");
    let older = daemons("v1alpha1").get("d").await.expect("the older version");
    let progressive = "daemonset.kruise.io/progressive-create-pod";
    let annotations = older.metadata.annotations.expect("annotations");
    assert_eq!(annotations.get(progressive).map(String::as_str), Some("true"));
    assert_eq!(older.data["spec"].get("scaleStrategy"), None);

    let counted = "controller_runtime_reconcile_total{controller=\"cloneset-controller\",result=";
    assert!(get(metrics, "/metrics").await.contains(counted));
    assert!(get(health, "/metrics").await.starts_with("HTTP/1.1 404"));

    // Told to end, it gives up the lease.
    stop.send(()).expect("it runs");
    manager.await.expect("no panic").expect("a good end");
    let leases: Api<Lease> = Api::namespaced(client, NAMESPACE);
    let spec = leases
        .get("kruise-manager")
        .await
        .expect("the lease")
        .spec
        .expect("a spec");
    assert_eq!(spec.holder_identity.unwrap_or_default(), "");
}

/// Command lines of OpenKruise 1.9 as they are, with the environment that goes with them; ports of this machine come after
/// them. The definitions and the rest of the installation are there, as the chart has it.
#[rstest]
#[case::chart(
    "--enable-leader-election --metrics-addr=:8080 --health-probe-addr=:8000 --logtostderr=true \
     --leader-election-namespace=kruise-system --v=4 --feature-gates=ImagePullJobGate=true --sync-period=0",
    &["default", "other"]
)]
#[case::tree(
    "--enable-leader-election --logtostderr=true --v=5 \
     --feature-gates=AllAlpha=true,AllBeta=true,EnableExternalCerts=false,TemplateNoDefaults=false",
    &["default", "other"]
)]
#[case::one_namespace("--enable-leader-election --namespace=other", &["other"])]
#[tokio::test(flavor = "multi_thread")]
async fn command_lines_of_openkruise_start_the_manager(#[case] line: &str, #[case] namespaces: &[&str]) {
    let cluster = Cluster::builder().nodes(0).start().await.expect("a cluster");
    let client = cluster.client();
    let (webhooks, health, metrics) = (free_port(), free_port(), free_port());
    let ports = [
        format!("--health-probe-addr=127.0.0.1:{health}"),
        format!("--metrics-addr=127.0.0.1:{metrics}"),
    ];
    let arguments = line.split_whitespace().map(str::to_owned).chain(ports);
    let flags = Flags::parse(arguments).expect("flags");
    let gates = FeatureGates::parse(flags.text("feature-gates")).expect("gates");
    install(&client, (NAMESPACE, "kruise-daemon-config"), &gates)
        .await
        .expect("an installation");
    let all: Api<Namespace> = Api::all(client.clone());
    let of_secrets = all.get("kruise-daemon-config").await;
    of_secrets.expect("the namespace that jobs copy Secrets to");
    let environment = Environment::read(|name| match name {
        "POD_NAMESPACE" => Some(NAMESPACE.to_owned()),
        "WEBHOOK_PORT" => Some(webhooks.to_string()),
        _ => None,
    });
    let environment = environment.expect("an environment");
    let options = Options {
        clock: cluster.clock(),
        ..Options::default()
    };
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let manager = tokio::spawn({
        let client = client.clone();
        async move { run_with(client, &flags, &environment, options, stopped).await }
    });
    until("readiness", || async {
        get(health, "/readyz")
            .await
            .starts_with("HTTP/1.1 200")
            .then_some(())
    })
    .await;
    let leads = "leader_election_master_status{name=\"kruise-manager\"} 1";
    until("leadership", || async {
        get(metrics, "/metrics").await.contains(leads).then_some(())
    })
    .await;

    // The webhooks cannot be reached through the Service: there is no network. They are set aside.
    let mutating: Api<MutatingWebhookConfiguration> = Api::all(client.clone());
    let validating: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    let delete = DeleteParams::default();
    let name = "kruise-mutating-webhook-configuration";
    let _status = mutating.delete(name, &delete).await.expect("deleted");
    let name = "kruise-validating-webhook-configuration";
    let _status = validating.delete(name, &delete).await.expect("deleted");
    let mut other = Namespace::default();
    other.metadata.name = Some("other".to_owned());
    let all: Api<Namespace> = Api::all(client.clone());
    all.create(&PostParams::default(), &other)
        .await
        .expect("a namespace");
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("apps.kruise.io", "v1alpha1", "CloneSet"));
    for namespace in ["default", "other"] {
        let sets: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &resource);
        let mut wanted = set("a");
        wanted["metadata"]["namespace"] = json!(namespace);
        let object = shared_json::from_value(wanted).expect("an object");
        sets.create(&PostParams::default(), &object).await.expect("a set");
    }
    let pods: Api<Pod> = Api::all(client.clone());
    let found = until("the pods", || async {
        let list = pods.list(&ListParams::default()).await.expect("a list");
        (list.items.len() >= 2 * namespaces.len()).then_some(list.items)
    })
    .await;
    let found: Vec<String> = found
        .into_iter()
        .filter_map(|pod| pod.metadata.namespace)
        .collect();
    let expected: Vec<&str> = namespaces.iter().flat_map(|namespace| [*namespace; 2]).collect();
    assert_eq!(found, expected);
    stop.send(()).expect("it runs");
    manager.await.expect("no panic").expect("a good end");
}

fn set(name: &str) -> Value {
    json!({
        "apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": "nginx"}]},
            },
        },
    })
}

async fn review(client: &Client, path: &str, object: &Value) -> Value {
    let review = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {"uid": "u", "operation": "CREATE", "object": object},
    });
    let request = http::Request::post(path)
        .header("content-type", "application/json")
        .body(review.to_string().into_bytes())
        .expect("a request");
    client.request(request).await.expect("an answer")
}

/// The bytes of the one certificate in a PEM text.
fn der(pem: &[u8]) -> Vec<u8> {
    let text = String::from_utf8(pem.to_vec()).expect("a text");
    let body: String = text.lines().filter(|line| !line.starts_with("-----")).collect();
    let quoted = json!(body);
    let bytes: k8s_openapi::ByteString = shared_json::from_value(quoted).expect("base64");
    bytes.0
}

fn candidate(client: &Client, clock: &SharedClock, us: &str) -> Election {
    Election::new(
        client.clone(),
        Arc::clone(clock),
        NAMESPACE,
        "kruise-manager",
        us,
        Timings::default(),
    )
}

async fn holder(client: &Client) -> String {
    let leases: Api<Lease> = Api::namespaced(client.clone(), NAMESPACE);
    let spec = leases.get("kruise-manager").await.expect("the lease").spec;
    spec.and_then(|spec| spec.holder_identity).unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn one_of_two_leads_and_the_other_takes_over() {
    let cluster = Cluster::builder().nodes(0).start().await.expect("a cluster");
    let (client, clock) = (cluster.client(), cluster.clock());
    let mut namespace = Namespace::default();
    namespace.metadata.name = Some(NAMESPACE.to_owned());
    let namespaces: Api<Namespace> = Api::all(client.clone());
    namespaces
        .create(&PostParams::default(), &namespace)
        .await
        .expect("a namespace");

    let mut first = candidate(&client, &clock, "first");
    first.acquire().await;
    let leader = tokio::spawn(async move { first.hold().await });
    let mut second = candidate(&client, &clock, "second");
    let waited = tokio::time::timeout(Duration::from_secs(120), second.acquire()).await;
    assert!(waited.is_err(), "the first one renews its lease");
    assert_eq!(holder(&client).await, "first");

    // The leader vanishes: its lease runs out, and not before.
    leader.abort();
    let since = Instant::now();
    second.acquire().await;
    let took_s = since.elapsed().as_secs_f64();
    assert!((13.0..=19.0).contains(&took_s), "{took_s} s");
    assert_eq!(holder(&client).await, "second");

    // The leader goes in an orderly way: nobody has to wait for the lease's end.
    second.release().await;
    let since = Instant::now();
    let mut third = candidate(&client, &clock, "third");
    third.acquire().await;
    assert!(since.elapsed() <= Duration::from_secs(2));

    // Someone takes the lease from a leader: it notices at its next renewal, and stops.
    let leases: Api<Lease> = Api::namespaced(client.clone(), NAMESPACE);
    let mut lease = leases.get("kruise-manager").await.expect("the lease");
    lease.spec.as_mut().expect("a spec").holder_identity = Some("fourth".to_owned());
    leases
        .replace("kruise-manager", &PostParams::default(), &lease)
        .await
        .expect("written");
    let since = Instant::now();
    third.hold().await;
    assert!(since.elapsed() <= Duration::from_secs(10));
}
