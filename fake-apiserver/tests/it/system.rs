//! The objects that a server makes for itself.

use std::time::Duration;

use fake_apiserver::Cluster;
use rstest::rstest;
use shared_json::{Value, json};

use crate::support::{request, send, simulate};

const FLOW_CONTROL: &str = "/apis/flowcontrol.apiserver.k8s.io/v1";

async fn cluster() -> Cluster {
    let cluster = Cluster::builder().nodes(0).system_objects(true).start();
    cluster.await.expect("a cluster")
}

/// Objects of flow control that are deleted come back, and so does what mandatory ones say.
#[rstest]
#[case::a_mandatory_one("flowschemas/catch-all")]
#[case::a_suggested_one("flowschemas/global-default")]
#[case::a_level("prioritylevelconfigurations/workload-low")]
fn deleted_objects_of_flow_control_come_back(#[case] name: &'static str) {
    simulate(move || async move {
        let cluster = cluster().await;
        let path = format!("{FLOW_CONTROL}/{name}");
        let (_, before) = request(&cluster, "GET", &path, &json!({})).await;
        assert_eq!(request(&cluster, "DELETE", &path, &json!({})).await.0, 200);
        assert_eq!(request(&cluster, "GET", &path, &json!({})).await.0, 404);
        cluster.run_for(Duration::from_secs(61)).await;
        let (code, after) = request(&cluster, "GET", &path, &json!({})).await;
        assert_eq!((code, &after["spec"]), (200, &before["spec"]));
    });
}

/// A change of the specification, with or without the annotation that leaves it to the users: what there is a minute later.
#[rstest]
#[case::of_the_server("true", 9)]
#[case::of_its_users("false", 7)]
fn the_annotation_says_whose_a_specification_is(#[case] automatic: &'static str, #[case] expected: i64) {
    simulate(move || async move {
        let cluster = cluster().await;
        let path = format!("{FLOW_CONTROL}/flowschemas/service-accounts");
        let (_, before) = request(&cluster, "GET", &path, &json!({})).await;
        let original = before["spec"]["matchingPrecedence"].as_i64();
        let change = json!({
            "metadata": {"annotations": {"apf.kubernetes.io/autoupdate-spec": automatic}}, "spec": {"matchingPrecedence": 7},
        });
        let changed = send(&cluster, "PATCH", &path, "application/merge-patch+json", &change).await;
        assert_eq!(changed.0, 200, "{}", changed.1);
        cluster.run_for(Duration::from_secs(61)).await;
        let (_, after) = request(&cluster, "GET", &path, &json!({})).await;
        let expected = if expected == 7 { Some(7) } else { original };
        assert_eq!(after["spec"]["matchingPrecedence"].as_i64(), expected);
    });
}

#[test]
fn the_service_of_the_server_has_endpoints() {
    simulate(|| async {
        let cluster = cluster().await;
        cluster.run_for(Duration::from_secs(120)).await;
        let at = |path: &'static str| request(&cluster, "GET", path, &Value::Null);
        let (_, endpoints) = at("/api/v1/namespaces/default/endpoints/kubernetes").await;
        let path = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
        let (_, slices) = at(path).await;
        assert_eq!(
            slices["items"].as_array().map(|items| items.len()),
            Some(1),
            "{slices}"
        );
        let slice = &slices["items"][0];
        assert_eq!(slice["metadata"]["name"], "kubernetes");
        assert_eq!(
            slice["endpoints"][0]["addresses"][0],
            endpoints["subsets"][0]["addresses"][0]["ip"]
        );
        assert_eq!(
            endpoints["subsets"][0]["ports"],
            json!([{"name": "https", "port": 6443, "protocol": "TCP"}])
        );
    });
}

#[test]
fn administrators_are_told_once_that_they_may_do_everything() {
    simulate(|| async {
        let cluster = cluster().await;
        let path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
        let (code, answer) =
            request(&cluster, "POST", path, &json!({"spec": {"namespace": "default"}})).await;
        assert_eq!(code, 201, "{answer}");
        for (kind, rule) in [
            (
                "resourceRules",
                json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}),
            ),
            (
                "nonResourceRules",
                json!({"verbs": ["*"], "nonResourceURLs": ["*"]}),
            ),
        ] {
            let rules = answer["status"][kind].as_array().expect("rules");
            assert_eq!(
                rules.iter().filter(|other| **other == rule).count(),
                1,
                "{answer}"
            );
        }
    });
}
