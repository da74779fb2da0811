//! Pods that take the times of a recording: when they become ready, how long their containers run, and how long the node waits.

use std::sync::OnceLock;
use std::time::Duration;

use fake_apiserver::Cluster;
use fake_apiserver::nodes::{RunTiming, Timing};
use shared_json::{Value, json};

use crate::support::{request, sh, simulate};

const PODS: &str = "/api/v1/namespaces/default/pods";

/// The pod `p` with these times, so many seconds after its creation.
fn after(seconds: u64, script: &str, timing: Timing) -> Value {
    let found = OnceLock::new();
    simulate(|| async {
        let timings = [("p".to_owned(), vec![Some(timing)])];
        let cluster = Cluster::builder()
            .nodes(1)
            .pod_timings(timings.into())
            .start()
            .await;
        let cluster = cluster.expect("a cluster");
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [sh("a", script)]},
        });
        let (code, _) = request(&cluster, "POST", PODS, &pod).await;
        assert_eq!(code, 201);
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        let (_, pod) = request(&cluster, "GET", &format!("{PODS}/p"), &Value::Null).await;
        found.set(pod).expect("one pod");
    });
    found.into_inner().expect("a pod")
}

fn restarts(pod: &Value) -> Option<i64> {
    pod.pointer("/status/containerStatuses/0/restartCount")?.as_i64()
}

#[test]
fn readiness_names_the_given_time() {
    let timing = Timing {
        sandbox: Duration::from_secs(5),
        ready_after: Some(Duration::from_secs(2)),
        ..Timing::default()
    };
    let pod = after(8, "while true; do sleep 1; done", timing);
    let conditions = pod.pointer("/status/conditions").and_then(Value::as_array);
    let ready = conditions
        .into_iter()
        .flatten()
        .find(|condition| condition["type"] == "Ready");
    let ready = ready.expect("a condition");
    let time = |text: &Value| {
        text.as_str()
            .and_then(|text| text.parse::<jiff::Timestamp>().ok())
    };
    let created = time(&pod["metadata"]["creationTimestamp"]).expect("a time");
    let since = time(&ready["lastTransitionTime"]).expect("a time");
    assert_eq!(ready["status"], "True");
    assert_eq!(since.duration_since(created).as_secs(), 2);
}

#[test]
fn a_container_ends_and_begins_again_at_the_given_times() {
    let run = |lasted, waited| RunTiming {
        lasted: Some(Duration::from_secs(lasted)),
        waited: Some(Duration::from_secs(waited)),
    };
    // By itself the node would wait for ten seconds before the second restart.
    let timing = || Timing {
        runs: vec![run(4, 0), run(3, 5), run(9, 9)],
        varies: false,
        ..Timing::default()
    };
    let at = |seconds| restarts(&after(seconds, "sleep 1; exit 3", timing()));
    assert_eq!([3, 7, 12, 15].map(at), [0, 1, 1, 2].map(Some));
}
