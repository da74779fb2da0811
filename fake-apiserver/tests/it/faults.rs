//! Faults as clients see them.

use std::time::Duration;

use fake_apiserver::Cluster;
use fake_apiserver::faults::{Effect, Fault, Requests};
use futures::StreamExt as _;
use rstest::rstest;
use shared_json::{Array, Value, json};

use crate::support::{request, simulate};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn faults(text: &str) -> Vec<Fault> {
    Fault::from_yaml(text).expect("faults")
}

/// A creation under a fault: the answer's code and reason, whether the object is there then, and how many seconds it took.
#[rstest]
#[case::none("[]", 201, Value::Null, true, 0)]
#[case::refused("- do: {refuse: {code: 503}}", 503, json!("ServiceUnavailable"), false, 0)]
#[case::conflict("- {on: {verbs: [create]}, do: {refuse: {code: 409}}}", 409, json!("Conflict"), false, 0)]
#[case::lost("- {on: {verbs: [create]}, do: loseAnswer}", 504, json!("Timeout"), true, 0)]
#[case::late("- {on: {verbs: [create]}, do: {delay: 20s}}", 201, Value::Null, true, 20)]
#[case::late_and_refused("- {on: {verbs: [create]}, do: {delay: 2s}}\n- {on: {verbs: [create]}, do: {refuse: {code: 500}}}",
    500, json!("InternalError"), false, 2)]
#[case::of_others(
    "- {on: {verbs: [create], resources: [pods]}, do: {refuse: {code: 500}}}",
    201,
    Value::Null,
    true,
    0
)]
fn a_request(
    #[case] text: &str,
    #[case] code: u16,
    #[case] reason: Value,
    #[case] there: bool,
    #[case] seconds: u64,
) {
    let text = text.to_owned();
    simulate(move || async move {
        let cluster = Cluster::builder().nodes(0).start().await.expect("a cluster");
        for fault in faults(&text) {
            cluster.faults().add(fault);
        }
        let began = tokio::time::Instant::now();
        let (told, answer) = request(&cluster, "POST", MAPS, &json!({"metadata": {"name": "a"}})).await;
        assert_eq!((told, &answer["reason"]), (code, &reason), "{answer}");
        assert_eq!(began.elapsed(), Duration::from_secs(seconds));
        cluster.faults().clear();
        let (found, _) = request(&cluster, "GET", &format!("{MAPS}/a"), &Value::Null).await;
        assert_eq!(found == 200, there);
    });
}

