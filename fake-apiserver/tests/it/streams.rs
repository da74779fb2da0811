//! Logs, commands and ports of pods, in process and in virtual time, with kube-rs as the client.

use std::time::Duration;

use fake_apiserver::Cluster;
use futures::{AsyncBufReadExt as _, StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, AttachParams, DeleteParams, LogParams, PostParams};
use rstest::rstest;
use shared_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::served::start_cluster;
use super::support::{request, simulate};

/// A cluster with one node and these pods (specs by name), five seconds later.
async fn cluster_with(pods: Value) -> (Cluster, Api<Pod>) {
    let cluster = Cluster::builder().nodes(1).start().await.expect("a cluster");
    let api: Api<Pod> = Api::default_namespaced(cluster.client());
    for (name, pod) in pods.as_object().expect("pods") {
        let mut pod = pod.clone();
        pod["metadata"]["name"] = json!(name);
        let pod = shared_json::from_value(pod).expect("a pod");
        api.create(&PostParams::default(), &pod).await.expect("to create");
    }
    cluster.run_for(Duration::from_secs(5)).await;
    (cluster, api)
}

fn shell(script: &str) -> Value {
    json!({"spec": {"containers": [{"name": "c", "image": "busybox", "command": ["sh", "-c", script]}]}})
}

fn message(error: kube::Error) -> String {
    match error {
        kube::Error::Api(status) => format!("{} {}: {}", status.code, status.reason, status.message),
        other => other.to_string(),
    }
}

#[test]
fn logs_have_what_was_printed_and_when() {
    simulate(|| async {
        let counts = shell("i=0; while true; do i=$((i+1)); echo line $i; sleep 10; done");
        let (cluster, pods) = cluster_with(json!({"p": counts})).await;
        cluster.run_for(Duration::from_secs(60)).await;
        let logs = |parameters: LogParams| {
            let pods = pods.clone();
            async move { pods.logs("p", &parameters).await.map_err(message) }
        };
        let tail = LogParams {
            tail_lines: Some(2),
            ..LogParams::default()
        };
        let all = logs(LogParams::default()).await.expect("logs");
        assert!(all.starts_with("line 1\nline 2\n"), "{all}");
        let last: Vec<&str> = all.lines().rev().take(2).collect();
        assert_eq!(
            logs(tail).await.expect("logs"),
            format!("{}\n{}\n", last[1], last[0])
        );
        let recent = LogParams {
            since_seconds: Some(25),
            ..LogParams::default()
        };
        assert!(logs(recent).await.expect("logs").lines().count() <= 3);
        let stamped = LogParams {
            timestamps: true,
            tail_lines: Some(1),
            ..LogParams::default()
        };
        let stamped = logs(stamped).await.expect("logs");
        assert!(
            stamped.starts_with("2026-01-01T00:0") && stamped.contains("Z line "),
            "{stamped}"
        );
        let absent = LogParams {
            container: Some("zz".to_owned()),
            ..LogParams::default()
        };
        assert_eq!(
            logs(absent).await.expect_err("a refusal"),
            "400 BadRequest: container zz is not valid for pod p"
        );
        let before = LogParams {
            previous: true,
            ..LogParams::default()
        };
        assert_eq!(
            logs(before).await.expect_err("a refusal"),
            "400 BadRequest: previous terminated container \"c\" in pod \"p\" not found"
        );
    });
}

#[test]
fn a_follower_reads_until_the_container_ends() {
    simulate(|| async {
        let pod = shell("for i in 1 2 3; do sleep 10; echo $i; done");
        let (_cluster, pods) = cluster_with(json!({"p": pod})).await;
        let follow = LogParams {
            follow: true,
            ..LogParams::default()
        };
        let stream = pods.log_stream("p", &follow).await.expect("a stream");
        let lines: Vec<String> = stream.lines().try_collect().await.expect("lines");
        assert_eq!(lines, ["1", "2", "3"]);
    });
}

/// The status of the answer and the bytes after its head, when a client has asked for a log by this protocol.
async fn log_over_websockets(address: std::net::SocketAddr, protocol: &str) -> (String, Vec<u8>) {
    let head = format!(
        "GET /api/v1/namespaces/default/pods/p/log HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\
         sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n{protocol}\r\n"
    );
    let mut stream = tokio::net::TcpStream::connect(address)
        .await
        .expect("a connection");
    stream.write_all(head.as_bytes()).await.expect("to ask");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.expect("an answer");
    let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n");
    let (head, rest) = answer.split_at(end.expect("a head") + 4);
    let head = String::from_utf8_lossy(head);
    (
        head.split(' ').nth(1).unwrap_or_default().to_owned(),
        rest.to_vec(),
    )
}

