//! A server behind a socket: encryption, certificates, tokens, and the rights that they give.

use std::net::SocketAddr;
use std::sync::Arc;

use fake_apiserver::serve::{self, Identity, Transport};
use fake_apiserver::{Cluster, ClusterBuilder};
use http::Request;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use shared_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

pub(crate) struct Served {
    kubeconfig: Value,
    stop: oneshot::Sender<()>,
    done: tokio::task::JoinHandle<std::io::Result<()>>,
    cluster: Cluster,
}

pub(crate) async fn start(encrypted: bool) -> Served {
    start_cluster(encrypted, Cluster::builder().nodes(0).controllers(false)).await
}

/// An encrypted server of a cluster with nodes and controllers, whose time is real.
pub(crate) async fn start_with_nodes(count: u32) -> Served {
    let now = client_kit::Clock::now(&client_kit::SystemClock);
    start_cluster(true, Cluster::builder().nodes(count).start_time(now)).await
}

impl Served {
    pub(crate) async fn client(&self) -> Client {
        client(&self.kubeconfig).await
    }

    /// Where an unencrypted server listens.
    pub(crate) fn address(&self) -> SocketAddr {
        let server = self.kubeconfig["clusters"][0]["cluster"]["server"].as_str();
        let address = server.and_then(|url| url.strip_prefix("http://"));
        address
            .and_then(|address| address.parse().ok())
            .expect("an address")
    }

    pub(crate) fn cluster(&self) -> &Cluster {
        &self.cluster
    }
}

/// A server of this cluster.
pub(crate) async fn start_cluster(encrypted: bool, cluster: ClusterBuilder) -> Served {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address: SocketAddr = listener.local_addr().expect("an address");
    let transport = Transport {
        identity: encrypted.then(|| Arc::new(Identity::generate(&[]).expect("certificates"))),
        tokens: vec!["secret".to_owned()],
    };
    let authority = transport
        .identity
        .as_ref()
        .and_then(|identity| identity.authority());
    let cluster = cluster
        .authority(authority)
        .system_objects(true)
        .start()
        .await
        .expect("a cluster");
    let (stop, stopped) = oneshot::channel::<()>();
    let kubeconfig = serve::kubeconfig(address, &transport);
    let ended = async move {
        let _ = stopped.await;
    };
    let done = tokio::spawn(serve::serve(cluster.server().clone(), listener, transport, ended));
    Served {
        kubeconfig,
        stop,
        done,
        cluster,
    }
}

pub(crate) async fn client(kubeconfig: &Value) -> Client {
    let parsed: Kubeconfig = shared_json::from_value(kubeconfig.clone()).expect("a kubeconfig");
    let config = Config::from_custom_kubeconfig(parsed, &KubeConfigOptions::default())
        .await
        .expect("a configuration");
    Client::try_from(config).expect("a client")
}

/// The answer's code and body.
pub(crate) async fn ask(
    client: &Client,
    method: &str,
    path: &str,
    body: Value,
    headers: &[(&str, &str)],
) -> (u16, Value) {
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let body = if body.is_null() {
        Vec::new()
    } else {
        body.to_string().into_bytes()
    };
    let response = client
        .send(request.body(body.into()).expect("a request"))
        .await
        .expect("an answer");
    let code = response.status().as_u16();
    let bytes = http_body_util::BodyExt::collect(response.into_body())
        .await
        .expect("a body")
        .to_bytes();
    (code, shared_json::from_slice(&bytes).unwrap_or_default())
}

/// The kubeconfig without its certificate, with a token if there is one.
pub(crate) fn with_token(kubeconfig: &Value, token: Option<&str>) -> Value {
    let mut out = kubeconfig.clone();
    out["users"][0]["user"] = token.map_or_else(|| json!({}), |token| json!({"token": token}));
    out
}

