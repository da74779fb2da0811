use std::sync::{Arc, Mutex};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::client::Body;
use shared_json::{Value, json};

use super::*;
use crate::TokioClock;

/// The requests a server got: method and path, body.
type Requests = Arc<Mutex<Vec<(String, Value)>>>;

/// The recorded events, the first answers of the server, and the requests that it gets.
struct Row {
    events: &'static [(&'static str, &'static str)],
    answers: &'static [u16],
    want: &'static [&'static str],
}

/// A server that answers each request with the next of `answers` (then 201) and keeps the requests.
fn server(answers: Vec<u16>) -> (Client, Requests) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let answers = Arc::new(Mutex::new(answers.into_iter()));
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let (log, answers) = (Arc::clone(&log), Arc::clone(&answers));
        async move {
            let (parts, body) = request.into_parts();
            let body = body.collect_bytes().await.unwrap_or_default();
            let line = format!("{} {}", parts.method, parts.uri.path());
            log.lock()
                .unwrap()
                .push((line, shared_json::from_slice(&body).unwrap()));
            let code = answers.lock().unwrap().next().unwrap_or(201);
            let reason = if code == 409 { "AlreadyExists" } else { "Other" };
            let answer = if code < 300 {
                json!({})
            } else {
                json!({ "kind": "Status", "status": "Failure", "message": "no", "reason": reason, "code": code })
            };
            let response = http::Response::builder()
                .status(code)
                .body(Body::from(answer.to_string().into_bytes()));
            Ok::<_, std::convert::Infallible>(response.unwrap())
        }
    });
    (Client::new(service, "default"), seen)
}

fn object() -> ObjectReference {
    ObjectReference {
        api_version: Some("apps.kruise.io/v1alpha1".to_owned()),
        kind: Some("CloneSet".to_owned()),
        name: Some("cs-demo".to_owned()),
        namespace: Some("shop".to_owned()),
        resource_version: Some("9955".to_owned()),
        uid: Some("791b8462".to_owned()),
        field_path: None,
    }
}

fn start() -> Timestamp {
    "2026-11-20T11:33:23.5Z".parse().unwrap()
}

#[tokio::test(start_paused = true)]
async fn an_event_looks_like_the_real_ones() {
    let (client, seen) = server(vec![]);
    let clock = Arc::new(TokioClock::starting_at(start()));
    let recorder = EventRecorder::new(client.clone(), "cloneset-controller", None, clock.clone());
    recorder.event(
        &object(),
        EventType::Normal,
        "SuccessfulCreate",
        "succeed".to_owned(),
    );
    let kubelet = EventRecorder::new(client, "kubelet", Some("node1"), clock).with_reporting(true);
    tokio::time::sleep(Duration::from_secs(1)).await;
    kubelet.event(&object(), EventType::Warning, "Failed", "no".to_owned());
    tokio::time::sleep(Duration::from_secs(1)).await;
    let seen = seen.lock().unwrap();
    let name = seen[0].1["metadata"]["name"].as_str().unwrap().to_owned();
    assert!(
        name.starts_with("cs-demo.18e9bd9b") && name.len() == "cs-demo.".len() + 16,
        "{name}"
    );
    assert_eq!(seen[0].0, "POST /api/v1/namespaces/shop/events");
    assert_eq!(
        seen[0].1,
        json!({
            "apiVersion": "v1", "kind": "Event", "count": 1, "eventTime": null,
            "firstTimestamp": "2026-11-20T11:33:23Z", "lastTimestamp": "2026-11-20T11:33:23Z",
            "involvedObject": { "apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet", "name": "cs-demo",
                "namespace": "shop", "resourceVersion": "9955", "uid": "791b8462" },
            "message": "succeed", "metadata": { "name": name, "namespace": "shop" }, "reason": "SuccessfulCreate",
            "reportingComponent": "", "reportingInstance": "",
            "source": { "component": "cloneset-controller" }, "type": "Normal",
        })
    );
    assert_eq!(seen[1].1["reportingComponent"], "kubelet");
    assert_eq!(seen[1].1["reportingInstance"], "node1");
    assert_eq!(
        seen[1].1["source"],
        json!({ "component": "kubelet", "host": "node1" })
    );
    assert_eq!(seen[1].1["firstTimestamp"], "2026-11-20T11:33:24Z");
}

/// The requests when `(reason, message)` pairs are recorded at one instant and the server answers with `answers`.
async fn asked(events: &[(&str, &str)], answers: Vec<u16>) -> Vec<String> {
    let (client, seen) = server(answers);
    let recorder = EventRecorder::new(client, "c", None, Arc::new(TokioClock::starting_at(start())));
    for (reason, message) in events {
        recorder.event(&object(), EventType::Normal, reason, (*message).to_owned());
    }
    tokio::time::sleep(Duration::from_secs(600)).await;
    let seen = seen.lock().unwrap();
    let mut names = Vec::new();
    let mut number = |name: &str| {
        let at = names
            .iter()
            .position(|known| known == name)
            .unwrap_or(names.len());
        if at == names.len() {
            names.push(name.to_owned());
        }
        at
    };
    seen.iter()
        .map(
            |(line, body)| match line.strip_prefix("PATCH /api/v1/namespaces/shop/events/") {
                Some(name) => format!("patch #{} x{}", number(name), body["count"]),
                None => format!(
                    "create #{} x{}",
                    number(body["metadata"]["name"].as_str().unwrap_or_default()),
                    body["count"]
                ),
            },
        )
        .collect()
}

#[tokio::test(start_paused = true)]
async fn writes_in_order_with_unique_names_and_retries() {
    let row = |events, answers, want| Row {
        events,
        answers,
        want,
    };
    let rows = [
        row(
            &[("A", "1"), ("A", "2"), ("B", "1")],
            &[],
            &["create #0 x1", "create #1 x1", "create #2 x1"],
        ),
        row(&[("A", "1"), ("A", "1")], &[], &["create #0 x1", "patch #0 x2"]),
        // The event is gone when its count is raised.
        row(
            &[("A", "1"), ("A", "1")],
            &[201, 404],
            &["create #0 x1", "patch #0 x2", "create #0 x2"],
        ),
        // Another recorder has taken the name.
        row(
            &[("A", "1"), ("A", "1")],
            &[409],
            &["create #0 x1", "create #1 x1", "patch #1 x2"],
        ),
        row(
            &[("A", "1"), ("B", "1")],
            &[503],
            &["create #0 x1", "create #0 x1", "create #1 x1"],
        ),
        // The first try got through, although its answer did not.
        row(&[("A", "1")], &[503, 409], &["create #0 x1", "create #0 x1"]),
        row(
            &[("A", "1"), ("B", "1")],
            &[403],
            &["create #0 x1", "create #1 x1"],
        ),
    ];
    for Row {
        events,
        answers,
        want,
    } in rows
    {
        assert_eq!(
            asked(events, answers.to_vec()).await,
            *want,
            "{events:?} {answers:?}"
        );
    }
}