#[rstest]
#[case("", b"\x82\x00\x82\x06hello\n\x88\x02\x03\xe8")]
#[case(
    "sec-websocket-protocol: binary.k8s.io\r\n",
    b"\x82\x00\x82\x06hello\n\x88\x02\x03\xe8"
)]
#[case(
    "sec-websocket-protocol: base64.binary.k8s.io\r\n",
    b"\x81\x00\x81\x08aGVsbG8K\x88\x02\x03\xe8"
)]
// The token `secret`, which the server knows, in base64.
#[case(
    "sec-websocket-protocol: base64url.bearer.authorization.k8s.io.c2VjcmV0, base64.binary.k8s.io\r\n",
    b"\x81\x00\x81\x08aGVsbG8K\x88\x02\x03\xe8"
)]
#[tokio::test(start_paused = true)]
async fn logs_over_websockets(#[case] protocol: &str, #[case] expected: &[u8]) {
    let served = start_cluster(false, Cluster::builder().nodes(1)).await;
    let mut pod = shell("echo hello; sleep 1000");
    pod["metadata"]["name"] = json!("p");
    let pods = "/api/v1/namespaces/default/pods";
    let (code, _) = request(served.cluster(), "POST", pods, &pod).await;
    assert_eq!(code, 201);
    served.cluster().run_for(Duration::from_secs(5)).await;
    let (code, log) = log_over_websockets(served.address(), protocol).await;
    assert_eq!((code.as_str(), log.as_slice()), ("101", expected));
}

/// The token `wrong`, which the server does not know, and one without another protocol.
#[rstest]
#[case("base64url.bearer.authorization.k8s.io.d3Jvbmc, binary.k8s.io")]
#[case("base64url.bearer.authorization.k8s.io.c2VjcmV0")]
#[tokio::test(start_paused = true)]
async fn a_websocket_with_a_bad_token_is_refused(#[case] protocols: &str) {
    let served = start_cluster(false, Cluster::builder()).await;
    let header = format!("sec-websocket-protocol: {protocols}\r\nconnection: close\r\n");
    assert_eq!(log_over_websockets(served.address(), &header).await.0, "401");
}

#[test]
fn the_log_of_the_run_before_is_kept() {
    simulate(|| async {
        let pod = shell("echo from $(cat /tmp/x 2>/dev/null) $HOSTNAME; sleep 7; exit 1");
        let (cluster, pods) = cluster_with(json!({"p": pod})).await;
        cluster.run_for(Duration::from_secs(10)).await;
        let before = LogParams {
            previous: true,
            ..LogParams::default()
        };
        assert_eq!(pods.logs("p", &before).await.expect("logs"), "from p\n");
    });
}

#[test]
fn a_pod_that_has_not_started_has_no_log() {
    simulate(|| async {
        let waits = json!({"spec": {"containers": [
            {"name": "c", "image": "nginx", "envFrom": [{"configMapRef": {"name": "none"}}]}]}});
        let nowhere = json!({"spec": {"nodeSelector": {"no": "where"}, "containers": [{"name": "c", "image": "nginx"}]}});
        let lost = json!({"spec": {"nodeName": "none", "containers": [{"name": "c", "image": "nginx"}]}});
        let (cluster, pods) = cluster_with(json!({"waits": waits, "nowhere": nowhere, "lost": lost})).await;
        let refused = pods
            .logs("waits", &LogParams::default())
            .await
            .expect_err("a refusal");
        assert_eq!(
            message(refused),
            "400 BadRequest: container \"c\" in pod \"waits\" is waiting to start: CreateContainerConfigError"
        );
        assert_eq!(
            pods.logs("nowhere", &LogParams::default())
                .await
                .expect("nothing"),
            ""
        );
        let refused = pods
            .logs("lost", &LogParams::default())
            .await
            .expect_err("a refusal");
        assert_eq!(message(refused), "404 NotFound: nodes \"none\" not found");
        let (code, status) = request(
            &cluster,
            "GET",
            "/api/v1/namespaces/default/pods/nowhere/exec?command=ls&stdout=1",
            &Value::Null,
        )
        .await;
        assert_eq!(code, 400);
        assert_eq!(
            status["message"],
            json!("pod nowhere does not have a host assigned")
        );
        let (code, status) = request(
            &cluster,
            "GET",
            "/api/v1/namespaces/default/pods/waits/exec?command=ls&stdout=1",
            &Value::Null,
        )
        .await;
        assert_eq!(
            (code, &status["message"]),
            (400, &json!("Upgrade request required"))
        );
    });
}

