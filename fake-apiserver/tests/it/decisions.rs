//! Decisions of kube-scheduler for many pods and nodes, and ours (`fixtures/scheduler`).

use std::time::Duration;

use fake_apiserver::Cluster;
use fake_apiserver::nodes::Scheduler;
use shared_json::{Value, json};

use crate::support::{request, send, simulate};

const ROWS: &str = include_str!("../../../fixtures/scheduler/decisions.jsonl");
const MERGE: &str = "application/merge-patch+json";
const PODS: &str = "/api/v1/namespaces/sched/pods";
const CLAIMS: &str = "/apis/resource.k8s.io/v1/namespaces/sched/resourceclaims";
const EVENTS: &str = "/api/v1/namespaces/sched/events";

fn path(kind: &str) -> &'static str {
    match kind {
        "PersistentVolumeClaim" => "/api/v1/namespaces/sched/persistentvolumeclaims",
        "PersistentVolume" => "/api/v1/persistentvolumes",
        "StorageClass" => "/apis/storage.k8s.io/v1/storageclasses",
        "PriorityClass" => "/apis/scheduling.k8s.io/v1/priorityclasses",
        "CSINode" => "/apis/storage.k8s.io/v1/csinodes",
        "PodDisruptionBudget" => "/apis/policy/v1/namespaces/sched/poddisruptionbudgets",
        "ResourceClaim" => CLAIMS,
        "ResourceSlice" => "/apis/resource.k8s.io/v1/resourceslices",
        "DeviceClass" => "/apis/resource.k8s.io/v1/deviceclasses",
        "Service" => "/api/v1/namespaces/sched/services",
        other => panic!("a path for {other}"),
    }
}

async fn create(cluster: &Cluster, path: &str, object: &Value) {
    let (code, answer) = request(cluster, "POST", path, object).await;
    assert_eq!(code, 201, "{path} {answer}");
}

async fn patch(cluster: &Cluster, path: String, change: Value) {
    let (code, answer) = send(cluster, "PATCH", &path, MERGE, &change).await;
    assert_eq!(code, 200, "{path} {answer}");
}

fn pod(name: &str, row: &Value) -> Value {
    let mut spec = json!({"containers": [{"name": "c", "image": "i:1"}]});
    spec.merge(&row["spec"]);
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": row["labels"]}, "spec": spec})
}

/// The nodes of a row (`a` and `b` in zone `z1`, `c` in `z2`, changed as the row says), its objects and its pods.
async fn set_up(cluster: &Cluster, row: &Value) {
    for (name, labels) in [("sched", json!({})), ("other", json!({"team": "x"}))] {
        let namespace = json!({"metadata": {"name": name, "labels": labels}});
        create(cluster, "/api/v1/namespaces", &namespace).await;
        let account = json!({"metadata": {"name": "default"}});
        let accounts = format!("/api/v1/namespaces/{name}/serviceaccounts");
        create(cluster, &accounts, &account).await;
    }
    for (name, zone) in [("a", "z1"), ("b", "z1"), ("c", "z2")] {
        if row["without"]
            .as_array()
            .is_some_and(|without| without.contains(&json!(name)))
        {
            continue;
        }
        let mut node = json!({
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": zone}},
            "status": {"allocatable": {"cpu": "2", "memory": "4Gi", "pods": "10"}},
        });
        if row["nodes"][name].is_object() {
            node.merge(&row["nodes"][name]);
        }
        node["status"]["capacity"] = node["status"]["allocatable"].clone();
        create(cluster, "/api/v1/nodes", &node).await;
        // What the server adds to new nodes goes.
        let taints = json!({"spec": {"taints": node["spec"]["taints"]}});
        patch(cluster, format!("/api/v1/nodes/{name}"), taints).await;
    }
    for object in row["objects"].as_array().into_iter().flatten() {
        let path = path(object["kind"].as_str().unwrap_or_default());
        create(cluster, path, object).await;
        if object["status"].is_object() {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            patch(
                cluster,
                format!("{path}/{name}/status"),
                json!({"status": object["status"]}),
            )
            .await;
        }
    }
    let pods = row["pods"].as_object().into_iter().flatten();
    let (waiting, placed): (Vec<_>, Vec<_>) = pods.partition(|(_, pod)| pod["spec"]["nodeName"].is_null());
    for (name, other) in placed.into_iter().chain(waiting) {
        let pods = format!(
            "/api/v1/namespaces/{}/pods",
            other["ns"].as_str().unwrap_or("sched")
        );
        create(cluster, &pods, &pod(name, other)).await;
        if other["status"].is_object() {
            patch(
                cluster,
                format!("{pods}/{name}/status"),
                json!({"status": other["status"]}),
            )
            .await;
        }
        if other["deleted"] == true {
            request(cluster, "DELETE", &format!("{pods}/{name}"), &Value::Null).await;
        }
        if other["spec"]["nodeName"].is_null() {
            cluster.run_for(Duration::from_secs(1)).await;
        }
    }
}

