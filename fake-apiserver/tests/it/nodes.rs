//! Nodes that are lost and come back.

use std::time::Duration;

use fake_apiserver::Cluster;
use shared_json::{Array, Value, json};

use crate::support::{request, send, simulate};

async fn get(cluster: &Cluster, path: &str) -> Value {
    request(cluster, "GET", path, &Value::Null).await.1
}

async fn run_for(cluster: &Cluster, seconds: u64) {
    cluster.run_for(Duration::from_secs(seconds)).await;
}

/// A node's condition `Ready` and its taints, as one line.
async fn node(cluster: &Cluster, name: &str) -> String {
    let node = get(cluster, &format!("/api/v1/nodes/{name}")).await;
    let conditions = node["status"]["conditions"].as_array().expect("conditions");
    let ready = conditions
        .iter()
        .find(|condition| condition["type"] == "Ready")
        .expect("Ready");
    let taints = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
    let taints = taints.iter().map(|taint| {
        let key = taint["key"]
            .as_str()
            .unwrap_or_default()
            .trim_start_matches("node.kubernetes.io/");
        format!(" {key}:{}", taint["effect"].as_str().unwrap_or_default())
    });
    let status = ready["status"].as_str().unwrap_or_default();
    format!(
        "{status} {}{}",
        ready["reason"].as_str().unwrap_or_default(),
        taints.collect::<String>()
    )
}

/// Of each pod on the node: whether it is ready, and whether it terminates.
async fn pods_on(cluster: &Cluster, name: &str) -> Vec<(String, bool)> {
    let list = get(
        cluster,
        &format!("/api/v1/namespaces/default/pods?fieldSelector=spec.nodeName={name}"),
    )
    .await;
    let items = list["items"].as_array().expect("items");
    let of = |pod: &Value| {
        let conditions = pod["status"]["conditions"].as_array().expect("conditions");
        let ready = conditions
            .iter()
            .find(|condition| condition["type"] == "Ready")
            .expect("Ready");
        let status = ready["status"].as_str().unwrap_or_default().to_owned();
        (status, !pod["metadata"]["deletionTimestamp"].is_null())
    };
    items.iter().map(of).collect()
}

async fn deployment(cluster: &Cluster) {
    let web = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": {
            "metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": "nginx"}]}}},
    });
    let path = "/apis/apps/v1/namespaces/default/deployments";
    assert_eq!(request(cluster, "POST", path, &web).await.0, 201);
    run_for(cluster, 10).await;
}

async fn ready_replicas(cluster: &Cluster) -> Value {
    get(cluster, "/apis/apps/v1/namespaces/default/deployments/web").await["status"]["readyReplicas"].clone()
}

#[test]
fn a_lost_node_is_told_from_a_slow_one_and_its_pods_move() {
    simulate(async || {
        let cluster = Cluster::builder().start().await.expect("a cluster");
        deployment(&cluster).await;
        assert_eq!(pods_on(&cluster, "node2").await, [("True".to_owned(), false)]);
        cluster.disconnect_node("node2").await.expect("a node");

        run_for(&cluster, 45).await;
        assert_eq!(node(&cluster, "node2").await, "True KubeletReady");
        run_for(&cluster, 10).await;
        let lost = "Unknown NodeStatusUnknown unreachable:NoSchedule unreachable:NoExecute";
        assert_eq!(node(&cluster, "node2").await, lost);
        assert_eq!(pods_on(&cluster, "node2").await, [("False".to_owned(), false)]);
        assert_eq!(ready_replicas(&cluster).await, 2);

        // The pod tolerates that for five minutes; then another one takes its place, but nobody confirms its end.
        run_for(&cluster, 310).await;
        assert_eq!(pods_on(&cluster, "node2").await, [("False".to_owned(), true)]);
        assert_eq!(ready_replicas(&cluster).await, 3);

        cluster.reconnect_node("node2").expect("a node");
        run_for(&cluster, 5).await;
        assert_eq!(node(&cluster, "node2").await, "True KubeletReady");
        assert_eq!(pods_on(&cluster, "node2").await, []);
    });
}