/// Runs a command; gives its outputs and how it ended: empty if well.
pub(crate) async fn exec(
    pods: &Api<Pod>,
    name: &str,
    argv: &[&str],
    input: Option<&[u8]>,
) -> (String, String, String) {
    let parameters = AttachParams::default().stdin(input.is_some()).stderr(true);
    let mut running = pods
        .exec(name, argv.to_vec(), &parameters)
        .await
        .expect("a session");
    let (mut out, mut err) = (
        running.stdout().expect("stdout"),
        running.stderr().expect("stderr"),
    );
    if let Some(input) = input {
        let mut stdin = running.stdin().expect("stdin");
        stdin.write_all(input).await.expect("to write");
        stdin.shutdown().await.expect("to close");
    }
    let status = running.take_status().expect("a status");
    let (mut printed, mut complained) = (String::new(), String::new());
    let (one, two) = tokio::join!(
        out.read_to_string(&mut printed),
        err.read_to_string(&mut complained)
    );
    one.and(two).expect("to read");
    let status = status.await.expect("an end");
    let ended = match status.status.as_deref() {
        Some("Success") => String::new(),
        _ => status.message.unwrap_or_default(),
    };
    (printed, complained, ended)
}

#[test]
fn commands_run_in_containers() {
    simulate(|| async {
        let (_cluster, pods) = cluster_with(json!({"p": {"spec": {"containers": [
            {"name": "c", "image": "nginx", "env": [{"name": "A", "value": "b"}]}]}}}))
        .await;
        let ok = |out: &str| (out.to_owned(), String::new(), String::new());
        assert_eq!(
            exec(&pods, "p", &["sh", "-c", "echo $A > /tmp/x; cat /tmp/x"], None).await,
            ok("b\n")
        );
        assert_eq!(exec(&pods, "p", &["cat"], Some(b"typed")).await, ok("typed"));
        assert_eq!(
            exec(
                &pods,
                "p",
                &["sh"],
                Some(b"cd /tmp\nls\nfor i in 1 2\ndo echo $i\ndone\n")
            )
            .await,
            ok("x\n1\n2\n")
        );
        assert_eq!(
            exec(
                &pods,
                "p",
                &["sh", "-c", "while read a b; do echo $b-$a; done"],
                Some(b"1 2\n3 4 5\n")
            )
            .await,
            ok("2-1\n4 5-3\n")
        );
        let (out, err, ended) = exec(&pods, "p", &["sh", "-c", "echo no >&2; exit 3"], None).await;
        assert_eq!((out.as_str(), err.as_str()), ("", "no\n"));
        assert!(ended.ends_with("exit code 3"), "{ended}");
        let (_, _, ended) = exec(&pods, "p", &["frobnicate"], None).await;
        assert!(
            ended.contains("exec: \"frobnicate\": executable file not found in $PATH"),
            "{ended}"
        );
        // As `kubectl cp` does it, there and back.
        let (archive, _, ended) = exec(&pods, "p", &["sh", "-c", "tar cf - /tmp/x | wc -c"], None).await;
        assert_eq!((archive.as_str(), ended.as_str()), ("2048\n", ""));
        let script = "mkdir -p /a/b; echo 1 > /a/b/c; tar cf /a.tar -C /a b; mkdir /d; tar xf /a.tar -C /d; cat /d/b/c";
        assert_eq!(exec(&pods, "p", &["sh", "-c", script], None).await, ok("1\n"));
    });
}

#[test]
fn a_script_says_what_commands_give() {
    simulate(|| async {
        let script = json!({"commands": {"app --version": {"out": "1.2\n"}, "app check": {"err": "bad\n", "code": 2,
            "later": [{"fromMs": 60000, "out": "good\n"}]}},
            "logs": "up\n", "logLine": "tick", "logEveryMs": 1000});
        let pod = json!({"metadata": {"annotations": {"program.fake-apiserver/c": script.to_string()}},
            "spec": {"containers": [{"name": "c", "image": "app:1"}]}});
        let (cluster, pods) = cluster_with(json!({"p": pod})).await;
        assert_eq!(exec(&pods, "p", &["app", "--version"], None).await.0, "1.2\n");
        let (_, err, ended) = exec(&pods, "p", &["app", "check"], None).await;
        assert_eq!(err, "bad\n");
        assert!(ended.ends_with("exit code 2"), "{ended}");
        let logs = pods.logs("p", &LogParams::default()).await.expect("logs");
        assert!(logs.starts_with("up\ntick\n"), "{logs}");
        cluster.run_for(Duration::from_secs(60)).await;
        assert_eq!(exec(&pods, "p", &["app", "check"], None).await.0, "good\n");
    });
}

