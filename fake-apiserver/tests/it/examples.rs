//! The Rust examples of README.md and docs/: each stands here, is compiled and run, and a test compares the texts.

use std::future::ready;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use fake_apiserver::Cluster;
use fake_apiserver::faults::{Effect, Fault, Requests};
use fake_apiserver::network::faults::{self as connections, Peer};
use fake_apiserver::nodes::Container;
use http::Response;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};

fn web_pod() -> Pod {
    let pod = serde_json::json!({
        "metadata": {"name": "web"}, "spec": {"containers": [{"name": "web", "image": "nginx"}]},
    });
    serde_json::from_value(pod).expect("a pod")
}

fn web_with_three_replicas() -> Deployment {
    let deployment = serde_json::json!({
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 3, "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": "nginx"}]},
            },
        },
    });
    serde_json::from_value(deployment).expect("a deployment")
}

/// A role of this name for the service account of this name in `default`, and its binding.
fn role_that_lists_pods(name: &str) -> [shared_json::Value; 2] {
    let group = "rbac.authorization.k8s.io";
    let version = format!("{group}/v1");
    [
        shared_json::json!({"apiVersion": version, "kind": "ClusterRole", "metadata": {"name": name},
            "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]}),
        shared_json::json!({"apiVersion": version, "kind": "ClusterRoleBinding", "metadata": {"name": name},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "default"}]}),
    ]
}

async fn ready_replicas(deployments: &Api<Deployment>) -> Result<Option<i32>, kube::Error> {
    let status = deployments.get("web").await?.status;
    Ok(status.and_then(|status| status.ready_replicas))
}

#[tokio::test(start_paused = true)]
async fn a_pod_runs() -> Result<(), Box<dyn std::error::Error>> {
    let cluster = Cluster::builder().seed(7).nodes(3).start().await?;
    let pods: Api<Pod> = Api::default_namespaced(cluster.client());
    pods.create(&PostParams::default(), &web_pod()).await?;
    cluster.run_for(Duration::from_secs(30)).await; // takes no real time
    let status = pods.get("web").await?.status;
    assert_eq!(status.and_then(|status| status.phase).as_deref(), Some("Running"));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_program_answers() -> Result<(), Box<dyn std::error::Error>> {
    let greeter = |container: Container| async move {
        let hostname = container.hostname().to_owned();
        let page = move |_| ready(Response::new(Bytes::from(hostname.clone())));
        container.serve(80, page).await;
        1 // it was killed, or another program has the port
    };
    let cluster = Cluster::builder().program("nginx", greeter).start().await?;
    let pods: Api<Pod> = Api::default_namespaced(cluster.client());
    pods.create(&PostParams::default(), &web_pod()).await?;
    cluster.run_for(Duration::from_secs(5)).await;
    let path = "/api/v1/namespaces/default/pods/web:80/proxy/";
    let request = http::Request::get(path).body(Vec::new())?;
    assert_eq!(cluster.client().request_text(request).await?, "web");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn nodes_are_parted() -> Result<(), Box<dyn std::error::Error>> {
    let cluster = Cluster::builder().nodes(2).start().await?;
    let faults = cluster.network().faults();
    let slow = connections::Fault::new(connections::Effect::Delay(Duration::from_secs(2)));
    let slow = faults.add(slow.to(Peer::pod("default", "db-0")).port(5432));
    let refused = connections::Fault::new(connections::Effect::Refuse).chance(0.1);
    let refused = faults.add(refused.from(Peer::node("node1")));
    let parted = faults.partition(Peer::node("node1"), Peer::node("node2"));
    cluster.run_for(Duration::from_secs(60)).await;
    parted.lift();
    assert_eq!((slow.strikes(), refused.strikes()), (0, 0)); // nobody has connected
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_deployment_survives_a_lost_node() -> Result<(), Box<dyn std::error::Error>> {
    let cluster = Cluster::builder().nodes(3).start().await?;
    let deployments: Api<Deployment> = Api::default_namespaced(cluster.client());
    deployments
        .create(&PostParams::default(), &web_with_three_replicas())
        .await?;
    cluster.run_for(Duration::from_secs(10)).await;
    assert_eq!(ready_replicas(&deployments).await?, Some(3));
    cluster.disconnect_node("node2").await?;
    cluster.run_for(Duration::from_secs(60)).await; // the node is lost, and its pod is not ready
    assert_eq!(ready_replicas(&deployments).await?, Some(2));
    cluster.run_for(Duration::from_secs(360)).await; // the pod was evicted, and a new one runs elsewhere
    assert_eq!(ready_replicas(&deployments).await?, Some(3));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_client_meets_conflicts() -> Result<(), Box<dyn std::error::Error>> {
    let cluster = Cluster::builder().nodes(1).start().await?;
    let patches = Requests::all().verbs(["patch"]).resources(["pods"]);
    let conflict = cluster
        .faults()
        .add(Fault::new(Effect::refuse(409, "Conflict")).on(patches).times(3));
    let pods: Api<Pod> = Api::default_namespaced(cluster.client());
    pods.create(&PostParams::default(), &web_pod()).await?;
    let label = Patch::Merge(serde_json::json!({"metadata": {"labels": {"seen": "yes"}}}));
    let mut attempts = 1;
    while pods.patch("web", &PatchParams::default(), &label).await.is_err() {
        attempts += 1;
    }
    assert_eq!((attempts, conflict.strikes()), (4, 3));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn the_role_suffices() -> Result<(), Box<dyn std::error::Error>> {
    let [role, binding] = role_that_lists_pods("operator");
    let cluster = Cluster::builder().object(role).object(binding).start().await?;
    let client = cluster.client_as("system:serviceaccount:default:operator");
    let pods: Api<Pod> = Api::default_namespaced(client);
    assert!(pods.list(&ListParams::default()).await.is_ok());
    let refused = pods.create(&PostParams::default(), &web_pod()).await;
    assert!(matches!(refused, Err(kube::Error::Api(status)) if status.code == 403));
    Ok(())
}

/// The blocks of a page that begin with three backticks and `rust`.
fn rust_blocks(text: &str) -> Vec<&str> {
    text.split("```rust\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next())
        .collect()
}

#[test]
fn every_example_of_the_pages_is_one_of_these() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut pages: Vec<_> = [
        "README.md",
        "fake-apiserver/README.md",
        "controller/kruise-cluster/README.md",
    ]
    .map(|page| root.join(page))
    .into();
    let folder = std::fs::read_dir(root.join("docs/src")).expect("the pages");
    pages.extend(folder.map(|entry| entry.expect("an entry").path()));
    let about_kruise = root.join("controller/kruise-cluster/tests/it/examples.rs");
    let about_kruise = std::fs::read_to_string(about_kruise).expect("the examples about OpenKruise");
    let compiled = include_str!("examples.rs").to_owned() + &about_kruise;
    let mut count = 0;
    for page in pages {
        let text = std::fs::read_to_string(&page).expect("a page");
        for block in rust_blocks(&text) {
            count += 1;
            assert!(
                compiled.contains(block),
                "{}: this example stands in no tests/it/examples.rs:\n{block}",
                page.display()
            );
        }
    }
    assert!(count >= 4, "{count} examples");
}
