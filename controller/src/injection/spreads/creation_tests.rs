//! Subsets under many creations at once, and the fields that are filled into a new pod.

use futures::future::join_all;
use jiff::Timestamp;
use rstest::rstest;

use super::super::version::IGNORED;
use super::*;
use crate::gates::FeatureGates;
use crate::kit::WebhookCaches;
use crate::kit::admission::Surroundings;
use crate::test_admission::admit_whole;
use crate::test_server::OneObject;

fn object(kind: &str, subsets: &Value) -> Value {
    json!({
        "apiVersion": "apps.kruise.io/v1alpha1", "kind": "WorkloadSpread",
        "metadata": { "name": "ws", "namespace": "default", "uid": "u", "resourceVersion": "1" },
        "spec": { "targetRef": { "apiVersion": "apps.kruise.io/v1alpha1", "kind": kind, "name": "web" }, "subsets": subsets },
    })
}

async fn chosen(spread: &WorkloadSpread, number: usize, surroundings: &Surroundings) -> Option<String> {
    let request = Request {
        uid: "u",
        operation: "CREATE",
        subresource: "",
        name: "",
        namespace: "default",
        user: "",
        dry_run: false,
        object: None,
        old: None,
        surroundings,
    };
    let name = format!("p{number}");
    let moving = Moving {
        name: &name,
        version: IGNORED,
        replicas: 0,
        seed: Seed(0).fork(&name),
        now: Timestamp::UNIX_EPOCH,
    };
    let lookup = None;
    let chosen = choose(spread, moving, &request, (&WhiteList::none(), lookup)).await;
    chosen.ok().flatten().map(|chosen| chosen.subset)
}

/// Thirty-two pods come at once: no subset gets more than its limit, and each pod that got a place is recorded.
#[rstest]
#[case::one_process(1)]
#[case::two_processes(2)]
#[tokio::test(start_paused = true)]
async fn no_subset_is_overrun(#[case] processes: usize) {
    let server = OneObject::new(object(
        "CloneSet",
        &json!([{ "name": "a", "maxReplicas": 5 }, { "name": "b", "maxReplicas": 20 }]),
    ));
    let spread: WorkloadSpread = server.object();
    let process = || Surroundings {
        client: Some(server.client()),
        ..Surroundings::alone(FeatureGates::default())
    };
    let processes: Vec<Surroundings> = (0..processes).map(|_| process()).collect();
    let pods = (0..32).map(|number| chosen(&spread, number, &processes[number % processes.len()]));
    let placed = join_all(pods).await;
    let in_subset = |name: &str| {
        placed
            .iter()
            .filter(|subset| subset.as_deref() == Some(name))
            .count()
    };
    let status = server.object::<WorkloadSpread>().status.unwrap();
    for (at, (name, limit)) in [("a", 5), ("b", 20)].into_iter().enumerate() {
        let subset = &status.versioned_subset_statuses[IGNORED][at];
        let count = in_subset(name);
        assert!(count <= limit, "{count} in {name}");
        assert_eq!(subset.creating_pods.len(), count, "each is recorded");
        assert_eq!(usize::try_from(subset.missing_replicas).unwrap(), limit - count);
    }
    // In one process all take turns, so that every place is taken.
    if processes.len() == 1 {
        assert_eq!((in_subset("a"), in_subset("b")), (5, 20));
    }
}

/// A new pod of the CloneSet `web`, or of another, passes through all webhooks of pods; its subset and its labels.
#[rstest]
#[case::of_the_workload("CloneSet", "web", "p", Some(r#"{"name":"ws","subset":"a"}"#))]
#[case::of_another_workload("CloneSet", "db", "p", None)]
#[case::of_an_unknown_kind("Game", "web", "p", None)]
#[case::with_an_ordinal("StatefulSet", "web", "web-1", Some(r#"{"name":"ws","subset":"b"}"#))]
#[tokio::test]
async fn new_pods(#[case] kind: &str, #[case] owner: &str, #[case] name: &str, #[case] want: Option<&str>) {
    let patch = json!({ "metadata": { "labels": { "subset": "a" } } });
    let subsets = json!([{ "name": "a", "maxReplicas": 1, "patch": patch }, { "name": "b" }]);
    let mut spread: WorkloadSpread = serde_json::from_value(object(kind, &subsets)).unwrap();
    // The request has no namespace.
    spread.metadata.namespace = None;
    let surroundings = Surroundings {
        caches: WebhookCaches::default().with(vec![spread]),
        ..Surroundings::alone(FeatureGates::default())
    };
    let reference = json!({ "apiVersion": "apps.kruise.io/v1alpha1", "kind": kind, "name": owner, "uid": "o", "controller": true });
    let pod = json!({ "metadata": { "name": name, "ownerReferences": [reference], "annotations": {}, "labels": {} },
        "spec": { "containers": [] } });
    let webhooks: Vec<_> = crate::injection::WEBHOOKS.iter().take(1).collect();
    let filled = admit_whole(&webhooks, &pod, None, &surroundings).await.unwrap();
    let annotation = filled["metadata"]["annotations"].get(labels::MATCHED_SPREAD);
    assert_eq!(annotation.and_then(Value::as_str), want);
    let is_in_a = want.is_some_and(|text| text.contains("\"a\""));
    assert_eq!(filled["metadata"]["labels"].get("subset").is_some(), is_in_a);
    assert_eq!(filled["spec"].get("affinity").is_some(), want.is_some());
}
