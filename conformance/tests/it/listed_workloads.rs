//! PersistentPodStates of a workload whose kind the ConfigMap `kruise-configuration` lists.

use std::time::Duration;

use controller::process::gates::FeatureGates;
use controller::{Manager, Options};
use fake_apiserver::Cluster;
use kube::Client;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use shared_json::{Value, json};

const LIST: &str = r#"{"workloads":[{"Group":"example.com","Version":"v1","Kind":"Game"}]}"#;
const HOST: &str = "kubernetes.io/hostname";

/// The definition of a workload that has a scale.
fn definition() -> Value {
    let schema = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let scale = json!({ "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas" });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "games.example.com" },
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": { "kind": "Game", "plural": "games", "singular": "game", "listKind": "GameList" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema },
                "subresources": { "scale": scale, "status": {} } }],
        },
    })
}

fn api(client: &Client, group: &str, version: &str, kind: &str) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    Api::namespaced_with(client.clone(), "default", &resource)
}

/// A cluster with one node, the definitions, the list and a manager.
async fn cluster() -> Cluster {
    let mut builder = Cluster::builder().seed(1).nodes(1);
    for definition in controller::crds(&FeatureGates::default()) {
        builder = builder.object(definition);
    }
    let map = json!({ "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "kruise-configuration", "namespace": "kruise-system" },
        "data": { "PPS_Watch_Custom_Workload_WhiteList": LIST } });
    let namespace =
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "kruise-system" } });
    let builder = builder.object(definition()).object(namespace).object(map);
    let cluster = builder.start().await.expect("a cluster");
    let options = Options {
        clock: cluster.clock(),
        ..Options::default()
    };
    tokio::spawn(Manager::new(cluster.client(), options).run(std::future::pending::<()>()));
    cluster.run_for(Duration::from_secs(2)).await;
    cluster
}

/// A pod of the game with this uid.
fn pod(name: &str, uid: &str) -> DynamicObject {
    let owner = json!({ "apiVersion": "example.com/v1", "kind": "Game", "name": "chess", "uid": uid, "controller": true });
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": name, "ownerReferences": [owner] },
        "spec": { "containers": [{ "name": "main", "image": "nginx:alpine" }] },
    });
    shared_json::from_value(pod).expect("a pod")
}

/// The names of the pods that are recorded, and the nodes.
async fn records(states: &Api<DynamicObject>) -> Option<Vec<(String, String)>> {
    let state = states.get_opt("chess").await.expect("an answer")?;
    let records = state
        .data
        .pointer("/status/podStates")
        .and_then(|map| map.as_object().cloned());
    let records = records.unwrap_or_default().into_iter().map(|(pod, record)| {
        let node = record["nodeTopologyLabels"][HOST].as_str().unwrap_or_default();
        (pod, node.to_owned())
    });
    Some(records.collect())
}

#[tokio::test(start_paused = true)]
async fn a_listed_workload_has_its_pods_recorded() {
    let cluster = cluster().await;
    let client = cluster.client();
    let (games, states) = (
        api(&client, "example.com", "v1", "Game"),
        api(&client, "apps.kruise.io", "v1alpha1", "PersistentPodState"),
    );
    let annotations = json!({
        "kruise.io/auto-generate-persistent-pod-state": "true",
        "kruise.io/required-persistent-topology": HOST,
    });
    let game = json!({ "apiVersion": "example.com/v1", "kind": "Game",
        "metadata": { "name": "chess", "annotations": annotations }, "spec": { "replicas": 2 } });
    let game: DynamicObject = shared_json::from_value(game).expect("a game");
    let game = games.create(&PostParams::default(), &game).await.expect("made");
    let uid = game.metadata.uid.expect("a uid");
    let pods = api(&client, "", "v1", "Pod");
    for name in ["chess-0", "chess-1"] {
        pods.create(&PostParams::default(), &pod(name, &uid))
            .await
            .expect("made");
    }
    cluster.run_for(Duration::from_secs(10)).await;
    let both = ["chess-0", "chess-1"].map(|pod| (pod.to_owned(), "node1".to_owned()));
    assert_eq!(records(&states).await, Some(both.to_vec()));

    let smaller = Patch::Merge(json!({ "spec": { "replicas": 1 } }));
    games
        .patch("chess", &PatchParams::default(), &smaller)
        .await
        .expect("patched");
    pods.delete("chess-1", &DeleteParams::default())
        .await
        .expect("deleted");
    cluster.run_for(Duration::from_secs(60)).await;
    assert_eq!(records(&states).await, Some(both[..1].to_vec()));

    let unasked =
        json!({ "metadata": { "annotations": { "kruise.io/auto-generate-persistent-pod-state": null } } });
    games
        .patch("chess", &PatchParams::default(), &Patch::Merge(unasked))
        .await
        .expect("patched");
    cluster.run_for(Duration::from_secs(10)).await;
    assert_eq!(records(&states).await, None, "it goes with the annotation");
}