#[test]
fn a_command_ends_with_its_container() {
    simulate(|| async {
        let (cluster, pods) =
            cluster_with(json!({"p": {"spec": {"containers": [{"name": "c", "image": "nginx"}]}}})).await;
        let sleeping = exec(&pods, "p", &["sleep", "1000"], None);
        let deleting = async {
            tokio::time::sleep(Duration::from_secs(5)).await;
            pods.delete("p", &DeleteParams::default())
                .await
                .expect("to delete");
        };
        let ((_, _, ended), ()) = tokio::join!(sleeping, deleting);
        assert!(ended.ends_with("exit code 137"), "{ended}");
        cluster.run_for(Duration::from_secs(5)).await;
        let gone = pods.exec("p", ["ls"], &AttachParams::default()).await;
        assert!(matches!(gone, Err(kube::Error::Api(status)) if status.code == 404));
    });
}

#[test]
fn who_attaches_types_into_the_program() {
    simulate(|| async {
        let pod = json!({"spec": {"restartPolicy": "Never", "containers": [
            {"name": "c", "image": "busybox", "stdin": true, "stdinOnce": true, "command": ["sh"]}]}});
        let (cluster, pods) = cluster_with(json!({"p": pod})).await;
        let parameters = AttachParams::default().stdin(true).stderr(true);
        let mut attached = pods.attach("p", &parameters).await.expect("a session");
        let mut stdin = attached.stdin().expect("stdin");
        let mut out = attached.stdout().expect("stdout");
        stdin.write_all(b"echo $((6*7))\n").await.expect("to write");
        let mut answer = [0; 3];
        out.read_exact(&mut answer).await.expect("to read");
        assert_eq!(&answer, b"42\n");
        // Both outputs of the program arrive as one.
        stdin.write_all(b"echo no >&2\n").await.expect("to write");
        out.read_exact(&mut answer).await.expect("to read");
        assert_eq!(&answer, b"no\n");
        stdin.write_all(b"exit 0\n").await.expect("to write");
        let mut rest = String::new();
        out.read_to_string(&mut rest).await.expect("to read");
        cluster.run_for(Duration::from_secs(5)).await;
        let phase = pods
            .get("p")
            .await
            .expect("the pod")
            .status
            .and_then(|status| status.phase);
        assert_eq!(phase.as_deref(), Some("Succeeded"));
        assert_eq!(
            pods.logs("p", &LogParams::default()).await.expect("logs"),
            "42\nno\n"
        );
    });
}

#[test]
fn ports_are_forwarded() {
    simulate(|| async {
        let (_cluster, pods) = cluster_with(json!({"p": {"spec": {"containers": [
            {"name": "c", "image": "nginx", "ports": [{"containerPort": 80}]}]}}}))
        .await;
        exec(
            &pods,
            "p",
            &[
                "sh",
                "-c",
                "mkdir -p /usr/share/nginx/html; echo hello > /usr/share/nginx/html/index.html",
            ],
            None,
        )
        .await;
        let mut forwarder = pods.portforward("p", &[80, 81]).await.expect("ports");
        let mut port = forwarder.take_stream(80).expect("a port");
        port.write_all(b"GET / HTTP/1.0\r\n\r\n").await.expect("to write");
        let mut answer = String::new();
        port.read_to_string(&mut answer).await.expect("to read");
        assert!(
            answer.starts_with("HTTP/1.0 200 OK\r\n") && answer.ends_with("\r\n\r\nhello\n"),
            "{answer}"
        );
        let refused = forwarder.take_error(81).expect("errors").await;
        assert!(refused.is_some_and(|text| text.contains("connection refused")));
    });
}

