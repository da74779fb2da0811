//! Rows: `agnhost`, the program of Kubernetes' tests, by its subcommands; and programs in Rust of a user's own.

use std::time::Duration;

use fake_apiserver::Cluster;
use fake_apiserver::nodes::Container;
use rstest::rstest;
use shared_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::network_rows::{create, pod, prints, run, service};
use crate::streams::exec;
use crate::support::{exchange, request, send, simulate, with};

const PODS: &str = "/api/v1/namespaces/default/pods";

/// A pod of this image with these arguments.
fn agnhost(name: &str, args: &[&str]) -> Value {
    let container =
        json!({"name": "c", "image": "registry.k8s.io/e2e-test-images/agnhost:2.56", "args": args});
    pod(name, container)
}

#[rstest]
#[case::hostname(&["netexec"], "curl -s $WEB:8080/hostname", "web")]
#[case::another_port(&["netexec", "--http-port=80"], "curl -s $WEB/hostName", "web")]
#[case::echo(&["netexec"], "curl -s -w '%{http_code}' \"$WEB:8080/echo?msg=a+b&code=201\"", "a b201")]
#[case::caller(&["netexec"], "test $(curl -s $WEB:8080/clientip | cut -d : -f 1) = $(grep client /etc/hosts | cut -f 1) && echo -n same", "same")]
#[case::health(&["netexec"], "curl -s -o /dev/null -w '%{http_code}' $WEB:8080/healthz", "200")]
#[case::redirects(&["netexec"], "curl -sL \"$WEB:8080/redirect?location=/hostname\"", "web")]
#[case::shell(&["netexec"], "curl -s \"$WEB:8080/shell?cmd=hostname;exit+3\"", r#"{"error":"exit status 3","output":"web\n"}"#)]
#[case::dials(&["netexec"], "curl -s \"$WEB:8080/dial?request=hostname&host=$WEB&port=8080&tries=2\"", r#"{"responses":["web","web"]}"#)]
#[case::dials_nobody(&["netexec"], "curl -s \"$WEB:8080/dial?request=hostname&host=nosuch&port=8080\"", "host and/or port param are invalid. lookup nosuch: no such host\n")]
#[case::dials_without_a_request(&["netexec"], "curl -s -w '%{http_code}' \"$WEB:8080/dial?host=$WEB&port=80\"", "request parameter not specified. <nil>\n400")]
#[case::always_the_same(&["netexec", "--http-override=/echo?msg=x"], "curl -s $WEB:8080/hostname", "x")]
#[case::not_http(&["netexec"], "echo hostName | nc -v -t -w 2 $WEB 8080 2> /dev/null | head -n 1 | cut -c 1-24 | tr -d '\\n'", "HTTP/1.1 400 Bad Request")]
#[case::serves_its_name(&["serve-hostname"], "curl -s $WEB:9376", "web")]
#[case::serves_its_name_plainly(&["serve-hostname", "--tcp", "--http=false", "--port=80"], "nc $WEB 80", "web")]
#[case::serves_files(&["test-webserver"], "curl -s $WEB/etc/hostname", "web\n")]
#[case::serves_a_file_of_its_image(&["test-webserver"], "curl -s -o /dev/null -w '%{http_code}' $WEB/localhost.crt", "200")]
#[case::without_a_file(&["test-webserver"], "curl -s -o /dev/null -w '%{http_code}' $WEB/no", "404")]
#[case::waits(&["pause"], "curl -s $WEB:8080; agnhost connect $WEB:80 2>&1", "REFUSED\n")]
#[case::connects(&["netexec"], "agnhost connect --timeout=3s $WEB:8080; echo -n $?", "0")]
#[case::by_datagram(&["netexec"], "echo hostName | nc -u -w 1 $WEB 8081", "web")]
#[case::echo_by_datagram(&["netexec", "--udp-port=90"], "echo 'echo Twice' | nc -u -w 1 $WEB 90", "twice")]
#[case::caller_by_datagram(&["netexec"], "test $(echo clientip | nc -u -w 1 -p 4000 $WEB 8081) = $(grep client /etc/hosts | cut -f 1):4000 && echo -n same", "same")]
#[case::no_datagrams(&["netexec", "--udp-port=-1"], "agnhost connect --protocol udp $WEB:8081 2>&1 | cut -d : -f 1", "REFUSED\n")]
#[case::dials_by_datagram(&["netexec"], "curl -s \"$WEB:8080/dial?request=hostname&protocol=udp&host=$WEB&port=8081&tries=2\"", r#"{"responses":["web","web"]}"#)]
#[case::dials_nobody_by_datagram(&["netexec"], "curl -s \"$WEB:8080/dial?request=hostname&protocol=udp&host=$WEB&port=82\" | grep -c \"reading from udp connection failed. err:'read udp $WEB:.*->$WEB:82: read: connection refused'\"", "1\n")]
#[case::serves_its_name_by_datagram(&["serve-hostname", "--udp", "--http=false", "--port=80"], "echo | nc -u -w 1 $WEB 80", "web")]
#[case::connects_by_datagram(&["netexec"], "agnhost connect --protocol=udp --timeout=3s $WEB:8081; echo -n $?", "0")]
#[case::no_answer_by_datagram(&["netexec"], "agnhost connect --protocol=udp --udp-data=what --timeout=1s $WEB:8081 2>&1 | cut -d : -f 1", "TIMEOUT\n")]
#[case::connects_to_nobody(&["netexec"], "/agnhost connect nosuch:1 2>&1", "DNS: lookup nosuch: no such host\n")]
#[case::book(&["guestbook"], "curl -s \"$WEB/set?key=a&value=b\"; curl -s \"$WEB/get?key=a\"; curl -s $WEB/get", r#"{"message":"Updated"}{"data":"b"}{"data":{"a":"b"}}"#)]
#[case::counts_messages(&["nettest"], "curl -s -d '{\"Source\":\"a\"}' $WEB:8080/write > /dev/null; curl -s $WEB:8080/read | grep -c '\"Received\":{\"a\":1}'", "1\n")]
#[case::lists_a_folder(&["test-webserver"], "curl -s $WEB/ | grep -c '<a href=\"etc/\">'", "1\n")]
#[case::is_healthy(&["grpc-health-checking"], "agnhost connect --timeout=3s $WEB:5000; echo -n $?", "0")]
#[case::servers_of_names(&["pause"], "agnhost dns-suffix; agnhost dns-server-list", "default.svc.cluster.local,svc.cluster.local,cluster.local\n10.96.0.10\n")]
fn subcommands(#[case] args: &[&str], #[case] script: &str, #[case] expected: &str) {
    assert_eq!(prints(&[agnhost("web", args)], script), expected);
}