#[tokio::test]
async fn a_certificate_makes_an_administrator_and_nothing_makes_a_stranger() {
    let served = start(true).await;
    let administrator = client(&served.kubeconfig).await;
    let (code, list) = ask(&administrator, "GET", "/api/v1/namespaces", Value::Null, &[]).await;
    assert_eq!((code, list["kind"].as_str()), (200, Some("NamespaceList")));
    let review = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let (_, mut me) = ask(&administrator, "POST", review, json!({}), &[]).await;
    let shown = me["status"]["userInfo"]["extra"].take();
    let shown = shown["authentication.kubernetes.io/credential-id"][0]
        .as_str()
        .and_then(|id| id.strip_prefix("X509SHA256="))
        .expect("the certificate's hash");
    assert!(
        shown.len() == 64 && shown.chars().all(|c| c.is_ascii_hexdigit()),
        "{shown}"
    );
    assert_eq!(
        me["status"]["userInfo"],
        json!({"username": "kubernetes-admin", "groups": ["system:masters", "system:authenticated"], "extra": null})
    );

    let stranger = client(&with_token(&served.kubeconfig, None)).await;
    let (code, refusal) = ask(&stranger, "GET", "/api/v1/namespaces", Value::Null, &[]).await;
    let expected = "namespaces is forbidden: User \"system:anonymous\" cannot list resource \"namespaces\" in API group \"\" at \
                    the cluster scope";
    assert_eq!((code, refusal["message"].as_str()), (403, Some(expected)));
    let (code, _) = ask(&stranger, "GET", "/version", Value::Null, &[]).await;
    assert_eq!(code, 200);

    let impostor = client(&with_token(&served.kubeconfig, Some("wrong"))).await;
    let (code, refusal) = ask(&impostor, "GET", "/version", Value::Null, &[]).await;
    assert_eq!((code, refusal["reason"].as_str()), (401, Some("Unauthorized")));
    let known = client(&with_token(&served.kubeconfig, Some("secret"))).await;
    assert_eq!(ask(&known, "GET", "/api/v1/nodes", Value::Null, &[]).await.0, 200);
}

#[tokio::test]
async fn a_service_account_may_do_what_it_is_bound_to() {
    let served = start(true).await;
    let administrator = client(&served.kubeconfig).await;
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    ask(
        &administrator,
        "POST",
        accounts,
        json!({"metadata": {"name": "robot"}}),
        &[],
    )
    .await;
    let (code, request) = ask(
        &administrator,
        "POST",
        &format!("{accounts}/robot/token"),
        json!({}),
        &[],
    )
    .await;
    assert_eq!(code, 201);
    let token = request["status"]["token"].as_str().expect("a token").to_owned();
    let robot = client(&with_token(&served.kubeconfig, Some(&token))).await;
    let maps = "/api/v1/namespaces/default/configmaps";
    assert_eq!(ask(&robot, "GET", maps, Value::Null, &[]).await.0, 403);
    let binding = json!({
        "metadata": {"name": "robot"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "ServiceAccount", "name": "robot", "namespace": "default"}],
    });
    let bindings = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings";
    ask(&administrator, "POST", bindings, binding, &[]).await;
    // The role `view` is put together from others.
    assert_eq!(ask(&robot, "GET", maps, Value::Null, &[]).await.0, 200);
    assert_eq!(
        ask(&robot, "POST", maps, json!({"metadata": {"name": "a"}}), &[])
            .await
            .0,
        403
    );
    let as_robot = [("impersonate-user", "system:serviceaccount:default:robot")];
    assert_eq!(
        ask(&administrator, "GET", maps, Value::Null, &as_robot).await.0,
        200
    );
    ask(
        &administrator,
        "DELETE",
        &format!("{accounts}/robot"),
        Value::Null,
        &[],
    )
    .await;
    assert_eq!(ask(&robot, "GET", maps, Value::Null, &[]).await.0, 401);
}

