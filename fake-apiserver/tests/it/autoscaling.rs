//! Horizontal pod autoscalers over virtual minutes.

use std::time::Duration;

use fake_apiserver::Cluster;
use fake_apiserver::faults::{Effect, Fault, Requests};
use shared_json::{Value, json};

use crate::support::{request, send, simulate};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const PODS: &str = "/api/v1/namespaces/default/pods";
const AUTOSCALERS: &str = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers";

async fn post(cluster: &Cluster, path: &str, object: Value) {
    let (code, answer) = request(cluster, "POST", path, &object).await;
    assert_eq!(code, 201, "{answer}");
}

async fn get(cluster: &Cluster, path: &str) -> Value {
    request(cluster, "GET", path, &Value::Null).await.1
}

fn autoscaler(target: &str) -> Value {
    json!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "web"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": target, "name": "web"}, "minReplicas": 1, "maxReplicas": 5,
            "metrics": [{"type": "Resource", "resource": {"name": "cpu",
                "target": {"type": "Utilization", "averageUtilization": 50}}}],
        },
    })
}

/// A deployment of one pod whose pods say that they use so much of their one CPU.
fn deployment(annotations: Value) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": {
            "metadata": {"labels": {"app": "web"}, "annotations": annotations},
            "spec": {"containers": [{"name": "a", "image": "web:1", "resources": {"requests": {"cpu": "1"}}}]},
        }},
    })
}

async fn replicas(cluster: &Cluster) -> i64 {
    let deployment = get(cluster, &format!("{DEPLOYMENTS}/web")).await;
    deployment["spec"]["replicas"].as_i64().expect("a size")
}

