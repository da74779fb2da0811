//! The time of a served cluster, moved by its clients: what is due on the way has happened when a jump is over.

use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use kube::Client;
use rstest::rstest;
use shared_json::{Value, json};
use tokio::time::Instant;

use crate::process::{Directory, client, program, real_time, serve};
use crate::served::{self, ask};

const CLOCK: &str = "/fake/clock";
/// Far less than any time that is jumped over here, and long enough for a busy machine.
const SHORT: Duration = Duration::from_secs(25);

async fn get(client: &Client, path: &str) -> Value {
    let (code, found) = ask(client, "GET", path, Value::Null, &[]).await;
    assert_eq!(code, 200, "{path}: {found}");
    found
}

async fn make(client: &Client, path: &str, object: Value) -> Value {
    let (code, made) = ask(client, "POST", path, object, &[]).await;
    assert_eq!(code, 201, "{path}: {made}");
    made
}

async fn advance(client: &Client, by: &str) -> Value {
    let (code, status) = ask(client, "POST", CLOCK, json!({"advance": by}), &[]).await;
    assert_eq!(code, 200, "{status}");
    status
}

/// Looks again until `found` finds something there.
async fn until<T>(client: &Client, path: &str, found: impl Fn(&Value) -> Option<T>) -> T {
    loop {
        let object = get(client, path).await;
        if let Some(found) = found(&object) {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn time(text: &Value) -> Timestamp {
    let text = text.as_str().expect("a time");
    text.parse().expect("a time")
}

/// A server with two nodes whose time runs as these arguments say, and its administrator.
async fn start(directory: &Directory, arguments: &[&str]) -> (crate::process::Program, Client) {
    let kubeconfig = directory.0.join("kubeconfig");
    let all = [&["--nodes", "2"], arguments].concat();
    let server = serve(&kubeconfig, &all);
    (server, client(&kubeconfig).await)
}

fn pod_template(script: &str) -> Value {
    json!({
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "busybox:1", "command": ["sh", "-c", script]}]},
    })
}

#[test]
fn jobs_of_a_schedule_are_made_at_their_times() {
    let directory = Directory::new("schedule");
    real_time(async {
        let (_server, client) = start(&directory, &[]).await;
        let mut template = pod_template("echo hello");
        template["spec"]["restartPolicy"] = json!("Never");
        let cron = json!({
            "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "hello"},
            "spec": {"schedule": "*/10 * * * *", "jobTemplate": {"spec": {"template": template}}},
        });
        make(&client, "/apis/batch/v1/namespaces/default/cronjobs", cron).await;
        // The controller has seen it once it waits for the next time.
        let next = until(&client, CLOCK, |status| {
            let next = status["next"].as_array()?.iter();
            next.filter(|due| due["what"] == "default/hello")
                .map(|due| time(&due["time"]))
                .next()
        })
        .await;
        assert_eq!(next.as_second() % 600, 0, "{next}");
        let begin = Instant::now();
        let status = advance(&client, "30m").await;
        assert!(begin.elapsed() < SHORT, "{:?}", begin.elapsed());
        assert_eq!(status["ahead"], "30m");
        let jobs = get(&client, "/apis/batch/v1/namespaces/default/jobs").await;
        let made: Vec<i64> = jobs["items"]
            .as_array()
            .expect("jobs")
            .iter()
            .map(|job| time(&job["metadata"]["creationTimestamp"]).as_second())
            .collect();
        let first = next.as_second();
        assert_eq!(made, [first, first + 600, first + 1200], "{jobs}");
        let ended = |job: &Value| {
            time(&job["status"]["completionTime"]).as_second() - time(&job["status"]["startTime"]).as_second()
        };
        assert!((0..5).contains(&ended(&jobs["items"][0])), "{jobs}");
    });
}

#[test]
fn a_rollout_waits_for_its_ready_seconds() {
    let directory = Directory::new("rollout");
    real_time(async {
        let (_server, client) = start(&directory, &[]).await;
        let deployment = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
            "spec": {"replicas": 3, "minReadySeconds": 300, "selector": {"matchLabels": {"app": "web"}}, "template": pod_template("sleep 100000")},
        });
        let path = "/apis/apps/v1/namespaces/default/deployments";
        make(&client, path, deployment).await;
        let path = format!("{path}/web");
        until(&client, &path, |web| {
            (web["status"]["readyReplicas"] == 3).then_some(())
        })
        .await;
        advance(&client, "4m").await;
        let web = get(&client, &path).await;
        assert_eq!(web["status"]["availableReplicas"], Value::Null, "{web}");
        advance(&client, "70s").await;
        let web = get(&client, &path).await;
        assert_eq!(web["status"]["availableReplicas"], 3, "{web}");
    });
}

