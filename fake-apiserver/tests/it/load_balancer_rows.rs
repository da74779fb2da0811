//! Services of type `LoadBalancer`: the work of a cloud provider's controller, a row each.

use std::time::Duration;

use fake_apiserver::{Cluster, ControllerSet};
use rstest::rstest;
use shared_json::{Value, json};

use crate::support::{request, send, simulate, with};

const SERVICES: &str = "/api/v1/namespaces/default/services";

/// Makes a Service of these fields, changes its spec if asked, deletes it if asked. Gives its addresses, its finalizers and the reasons
/// of its events, or `gone`.
fn live(controllers: &str, spec: Value, change: Value, delete: bool) -> (String, String) {
    let controllers: ControllerSet = controllers.parse().expect("controllers");
    let mut found = None;
    let slot = &mut found;
    simulate(move || async move {
        let cluster = Cluster::builder().nodes(0).controller_set(controllers);
        let cluster = cluster.start().await.expect("a cluster");
        let spec = with(
            json!({"type": "LoadBalancer", "ports": [{"port": 80}], "selector": {"app": "web"}}),
            spec,
        );
        let service =
            json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": spec});
        let (code, answer) = request(&cluster, "POST", SERVICES, &service).await;
        assert_eq!(code, 201, "{answer}");
        cluster.run_for(Duration::from_secs(2)).await;
        let path = format!("{SERVICES}/web");
        if !change.is_null() {
            let patch = json!({"spec": change});
            let (code, answer) = send(&cluster, "PATCH", &path, "application/merge-patch+json", &patch).await;
            assert_eq!(code, 200, "{answer}");
            cluster.run_for(Duration::from_secs(2)).await;
        }
        if delete {
            request(&cluster, "DELETE", &path, &Value::Null).await;
            cluster.run_for(Duration::from_secs(2)).await;
        }
        let (code, service) = request(&cluster, "GET", &path, &Value::Null).await;
        let state = if code == 404 {
            "gone".to_owned()
        } else {
            format!(
                "{} {}",
                service["status"]["loadBalancer"], service["metadata"]["finalizers"]
            )
        };
        let (_, events) = request(&cluster, "GET", "/api/v1/namespaces/default/events", &Value::Null).await;
        let events = events["items"].as_array().into_iter().flatten();
        let mut reasons: Vec<&str> = events
            .filter(|event| event["source"]["component"] == "service-controller")
            .filter_map(|event| event["reason"].as_str())
            .collect();
        reasons.sort_unstable();
        *slot = Some((state, reasons.join(" ")));
    });
    found.expect("a life")
}

const WITH: &str = "all,service-lb-controller";
const NOTHING: &str = "{} null";
const ONE: &str =
    r#"{"ingress":[{"ip":"198.18.0.1","ipMode":"VIP"}]} ["service.kubernetes.io/load-balancer-cleanup"]"#;
const ENSURED: &str = "EnsuredLoadBalancer EnsuringLoadBalancer";
const DELETED: &str = "DeletedLoadBalancer DeletingLoadBalancer EnsuredLoadBalancer EnsuringLoadBalancer";

#[rstest]
#[case::given(WITH, json!({}), Value::Null, false, ONE, ENSURED)]
#[case::not_by_default("all", json!({}), Value::Null, false, NOTHING, "")]
#[case::of_another_class(WITH, json!({"loadBalancerClass": "example.com/mine"}), Value::Null, false, NOTHING, "")]
#[case::no_load_balancer(WITH, json!({"type": "NodePort"}), Value::Null, false, NOTHING, "")]
#[case::turned_into_one(WITH, json!({"type": "ClusterIP"}), json!({"type": "LoadBalancer"}), false, ONE, ENSURED)]
#[case::turned_into_another(WITH, json!({}), json!({"type": "NodePort"}), false, NOTHING, DELETED)]
#[case::changed(WITH, json!({}), json!({"externalTrafficPolicy": "Local"}), false, ONE, ENSURED)]
#[case::deleted(WITH, json!({}), Value::Null, true, "gone", DELETED)]
fn services(
    #[case] controllers: &str,
    #[case] spec: Value,
    #[case] change: Value,
    #[case] delete: bool,
    #[case] state: &str,
    #[case] events: &str,
) {
    assert_eq!(
        live(controllers, spec, change, delete),
        (state.to_owned(), events.to_owned())
    );
}