#[test]
fn images_of_kubernetes_tests_have_a_page() {
    let demo = pod(
        "web",
        json!({"name": "c", "image": "registry.k8s.io/e2e-test-images/nautilus:1.8", "ports": [{"containerPort": 80}]}),
    );
    assert_eq!(
        prints(&[demo], "curl -s $WEB/data.json | grep -c nautilus.jpg"),
        "1\n"
    );
}

/// What a container prints that ends, and its exit code.
#[rstest]
#[case::arguments(json!({"args": ["entrypoint-tester", "a", "b"]}), 0, "[/agnhost entrypoint-tester a b]\n")]
#[case::another_name(json!({"command": ["/agnhost-2", "entrypoint-tester"], "args": ["a"]}), 0, "[/agnhost-2 entrypoint-tester a]\n")]
#[case::content(json!({"args": ["mounttest", "--file_content=/etc/hostname"]}), 0, "content of file \"/etc/hostname\": p\n\n")]
#[case::new_file(
    json!({"args": ["mounttest", "--new_file_0666=/tmp/x", "--file_perm=/tmp/x"]}), 0,
    "content of file \"/tmp/x\": mount-tester new file\n\nperms of file \"/tmp/x\": -rw-rw-rw-\n"
)]
#[case::not_root(
    json!({"image": "e2e/nonewprivs:1.3", "securityContext": {"runAsUser": 1000, "allowPrivilegeEscalation": false}}), 0, "Effective uid: 1000\n"
)]
#[case::root(
    json!({"image": "e2e/nonewprivs:1.3", "securityContext": {"runAsUser": 1000, "allowPrivilegeEscalation": true}}), 0, "Effective uid: 0\n"
)]
#[case::root_by_default(json!({"image": "e2e/nonewprivs:1.3", "securityContext": {"runAsUser": 1000}}), 0, "Effective uid: 0\n")]
#[case::folder(json!({"args": ["mounttest", "--file_perm=/etc", "--file_mode=/etc"]}), 0, "mode of file \"/etc\": drwxr-xr-x\nperms of file \"/etc\": -rwxr-xr-x\n")]
#[case::no_file(json!({"args": ["mounttest", "--file_content=/no"]}), 1, "error reading file content for \"/no\": open /no: No such file or directory\n")]
#[case::no_cluster(json!({"args": ["inclusterclient"]}), 1, "err: unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined\n")]
#[case::no_lines(json!({"args": ["logs-generator", "--log-lines-total=0"]}), 255, "Invalid total number of lines: 0\n")]
fn commands(#[case] more: Value, #[case] code: i64, #[case] expected: &str) {
    simulate(move || async move {
        let cluster = Cluster::builder().nodes(1).start().await.expect("a cluster");
        let mut ends = agnhost("p", &[]);
        let container = ends["spec"]["containers"][0].clone();
        ends["spec"]["containers"][0] = with(container, more);
        ends["spec"]["restartPolicy"] = json!("Never");
        create(&cluster, &ends).await;
        cluster.run_for(Duration::from_secs(10)).await;
        let (_, text) = exchange(&cluster, "GET", &format!("{PODS}/p/log"), "", &Value::Null).await;
        let (_, found) = request(&cluster, "GET", &format!("{PODS}/p"), &Value::Null).await;
        let ended = &found["status"]["containerStatuses"][0]["state"]["terminated"];
        assert_eq!((text.as_str(), &ended["exitCode"]), (expected, &json!(code)));
    });
}