/// A request that nobody has answered goes after a day. A certificate that is signed after a jump is good by the cluster's time, and
/// the administrator's certificate stays good.
#[test]
fn certificates_are_good_by_the_time_of_the_cluster() {
    let directory = Directory::new("certificates");
    real_time(async {
        let (_server, client) = start(&directory, &[]).await;
        let key = rcgen::KeyPair::generate().expect("a key");
        let mut params = rcgen::CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params
            .distinguished_name
            .push(rcgen::DnType::CommonName, "someone");
        let asked = params
            .serialize_request(&key)
            .expect("a request")
            .pem()
            .expect("text");
        let requests = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
        let request = |name: &str, seconds: u64| {
            json!({
                "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"name": name},
                "spec": {
                    "signerName": "kubernetes.io/kube-apiserver-client", "usages": ["client auth"],
                    "expirationSeconds": seconds, "request": STANDARD.encode(&asked),
                },
            })
        };
        make(&client, requests, request("forgotten", 3600)).await;
        advance(&client, "23h").await;
        get(&client, &format!("{requests}/forgotten")).await;
        advance(&client, "2h").await;
        let (code, _) = ask(&client, "GET", &format!("{requests}/forgotten"), Value::Null, &[]).await;
        assert_eq!(code, 404);

        let mut made = make(&client, requests, request("answered", 3600)).await;
        made["status"]["conditions"] =
            json!([{"type": "Approved", "status": "True", "reason": "x", "message": "x"}]);
        let one = format!("{requests}/answered");
        let (code, answer) = ask(&client, "PUT", &format!("{one}/approval"), made, &[]).await;
        assert_eq!(code, 200, "{answer}");
        let certificate = until(&client, &one, |request| {
            Some(request["status"]["certificate"].as_str()?.to_owned())
        })
        .await;
        let mut kubeconfig = read(&directory.0.join("kubeconfig"));
        kubeconfig["users"][0]["user"] = json!({
            "client-certificate-data": certificate, "client-key-data": STANDARD.encode(key.serialize_pem()),
        });
        let review = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
        let someone = served::client(&kubeconfig).await;
        let (code, me) = ask(&someone, "POST", review, json!({}), &[]).await;
        assert_eq!(
            (code, &me["status"]["userInfo"]["username"]),
            (201, &json!("someone"))
        );
        advance(&client, "90m").await;
        let late = served::client(&kubeconfig).await;
        let request = http::Request::get("/version")
            .body(Vec::new())
            .expect("a request");
        assert!(
            late.request_text(request).await.is_err(),
            "an expired certificate is good"
        );
        get(&client, "/version").await;
    });
}

fn read(kubeconfig: &Path) -> Value {
    let text = std::fs::read_to_string(kubeconfig).expect("a kubeconfig");
    shared_json::from_str(&text).expect("a kubeconfig")
}

/// Nodes send fewer heartbeats while time jumps, and enough to count as alive.
#[test]
fn nodes_stay_alive_in_a_jump() {
    let directory = Directory::new("alive");
    real_time(async {
        let (_server, client) = start(&directory, &[]).await;
        let lease = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/node1";
        until(
            &client,
            "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases",
            |leases| (leases["items"].as_array()?.len() == 2).then_some(()),
        )
        .await;
        let number = |object: &Value| {
            object["metadata"]["resourceVersion"]
                .as_str()
                .and_then(|text| text.parse::<i64>().ok())
        };
        let before = number(&get(&client, lease).await).expect("a version");
        for _ in 0..3 {
            let status = advance(&client, "20m").await;
            let lease = get(&client, lease).await;
            let silent = time(&status["time"]).as_second() - time(&lease["spec"]["renewTime"]).as_second();
            assert!((0..=31).contains(&silent), "{silent}");
            let nodes = get(&client, "/api/v1/nodes").await;
            for node in nodes["items"].as_array().expect("nodes") {
                assert_eq!(node["spec"]["taints"], Value::Null, "{node}");
                let conditions = node["status"]["conditions"]
                    .as_array()
                    .expect("conditions")
                    .iter();
                let ready = conditions.filter(|condition| condition["type"] == "Ready");
                assert_eq!(ready.map(|ready| &ready["status"]).collect::<Vec<_>>(), ["True"]);
            }
        }
        // Two nodes, an hour: 720 with a real kubelet's period.
        let writes = number(&get(&client, lease).await).expect("a version") - before;
        assert!((230..400).contains(&writes), "{writes}");
    });
}