#[tokio::test]
async fn nobody_gives_away_more_than_they_have() {
    let served = start(true).await;
    let administrator = client(&served.kubeconfig).await;
    let group = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
    let (roles, bindings) = (format!("{group}/roles"), format!("{group}/rolebindings"));
    let role = |name: &str, group: &str, resource: &str, verbs: &[&str]| json!({"metadata": {"name": name}, "rules": [{"apiGroups": [group], "resources": [resource], "verbs": verbs}]});
    let rbac = "rbac.authorization.k8s.io";
    ask(
        &administrator,
        "POST",
        &roles,
        role("powerful", "", "secrets", &["*"]),
        &[],
    )
    .await;
    let mut grantor = role("grantor", rbac, "roles", &["create", "get"]);
    grantor["rules"][0]["resources"] = json!(["roles", "rolebindings"]);
    ask(&administrator, "POST", &roles, grantor, &[]).await;
    let bound = |name: &str, role: &str| {
        json!({
            "metadata": {"name": name}, "roleRef": {"apiGroup": rbac, "kind": "Role", "name": role},
            "subjects": [{"kind": "User", "name": "jane", "apiGroup": rbac}],
        })
    };
    ask(
        &administrator,
        "POST",
        &bindings,
        bound("grantor", "grantor"),
        &[],
    )
    .await;

    let jane = [("impersonate-user", "jane")];
    let (code, refusal) = ask(
        &administrator,
        "POST",
        &roles,
        role("big", "", "secrets", &["get"]),
        &jane,
    )
    .await;
    let expected = "roles.rbac.authorization.k8s.io \"big\" is forbidden: user \"jane\" (groups=[\"system:authenticated\"]) is \
                    attempting to grant RBAC permissions not currently held:\n{APIGroups:[\"\"], Resources:[\"secrets\"], \
                    Verbs:[\"get\"]}";
    assert_eq!((code, refusal["message"].as_str()), (403, Some(expected)));
    let (code, _) = ask(
        &administrator,
        "POST",
        &roles,
        role("small", rbac, "roles", &["get"]),
        &jane,
    )
    .await;
    assert_eq!(code, 201);
    assert_eq!(
        ask(&administrator, "POST", &bindings, bound("a", "powerful"), &jane)
            .await
            .0,
        403
    );
    assert_eq!(
        ask(&administrator, "POST", &bindings, bound("b", "missing"), &jane)
            .await
            .0,
        404
    );
    assert_eq!(
        ask(&administrator, "POST", &bindings, bound("c", "small"), &jane)
            .await
            .0,
        201
    );

    let may = json!({"metadata": {"name": "binder"}, "rules": [
        {"apiGroups": [rbac], "resources": ["roles"], "verbs": ["bind"], "resourceNames": ["powerful"]},
        {"apiGroups": [rbac], "resources": ["roles"], "verbs": ["escalate"]},
    ]});
    ask(&administrator, "POST", &roles, may, &[]).await;
    ask(&administrator, "POST", &bindings, bound("binder", "binder"), &[]).await;
    assert_eq!(
        ask(&administrator, "POST", &bindings, bound("a", "powerful"), &jane)
            .await
            .0,
        201
    );
    assert_eq!(
        ask(
            &administrator,
            "POST",
            &roles,
            role("big", "", "secrets", &["get"]),
            &jane
        )
        .await
        .0,
        201
    );
}

#[tokio::test]
async fn a_server_that_is_stopped_ends_though_a_watch_is_open() {
    let served = start(false).await;
    let client = client(&served.kubeconfig).await;
    let request = Request::get("/api/v1/namespaces?watch=1")
        .body(Vec::new().into())
        .expect("a request");
    let watch = client.send(request).await.expect("a watch");
    assert_eq!(watch.status(), 200);
    served.stop.send(()).expect("a server that runs");
    let ended = tokio::time::timeout(std::time::Duration::from_secs(10), served.done).await;
    ended.expect("an end").expect("no panic").expect("no error");
}

