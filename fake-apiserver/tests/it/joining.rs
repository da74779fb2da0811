//! Nodes that join a cluster which runs.

use std::sync::OnceLock;
use std::time::Duration;

use fake_apiserver::nodes::NodeSpec;
use fake_apiserver::{Cluster, ClusterError};
use shared_json::{Value, json};

use crate::support::{request, simulate};

const PODS: &str = "/api/v1/namespaces/default/pods";

/// Where the pods of a DaemonSet run.
async fn daemons(cluster: &Cluster) -> Vec<String> {
    let (_, pods) = request(cluster, "GET", PODS, &Value::Null).await;
    let pods = pods["items"].as_array().expect("pods").iter();
    let mut nodes: Vec<String> = pods
        .filter(|pod| pod["status"]["phase"] == "Running")
        .filter_map(|pod| pod["spec"]["nodeName"].as_str().map(str::to_owned))
        .collect();
    nodes.sort();
    nodes
}

/// A node that joins gets the pod of a DaemonSet, and one that is cut off and whose Node is deleted loses it. A cluster that began without
/// nodes has a scheduler from the first on.
#[test]
fn a_daemon_set_follows_the_nodes() {
    for begun in [0, 2] {
        simulate(|| async move {
            let cluster = Cluster::builder().nodes(begun).start().await.expect("a cluster");
            let set = json!({
                "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "agent"},
                "spec": {
                    "selector": {"matchLabels": {"app": "agent"}},
                    "template": {
                        "metadata": {"labels": {"app": "agent"}},
                        "spec": {"containers": [{"name": "agent", "image": "agent:1"}]},
                    },
                },
            });
            let (code, answer) = request(
                &cluster,
                "POST",
                "/apis/apps/v1/namespaces/default/daemonsets",
                &set,
            )
            .await;
            assert_eq!(code, 201, "{answer}");
            cluster.run_for(Duration::from_secs(30)).await;
            let mut expected: Vec<String> = (1..=begun).map(|n| format!("node{n}")).collect();
            assert_eq!(daemons(&cluster).await, expected);

            cluster.add_node(NodeSpec::numbered(3)).expect("a third node");
            cluster.run_for(Duration::from_secs(30)).await;
            expected.push("node3".to_owned());
            assert_eq!(daemons(&cluster).await, expected);

            cluster.disconnect_node("node3").await.expect("no third node");
            let (code, _) = request(&cluster, "DELETE", "/api/v1/nodes/node3", &Value::Null).await;
            assert_eq!(code, 200);
            cluster.run_for(Duration::from_secs(120)).await;
            expected.pop();
            assert_eq!(daemons(&cluster).await, expected);
        });
    }
}

/// A name that is taken is refused, at the start, too.
#[test]
fn a_name_belongs_to_one_node() {
    simulate(|| async {
        let cluster = Cluster::builder().nodes(2).start().await.expect("a cluster");
        let refused = cluster.add_node(NodeSpec::numbered(2)).expect_err("a refusal");
        assert_eq!(
            refused.to_string(),
            "add the node \"node2\": there is one already"
        );
        let twice = vec![NodeSpec::numbered(1), NodeSpec::numbered(1)];
        let refused = Cluster::builder().node_specs(twice).start().await;
        assert!(matches!(refused.err(), Some(ClusterError::NodeExists { name }) if name == "node1"));
    });
}

/// The same seed and the same joining give the same trace.
#[test]
fn joining_is_a_function_of_the_seed() {
    let run = || {
        let trace = OnceLock::new();
        simulate(|| async {
            let cluster = Cluster::builder()
                .nodes(1)
                .trace(true)
                .start()
                .await
                .expect("a cluster");
            cluster.run_for(Duration::from_secs(10)).await;
            cluster.add_node(NodeSpec::numbered(2)).expect("a second node");
            cluster.run_for(Duration::from_secs(10)).await;
            trace.get_or_init(|| cluster.trace().expect("a trace").text());
        });
        trace.into_inner().expect("a trace")
    };
    let trace = run();
    assert!(trace.contains("node2"), "{trace}");
    assert_eq!(trace, run());
}
