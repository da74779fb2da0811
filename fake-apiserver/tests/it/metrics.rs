//! The server's metrics.

use fake_apiserver::Cluster;
use http::{HeaderMap, Request, StatusCode};
use kube::client::Body;
use shared_json::json;

use crate::served;
use crate::support::{request, simulate};

#[test]
fn objects_are_counted_by_resource() {
    simulate(|| async {
        let cluster = Cluster::builder()
            .nodes(0)
            .controllers(false)
            .start()
            .await
            .expect("a cluster");
        let events = "/apis/events.k8s.io/v1/namespaces/default/events";
        let event = json!({
            "metadata": {"name": "e"}, "regarding": {"kind": "Pod", "name": "p", "namespace": "default"}, "reason": "R", "action": "A",
            "type": "Normal", "eventTime": "2026-01-02T03:04:05.000000Z", "reportingController": "c", "reportingInstance": "i",
        });
        assert_eq!(request(&cluster, "POST", events, &event).await.0, 201);
        let crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let crd = json!({
            "metadata": {"name": "things.example.com"},
            "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"}, "versions": [
                {"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}},
            ]},
        });
        assert_eq!(request(&cluster, "POST", crds, &crd).await.0, 201);
        let asked = http::Request::get("/metrics")
            .body(Vec::new())
            .expect("a request");
        let metrics = cluster.client().request_text(asked).await.expect("metrics");
        for line in [
            "# TYPE apiserver_resource_objects gauge",
            "apiserver_resource_objects{group=\"\",resource=\"events\"} 1",
            "apiserver_resource_objects{group=\"apps\",resource=\"deployments\"} 0",
            "apiserver_resource_objects{group=\"apiextensions.k8s.io\",resource=\"customresourcedefinitions\"} 1",
            "apiserver_resource_objects{group=\"example.com\",resource=\"things\"} 0",
        ] {
            assert!(
                metrics.lines().any(|has| has == line),
                "{line} is not in\n{metrics}"
            );
        }
        // What is stored nowhere, or under another group, is not counted.
        for group in ["authorization.k8s.io", "authentication.k8s.io", "events.k8s.io"] {
            let name = format!("group=\"{group}\"");
            assert!(!metrics.contains(&name), "{group} is in\n{metrics}");
        }
        // As many as the real server has, and one.
        let counts = metrics
            .lines()
            .filter(|line| line.starts_with("apiserver_resource_objects{"));
        assert_eq!(counts.count(), 58 + 1);
    });
}

async fn headers(client: &kube::Client, request: Request<Body>) -> (StatusCode, HeaderMap) {
    let answer = client.send(request).await.expect("an answer");
    (answer.status(), answer.headers().clone())
}

fn get(path: &str) -> http::request::Builder {
    Request::get(path)
}

#[tokio::test]
async fn requests_over_sockets_are_counted() {
    let served = served::start(false).await;
    let client = served.client().await;
    for path in [
        "/api/v1/namespaces/default/pods",
        "/api/v1/namespaces/default/pods/none",
    ] {
        headers(&client, get(path).body(Body::empty()).expect("a request")).await;
    }
    let asked = Request::get("/metrics").body(Vec::new()).expect("a request");
    let metrics = client.request_text(asked).await.expect("metrics");
    let labels = |scope: &str, verb: &str| {
        format!(
            "component=\"apiserver\",dry_run=\"\",group=\"\",resource=\"pods\",scope=\"{scope}\",subresource=\"\",verb=\"{verb}\",version=\"v1\""
        )
    };
    for line in [
        format!(
            "apiserver_request_total{{code=\"200\",{}}} 1",
            labels("namespace", "LIST")
        ),
        format!(
            "apiserver_request_total{{code=\"404\",{}}} 1",
            labels("resource", "GET")
        ),
        format!(
            "apiserver_request_duration_seconds_count{{{}}} 1",
            labels("resource", "GET")
        ),
    ] {
        assert!(
            metrics.lines().any(|has| has == line),
            "{line} is not in\n{metrics}"
        );
    }
}