/// The second of two programs that want one port of a pod ends.
#[test]
fn a_port_has_one_program() {
    simulate(|| async {
        let cluster = Cluster::builder().nodes(1).start().await.expect("a cluster");
        let mut both = agnhost("p", &["netexec", "--udp-port=90"]);
        let mut second = both["spec"]["containers"][0].clone();
        second["name"] = json!("second");
        second["args"] = json!(["netexec"]);
        both["spec"]["containers"] = json!([both["spec"]["containers"][0].clone(), second]);
        both["spec"]["restartPolicy"] = json!("Never");
        create(&cluster, &both).await;
        cluster.run_for(Duration::from_secs(10)).await;
        let (_, found) = request(&cluster, "GET", &format!("{PODS}/p"), &Value::Null).await;
        let state = |index: usize| &found["status"]["containerStatuses"][index]["state"];
        assert!(state(0)["running"].is_object(), "{found}");
        assert_eq!(state(1)["terminated"]["exitCode"], json!(1), "{found}");
    });
}

/// A container of the image without words of its own waits, and says which signal ended it.
#[test]
fn the_image_pauses() {
    simulate(|| async {
        let cluster = Cluster::builder().nodes(1).start().await.expect("a cluster");
        let mut waits = agnhost("p", &[]);
        waits["metadata"]["finalizers"] = json!(["example.com/wait"]);
        create(&cluster, &waits).await;
        cluster.run_for(Duration::from_secs(10)).await;
        let (_, text) = exchange(&cluster, "GET", &format!("{PODS}/p/log"), "", &Value::Null).await;
        assert_eq!(text, "Paused\nSignals registered\n");
        request(&cluster, "DELETE", &format!("{PODS}/p"), &Value::Null).await;
        cluster.run_for(Duration::from_secs(10)).await;
        let (_, found) = request(&cluster, "GET", &format!("{PODS}/p"), &Value::Null).await;
        let ended = &found["status"]["containerStatuses"][0]["state"]["terminated"];
        let told = json!("exiting because of signal \"terminated\"\n");
        assert_eq!((&ended["exitCode"], &ended["message"]), (&json!(2), &told));
    });
}