/// The events of a watch, with their times in seconds: `a` is made, changed and deleted, a second apart, then `b` is made.
#[rstest]
#[case::none("[]", "0 ADDED a, 1 MODIFIED a, 2 DELETED a, 3 ADDED b")]
#[case::missed(
    "- {on: {events: [DELETED]}, do: dropEvents}",
    "0 ADDED a, 1 MODIFIED a, 3 ADDED b"
)]
#[case::of_one_object(
    "- {on: {userAgents: [watcher], names: [b]}, do: dropEvents}",
    "0 ADDED a, 1 MODIFIED a, 2 DELETED a"
)]
#[case::of_one_kind(
    "- {on: {resources: [pods]}, do: dropEvents}",
    "0 ADDED a, 1 MODIFIED a, 2 DELETED a, 3 ADDED b"
)]
#[case::late(
    "- {on: {userAgents: [watcher]}, do: {delayEvents: 10s}}",
    "10 ADDED a, 11 MODIFIED a, 12 DELETED a, 13 ADDED b"
)]
#[case::late_holds_up_what_follows(
    "- {on: {userAgents: [watcher]}, times: 1, do: {delayEvents: 5s}}",
    "5 ADDED a, 5 MODIFIED a, 5 DELETED a, 5 ADDED b"
)]
#[case::only_the_third(
    "- {on: {userAgents: [watcher]}, skip: 2, times: 1, do: dropEvents}",
    "0 ADDED a, 1 MODIFIED a, 3 ADDED b"
)]
#[case::ends("- {on: {userAgents: [watcher]}, skip: 1, do: endWatch}", "0 ADDED a")]
#[case::gone(
    "- {on: {userAgents: [watcher]}, skip: 1, do: expireWatch}",
    "0 ADDED a, 1 ERROR Expired"
)]
fn a_watch(#[case] text: &str, #[case] expected: &str) {
    let (text, expected) = (text.to_owned(), expected.to_owned());
    simulate(move || async move {
        let cluster = Cluster::builder().nodes(0).start().await.expect("a cluster");
        let uri = format!("{MAPS}?watch=true&timeoutSeconds=60&resourceVersion={}", {
            let (_, list) = request(&cluster, "GET", MAPS, &Value::Null).await;
            list["metadata"]["resourceVersion"]
                .as_str()
                .expect("a version")
                .to_owned()
        });
        let opened = http::Request::get(uri)
            .header("user-agent", "watcher")
            .body(Vec::new())
            .expect("a request");
        let stream = cluster
            .client()
            .request_events::<kube::core::DynamicObject>(opened)
            .await
            .expect("a watch");
        for fault in faults(&text) {
            cluster.faults().add(fault);
        }
        let began = tokio::time::Instant::now();
        let told = tokio::spawn(async move {
            let mut told = Vec::new();
            let mut stream = stream.boxed();
            while let Some(event) = stream.next().await {
                let event = event.expect("an event");
                let text = match event {
                    kube::core::WatchEvent::Added(object) => {
                        format!("ADDED {}", object.metadata.name.unwrap_or_default())
                    }
                    kube::core::WatchEvent::Modified(object) => {
                        format!("MODIFIED {}", object.metadata.name.unwrap_or_default())
                    }
                    kube::core::WatchEvent::Deleted(object) => {
                        format!("DELETED {}", object.metadata.name.unwrap_or_default())
                    }
                    kube::core::WatchEvent::Bookmark(_) => "BOOKMARK".to_owned(),
                    kube::core::WatchEvent::Error(status) => format!("ERROR {}", status.reason),
                };
                told.push(format!("{} {text}", began.elapsed().as_secs()));
            }
            told.join(", ")
        });
        let a = format!("{MAPS}/a");
        request(&cluster, "POST", MAPS, &json!({"metadata": {"name": "a"}})).await;
        cluster.run_for(Duration::from_secs(1)).await;
        request(
            &cluster,
            "PUT",
            &a,
            &json!({"metadata": {"name": "a"}, "data": {"x": "1"}}),
        )
        .await;
        cluster.run_for(Duration::from_secs(1)).await;
        request(&cluster, "DELETE", &a, &Value::Null).await;
        cluster.run_for(Duration::from_secs(1)).await;
        request(&cluster, "POST", MAPS, &json!({"metadata": {"name": "b"}})).await;
        assert_eq!(told.await.expect("the watch"), expected);
    });
}

