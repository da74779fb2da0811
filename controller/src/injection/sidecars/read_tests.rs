//! The webhook of new pods, with sets, namespaces and revisions that were put into its caches.

use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::api::core::v1::Namespace;
use kube::Client;
use kube::client::Body;
use rstest::rstest;
use serde_json::{Value, json};

use crate::api::v1beta1::SidecarSet;
use crate::gates::FeatureGates;
use crate::kit::WebhookCaches;
use crate::kit::admission::Surroundings;
use crate::kit::json::merge;
use crate::test_admission::admit_whole;

/// A cluster with the namespaces `a`, which has the label `team: blue`, and `b`, a revision, and these sets.
fn surroundings(sets: Vec<Value>) -> Surroundings {
    let namespaces = json!([{ "metadata": { "name": "a", "labels": { "team": "blue", "kubernetes.io/metadata.name": "a" } } },
        { "metadata": { "name": "b", "labels": { "kubernetes.io/metadata.name": "b" } } }]);
    let namespaces: Vec<Namespace> = serde_json::from_value(namespaces).unwrap();
    let revision: ControllerRevision = serde_json::from_value(json!({
        "metadata": { "name": "s-1", "namespace": "kruise-system" }, "revision": 1,
        "data": { "spec": { "$patch": "replace", "containers": [{ "name": "old", "image": "i" }] } },
    }))
    .unwrap();
    let sets: Vec<SidecarSet> = sets
        .into_iter()
        .map(|set| serde_json::from_value(set).unwrap())
        .collect();
    Surroundings {
        namespace: "kruise-system".to_owned(),
        caches: WebhookCaches::default()
            .with(namespaces)
            .with(vec![revision])
            .with(sets),
        ..Surroundings::alone(FeatureGates::default())
    }
}

fn set(name: &str, spec: Value) -> Value {
    let mut set = json!({ "metadata": { "name": name },
        "spec": { "selector": { "matchLabels": { "app": "x" } }, "containers": [{ "name": name, "image": "i" }] } });
    merge(&mut set["spec"], spec);
    set
}

/// The containers of a new pod in a namespace, or the text of its refusal.
async fn containers(namespace: &str, pod: Value, sets: Vec<Value>) -> Result<String, String> {
    let mut object = json!({ "metadata": { "namespace": namespace, "labels": { "app": "x" } },
        "spec": { "containers": [{ "name": "main", "image": "i" }] } });
    merge(&mut object, pod);
    let webhooks: Vec<_> = crate::injection::WEBHOOKS.iter().collect();
    let admitted = admit_whole(&webhooks, &object, None, &surroundings(sets)).await;
    let pod =
        admitted.map_err(|(code, text)| format!("{code} {}", text.rsplit_once("request: ").unwrap().1))?;
    let list = pod["spec"]["containers"].as_array().unwrap();
    let names: Vec<&str> = list
        .iter()
        .map(|container| container["name"].as_str().unwrap())
        .collect();
    Ok(names.join(" "))
}

fn in_namespaces(selector: Value) -> Value {
    json!({ "namespaceSelector": selector })
}

fn by_name(name: &str) -> Value {
    in_namespaces(json!({ "matchLabels": { "kubernetes.io/metadata.name": name } }))
}

#[rstest]
#[case::everywhere("a", json!({}), vec![set("s", json!({}))], Ok("main s"))]
#[case::no_set("a", json!({}), vec![], Ok("main"))]
#[case::other_labels("a", json!({ "metadata": { "labels": { "app": "y" } } }), vec![set("s", json!({}))], Ok("main"))]
#[case::its_namespace("a", json!({}), vec![set("s", by_name("a"))], Ok("main s"))]
#[case::another_namespace("b", json!({}), vec![set("s", by_name("a"))], Ok("main"))]
#[case::labels_of_its_namespace("a", json!({}), vec![set("s", in_namespaces(json!({ "matchLabels": { "team": "blue" } })))], Ok("main s"))]
#[case::other_labels_of_its_namespace("b", json!({}), vec![set("s", in_namespaces(json!({ "matchLabels": { "team": "blue" } })))], Ok("main"))]
#[case::unknown_namespace("c", json!({}), vec![set("s", in_namespaces(json!({})))], Ok("main"))]
#[case::those_that_name_the_namespace_first("a", json!({}), vec![set("all", json!({})), set("named", by_name("a"))], Ok("main named all"))]
#[case::paused("a", json!({}), vec![set("s", json!({ "injectionStrategy": { "paused": true } }))], Ok("main"))]
#[case::a_pod_that_is_over("a", json!({ "status": { "phase": "Succeeded" } }), vec![set("s", json!({}))], Ok("main"))]
#[case::a_pod_that_is_deleted("a", json!({ "metadata": { "deletionTimestamp": "1970-01-01T00:00:00Z" } }), vec![set("s", json!({}))], Ok("main"))]
#[case::a_revision("a", json!({}), vec![set("s", json!({ "injectionStrategy": { "revision": { "revisionName": "s-1" } } }))], Ok("main old"))]
#[case::a_revision_that_is_missing("a", json!({}), vec![set("s", json!({ "injectionStrategy": { "revision": { "revisionName": "s-2" } } }))],
    Err("500 ControllerRevision.apps \"s-2\" not found"))]
#[case::a_version_that_is_missing("a", json!({}), vec![set("s", json!({ "injectionStrategy": { "revision": { "customVersion": "v" } } }))],
    Err("500 ControllerRevision.apps \"s\" not found"))]
#[case::part_of_the_pods_gets_the_latest("a", json!({}), vec![set("s", json!({ "updateStrategy": { "partition": "0%" },
    "injectionStrategy": { "revision": { "revisionName": "s-1", "policy": "Partial" } } }))], Ok("main s"))]
#[case::a_selector_that_is_none("a", json!({}), vec![set("s", json!({ "selector": { "matchExpressions": [{ "key": "a", "operator": "In" }] } }))],
    Err("500 the selector is not valid"))]
#[tokio::test]
async fn new_pods(
    #[case] namespace: &str,
    #[case] pod: Value,
    #[case] sets: Vec<Value>,
    #[case] want: Result<&str, &str>,
) {
    let got = containers(namespace, pod, sets).await;
    assert_eq!(got.as_deref().map_err(String::as_str), want);
}

/// The API server serves other kinds of the version alone, and is asked for nothing else.
#[tokio::test]
async fn without_the_definition_pods_get_no_sidecars() {
    let service = tower::service_fn(|request: hyper::Request<Body>| {
        assert_eq!(request.uri().path(), "/apis/apps.kruise.io/v1beta1");
        let resource = json!({ "name": "statefulsets", "singularName": "", "namespaced": true, "kind": "K", "verbs": [] });
        let list = json!({ "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "apps.kruise.io/v1beta1", "resources": [resource] });
        std::future::ready(hyper::Response::builder().body(Body::from(list.to_string().into_bytes())))
    });
    let surroundings = Surroundings {
        client: Some(Client::new(service, "default")),
        ..Surroundings::alone(
            FeatureGates::parse("PodUnavailableBudgetDeleteGate=false,WorkloadSpread=false").unwrap(),
        )
    };
    let pod = json!({ "metadata": { "namespace": "a" }, "spec": { "containers": [{ "name": "main", "image": "i" }] } });
    let webhooks: Vec<_> = crate::injection::WEBHOOKS.iter().collect();
    assert_eq!(
        admit_whole(&webhooks, &pod, None, &surroundings).await,
        Ok(pod.clone())
    );
}