/// How often a container was started again after half a minute and more.
#[rstest]
#[case::liveness(json!({"args": ["liveness"], "livenessProbe": {"httpGet": {"port": 8080, "path": "/healthz"}, "periodSeconds": 3}}), true)]
#[case::healthy(json!({"args": ["netexec"], "livenessProbe": {"httpGet": {"port": 8080, "path": "/healthz"}, "periodSeconds": 3}}), false)]
#[case::follows_itself(json!({"args": ["liveness"], "livenessProbe": {"httpGet": {"port": 8080, "path": "/redirect?loc=%2Fhealthz"}, "periodSeconds": 3}}), true)]
#[case::goes_nowhere_else(json!({"args": ["liveness"], "livenessProbe": {"httpGet": {"port": 8080, "path": "/redirect?loc=http%3A%2F%2F0.0.0.0%2F"}, "periodSeconds": 3}}), false)]
#[case::encrypted(json!({
    "args": ["porter"], "env": [{"name": "SERVE_TLS_PORT_443", "value": "x"}],
    "livenessProbe": {"httpGet": {"port": 443, "scheme": "HTTPS"}, "periodSeconds": 3},
}), false)]
#[case::not_encrypted(json!({"args": ["netexec"], "livenessProbe": {"httpGet": {"port": 8080, "scheme": "HTTPS"}, "periodSeconds": 3}}), true)]
#[case::no_listener(json!({"args": ["netexec"], "livenessProbe": {"tcpSocket": {"port": 81}, "periodSeconds": 3}}), true)]
fn restarts(#[case] more: Value, #[case] expected: bool) {
    simulate(move || async move {
        let cluster = Cluster::builder().nodes(1).start().await.expect("a cluster");
        let mut web = agnhost("web", &[]);
        let container = web["spec"]["containers"][0].clone();
        web["spec"]["containers"][0] = with(container, more);
        create(&cluster, &web).await;
        cluster.run_for(Duration::from_secs(40)).await;
        let (_, found) = request(&cluster, "GET", &format!("{PODS}/web"), &Value::Null).await;
        let restarts = found["status"]["containerStatuses"][0]["restartCount"].as_i64();
        assert_eq!(restarts.is_some_and(|count| count > 0), expected, "{restarts:?}");
    });
}

/// A pod is not ready while its probe's file of the image is elsewhere.
#[test]
fn probes_ask_for_files_of_the_image() {
    simulate(|| async {
        let cluster = Cluster::builder().nodes(1).start().await.expect("a cluster");
        let probe = json!({"httpGet": {"port": 80, "path": "/localhost.crt"}, "periodSeconds": 1, "failureThreshold": 1});
        let mut web = agnhost("web", &["test-webserver"]);
        web["spec"]["containers"][0]["readinessProbe"] = probe;
        create(&cluster, &web).await;
        cluster.run_for(Duration::from_secs(5)).await;
        let pods = kube::Api::default_namespaced(cluster.client());
        for (argv, expected) in [
            (vec!["true"], true),
            (vec!["mv", "/localhost.crt", "/tmp/"], false),
            (vec!["mv", "/tmp/localhost.crt", "/"], true),
        ] {
            exec(&pods, "web", &argv, None).await;
            cluster.run_for(Duration::from_secs(5)).await;
            let (_, found) = request(&cluster, "GET", &format!("{PODS}/web"), &Value::Null).await;
            let ready = &found["status"]["containerStatuses"][0]["ready"];
            assert_eq!(ready, &json!(expected), "{argv:?}");
        }
    });
}