/// A Deployment comes up whatever its controllers meet; `struck` is that they met it.
#[rstest]
#[case::conflicts(
    "- {on: {userAgents: [kube-controller-manager], verbs: [update, patch, create]}, skip: 2, times: 6, do: {refuse: {code: 409}}}"
)]
#[case::kubelets_are_refused(
    "- {on: {userAgents: [kubelet], verbs: [patch]}, times: 4, do: {refuse: {code: 500}}}"
)]
#[case::scheduler_is_told_nothing(
    "- {on: {userAgents: [kube-scheduler], resources: [pods/binding]}, times: 2, do: loseAnswer}"
)]
#[case::creations_are_not_answered(
    "- {on: {verbs: [create], resources: [pods], userAgents: [kube-controller-manager]}, times: 2, do: loseAnswer}"
)]
#[case::watches_end("- {chance: 0.3, do: endWatch}")]
#[case::watches_expire("- {chance: 0.2, do: expireWatch}")]
#[case::stale_caches("- {on: {resources: [pods, replicasets]}, do: {delayEvents: 3s}}")]
#[case::everything_is_slow("- {chance: 0.2, do: {delay: 2s}}")]
fn a_deployment_comes_up(#[case] text: &str) {
    let text = text.to_owned();
    simulate(move || async move {
        let cluster = Cluster::builder().nodes(2).start().await.expect("a cluster");
        let handles: Vec<_> = faults(&text)
            .into_iter()
            .map(|fault| cluster.faults().add(fault))
            .collect();
        let web = json!({"metadata": {"name": "web"}, "spec": {
            "replicas": 3, "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": "nginx"}]}},
        }});
        let path = "/apis/apps/v1/namespaces/default/deployments";
        for _ in 0..40 {
            // The test's own request may be struck, too.
            if request(&cluster, "GET", &format!("{path}/web"), &Value::Null)
                .await
                .0
                == 200
            {
                break;
            }
            request(&cluster, "POST", path, &web).await;
        }
        cluster.run_for(Duration::from_secs(120)).await;
        let struck: u32 = handles
            .iter()
            .map(fake_apiserver::faults::FaultHandle::strikes)
            .sum();
        assert!(struck > 0, "nothing was struck");
        cluster.faults().clear();
        cluster.run_for(Duration::from_secs(30)).await;
        let (_, deployment) = request(&cluster, "GET", &format!("{path}/web"), &Value::Null).await;
        assert_eq!(
            deployment["status"]["readyReplicas"], 3,
            "{}",
            deployment["status"]
        );
        let (_, pods) = request(&cluster, "GET", "/api/v1/namespaces/default/pods", &Value::Null).await;
        assert_eq!(pods["items"].as_array().map(Array::len), Some(3));
    });
}

/// A deleted pod goes in the end, whatever answer its kubelet gets to the last deletion.
#[rstest]
#[case::conflicts("{refuse: {code: 409}}")]
#[case::failures("{refuse: {code: 500}}")]
#[case::not_answered("loseAnswer")]
fn a_pod_goes(#[case] what: &str) {
    let text =
        format!("- {{on: {{verbs: [delete, patch], userAgents: [kubelet]}}, skip: 1, times: 3, do: {what}}}");
    simulate(move || async move {
        let cluster = Cluster::builder().nodes(1).start().await.expect("a cluster");
        let pods = "/api/v1/namespaces/default/pods";
        let pod =
            json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "main", "image": "nginx"}]}});
        request(&cluster, "POST", pods, &pod).await;
        cluster.run_for(Duration::from_secs(5)).await;
        let handles: Vec<_> = faults(&text)
            .into_iter()
            .map(|fault| cluster.faults().add(fault))
            .collect();
        request(&cluster, "DELETE", &format!("{pods}/p"), &Value::Null).await;
        cluster.run_for(Duration::from_secs(60)).await;
        assert_eq!(
            request(&cluster, "GET", &format!("{pods}/p"), &Value::Null)
                .await
                .0,
            404
        );
        let struck: u32 = handles
            .iter()
            .map(fake_apiserver::faults::FaultHandle::strikes)
            .sum();
        assert!(struck > 0, "nothing was struck");
    });
}

#[test]
fn a_handle_counts_and_lifts() {
    simulate(move || async move {
        let cluster = Cluster::builder().nodes(0).start().await.expect("a cluster");
        let on = Requests::all().verbs(["get"]).resources(["configmaps"]);
        let fault = cluster
            .faults()
            .add(Fault::new(Effect::refuse(500, "")).on(on).named("reads fail"));
        let path = format!("{MAPS}/a");
        assert_eq!(request(&cluster, "GET", &path, &Value::Null).await.0, 500);
        assert_eq!(fault.strikes(), 1);
        fault.lift();
        assert_eq!(request(&cluster, "GET", &path, &Value::Null).await.0, 404);
    });
}
