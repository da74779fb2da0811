//! Services and the addresses of their pods.

use fake_apiserver::Cluster;
use shared_json::{Array, Value, json};

use crate::support::{request, simulate};
use crate::workloads::{CORE, deploy, get, items, post, run, template};

#[test]
fn services_know_their_pods() {
    simulate(|| async {
        let cluster = Cluster::builder().start().await.expect("a cluster");
        let service = json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"},
            "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]},
        });
        post(&cluster, &format!("{CORE}/services"), &service).await;
        deploy(&cluster, json!({"replicas": 2})).await;
        run(&cluster, 5).await;
        let slices = items(&get(&cluster, "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices?labelSelector=kubernetes.io%2Fservice-name%3Ds").await);
        assert_eq!(slices.len(), 1, "{slices:#?}");
        assert_eq!(slices[0]["endpoints"].as_array().map(Array::len), Some(2));
        assert_eq!(slices[0]["ports"][0]["port"], 8080);
        let endpoints = get(&cluster, &format!("{CORE}/endpoints/s")).await;
        assert_eq!(
            endpoints["subsets"][0]["addresses"].as_array().map(Array::len),
            Some(2),
            "{endpoints:#}"
        );
    });
}

#[test]
fn endpoints_have_a_thousand_addresses_at_most() {
    simulate(|| async {
        let cluster = Cluster::builder().nodes(10).start().await.expect("a cluster");
        let pods = format!("{CORE}/pods");
        for index in 0..=1000 {
            let mut pod = template();
            pod["metadata"]["name"] = json!(format!("p{index}"));
            post(&cluster, &pods, &pod).await;
        }
        // They are not told one by one.
        run(&cluster, 60).await;
        let service = json!({
            "metadata": {"name": "s"}, "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]},
        });
        post(&cluster, &format!("{CORE}/services"), &service).await;
        for (gone, told) in [(0, json!("truncated")), (1, Value::Null)] {
            for index in 0..gone {
                request(&cluster, "DELETE", &format!("{pods}/p{index}"), &Value::Null).await;
            }
            run(&cluster, 60).await;
            let endpoints = get(&cluster, &format!("{CORE}/endpoints/s")).await;
            let addresses = endpoints["subsets"][0]["addresses"].as_array();
            assert_eq!(addresses.map(Array::len), Some(1000), "{gone}");
            let annotations = &endpoints["metadata"]["annotations"];
            assert_eq!(
                annotations["endpoints.kubernetes.io/over-capacity"], told,
                "{gone}"
            );
        }
    });
}