/// Hooks by HTTP ask what listens at an address of the cluster. Any answer will do.
#[rstest]
#[case::answered(json!({"path": "/echo?msg=hooked"}), true)]
#[case::answered_with_an_error(json!({"path": "/echo?msg=hooked&code=503"}), true)]
#[case::without_the_first_slash(json!({"path": "echo?msg=hooked"}), true)]
#[case::nobody_listens(json!({"port": 81}), false)]
#[case::outside(json!({"host": "192.0.2.1"}), false)]
fn hooks_ask_other_pods(#[case] changes: Value, #[case] runs: bool) {
    simulate(move || async move {
        let cluster = Cluster::builder().nodes(2).start().await.expect("a cluster");
        create(&cluster, &agnhost("web", &["netexec"])).await;
        cluster.run_for(Duration::from_secs(5)).await;
        let (_, web) = request(&cluster, "GET", &format!("{PODS}/web"), &Value::Null).await;
        let get = with(json!({"host": web["status"]["podIP"], "port": 8080}), changes);
        let hook = json!({"httpGet": get});
        let mut hooked = agnhost("hooked", &["pause"]);
        hooked["spec"]["containers"][0]["lifecycle"] = json!({"postStart": hook, "preStop": hook});
        create(&cluster, &hooked).await;
        cluster.run_for(Duration::from_secs(5)).await;
        let (_, found) = request(&cluster, "GET", &format!("{PODS}/hooked"), &Value::Null).await;
        assert_eq!(
            found["status"]["containerStatuses"][0]["ready"],
            json!(runs),
            "{found}"
        );
        let requests = async || {
            let (_, text) = exchange(&cluster, "GET", &format!("{PODS}/web/log"), "", &Value::Null).await;
            text.matches("GET /echo?msg=hooked").count()
        };
        assert_eq!(requests().await, usize::from(runs));
        request(&cluster, "DELETE", &format!("{PODS}/hooked"), &Value::Null).await;
        cluster.run_for(Duration::from_secs(5)).await;
        assert_eq!(requests().await, 2 * usize::from(runs));
    });
}

#[test]
fn a_server_ends_with_the_asked_code() {
    simulate(|| async {
        let cluster = Cluster::builder().nodes(1).start().await.expect("a cluster");
        let mut web = agnhost("web", &["netexec"]);
        web["spec"]["restartPolicy"] = json!("Never");
        create(&cluster, &web).await;
        cluster.run_for(Duration::from_secs(5)).await;
        run(
            &cluster,
            "client",
            "curl -s \"$WEB:8080/exit?code=7&wait=2s\"",
            Duration::from_secs(10),
        )
        .await;
        let (_, found) = request(&cluster, "GET", &format!("{PODS}/web"), &Value::Null).await;
        assert_eq!(
            found["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"],
            json!(7)
        );
    });
}