#[test]
fn a_node_that_comes_back_in_time_keeps_its_pods() {
    simulate(async || {
        let cluster = Cluster::builder().start().await.expect("a cluster");
        deployment(&cluster).await;
        cluster.disconnect_node("node1").await.expect("a node");
        run_for(&cluster, 100).await;
        assert_eq!(ready_replicas(&cluster).await, 2);
        cluster.reconnect_node("node1").expect("a node");
        run_for(&cluster, 5).await;
        assert_eq!(node(&cluster, "node1").await, "True KubeletReady");
        assert_eq!(pods_on(&cluster, "node1").await, [("True".to_owned(), false)]);
        assert_eq!(ready_replicas(&cluster).await, 3);
        // And the same again.
        cluster.disconnect_node("node1").await.expect("a node");
        run_for(&cluster, 60).await;
        assert!(node(&cluster, "node1").await.starts_with("Unknown"));
    });
}

#[test]
fn heartbeats_are_leases_that_are_renewed() {
    simulate(async || {
        let cluster = Cluster::builder()
            .nodes(1)
            .heartbeats(Duration::from_secs(10))
            .start()
            .await
            .expect("a cluster");
        let path = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/node1";
        let first = get(&cluster, path).await;
        assert_eq!(first["spec"]["leaseDurationSeconds"], 40);
        assert_eq!(first["metadata"]["ownerReferences"][0]["name"], "node1");
        run_for(&cluster, 600).await;
        let renewed = get(&cluster, path).await["spec"]["renewTime"]
            .as_str()
            .map(str::to_owned);
        assert!(
            renewed.as_deref() > first["spec"]["renewTime"].as_str(),
            "{renewed:?}"
        );
        assert_eq!(node(&cluster, "node1").await, "True KubeletReady");
        // Nobody writes the last heartbeat of a node that has real ones: it has just been renewed.
        cluster.disconnect_node("node1").await.expect("a node");
        run_for(&cluster, 60).await;
        assert!(node(&cluster, "node1").await.starts_with("Unknown"));
        cluster.reconnect_node("node1").expect("a node");
        run_for(&cluster, 15).await;
        assert_eq!(node(&cluster, "node1").await, "True KubeletReady");
    });
}

#[test]
fn an_unknown_node_is_an_error_that_lists_the_known() {
    simulate(async || {
        let cluster = Cluster::builder().nodes(2).start().await.expect("a cluster");
        let error = cluster.disconnect_node("node9").await.expect_err("no such node");
        assert_eq!(
            error.to_string(),
            "find the node \"node9\": the simulated nodes are node1, node2"
        );
    });
}