/// A token is good for an hour of the cluster's time.
#[test]
fn tokens_expire_by_the_time_of_the_cluster() {
    let directory = Directory::new("tokens");
    real_time(async {
        let (_server, client) = start(&directory, &[]).await;
        let accounts = "/api/v1/namespaces/default/serviceaccounts";
        let token = make(&client, &format!("{accounts}/default/token"), json!({})).await;
        let token = token["status"]["token"].as_str();
        let kubeconfig = served::with_token(&read(&directory.0.join("kubeconfig")), token);
        let account = served::client(&kubeconfig).await;
        for (path, code) in [("/version", 200), (CLOCK, 403)] {
            assert_eq!(
                ask(&account, "GET", path, Value::Null, &[]).await.0,
                code,
                "{path}"
            );
        }
        let (code, refusal) = ask(&account, "POST", CLOCK, json!({"advance": "1s"}), &[]).await;
        let expected =
            "forbidden: User \"system:serviceaccount:default:default\" cannot post path \"/fake/clock\"";
        assert_eq!((code, refusal["message"].as_str()), (403, Some(expected)));
        advance(&client, "2h").await;
        assert_eq!(ask(&account, "GET", "/version", Value::Null, &[]).await.0, 401);
    });
}

#[rstest]
#[case::no_length(json!({}), "POST", 400)]
#[case::back(json!({"advance": "-5m"}), "POST", 400)]
#[case::too_far(json!({"advance": "100000h"}), "POST", 400)]
#[case::not_a_length(json!({"advance": "tomorrow"}), "POST", 400)]
#[case::delete(Value::Null, "DELETE", 405)]
#[case::put(json!({"advance": "5m"}), "PUT", 405)]
fn refusals(#[case] body: Value, #[case] method: &str, #[case] code: u16) {
    let directory = Directory::new(&format!("refusals-{method}-{code}-{}", body.to_string().len()));
    real_time(async {
        let (_server, client) = start(&directory, &["--controllers", "none"]).await;
        let before = get(&client, CLOCK).await;
        let (got, answer) = ask(&client, method, CLOCK, body, &[]).await;
        assert_eq!((got, &answer["kind"]), (code, &json!("Status")), "{answer}");
        assert_eq!(
            (&before["ahead"], &get(&client, CLOCK).await["ahead"]),
            (&json!("0s"), &json!("0s"))
        );
    });
}

#[test]
fn a_faster_clock() {
    let directory = Directory::new("speed");
    real_time(async {
        let (_server, client) = start(&directory, &["--speed", "600"]).await;
        let (before, began) = (get(&client, CLOCK).await, Instant::now());
        tokio::time::sleep(Duration::from_secs(1)).await;
        let (after, passed) = (get(&client, CLOCK).await, began.elapsed());
        assert_eq!(after["speed"], 600);
        let moved = time(&after["time"]).as_second() - time(&before["time"]).as_second();
        let most = i64::try_from(passed.as_millis()).expect("a time") * 600 / 1000 + 60;
        // On a busy machine the clock may not keep up.
        assert!((100..=most).contains(&moved), "{moved} s in {passed:?}");
    });
}

#[test]
fn the_command_moves_the_clock() {
    let directory = Directory::new("command");
    real_time(async {
        let (_server, client) = start(&directory, &[]).await;
        let kubeconfig = directory.0.join("kubeconfig");
        let kubeconfig = kubeconfig.to_str().expect("a path");
        let run = |arguments: &[&str]| {
            let out = program(&[&["clock"], arguments, &["--kubeconfig", kubeconfig]].concat()).output();
            let out = out.expect("its output");
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            (out.status.success(), text(&out.stdout), text(&out.stderr))
        };
        let (done, shown, told) = run(&["advance", "1h30m"]);
        assert!(done && shown.contains("\nahead  1h 30m\n"), "{shown}{told}");
        let (done, shown, told) = run(&["status"]);
        assert!(
            done && shown.starts_with("time   20") && shown.contains("\nspeed  1\n"),
            "{shown}{told}"
        );
        let (done, _, told) = run(&["advance", "soon"]);
        assert!(!done && told.starts_with("error: failed to run: "), "{told}");
        assert_eq!(get(&client, CLOCK).await["ahead"], "1h 30m");
    });
}