#[test]
fn replicas_of_a_book_hear_of_writes() {
    let of = |name: &str, port: u16| {
        let ports = json!([{"port": port, "targetPort": port}]);
        service(name, json!({"selector": {"app": name}, "ports": ports}))
    };
    let objects = [
        of("agnhost-primary", 6379),
        of("agnhost-replica", 6379),
        agnhost("agnhost-primary", &["guestbook", "--http-port", "6379"]),
        agnhost(
            "agnhost-replica",
            &["guestbook", "--replicaof=agnhost-primary", "--http-port=6379"],
        ),
        agnhost("web", &["guestbook"]),
    ];
    let script =
        "curl -s \"$WEB/guestbook?cmd=set&key=k&value=v\"; sleep 1; curl -s \"$WEB/guestbook?cmd=get&key=k\"";
    let told = prints(&objects, &format!("sleep 10; {script}"));
    assert_eq!(told, r#"{"message":"Updated"}{"data":"v"}"#);
}

#[test]
fn log_lines_come_in_their_time() {
    simulate(|| async {
        let cluster = Cluster::builder().nodes(1).start().await.expect("a cluster");
        let mut logger = agnhost(
            "p",
            &[
                "logs-generator",
                "--log-lines-total",
                "10",
                "--run-duration",
                "100s",
            ],
        );
        logger["spec"]["restartPolicy"] = json!("Never");
        create(&cluster, &logger).await;
        let mut counts = Vec::new();
        for _ in 0..3 {
            cluster.run_for(Duration::from_secs(45)).await;
            let (_, text) = exchange(&cluster, "GET", &format!("{PODS}/p/log"), "", &Value::Null).await;
            counts.push(text.lines().count());
        }
        assert_eq!(counts.last(), Some(&10));
        assert!(
            counts.is_sorted_by(|a, b| a <= b) && counts.first().is_some_and(|first| (3..7).contains(first))
        );
    });
}

/// A Secret with a certificate for `web.default.svc`, and that certificate as a bundle.
async fn certificate(cluster: &Cluster) -> String {
    use base64::Engine as _;
    let encode = |text: String| base64::engine::general_purpose::STANDARD.encode(text);
    let made = rcgen::generate_simple_self_signed(["web.default.svc".to_owned()]).expect("a certificate");
    let bundle = encode(made.cert.pem());
    let secret = json!({
        "metadata": {"name": "cert"},
        "data": {"tls.crt": bundle, "tls.key": encode(made.signing_key.serialize_pem())},
    });
    let (code, answer) = request(cluster, "POST", "/api/v1/namespaces/default/secrets", &secret).await;
    assert_eq!(code, 201, "{answer}");
    bundle
}

/// A pod with the certificate at `/cert`, and its Service.
async fn with_certificate(cluster: &Cluster, args: &[&str]) {
    let mut web = agnhost("web", args);
    web["spec"]["volumes"] = json!([{"name": "cert", "secret": {"secretName": "cert"}}]);
    web["spec"]["containers"][0]["volumeMounts"] = json!([{"name": "cert", "mountPath": "/cert"}]);
    create(cluster, &web).await;
    let ports = json!([{"port": 443, "targetPort": 8444}]);
    create(
        cluster,
        &service("web", json!({"selector": {"app": "web"}, "ports": ports})),
    )
    .await;
    cluster.run_for(Duration::from_secs(10)).await;
}

const HOOK: [&str; 4] = [
    "webhook",
    "--tls-cert-file=/cert/tls.crt",
    "--tls-private-key-file=/cert/tls.key",
    "--port=8444",
];

/// The answer to a ConfigMap while a webhook in a pod reviews it at this path.
#[rstest]
#[case::denied("Validating", "/always-deny", json!({}), "admission webhook \"h.example.com\" denied the request: this webhook denies all requests")]
#[case::by_its_data("Validating", "/configmaps", json!({"webhook-e2e-test": "webhook-disallow"}), "admission webhook \"h.example.com\" denied the request: the configmap contains unwanted key and value")]
#[case::allowed("Validating", "/configmaps", json!({"a": "b"}), "")]
#[case::changed("Mutating", "/mutating-configmaps", json!({"mutation-start": "yes"}), "yes")]
#[case::late("Validating", "/always-allow-delay-5s", json!({}), "Internal error occurred: failed calling webhook \"h.example.com\": failed to call webhook: Post \"https://web.default.svc:443/always-allow-delay-5s?timeout=1s\": context deadline exceeded")]
#[case::no_path("Validating", "/nosuch", json!({}), "Internal error occurred: failed calling webhook \"h.example.com\": failed to call webhook: the server could not find the requested resource")]
fn webhooks_in_pods(#[case] kind: &str, #[case] path: &str, #[case] data: Value, #[case] expected: &str) {
    simulate(move || async move {
        let cluster = Cluster::builder().nodes(1).start().await.expect("a cluster");
        let bundle = certificate(&cluster).await;
        with_certificate(&cluster, &HOOK).await;
        let hook = json!({
            "name": "h.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"], "timeoutSeconds": 1,
            "clientConfig": {"service": {"namespace": "default", "name": "web", "path": path}, "caBundle": bundle},
            "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["*"], "resources": ["configmaps"]}],
        });
        let configuration = json!({"metadata": {"name": "hooks"}, "webhooks": [hook]});
        let plural = format!("{}webhookconfigurations", kind.to_lowercase());
        let configurations = format!("/apis/admissionregistration.k8s.io/v1/{plural}");
        let (code, answer) = request(&cluster, "POST", &configurations, &configuration).await;
        assert_eq!(code, 201, "{answer}");
        let map = json!({"metadata": {"name": "m"}, "data": data});
        let (_, answer) = request(&cluster, "POST", "/api/v1/namespaces/default/configmaps", &map).await;
        let told = answer["message"]
            .as_str()
            .or_else(|| answer["data"]["mutation-stage-1"].as_str());
        assert_eq!(told.unwrap_or_default(), expected, "{answer}");
    });
}

