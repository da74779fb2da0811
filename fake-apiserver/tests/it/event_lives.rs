//! The lifetime of events: an hour after their last write, unless configured otherwise.

use std::time::Duration;

use fake_apiserver::Cluster;
use shared_json::{Value, json};

use crate::support::{request, send, simulate};

const EVENTS: &str = "/api/v1/namespaces/default/events";

/// Steps by the second: `make NAME`, `write NAME` (a patch), `same NAME` (one that changes nothing), `delete NAME`; and the events that are
/// there at that second.
#[track_caller]
fn check(life: Option<u64>, steps: &[(u64, &str)], at: u64, expected: &str) {
    let steps = steps.to_vec();
    let shown = format!("{life:?} {steps:?} {at}");
    let mut found = String::new();
    let slot = &mut found;
    simulate(move || async move {
        let mut builder = Cluster::builder().nodes(0).controllers(false);
        if let Some(life) = life {
            builder = builder.event_life(Duration::from_secs(life));
        }
        let cluster = builder.start().await.expect("a cluster");
        let mut now = 0;
        for (second, step) in steps {
            cluster.run_for(Duration::from_secs(second - now)).await;
            now = second;
            let (verb, name) = step.split_once(' ').expect("a verb and a name");
            let path = format!("{EVENTS}/{name}");
            let patch = |body: Value| {
                let (cluster, path) = (&cluster, &path);
                async move { send(cluster, "PATCH", path, "application/merge-patch+json", &body).await }
            };
            let (code, answer) = match verb {
                "make" => {
                    let event = json!({
                        "metadata": {"name": name}, "reason": "R", "message": "m", "type": "Normal",
                        "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
                    });
                    request(&cluster, "POST", EVENTS, &event).await
                }
                "write" => patch(json!({"count": second})).await,
                "same" => patch(json!({"reason": "R"})).await,
                _ => request(&cluster, "DELETE", &path, &Value::Null).await,
            };
            assert!(code < 300, "{step}: {answer}");
        }
        cluster.run_for(Duration::from_secs(at - now)).await;
        let (_, list) = request(&cluster, "GET", EVENTS, &Value::Null).await;
        let names = list["items"].as_array().expect("events").iter();
        let names: Vec<&str> = names
            .filter_map(|event| event["metadata"]["name"].as_str())
            .collect();
        *slot = names.join(" ");
    });
    assert_eq!(found, expected, "{shown}");
}

#[test]
fn events_live_an_hour() {
    check(None, &[(0, "make a")], 3590, "a");
    check(None, &[(0, "make a")], 3601, "");
    check(None, &[(0, "make a"), (1000, "make b")], 3601, "b");
    check(None, &[(0, "make a"), (1000, "make b")], 4601, "");
    check(None, &[(0, "make a"), (1000, "write a")], 4590, "a");
    check(None, &[(0, "make a"), (1000, "write a")], 4601, "");
    check(None, &[(0, "make a"), (1000, "same a")], 3601, "");
    check(
        None,
        &[(0, "make a"), (1000, "write a"), (4000, "write a")],
        7590,
        "a",
    );
    check(None, &[(0, "make a"), (1000, "delete a")], 1001, "");
    // One of the same name is another one.
    check(
        None,
        &[(0, "make a"), (1000, "delete a"), (2000, "make a")],
        3700,
        "a",
    );
    check(
        None,
        &[(0, "make a"), (1000, "delete a"), (2000, "make a")],
        5601,
        "",
    );
    check(None, &[(0, "make a"), (4000, "make a")], 4001, "a");
    check(None, &[(9000, "make a")], 9001, "a");
    check(Some(10), &[(0, "make a"), (5, "make b")], 9, "a b");
    check(Some(10), &[(0, "make a"), (5, "make b")], 12, "b");
    check(Some(10), &[(0, "make a"), (5, "make b")], 16, "");
    check(
        Some(10),
        &[(0, "make a"), (9, "write a"), (18, "write a")],
        27,
        "a",
    );
    check(Some(86_400), &[(0, "make a")], 80_000, "a");
    check(Some(86_400), &[(0, "make a")], 86_401, "");
    check(
        Some(10),
        &[(0, "make a"), (5, "delete a"), (6, "make a"), (15, "write a")],
        24,
        "a",
    );
    check(Some(10), &[(0, "make a"), (2, "make b"), (8, "write a")], 17, "a");
}

#[test]
fn watchers_see_them_go() {
    simulate(|| async {
        let cluster = Cluster::builder()
            .nodes(0)
            .controllers(false)
            .start()
            .await
            .expect("a cluster");
        let event = json!({
            "metadata": {"name": "a"}, "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
        });
        let (code, made) = request(&cluster, "POST", EVENTS, &event).await;
        assert_eq!(code, 201, "{made}");
        cluster.run_for(Duration::from_secs(3700)).await;
        let since = made["metadata"]["resourceVersion"].as_str().expect("a version");
        let path = format!("{EVENTS}?watch=1&resourceVersion={since}&timeoutSeconds=1");
        let (_, line) = request(&cluster, "GET", &path, &Value::Null).await;
        assert_eq!(
            (line["type"].as_str(), line["object"]["metadata"]["name"].as_str()),
            (Some("DELETED"), Some("a"))
        );
    });
}