/// A pod may stand for a port of this machine.
#[tokio::test]
async fn ports_are_forwarded_to_this_machine() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        let mut heard = [0; 5];
        stream.read_exact(&mut heard).await.expect("to read");
        stream
            .write_all(&[b"hear ", &heard[..]].concat())
            .await
            .expect("to write");
    });
    let cluster = Cluster::builder()
        .nodes(1)
        .quick(true)
        .start()
        .await
        .expect("a cluster");
    let pods: Api<Pod> = Api::default_namespaced(cluster.client());
    let dial = format!("80={address},81=127.0.0.1:1");
    let pod = json!({
        "metadata": {"name": "p", "annotations": {"network.fake-apiserver/dial": dial}},
        "spec": {"containers": [{"name": "c", "image": "server"}]},
    });
    let pod = shared_json::from_value(pod).expect("a pod");
    pods.create(&PostParams::default(), &pod)
        .await
        .expect("to create");
    let running =
        kube::runtime::wait::await_condition(pods.clone(), "p", kube::runtime::conditions::is_pod_running());
    running.await.expect("to run");
    let mut forwarder = pods.portforward("p", &[80, 81]).await.expect("ports");
    let mut port = forwarder.take_stream(80).expect("a port");
    port.write_all(b"hello").await.expect("to write");
    let mut answer = String::new();
    port.read_to_string(&mut answer).await.expect("to read");
    assert_eq!(answer, "hear hello");
    let failed = forwarder.take_error(81).expect("errors").await;
    assert_eq!(
        failed.as_deref(),
        Some("dial tcp 127.0.0.1:1: connect: connection refused")
    );
}

#[test]
fn nodes_without_a_way_to_them_refuse() {
    simulate(|| async {
        let cluster = Cluster::builder().nodes(0).start().await.expect("a cluster");
        let address = json!({"addresses": [{"type": "InternalIP", "address": "10.0.0.7"}]});
        for (name, status) in [("near", address), ("bare", json!({}))] {
            let node = json!({"metadata": {"name": name}, "status": status});
            assert_eq!(request(&cluster, "POST", "/api/v1/nodes", &node).await.0, 201);
            let pod = json!({"metadata": {"name": name}, "spec": {"nodeName": name, "containers": [{"name": "c", "image": "i"}]}});
            let pods = "/api/v1/namespaces/default/pods";
            assert_eq!(request(&cluster, "POST", pods, &pod).await.0, 201);
        }
        let ask = async |path: &str| {
            let path = format!("/api/v1/namespaces/default/pods/{path}");
            let (code, status) = request(&cluster, "GET", &path, &Value::Null).await;
            (code, status["message"].as_str().unwrap_or_default().to_owned())
        };
        let refused = "error dialing backend: dial tcp 10.0.0.7:10250: connect: connection refused";
        assert_eq!(ask("near/log").await, (500, refused.to_owned()));
        let unknown = "no preferred addresses found; known addresses: []";
        assert_eq!(ask("bare/log").await, (500, unknown.to_owned()));
        let not_allowed = (400, "address not allowed".to_owned());
        assert_eq!(ask("near/proxy").await, not_allowed, "the pod has no address yet");
        let scheme = (400, "invalid pod request \"ftp:near:21\"".to_owned());
        assert_eq!(ask("ftp:near:21/proxy").await, scheme);
        let (code, status) = request(&cluster, "GET", "/api/v1/nodes/near/proxy/", &Value::Null).await;
        assert_eq!(code, 503, "{status}");
        let (code, status) = request(&cluster, "GET", "/api/v1/nodes/bare/proxy", &Value::Null).await;
        assert_eq!((code, status["message"].as_str()), (500, Some(unknown)));
    });
}

#[test]
fn a_stream_over_a_socket_is_the_same() {
    // Real time and a real socket: the same client, the same answers.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let served = super::served::start_with_nodes(1).await;
        let client = served.client().await;
        let pods: Api<Pod> = Api::default_namespaced(client);
        let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [
            {"name": "c", "image": "busybox", "command": ["sh", "-c", "echo up; sleep 1000"]}]}});
        pods.create(
            &PostParams::default(),
            &shared_json::from_value(pod).expect("a pod"),
        )
        .await
        .expect("to create");
        let running = kube::runtime::wait::await_condition(
            pods.clone(),
            "p",
            kube::runtime::wait::conditions::is_pod_running(),
        );
        tokio::time::timeout(Duration::from_secs(20), running)
            .await
            .expect("in time")
            .expect("to watch");
        assert_eq!(exec(&pods, "p", &["cat"], Some(b"over TLS")).await.0, "over TLS");
        assert_eq!(pods.logs("p", &LogParams::default()).await.expect("logs"), "up\n");
        let follow = LogParams {
            follow: true,
            ..LogParams::default()
        };
        let mut lines = pods.log_stream("p", &follow).await.expect("a stream").lines();
        assert_eq!(lines.next().await.expect("a line").expect("text"), "up");
    });
}