/// The status of a claim of devices without random values and times.
fn devices(status: &Value) -> Value {
    let mut out = if status.is_object() {
        status.clone()
    } else {
        json!({})
    };
    if let Some(time) = out.pointer_mut("/allocation/allocationTimestamp") {
        *time = json!("TIME");
    }
    let results = out
        .pointer_mut("/allocation/devices/results")
        .and_then(Value::as_array_mut);
    for result in results.into_iter().flatten() {
        if let Some(share) = result.get_mut("shareID") {
            *share = json!("ID");
        }
    }
    let reserved = out.pointer_mut("/reservedFor").and_then(Value::as_array_mut);
    for one in reserved.into_iter().flatten() {
        if one["name"] == "p" || one["name"] == "q" {
            one["uid"] = json!("UID");
        }
    }
    out
}

/// The name of a claim for extended resources without its random part.
fn short(name: &str) -> &str {
    let made = ["p-extended-resources-", "q-extended-resources-"];
    made.into_iter()
        .find(|start| name.starts_with(start))
        .unwrap_or(name)
}

/// The claim for the pod's extended resources: the pod's status of it, and the claim.
fn extended(status: &Value, claim: &Value) -> Value {
    let mut status = status.clone();
    let name = status["resourceClaimName"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    status["resourceClaimName"] = json!(short(&name));
    let metadata = &claim["metadata"];
    let mut owners = metadata["ownerReferences"].clone();
    for owner in owners.as_array_mut().into_iter().flatten() {
        owner.as_object_mut().expect("an owner").remove("uid");
    }
    json!({
        "status": status, "spec": claim["spec"], "annotations": metadata["annotations"], "generateName": metadata["generateName"],
        "finalizers": metadata["finalizers"], "owners": owners,
    })
}

/// The outcome of the pod `p`, in the form of the recordings.
async fn found(cluster: &Cluster, row: &Value) -> Value {
    let (_, p) = request(cluster, "GET", &format!("{PODS}/p"), &Value::Null).await;
    let mut out = json!({});
    for (name, pointer) in [
        ("node", "/spec/nodeName"),
        ("nominated", "/status/nominatedNodeName"),
    ] {
        if let Some(value) = p.pointer(pointer) {
            out[name] = value.clone();
        }
    }
    let text = |value: &Value, fields: &[&str]| {
        let words = fields
            .iter()
            .map(|field| value[field].as_str().unwrap_or_default());
        words.collect::<Vec<_>>().join(" ").trim().to_owned()
    };
    let conditions = p["status"]["conditions"].as_array().into_iter().flatten();
    for condition in conditions.filter(|condition| condition["type"] == "PodScheduled") {
        out["condition"] = json!(text(condition, &["status", "reason", "message"]));
    }
    let (_, events) = request(cluster, "GET", EVENTS, &Value::Null).await;
    let mut lines = Vec::new();
    for event in events["items"].as_array().into_iter().flatten() {
        let about = event["involvedObject"]["name"].as_str().unwrap_or_default();
        let is_other = !row["pods"][about].is_null();
        if event["reportingComponent"] != "default-scheduler" || (is_other && event["reason"] != "Preempted")
        {
            continue;
        }
        let message = event["message"].as_str().unwrap_or_default();
        let message = match message
            .strip_prefix("Preempted by pod ")
            .and_then(|rest| rest.split_once(' '))
        {
            Some((_, rest)) => format!("Preempted by pod UID {rest}"),
            None => message.to_owned(),
        };
        lines.push(format!(
            "{about} {}: {message}",
            text(event, &["type", "reason", "action"])
        ));
    }
    lines.sort();
    lines.dedup();
    out["events"] = json!(lines);
    let (_, pods) = request(cluster, "GET", PODS, &Value::Null).await;
    let mut victims = Vec::new();
    for pod in pods["items"].as_array().into_iter().flatten() {
        let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
        for condition in conditions.filter(|condition| condition["type"] == "DisruptionTarget") {
            let deleted = pod["metadata"]
                .get("deletionTimestamp")
                .map_or("", |_| " deleted");
            victims.push(format!(
                "{} {}: {}{deleted}",
                pod["metadata"]["name"].as_str().unwrap_or_default(),
                text(condition, &["status", "reason"]),
                text(condition, &["message"]),
            ));
        }
    }
    let (_, claims) = request(cluster, "GET", CLAIMS, &Value::Null).await;
    for claim in claims["items"].as_array().into_iter().flatten() {
        let name = claim["metadata"]["name"].as_str().unwrap_or_default();
        out["devices"][short(name)] = devices(&claim["status"]);
        let made = &p["status"]["extendedResourceClaimStatus"];
        if made["resourceClaimName"] == name {
            out["extended"] = extended(made, claim);
        }
    }
    victims.sort();
    if !victims.is_empty() {
        out["victims"] = json!(victims);
    }
    out
}

#[test]
fn pods_go_where_kube_scheduler_sent_them() {
    let mut wrong = Vec::new();
    let slot = &mut wrong;
    simulate(move || async move {
        for line in ROWS.lines() {
            let row: Value = shared_json::from_str(line).expect("a row");
            let name = row["name"].as_str().unwrap_or_default();
            let cluster = Cluster::builder()
                .nodes(0)
                .controllers(false)
                .start()
                .await
                .expect("a cluster");
            let scheduler = tokio::spawn(Scheduler::new(cluster.client(), cluster.clock()).run());
            set_up(&cluster, &row).await;
            cluster.run_for(Duration::from_millis(100)).await;
            let p = pod("p", &row);
            create(&cluster, PODS, &p).await;
            cluster.run_for(Duration::from_millis(500)).await;
            let is = found(&cluster, &row).await;
            let mut expected = row["found"].clone();
            expected.as_object_mut().expect("what was found").remove("claims");
            if is != expected {
                slot.push(format!("{name}\n  is {is}\n  should be {expected}"));
            }
            scheduler.abort();
        }
    });
    assert!(wrong.is_empty(), "{} rows\n{}", wrong.len(), wrong.join("\n"));
}

/// The real one gives up with an error at such a pod: it would tell in the pod's status of a claim for extended resources, and the
/// node has those itself.
#[test]
fn claims_beside_a_resource_of_the_node() {
    let class = json!({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"},
        "spec": {"extendedResourceName": "example.com/gpu"}});
    let slice = json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "s"}, "spec": {
        "driver": "d.io", "nodeName": "a", "pool": {"name": "a", "generation": 1, "resourceSliceCount": 1}, "devices": [{"name": "d"}]}});
    let claim = json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "mine"},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}});
    let row = json!({
        "nodes": {"a": {"status": {"allocatable": {"example.com/gpu": "2"}}}},
        "objects": [class, slice, claim],
        "spec": {
            "containers": [{"name": "c", "image": "i:1", "resources": {
                "requests": {"example.com/gpu": "1"}, "limits": {"example.com/gpu": "1"}}}],
            "resourceClaims": [{"name": "x", "resourceClaimName": "mine"}],
        },
    });
    simulate(move || async move {
        let builder = Cluster::builder().nodes(0).controllers(false);
        let cluster = builder.start().await.expect("a cluster");
        tokio::spawn(Scheduler::new(cluster.client(), cluster.clock()).run());
        set_up(&cluster, &row).await;
        create(&cluster, PODS, &pod("p", &row)).await;
        cluster.run_for(Duration::from_secs(1)).await;
        let is = found(&cluster, &row).await;
        assert_eq!(is["node"], "a", "{is}");
        assert_eq!(
            is["devices"]["mine"]["allocation"]["devices"]["results"][0]["device"],
            "d"
        );
        assert!(is["extended"].is_null());
    });
}