#[test]
fn conversion_webhooks_in_pods() {
    simulate(|| async {
        let cluster = Cluster::builder().nodes(1).start().await.expect("a cluster");
        let bundle = certificate(&cluster).await;
        let args = [&["crd-conversion-webhook"], &HOOK[1..]].concat();
        with_certificate(&cluster, &args).await;
        let version = |name: &str, fields: &[&str]| {
            let properties: Value = fields
                .iter()
                .map(|field| ((*field).to_owned(), json!({"type": "string"})))
                .collect();
            let selectable: Vec<Value> = fields
                .iter()
                .map(|field| json!({"jsonPath": format!(".{field}")}))
                .collect();
            json!({"name": name, "served": true, "storage": name == "v1", "selectableFields": selectable,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}}})
        };
        let definition = json!({
            "metadata": {"name": "things.stable.example.com"},
            "spec": {
                "group": "stable.example.com", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
                "versions": [version("v1", &["hostPort"]), version("v2", &["host", "port"])],
                "conversion": {"strategy": "Webhook", "webhook": {
                    "conversionReviewVersions": ["v1"],
                    "clientConfig": {"service": {"namespace": "default", "name": "web", "path": "/crdconvert"}, "caBundle": bundle},
                }},
            },
        });
        let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let (code, answer) = request(&cluster, "POST", definitions, &definition).await;
        assert_eq!(code, 201, "{answer}");
        cluster.run_for(Duration::from_secs(1)).await;
        let thing = json!({"apiVersion": "stable.example.com/v1", "kind": "Thing", "metadata": {"name": "t"}, "hostPort": "local:80"});
        let things = |version: &str| format!("/apis/stable.example.com/{version}/namespaces/default/things");
        let (code, answer) = request(&cluster, "POST", &things("v1"), &thing).await;
        assert_eq!(code, 201, "{answer}");
        let (_, answer) = request(&cluster, "GET", &format!("{}/t", things("v2")), &Value::Null).await;
        assert_eq!(
            (&answer["host"], &answer["port"]),
            (&json!("local"), &json!("80")),
            "{answer}"
        );
        // A selector names the fields of the version that is asked for, in lists, watches and deletions.
        for (version, selector, expected) in [
            ("v1", "hostPort=local:80", 1),
            ("v1", "hostPort=local", 0),
            ("v2", "host=local", 1),
            ("v2", "host=local,port=80", 1),
            ("v2", "host=local,port=81", 0),
        ] {
            let path = format!("{}?fieldSelector={selector}", things(version));
            let (_, answer) = request(&cluster, "GET", &path, &Value::Null).await;
            let found = answer["items"].as_array().map(shared_json::Array::len);
            assert_eq!(found, Some(expected), "{path}: {answer}");
        }
        let revision = answer["metadata"]["resourceVersion"].as_str().unwrap_or_default();
        let moved = json!({"host": "away"});
        let path = format!("{}/t", things("v2"));
        let (code, answer) = send(&cluster, "PATCH", &path, "application/merge-patch+json", &moved).await;
        assert_eq!(code, 200, "{answer}");
        for (selector, expected) in [("host=local", "DELETED local"), ("host=away", "ADDED away")] {
            let path = format!(
                "{}?watch=true&timeoutSeconds=1&resourceVersion={revision}&fieldSelector={selector}",
                things("v2")
            );
            let (_, text) = exchange(&cluster, "GET", &path, "", &Value::Null).await;
            let event: Value =
                shared_json::from_str(text.lines().next().unwrap_or_default()).unwrap_or_default();
            let told =
                [&event["type"], &event["object"]["host"]].map(|text| text.as_str().unwrap_or_default());
            assert_eq!(told.join(" "), expected, "{text}");
        }
        let path = format!("{}?fieldSelector=host=away,port=80", things("v2"));
        request(&cluster, "DELETE", &path, &Value::Null).await;
        let (_, answer) = request(&cluster, "GET", &things("v1"), &Value::Null).await;
        assert_eq!(answer["items"], json!([]), "{answer}");
    });
}