/// Sends `head`, and `length` bytes of a body in pieces with a pause between them, and gives back the answers until the
/// connection ends or has answered twice.
async fn refused_while_sending(address: SocketAddr, length: usize) -> std::io::Result<String> {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    let mut stream = tokio::net::TcpStream::connect(address).await?;
    let head = format!(
        "POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nhost: x\r\nauthorization: Bearer wrong\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await?;
    // The answer is there before the body is.
    let mut answer = vec![0; 64 << 10];
    let read = stream.read(&mut answer).await?;
    let first = String::from_utf8_lossy(&answer[..read]).into_owned();
    let piece = vec![b'x'; 16 << 10];
    let mut left = length;
    while left > 0 {
        let sent = left.min(piece.len());
        stream.write_all(&piece[..sent]).await?;
        left -= sent;
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    stream
        .write_all(b"GET /version HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        .await?;
    let mut rest = String::new();
    stream.read_to_string(&mut rest).await?;
    Ok(first + &rest)
}

#[tokio::test]
async fn a_refusal_does_not_end_the_connection_of_who_still_sends() {
    let served = start(false).await;
    let address = served.address();
    let answers = refused_while_sending(address, 200 << 10)
        .await
        .expect("both answers");
    assert!(answers.starts_with("HTTP/1.1 401 "), "{answers}");
    assert!(answers.contains("HTTP/1.1 200 "), "{answers}");
    // More than that is not read: the connection ends, but not before the answer has been seen.
    let answers = refused_while_sending(address, 8 << 20).await;
    assert!(
        !answers.is_ok_and(|answers| answers.contains("HTTP/1.1 200 ")),
        "all was read"
    );
}

/// A PKCS #10 request for `O=system:nodes, CN=system:node:n`, in PEM, in base64.
const NODE_REQUEST: &str = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIcE1JR1JBZ0VBTUM4eEZUQVRCZ05WQkFvTURITjVjM1JsYlRwdWIyUmxjekVXTUJRR0ExVUVBd3dOYzNsegpkR1Z0T201dlpHVTZiakJaTUJNR0J5cUdTTTQ5QWdFR0NDcUdTTTQ5QXdFSEEwSUFCTGhjdlVOZXBPWVVPa0QxCmhhSTRnbnRGRk44US9hVW8zVm9NbFVjWGhDcTQ3VFJZMUxzVHhtbGgrSWtCRXJ3K1hrTmt5MFlqYU8reGFlSjkKakkzUlY1dWdBREFLQmdncWhrak9QUVFEQWdOSEFEQkVBaUE5SjlpYkhtMWVVQ29ud3RCTjR6MjRqczcrdGhCTAp2anBwL09ZT3FVdzIxQUlnRU9GbC9NOXZ2enQrNXBlOXQ0SWdCelUvYU1Oano4ZnBodHkzTUE5d28yUT0KLS0tLS1FTkQgQ0VSVElGSUNBVEUgUkVRVUVTVC0tLS0tCg==";

/// Repeats a request until the answer has a value at a pointer and gives that value.
async fn wait_for(client: &Client, path: &str, pointer: &str) -> Value {
    for _ in 0..100 {
        let (_, answer) = ask(client, "GET", path, Value::Null, &[]).await;
        if let Some(found) = answer.pointer(pointer) {
            return found.clone();
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    panic!("{path} has no {pointer}");
}

#[tokio::test]
async fn a_node_may_be_allowed_to_join_after_it_has_asked() {
    let served = start_cluster(true, Cluster::builder().nodes(0)).await;
    let administrator = served.client().await;
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    let bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    let requests = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
    let rule = |resource: &str| {
        json!({"metadata": {"name": resource.replace('/', "-")}, "rules": [{
            "apiGroups": ["certificates.k8s.io"], "resources": [resource], "verbs": ["create"],
        }]})
    };
    let bind = |resource: &str| {
        let name = resource.replace('/', "-");
        json!({
            "metadata": {"name": name}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "joiner"}],
        })
    };
    let (may_ask, may_join) = (
        "certificatesigningrequests",
        "certificatesigningrequests/nodeclient",
    );
    for resource in [may_ask, may_join] {
        assert_eq!(
            ask(&administrator, "POST", roles, rule(resource), &[]).await.0,
            201
        );
    }
    assert_eq!(
        ask(&administrator, "POST", bindings, bind(may_ask), &[]).await.0,
        201
    );
    let request = json!({"metadata": {"name": "r"}, "spec": {
        "signerName": "kubernetes.io/kube-apiserver-client-kubelet", "usages": ["client auth", "digital signature"],
        "request": NODE_REQUEST,
    }});
    let as_joiner = [("impersonate-user", "joiner")];
    let (code, answer) = ask(&administrator, "POST", requests, request, &as_joiner).await;
    assert_eq!(code, 201, "{answer}");
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    let path = format!("{requests}/r");
    let (_, answer) = ask(&administrator, "GET", &path, Value::Null, &[]).await;
    assert_eq!(answer.pointer("/status/conditions"), None, "{answer}");
    assert_eq!(
        ask(&administrator, "POST", bindings, bind(may_join), &[]).await.0,
        201
    );
    let told = wait_for(&administrator, &path, "/status/conditions/0").await;
    assert_eq!(
        (&told["type"], &told["reason"]),
        (&json!("Approved"), &json!("AutoApproved"))
    );
    wait_for(&administrator, &path, "/status/certificate").await;
    // And what pods are to trust the server by is what the kubeconfig says.
    let path = "/api/v1/namespaces/default/configmaps/kube-root-ca.crt";
    let bundle = wait_for(&administrator, path, "/data/ca.crt").await;
    let trusted = served
        .kubeconfig
        .pointer("/clusters/0/cluster/certificate-authority-data");
    let trusted = trusted.and_then(Value::as_str).expect("an authority");
    let trusted =
        base64::Engine::decode(&base64::engine::general_purpose::STANDARD, trusted).expect("base64");
    assert_eq!(bundle.as_str().map(str::as_bytes), Some(trusted.as_slice()));
}

/// A program of a pod reaches the server behind the Service `kubernetes`, as its service account.
#[tokio::test]
async fn pods_ask_the_server() {
    let served = start_with_nodes(1).await;
    let client = served.client().await;
    let folder = "/var/run/secrets/kubernetes.io/serviceaccount";
    let curl = format!(
        "curl -s --cacert {folder}/ca.crt -H \"Authorization: Bearer $(cat {folder}/token)\" https://kubernetes.default.svc"
    );
    let script = format!(
        "{curl}/apis/authentication.k8s.io/v1/selfsubjectreviews -d '{{}}' -H 'Content-Type: application/json' | \
         grep -o 'system:serviceaccount:default:default' | head -n 1; {curl}/api/v1/namespaces/kube-system | grep -c Forbidden; \
         curl -s -o /dev/null -w '%{{http_code}}\\n' --cacert {folder}/ca.crt https://$KUBERNETES_SERVICE_HOST:443/version; \
         curl -sS https://kubernetes.default.svc/version; curl -sS --cacert /nosuch https://kubernetes.default.svc/version || true"
    );
    let agnhost = "registry.k8s.io/e2e-test-images/agnhost:2.56";
    let volume = json!({"name": "token", "projected": {"sources": [{"serviceAccountToken": {"path": "token", "audience": "oidc"}}]}});
    let containers = json!([
        {"name": "curl", "image": "busybox", "command": ["sh", "-c", script]},
        {
            "name": "issuer", "image": agnhost,
            "args": ["test-service-account-issuer-discovery", "--token-path=/t/token", "--audience=oidc"],
            "volumeMounts": [{"name": "token", "mountPath": "/t"}],
        },
    ]);
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"restartPolicy": "Never", "containers": containers, "volumes": [volume]},
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "discovery"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:service-account-issuer-discovery"},
        "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": "default"}],
    });
    let bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    assert_eq!(ask(&client, "POST", bindings, binding, &[]).await.0, 201);
    let pods = "/api/v1/namespaces/default/pods";
    let (code, answer) = ask(&client, "POST", pods, pod, &[]).await;
    assert_eq!(code, 201, "{answer}");
    let mut found = Value::Null;
    for _ in 0..1200 {
        found = ask(&client, "GET", &format!("{pods}/p"), Value::Null, &[])
            .await
            .1;
        if matches!(found["status"]["phase"].as_str(), Some("Succeeded" | "Failed")) {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    let mut logs = Vec::new();
    for name in ["curl", "issuer"] {
        let request = Request::get(format!("{pods}/p/log?container={name}")).body(Vec::new());
        let log = client.request_text(request.expect("a request")).await;
        logs.push(log.expect("a log"));
    }
    assert_eq!(
        logs[0],
        "system:serviceaccount:default:default\n1\n200\n\
         curl: (60) SSL certificate problem: unable to get local issuer certificate\n\
         curl: (77) error setting certificate file: /nosuch\n"
    );
    assert!(logs[1].contains("OK: Validated signature on JWT"), "{}", logs[1]);
    assert_eq!(
        found["status"]["phase"],
        json!("Succeeded"),
        "{}",
        found["status"]
    );
}
