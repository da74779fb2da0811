//! Features of a whole cluster that this one lacks so far.

use std::time::Duration;

use fake_apiserver::Cluster;
use shared_json::{Value, json};

use crate::support::{request, simulate};

#[test]
fn nobody_attaches() {
    simulate(|| async {
        let cluster = Cluster::builder().start().await.expect("a cluster");
        cluster.run_for(Duration::from_secs(5)).await;
        let path = "/apis/storage.k8s.io/v1/volumeattachments";
        let (_, attachments) = request(&cluster, "GET", path, &Value::Null).await;
        assert_eq!(attachments["items"], json!([]));
    });
}

/// The real server puts `exempt` and `catch-all` back, and reads certificate requests.
#[test]
fn what_is_taken_as_it_comes() {
    simulate(|| async {
        let cluster = Cluster::builder().nodes(0).start().await.expect("a cluster");
        let exempt = json!({
            "apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "PriorityLevelConfiguration", "metadata": {"name": "exempt"},
            "spec": {"type": "Exempt", "exempt": {"nominalConcurrencyShares": 7, "lendablePercent": 3}},
        });
        let path = "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations";
        let (code, answer) = request(&cluster, "POST", path, &exempt).await;
        assert_eq!(code, 201, "{answer}");
        let pem = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KQUFBQQotLS0tLUVORCBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0K";
        let csr = json!({
            "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"name": "r"},
            "spec": {"signerName": "example.com/s", "usages": ["client auth"], "request": pem},
        });
        let path = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
        let (code, answer) = request(&cluster, "POST", path, &csr).await;
        assert_eq!(code, 201, "{answer}");
    });
}

/// The real authorizer lets a node list services, too, whatever its cluster role says.
#[test]
fn nodes_may_what_their_role_says_besides() {
    simulate(|| async {
        let cluster = Cluster::builder().start().await.expect("a cluster");
        let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
        for (verb, resource, name, allowed) in
            [("get", "nodes", "node1", true), ("list", "services", "", false)]
        {
            let review = json!({
                "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
                "spec": {"user": "system:node:node1", "groups": ["system:nodes"],
                    "resourceAttributes": {"verb": verb, "resource": resource, "name": name}},
            });
            let (code, answer) = request(&cluster, "POST", path, &review).await;
            assert_eq!(
                (code, &answer["status"]["allowed"]),
                (201, &json!(allowed)),
                "{answer}"
            );
        }
    });
}

/// The real server keeps `1e3`.
#[test]
fn amounts_that_are_numbers_lose_their_exponent() {
    simulate(|| async {
        let cluster = Cluster::builder().nodes(0).start().await.expect("a cluster");
        let pod = r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers":
            [{"name": "c", "image": "i", "resources": {"limits": {"cpu": 1e3}}}]}}"#;
        let post = http::Request::post("/api/v1/namespaces/default/pods")
            .header("content-type", "application/json")
            .body(pod.as_bytes().to_vec())
            .expect("a request");
        let made: Value = cluster.client().request(post).await.expect("made");
        assert_eq!(made["spec"]["containers"][0]["resources"]["limits"]["cpu"], "1k");
    });
}

/// The real server writes that a flow's level is missing, wants a namespace where one is left empty,
/// and keeps a service's policy while it has another type.
#[test]
fn what_is_not_kept_or_told() {
    simulate(|| async {
        let cluster = Cluster::builder().nodes(0).start().await.expect("a cluster");
        let flow = json!({
            "apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "FlowSchema", "metadata": {"name": "f"},
            "spec": {"priorityLevelConfiguration": {"name": "nowhere"}},
        });
        let path = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas";
        let (code, answer) = request(&cluster, "POST", path, &flow).await;
        assert_eq!(code, 201, "{answer}");
        cluster.run_for(Duration::from_secs(60)).await;
        let (_, flow) = request(&cluster, "GET", &format!("{path}/f"), &Value::Null).await;
        assert_eq!(flow["status"], json!({}), "{flow}");

        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}});
        let (code, answer) = request(&cluster, "POST", "/api/v1/namespaces//configmaps", &map).await;
        assert_eq!(code, 404, "{answer}");

        let service = json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"},
            "spec": {"type": "ExternalName", "externalName": "a.example", "internalTrafficPolicy": "Local", "ports": [{"port": 80}]},
        });
        let path = "/api/v1/namespaces/default/services";
        let (code, mut service) = request(&cluster, "POST", path, &service).await;
        assert_eq!(code, 201, "{service}");
        service["spec"] = json!({"type": "ClusterIP", "ports": [{"port": 80}]});
        let (code, service) = request(&cluster, "PUT", &format!("{path}/s"), &service).await;
        assert_eq!(
            (code, &service["spec"]["internalTrafficPolicy"]),
            (200, &json!("Cluster")),
            "{service}"
        );
    });
}

/// The real server redirects the first, calls the version of the second `1.36`, and refuses the third for another reason.
#[test]
fn what_is_beside_the_objects() {
    simulate(|| async {
        let cluster = Cluster::builder().nodes(0).start().await.expect("a cluster");
        let (code, answer) = request(&cluster, "GET", "/debug/pprof", &Value::Null).await;
        assert_eq!(code, 404, "{answer}");
        let (code, document) = request(&cluster, "GET", "/openapi/v3/version", &Value::Null).await;
        assert_eq!((code, &document["info"]["version"]), (200, &json!("v1.36.2")));
        let path = "/api/v1/namespaces/default/configmaps/x";
        let (code, answer) = request(&cluster, "DELETE", path, &json!("x")).await;
        assert_eq!(code, 400, "{answer}");
    });
}

/// The real server answers 504.
#[test]
fn requests_take_the_time_they_take() {
    simulate(|| async {
        let cluster = Cluster::builder().nodes(0).start().await.expect("a cluster");
        let (code, answer) = request(&cluster, "GET", "/api/v1/pods?timeout=1us", &Value::Null).await;
        assert_eq!(code, 200, "{answer}");
    });
}