/// A node that runs short of memory evicts one pod every ten seconds, those above their requests first, reports it, and takes no
/// BestEffort pod until five minutes after it has recovered.
#[test]
fn a_node_short_of_memory_evicts() {
    simulate(move || async move {
        let cluster = Cluster::builder().nodes(1).start().await.expect("a cluster");
        let pods = "/api/v1/namespaces/default/pods";
        let pod = |name: &str, used: &str, requested: Value| {
            json!({
                "metadata": {"name": name, "annotations": {"metrics.fake-apiserver/memory": used}},
                "spec": {"containers": [{"name": "main", "image": "nginx", "resources": {"requests": requested}}]},
            })
        };
        for object in [
            pod("greedy", "300Mi", json!({"memory": "100Mi"})),
            pod("modest", "50Mi", json!({"memory": "100Mi"})),
            pod("unasked", "200Mi", json!({})),
        ] {
            let (code, answer) = request(&cluster, "POST", pods, &object).await;
            assert_eq!(code, 201, "{answer}");
        }
        cluster.run_for(Duration::from_secs(5)).await;
        let left = |amount: Value| json!({"metadata": {"annotations": {"metrics.fake-apiserver/memory.available": amount}}});
        let merge = "application/merge-patch+json";
        send(
            &cluster,
            "PATCH",
            "/api/v1/nodes/node1",
            merge,
            &left(json!("50Mi")),
        )
        .await;
        let phases = async || {
            let (_, list) = request(&cluster, "GET", pods, &Value::Null).await;
            let items = list["items"].as_array().cloned().unwrap_or_default();
            let shown = items.iter().map(|pod| {
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                format!(
                    "{} {} {}",
                    text(&pod["metadata"]["name"]),
                    text(&pod["status"]["phase"]),
                    text(&pod["status"]["reason"])
                )
            });
            shown
                .map(|line| line.trim().to_owned())
                .collect::<Vec<_>>()
                .join(", ")
        };
        cluster.run_for(Duration::from_secs(10)).await;
        assert_eq!(
            phases().await,
            "greedy Failed Evicted, modest Running, unasked Running"
        );
        cluster.run_for(Duration::from_secs(10)).await;
        assert_eq!(
            phases().await,
            "greedy Failed Evicted, modest Running, unasked Failed Evicted"
        );
        send(
            &cluster,
            "PATCH",
            "/api/v1/nodes/node1",
            merge,
            &left(Value::Null),
        )
        .await;
        cluster.run_for(Duration::from_secs(30)).await;
        let (_, greedy) = request(&cluster, "GET", &format!("{pods}/greedy"), &Value::Null).await;
        let why = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. Container main was using 300Mi, \
            request is 100Mi, has larger consumption of memory. ";
        assert_eq!(greedy["status"]["message"], why);
        let conditions = greedy["status"]["conditions"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let target = conditions
            .iter()
            .find(|condition| condition["type"] == "DisruptionTarget");
        assert_eq!(
            target.map(|target| (
                target["status"].clone(),
                target["reason"].clone(),
                target["message"].clone()
            )),
            Some((json!("True"), json!("TerminationByKubelet"), json!(why)))
        );
        let pressure = async || {
            let (_, node) = request(&cluster, "GET", "/api/v1/nodes/node1", &Value::Null).await;
            let conditions = node["status"]["conditions"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            let found = conditions
                .into_iter()
                .find(|condition| condition["type"] == "MemoryPressure");
            let taints = node["spec"]["taints"].as_array().map_or(0, Array::len);
            (found.map(|found| found["reason"].clone()), taints)
        };
        assert_eq!(pressure().await, (Some(json!("KubeletHasInsufficientMemory")), 1));
        let mut bound = pod("late", "1Mi", json!({}));
        bound["spec"]["nodeName"] = json!("node1");
        request(&cluster, "POST", pods, &bound).await;
        cluster.run_for(Duration::from_secs(3)).await;
        let (_, late) = request(&cluster, "GET", &format!("{pods}/late"), &Value::Null).await;
        assert_eq!(
            late["status"]["message"],
            "Pod was rejected: The node had condition: [MemoryPressure]. "
        );
        cluster.run_for(Duration::from_secs(300)).await;
        assert_eq!(pressure().await, (Some(json!("KubeletHasSufficientMemory")), 0));
        assert_eq!(
            phases().await,
            "greedy Failed Evicted, late Failed Evicted, modest Running, unasked Failed Evicted"
        );
        let (_, events) = request(&cluster, "GET", "/api/v1/events", &Value::Null).await;
        let mut told: Vec<String> = events["items"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|event| event["involvedObject"]["kind"] == "Node")
            .map(|event| format!("{} {} {}", event["type"], event["reason"], event["count"]).replace('"', ""))
            .collect();
        told.sort();
        assert_eq!(
            told,
            [
                "Normal NodeHasInsufficientMemory 1",
                "Normal NodeHasSufficientMemory 1",
                "Warning EvictionThresholdMet 2",
            ]
        );
    });
}

/// How long nodes may remember Secrets follows how many there are; the nodes there are hear of it as they change.
#[test]
fn nodes_are_told_how_long_secrets_are_good() {
    simulate(|| async {
        let cluster = Cluster::builder().nodes(1).start().await.expect("a cluster");
        let told = async |name: &str| {
            let node = get(&cluster, &format!("/api/v1/nodes/{name}")).await;
            node["metadata"]["annotations"]["node.alpha.kubernetes.io/ttl"].clone()
        };
        run_for(&cluster, 2).await;
        assert_eq!(told("node1").await, "0");
        for n in 0..100 {
            let node = json!({"metadata": {"name": format!("other{n:03}")}});
            let (code, answer) = request(&cluster, "POST", "/api/v1/nodes", &node).await;
            assert_eq!(code, 201, "{answer}");
            run_for(&cluster, 1).await;
        }
        assert_eq!(told("other050").await, "0");
        assert_eq!(told("other099").await, "15");
        let labels = json!({"metadata": {"labels": {"a": "b"}, "annotations": {"node.alpha.kubernetes.io/ttl": "none"}}});
        send(
            &cluster,
            "PATCH",
            "/api/v1/nodes/other050",
            "application/merge-patch+json",
            &labels,
        )
        .await;
        run_for(&cluster, 1).await;
        assert_eq!(told("other050").await, "15");
    });
}
