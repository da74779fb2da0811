//! The probes of nodes, as two markers write them at once.

use std::time::Duration;

use fake_apiserver::Cluster;
use fake_apiserver::faults::{Effect, Fault, Requests};
use k8s_openapi::api::core::v1::Pod;
use kruise_api::v1alpha1::{NodePodProbe, PodProbeMarker};
use kruise_cluster::OpenKruise;
use kube::Api;
use kube::api::{DeleteParams, ListParams, PostParams};
use serde_json::json;

/// A pod on a node, which markers select by these labels.
fn pod(name: &str, node: &str, labels: &[&str]) -> Pod {
    let labels: serde_json::Map<_, _> = labels
        .iter()
        .map(|label| ((*label).to_owned(), json!("yes")))
        .collect();
    serde_json::from_value(json!({
        "metadata": {"name": name, "labels": labels},
        "spec": {"nodeName": node, "containers": [{"name": "main", "image": "main:1"}]},
    }))
    .expect("a pod")
}

fn marker(name: &str) -> PodProbeMarker {
    let spec = json!({
        "selector": {"matchLabels": {name: "yes"}},
        "probes": [{
            "name": "check", "containerName": "main", "podConditionType": "example.com/check",
            "probe": {"exec": {"command": ["true"]}},
        }],
    });
    PodProbeMarker::new(name, serde_json::from_value(spec).expect("a specification"))
}

/// The probes on all nodes.
async fn probes(cluster: &Cluster) -> usize {
    let nodes: Api<NodePodProbe> = Api::all(cluster.client());
    let nodes = nodes
        .list(&ListParams::default())
        .await
        .expect("the nodes' probes");
    let of_pods = nodes.iter().flat_map(|node| &node.spec.pod_probes);
    of_pods.map(|pod| pod.probes.len()).sum()
}

/// Both are deleted at once, and the write to the first node takes a while. By then the second node has been written for the other marker, and
/// what was planned for it before would bring back a probe.
#[tokio::test(start_paused = true)]
async fn a_marker_does_not_bring_back_the_probes_of_another() {
    let kruise = OpenKruise::default().daemons(false);
    let cluster = kruise
        .start(Cluster::builder().nodes(3))
        .await
        .expect("a cluster with OpenKruise");
    let pods: Api<Pod> = Api::default_namespaced(cluster.client());
    for pod in [
        pod("first", "node1", &["left"]),
        pod("second", "node2", &["left", "right"]),
        pod("third", "node3", &["right"]),
    ] {
        pods.create(&PostParams::default(), &pod).await.expect("a pod");
    }
    let markers: Api<PodProbeMarker> = Api::default_namespaced(cluster.client());
    for name in ["left", "right"] {
        let made = markers.create(&PostParams::default(), &marker(name)).await;
        made.expect("a marker");
    }
    cluster.run_for(Duration::from_secs(30)).await;
    assert_eq!(probes(&cluster).await, 4);

    let writes = Requests::all()
        .verbs(["update"])
        .resources(["nodepodprobes"])
        .names(["node1"]);
    let slow = Effect::Delay(Duration::from_millis(20));
    let _slow = cluster.faults().add(Fault::new(slow).on(writes));
    for name in ["left", "right"] {
        let deleted = markers.delete(name, &DeleteParams::default()).await;
        deleted.expect("no marker");
    }
    cluster.run_for(Duration::from_secs(30)).await;
    let left = markers.list(&ListParams::default()).await.expect("the markers");
    assert!(left.items.is_empty(), "{left:?}");
    assert_eq!(probes(&cluster).await, 0);
}