#[test]
fn servers_encrypt() {
    simulate(|| async {
        let cluster = Cluster::builder().nodes(1).start().await.expect("a cluster");
        certificate(&cluster).await;
        let args = [&["netexec", "--http-port=8444"], &HOOK[1..3]].concat();
        with_certificate(&cluster, &args).await;
        let script = "curl -sk https://web/hostname; echo; wget -q -O - https://web/hostname; echo; curl -sS https://web; echo $?";
        let told = run(&cluster, "client", script, Duration::from_secs(10)).await;
        assert_eq!(
            told,
            "web\nweb\ncurl: (60) SSL certificate problem: unable to get local issuer certificate\n60\n"
        );
    });
}

/// A program that repeats what it reads, in capitals.
async fn capitals(container: Container) -> i32 {
    let Some(mut listener) = container.listen(7) else {
        return 1;
    };
    container.print("ready\n");
    while let Some(mut connection) = listener.accept().await {
        let mut heard = Vec::new();
        if connection.stream.read_to_end(&mut heard).await.is_err() {
            return 2;
        }
        let text = String::from_utf8_lossy(&heard).to_uppercase();
        if connection.stream.write_all(text.as_bytes()).await.is_err() {
            return 3;
        }
    }
    0
}

/// A program that writes a file, waits, asks the other one, and ends when it is asked to.
async fn asks(mut container: Container) -> i32 {
    tokio::time::sleep(Duration::from_secs(3600)).await;
    container.write_file("/tmp/x", b"hello").expect("a file");
    let mut stream = container.connect("web", 7).await.expect("a connection");
    stream
        .write_all(&container.read_file("/tmp/x").expect("a file"))
        .await
        .expect("to write");
    stream.shutdown().await.expect("to end");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("to read");
    container.print(&format!("{answer} at {}\n", container.now()));
    container.asked_to_end().await;
    container.print("bye\n");
    9
}

#[test]
fn programs_in_rust_use_files_time_and_network() {
    simulate(|| async {
        let cluster = Cluster::builder()
            .nodes(2)
            .program("example.com/capitals", capitals)
            .program("example.com/asks:*", asks)
            .start()
            .await
            .expect("a cluster");
        let of = |name: &str, image: &str| {
            let mut pod = pod(name, json!({"name": "c", "image": image}));
            pod["spec"]["restartPolicy"] = json!("Never");
            pod["metadata"]["finalizers"] = json!(["example.com/keep"]);
            pod
        };
        let ports = json!([{"port": 7, "targetPort": 7}]);
        create(
            &cluster,
            &service("web", json!({"selector": {"app": "web"}, "ports": ports})),
        )
        .await;
        create(&cluster, &of("web", "example.com/capitals:v1")).await;
        create(&cluster, &of("client", "example.com/asks:v2")).await;
        cluster.run_for(Duration::from_secs(3700)).await;
        let log = async |name: &str| {
            exchange(&cluster, "GET", &format!("{PODS}/{name}/log"), "", &Value::Null)
                .await
                .1
        };
        assert_eq!(log("web").await, "ready\n");
        let told = log("client").await;
        assert!(told.starts_with("HELLO at 2026-01-01T01:00:0"), "{told}");
        for name in ["client", "web"] {
            request(&cluster, "DELETE", &format!("{PODS}/{name}"), &Value::Null).await;
        }
        cluster.run_for(Duration::from_secs(5)).await;
        assert!(log("client").await.ends_with("\nbye\n"));
        let code = async |name: &str| {
            let (_, found) = request(&cluster, "GET", &format!("{PODS}/{name}"), &Value::Null).await;
            found["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"].clone()
        };
        assert_eq!(code("client").await, json!(9), "it asked to hear of its end");
        assert_eq!(code("web").await, json!(143), "it did not");
    });
}