/// `type=status reason` of each condition.
async fn conditions(cluster: &Cluster) -> Vec<String> {
    let found = get(cluster, &format!("{AUTOSCALERS}/web")).await;
    let all = found["status"]["conditions"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let text = |condition: &Value, field: &str| condition[field].as_str().unwrap_or_default().to_owned();
    all.iter()
        .map(|one| {
            format!(
                "{}={} {}",
                text(one, "type"),
                text(one, "status"),
                text(one, "reason")
            )
        })
        .collect()
}

async fn events(cluster: &Cluster) -> Vec<String> {
    let list = get(cluster, "/api/v1/namespaces/default/events").await;
    let mut all = list["items"].as_array().cloned().unwrap_or_default();
    all.retain(|event| event["involvedObject"]["kind"] == "HorizontalPodAutoscaler");
    let text = |event: &Value, field: &str| event[field].as_str().unwrap_or_default().to_owned();
    all.sort_by_key(|event| text(event, "firstTimestamp"));
    all.iter()
        .map(|event| format!("{}: {}", text(event, "reason"), text(event, "message")))
        .collect()
}

#[test]
fn a_deployment_follows_its_load() {
    simulate(|| async {
        let cluster = Cluster::builder().start().await.expect("a cluster");
        post(
            &cluster,
            DEPLOYMENTS,
            deployment(json!({"metrics.fake-apiserver/cpu": "900m"})),
        )
        .await;
        post(&cluster, AUTOSCALERS, autoscaler("Deployment")).await;
        let mut sizes = Vec::new();
        for _ in 0..4 {
            cluster.run_for(Duration::from_secs(15)).await;
            sizes.push(replicas(&cluster).await);
        }
        assert_eq!(sizes, [2, 4, 5, 5]);
        assert_eq!(
            events(&cluster).await,
            [2, 4, 5].map(|size| format!(
                "SuccessfulRescale: New size: {size}; reason: cpu resource utilization (percentage of request) above target"
            ))
        );
        assert_eq!(
            conditions(&cluster).await,
            [
                "AbleToScale=True ReadyForNewScale",
                "ScalingActive=True ValidMetricFound",
                "ScalingLimited=True TooManyReplicas"
            ]
        );
        let shown = get(&cluster, &format!("{AUTOSCALERS}/web")).await;
        let used = &shown["status"]["currentMetrics"][0]["resource"]["current"];
        assert_eq!(used, &json!({"averageUtilization": 90, "averageValue": "900m"}));

        // The load goes; the size follows after the five minutes for which what was proposed counts.
        for pod in get(&cluster, PODS).await["items"].as_array().expect("pods") {
            let path = format!("{PODS}/{}", pod["metadata"]["name"].as_str().expect("a name"));
            let patch = json!({"metadata": {"annotations": {"metrics.fake-apiserver/cpu": "100m"}}});
            send(&cluster, "PATCH", &path, "application/merge-patch+json", &patch).await;
        }
        cluster.run_for(Duration::from_secs(240)).await;
        assert_eq!(replicas(&cluster).await, 5);
        assert!(
            conditions(&cluster)
                .await
                .contains(&"AbleToScale=True ScaleDownStabilized".to_owned())
        );
        cluster.run_for(Duration::from_secs(90)).await;
        assert_eq!(replicas(&cluster).await, 1);
        let last = events(&cluster).await.pop();
        let expected = "SuccessfulRescale: New size: 1; reason: All metrics below target";
        assert_eq!(last.as_deref(), Some(expected));
    });
}

#[test]
fn what_cannot_be_scaled_is_told() {
    simulate(|| async {
        let cluster = Cluster::builder().start().await.expect("a cluster");
        post(&cluster, AUTOSCALERS, autoscaler("Deployment")).await;
        cluster.run_for(Duration::from_secs(16)).await;
        assert_eq!(
            events(&cluster).await,
            ["FailedGetScale: deployments.apps \"web\" not found"]
        );
        assert_eq!(conditions(&cluster).await, ["AbleToScale=False FailedGetScale"]);

        post(&cluster, DEPLOYMENTS, deployment(json!({}))).await;
        cluster.run_for(Duration::from_secs(15)).await;
        let told = events(&cluster).await;
        let why = "failed to get cpu utilization: unable to get metrics for resource cpu: unable to fetch metrics from \
            resource metrics API: the server could not find the requested resource (get pods.metrics.k8s.io)";
        assert!(
            told.contains(&format!("FailedGetResourceMetric: {why}")),
            "{told:#?}"
        );
        let summary = format!(
            "FailedComputeMetricsReplicas: invalid metrics (1 invalid out of 1), first error is: failed to get cpu resource metric value: {why}"
        );
        assert!(told.contains(&summary), "{told:#?}");
        assert_eq!(
            conditions(&cluster).await,
            [
                "AbleToScale=True SucceededGetScale",
                "ScalingActive=False FailedGetResourceMetric"
            ]
        );
        assert_eq!(replicas(&cluster).await, 1);
    });
}

/// How often the target's new size is refused because another client has changed the target, and the result: the controller
/// tries five times.
#[test]
fn a_target_that_others_change() {
    for (times, size, reason) in [
        (0, 2, "SuccessfulRescale"),
        (1, 2, "SuccessfulRescale"),
        (4, 2, "SuccessfulRescale"),
        (5, 1, "FailedRescale"),
    ] {
        simulate(move || async move {
            let cluster = Cluster::builder().start().await.expect("a cluster");
            let load = json!({"metrics.fake-apiserver/cpu": "900m"});
            post(&cluster, DEPLOYMENTS, deployment(load)).await;
            post(&cluster, AUTOSCALERS, autoscaler("Deployment")).await;
            let requests = Requests::all().verbs(["update"]).resources(["deployments/scale"]);
            let conflict = Fault::new(Effect::refuse(409, "Conflict"))
                .on(requests)
                .times(times);
            if times > 0 {
                cluster.faults().add(conflict);
            }
            cluster.run_for(Duration::from_secs(16)).await;
            assert_eq!(replicas(&cluster).await, size, "{times}");
            let told = events(&cluster).await;
            let is_told = |line: &&String| line.starts_with(&format!("{reason}: New size: 2; reason: "));
            assert_eq!(told.iter().filter(is_told).count(), 1, "{told:#?}");
            assert_eq!(told.len(), 1, "{told:#?}");
            let able = match reason {
                "FailedRescale" => "AbleToScale=False FailedUpdateScale",
                _ => "AbleToScale=True SucceededRescale",
            };
            assert!(conditions(&cluster).await.contains(&able.to_owned()));
            // The next pass finds nobody in its way.
            cluster.run_for(Duration::from_secs(15)).await;
            assert!(replicas(&cluster).await > size, "{times}");
        });
    }
}
