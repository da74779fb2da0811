//! A namespace with one of every built-in object in it, and how it goes.

use std::collections::BTreeMap;
use std::time::Duration;

use shared_json::{Value, json};

use super::served::start_with_nodes;

/// One valid object of each kind, by API version, plural and kind. The test says if a kind is missing.
fn one_of_every_kind() -> Vec<(&'static str, &'static str, Value)> {
    let pod = json!({"containers": [{"name": "c", "image": "nginx"}]});
    let labels = json!({"app": "one"});
    let template = json!({"metadata": {"labels": labels}, "spec": pod});
    let selector = json!({"matchLabels": labels});
    let job = json!({"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "nginx"}]}}});
    let about = json!({"kind": "Pod", "name": "one", "namespace": "doomed"});
    let rule = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]);
    let requests = json!({"requests": [{"name": "r", "exactly": {"deviceClassName": "d"}}]});
    let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "one"});
    vec![
        ("v1/configmaps", "ConfigMap", json!({"data": {"a": "b"}})),
        ("v1/endpoints", "Endpoints", json!({})),
        ("v1/events", "Event", json!({"involvedObject": about})),
        (
            "v1/limitranges",
            "LimitRange",
            json!({"spec": {"limits": [{"type": "PersistentVolumeClaim", "max": {"storage": "9Gi"}}]}}),
        ),
        (
            "v1/persistentvolumeclaims",
            "PersistentVolumeClaim",
            json!({"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}),
        ),
        ("v1/pods", "Pod", json!({"spec": pod})),
        ("v1/podtemplates", "PodTemplate", json!({"template": template})),
        (
            "v1/replicationcontrollers",
            "ReplicationController",
            json!({"spec": {"selector": labels, "template": template}}),
        ),
        (
            "v1/resourcequotas",
            "ResourceQuota",
            json!({"spec": {"hard": {"pods": "50"}}}),
        ),
        ("v1/secrets", "Secret", json!({"stringData": {"a": "b"}})),
        ("v1/serviceaccounts", "ServiceAccount", json!({})),
        (
            "v1/services",
            "Service",
            json!({"spec": {"selector": labels, "ports": [{"port": 80}]}}),
        ),
        (
            "apps/v1/controllerrevisions",
            "ControllerRevision",
            json!({"revision": 1, "data": {"a": 1}}),
        ),
        (
            "apps/v1/daemonsets",
            "DaemonSet",
            json!({"spec": {"selector": selector, "template": template}}),
        ),
        (
            "apps/v1/deployments",
            "Deployment",
            json!({"spec": {"selector": selector, "template": template}}),
        ),
        (
            "apps/v1/replicasets",
            "ReplicaSet",
            json!({"spec": {"selector": selector, "template": template}}),
        ),
        (
            "apps/v1/statefulsets",
            "StatefulSet",
            json!({"spec": {"serviceName": "one", "selector": selector, "template": template}}),
        ),
        (
            "autoscaling/v2/horizontalpodautoscalers",
            "HorizontalPodAutoscaler",
            json!({"spec": {"maxReplicas": 2, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "one"}}}),
        ),
        (
            "batch/v1/cronjobs",
            "CronJob",
            json!({"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": job}}}),
        ),
        ("batch/v1/jobs", "Job", json!({"spec": job})),
        (
            "coordination.k8s.io/v1/leases",
            "Lease",
            json!({"spec": {"holderIdentity": "me"}}),
        ),
        (
            "discovery.k8s.io/v1/endpointslices",
            "EndpointSlice",
            json!({"addressType": "IPv4", "endpoints": [], "ports": []}),
        ),
        (
            "networking.k8s.io/v1/ingresses",
            "Ingress",
            json!({"spec": {"defaultBackend": {"service": {"name": "one", "port": {"number": 80}}}}}),
        ),
        (
            "networking.k8s.io/v1/networkpolicies",
            "NetworkPolicy",
            json!({"spec": {"podSelector": {}}}),
        ),
        (
            "policy/v1/poddisruptionbudgets",
            "PodDisruptionBudget",
            json!({"spec": {"minAvailable": 1, "selector": selector}}),
        ),
        (
            "rbac.authorization.k8s.io/v1/roles",
            "Role",
            json!({"rules": rule}),
        ),
        (
            "rbac.authorization.k8s.io/v1/rolebindings",
            "RoleBinding",
            json!({"roleRef": role, "subjects": []}),
        ),
        (
            "resource.k8s.io/v1/resourceclaims",
            "ResourceClaim",
            json!({"spec": {"devices": requests}}),
        ),
        (
            "resource.k8s.io/v1/resourceclaimtemplates",
            "ResourceClaimTemplate",
            json!({"spec": {"spec": {"devices": requests}}}),
        ),
        (
            "storage.k8s.io/v1/csistoragecapacities",
            "CSIStorageCapacity",
            json!({"storageClassName": "s"}),
        ),
    ]
}