#[tokio::test]
async fn answers_over_sockets_name_the_schema_and_the_level_of_their_request() {
    let cluster = Cluster::builder()
        .nodes(0)
        .controllers(false)
        .system_objects(true);
    let served = served::start_cluster(false, cluster).await;
    let client = served.client().await;
    let (_, headers) = headers(
        &client,
        get("/api/v1/namespaces").body(Body::empty()).expect("a request"),
    )
    .await;
    // Administrators are exempt.
    for (header, kind) in [
        ("x-kubernetes-pf-flowschema-uid", "flowschemas"),
        ("x-kubernetes-pf-prioritylevel-uid", "prioritylevelconfigurations"),
    ] {
        let path = format!("/apis/flowcontrol.apiserver.k8s.io/v1/{kind}/exempt");
        let (_, exempt) = request(served.cluster(), "GET", &path, &json!({})).await;
        let named = headers.get(header).and_then(|uid| uid.to_str().ok());
        assert!(named.is_some(), "{header}");
        assert_eq!(named, exempt["metadata"]["uid"].as_str(), "{header}");
    }
}

#[tokio::test]
async fn aggregated_discovery_has_a_tag_by_which_it_need_not_be_sent_again() {
    const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let served = served::start(false).await;
    let client = served.client().await;
    let ask = |tag: &str| {
        let asked = get("/apis")
            .header("accept", AGGREGATED)
            .header("if-none-match", tag);
        headers(&client, asked.body(Body::empty()).expect("a request"))
    };
    let (code, first) = ask("").await;
    assert_eq!(
        (code, &first["vary"], &first["cache-control"]),
        (
            StatusCode::OK,
            &"Accept".parse().expect("a value"),
            &"public".parse().expect("a value")
        )
    );
    let tag = first["etag"].to_str().expect("a tag");
    assert_eq!(tag.len(), 2 + 128, "{tag}");
    assert_eq!(ask(tag).await.0, StatusCode::NOT_MODIFIED);
    assert_eq!(ask("\"another\"").await.0, StatusCode::OK);
}

/// Each priority level has its part of 600 seats, and a FlowSchema says whether its level is there.
#[tokio::test]
async fn priority_levels_have_seats() {
    let served = served::start(true).await;
    let client = served.client().await;
    let schema = json!({
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "FlowSchema", "metadata": {"name": "mine"},
        "spec": {"matchingPrecedence": 900, "priorityLevelConfiguration": {"name": "my-level"}},
    });
    let level = json!({
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "PriorityLevelConfiguration", "metadata": {"name": "my-level"},
        "spec": {"type": "Limited", "limited": {"nominalConcurrencyShares": 245, "limitResponse": {"type": "Reject"}}},
    });
    let base = "/apis/flowcontrol.apiserver.k8s.io/v1";
    let schemas = format!("{base}/flowschemas");
    assert_eq!(served::ask(&client, "POST", &schemas, schema, &[]).await.0, 201);
    let mut told = Vec::new();
    for expected in ["True", "False"] {
        let mut found = shared_json::Value::Null;
        for _ in 0..3000 {
            let path = format!("{schemas}/mine");
            let (_, object) = served::ask(&client, "GET", &path, shared_json::Value::Null, &[]).await;
            found = object["status"]["conditions"][0]["status"].clone();
            if found == json!(expected) {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        told.push(found);
        let levels = format!("{base}/prioritylevelconfigurations");
        served::ask(&client, "POST", &levels, level.clone(), &[]).await;
    }
    assert_eq!(told, [json!("True"), json!("False")]);
    let asked = Request::get("/metrics").body(Vec::new()).expect("a request");
    let metrics = client.request_text(asked).await.expect("metrics");
    // The server's own levels have 245 shares together.
    let line = "apiserver_flowcontrol_nominal_limit_seats{priority_level=\"my-level\"} 300";
    assert!(metrics.lines().any(|has| has == line), "{metrics}");
}