#[tokio::test]
async fn a_namespace_goes_with_one_of_every_kind_in_it() {
    let served = start_with_nodes(1).await;
    let client = served.client().await;
    let ask = async |method: &str, path: &str, body: Value| {
        let body = if body.is_null() {
            Vec::new()
        } else {
            body.to_string().into_bytes()
        };
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", "application/json")
            .body(body)
            .expect("a request");
        client.request::<Value>(request).await
    };
    let root = |id: &str| {
        let (version, plural) = id.rsplit_once('/').expect("a resource");
        let group = if version.contains('/') { "apis" } else { "api" };
        format!("/{group}/{version}/namespaces/doomed/{plural}")
    };
    let namespace = json!({"metadata": {"name": "doomed"}});
    ask("POST", "/api/v1/namespaces", namespace)
        .await
        .expect("a namespace");
    let mut made: BTreeMap<&str, &str> = BTreeMap::new();
    for (id, kind, mut object) in one_of_every_kind() {
        object["metadata"] = json!({"name": "one"});
        let answer = ask("POST", &root(id), object).await;
        let answer = answer.unwrap_or_else(|error| panic!("{id}: {error}"));
        assert_eq!(answer["kind"].as_str(), Some(kind));
        made.insert(id.rsplit('/').next().unwrap_or_default(), id);
    }
    // The table above is whole: everything that can be made in a namespace is in it, whatever its version.
    let mut missing = Vec::new();
    for group in ask("GET", "/apis", Value::Null).await.expect("groups")["groups"]
        .as_array()
        .expect("a list")
    {
        for version in group["versions"].as_array().expect("versions") {
            let version = version["groupVersion"].as_str().expect("a version");
            missing.extend(kinds_of(
                &ask("GET", &format!("/apis/{version}"), Value::Null)
                    .await
                    .expect("resources"),
            ));
        }
    }
    missing.extend(kinds_of(
        &ask("GET", "/api/v1", Value::Null).await.expect("resources"),
    ));
    missing.retain(|plural| !made.contains_key(plural.as_str()));
    assert_eq!(
        missing,
        Vec::<String>::new(),
        "kinds without an object in this test"
    );

    ask("DELETE", "/api/v1/namespaces/doomed", Value::Null)
        .await
        .expect("to delete");
    let mut left = Value::Null;
    for _ in 0..600 {
        match ask("GET", "/api/v1/namespaces/doomed", Value::Null).await {
            Ok(namespace) => left = namespace,
            Err(_) => {
                left = Value::Null;
                break;
            }
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(left.is_null(), "still there: {left:#}");
    for id in made.values() {
        let left = ask("GET", &root(id), Value::Null).await.expect("a list");
        assert_eq!(left["items"], json!([]), "{id}");
    }
}

/// The plurals of the resources that can be created and deleted in a namespace, by a list of resources.
fn kinds_of(list: &Value) -> Vec<String> {
    let can = |resource: &Value, verb: &str| {
        let verbs = resource["verbs"].as_array();
        verbs.is_some_and(|verbs| verbs.iter().any(|known| known == verb))
    };
    let resources = list["resources"].as_array().into_iter().flatten();
    resources
        .filter(|resource| {
            resource["namespaced"] == json!(true) && can(resource, "create") && can(resource, "delete")
        })
        .filter_map(|resource| resource["name"].as_str())
        .filter(|name| !name.contains('/'))
        .map(str::to_owned)
        .collect()
}
