//! Workloads: the objects that the built-in controllers make of them, on virtual time.

use std::time::Duration;

use fake_apiserver::Cluster;
use shared_json::{Array, Value, json};

use crate::support::{request, send, simulate};

const APPS: &str = "/apis/apps/v1/namespaces/default";
pub(crate) const CORE: &str = "/api/v1/namespaces/default";
const BATCH: &str = "/apis/batch/v1/namespaces/default";

pub(crate) fn template() -> Value {
    json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "a", "image": "web:1"}]}})
}

fn workload(kind: &str, spec: Value) -> Value {
    let mut object = json!({
        "apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "w"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template()},
    });
    for (field, value) in spec.as_object().expect("a spec") {
        object["spec"][field] = value.clone();
    }
    object
}

pub(crate) async fn post(cluster: &Cluster, path: &str, object: &Value) -> Value {
    let (code, answer) = request(cluster, "POST", path, object).await;
    assert_eq!(code, 201, "{answer}");
    answer
}

/// Makes the Deployment `w` of pods of the label `app=web`.
pub(crate) async fn deploy(cluster: &Cluster, spec: Value) {
    let deployment = workload("Deployment", spec);
    post(cluster, &format!("{APPS}/deployments"), &deployment).await;
}

pub(crate) async fn get(cluster: &Cluster, path: &str) -> Value {
    request(cluster, "GET", path, &Value::Null).await.1
}

async fn merge(cluster: &Cluster, path: &str, patch: Value) {
    let (code, answer) = send(cluster, "PATCH", path, "application/merge-patch+json", &patch).await;
    assert_eq!(code, 200, "{answer}");
}

pub(crate) fn items(list: &Value) -> Array {
    list["items"].as_array().cloned().unwrap_or_default()
}

/// Reason and message of the events about objects of a kind, in order.
async fn events(cluster: &Cluster, kind: &str) -> Vec<String> {
    let mut all = items(&get(cluster, &format!("{CORE}/events")).await);
    all.retain(|event| event["involvedObject"]["kind"] == kind);
    all.sort_by_key(|event| {
        let name = event["metadata"]["name"].as_str().unwrap_or_default();
        name.rsplit('.').next().unwrap_or_default().to_owned()
    });
    let text = |event: &Value, field: &str| event[field].as_str().unwrap_or_default().to_owned();
    all.iter()
        .map(|event| format!("{}: {}", text(event, "reason"), text(event, "message")))
        .collect()
}

pub(crate) async fn run(cluster: &Cluster, seconds: u64) {
    cluster.run_for(Duration::from_secs(seconds)).await;
}

#[test]
fn a_deployment_rolls_out_and_back() {
    simulate(|| async {
        let cluster = Cluster::builder().start().await.expect("a cluster");
        deploy(&cluster, json!({"replicas": 4})).await;
        run(&cluster, 5).await;
        let deployment = get(&cluster, &format!("{APPS}/deployments/w")).await;
        assert_eq!(deployment["status"]["availableReplicas"], 4, "{deployment:#}");
        assert_eq!(
            deployment["metadata"]["annotations"]["deployment.kubernetes.io/revision"],
            "1"
        );
        assert_eq!(deployment["metadata"]["generation"], 1);
        let first = items(&get(&cluster, &format!("{APPS}/replicasets")).await);
        assert_eq!(first.len(), 1);

        let image = |image: &str| json!({"spec": {"template": {"spec": {"containers": [{"name": "a", "image": image}]}}}});
        merge(&cluster, &format!("{APPS}/deployments/w"), image("web:2")).await;
        run(&cluster, 20).await;
        let deployment = get(&cluster, &format!("{APPS}/deployments/w")).await;
        assert_eq!(deployment["status"]["updatedReplicas"], 4, "{deployment:#}");
        assert_eq!(deployment["status"]["replicas"], 4);
        assert_eq!(
            deployment["metadata"]["annotations"]["deployment.kubernetes.io/revision"],
            "2"
        );
        let conditions: Vec<String> = items(&json!({"items": deployment["status"]["conditions"]}))
            .iter()
            .map(|condition| {
                format!(
                    "{}={} {}",
                    condition["type"], condition["status"], condition["reason"]
                )
                .replace('"', "")
            })
            .collect();
        assert_eq!(
            conditions,
            [
                "Available=True MinimumReplicasAvailable",
                "Progressing=True NewReplicaSetAvailable"
            ]
        );
        let sets = items(&get(&cluster, &format!("{APPS}/replicasets")).await);
        let old = first[0]["metadata"]["name"].as_str().unwrap_or_default();
        let sizes: Vec<(bool, i64)> = sets
            .iter()
            .map(|set| {
                (
                    set["metadata"]["name"] == old,
                    set["spec"]["replicas"].as_i64().unwrap_or_default(),
                )
            })
            .collect();
        assert!(
            sizes.contains(&(true, 0)) && sizes.contains(&(false, 4)),
            "{sizes:?}"
        );
        let said = events(&cluster, "Deployment").await;
        assert_eq!(
            said[0],
            format!("ScalingReplicaSet: Scaled up replica set {old} from 0 to 4")
        );
        assert!(
            said.contains(&format!(
                "ScalingReplicaSet: Scaled down replica set {old} from 4 to 3"
            )),
            "{said:#?}"
        );

        // The old template again: its set comes back, as the newest revision.
        merge(&cluster, &format!("{APPS}/deployments/w"), image("web:1")).await;
        run(&cluster, 20).await;
        let set = get(&cluster, &format!("{APPS}/replicasets/{old}")).await;
        assert_eq!(
            set["metadata"]["annotations"]["deployment.kubernetes.io/revision"],
            "3"
        );
        assert_eq!(
            set["metadata"]["annotations"]["deployment.kubernetes.io/revision-history"],
            "1"
        );
        assert_eq!(set["status"]["availableReplicas"], 4);

        merge(
            &cluster,
            &format!("{APPS}/deployments/w"),
            json!({"spec": {"replicas": 1}}),
        )
        .await;
        run(&cluster, 5).await;
        assert_eq!(items(&get(&cluster, &format!("{CORE}/pods")).await).len(), 1);
    });
}

#[test]
fn a_deployment_that_cannot_progress_says_so() {
    simulate(|| async {
        let cluster = Cluster::builder().start().await.expect("a cluster");
        let mut object = workload(
            "Deployment",
            json!({"replicas": 1, "progressDeadlineSeconds": 20}),
        );
        object["spec"]["template"]["spec"]["containers"][0]["command"] = json!(["sh", "-c", "exit 1"]);
        object["spec"]["template"]["spec"]["containers"][0]["image"] = json!("busybox:1");
        object["spec"]["minReadySeconds"] = json!(5);
        post(&cluster, &format!("{APPS}/deployments"), &object).await;
        run(&cluster, 120).await;
        let deployment = get(&cluster, &format!("{APPS}/deployments/w")).await;
        let reasons: Vec<&Value> = deployment["status"]["conditions"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|c| &c["reason"])
            .collect();
        assert!(
            reasons.contains(&&json!("ProgressDeadlineExceeded")),
            "{reasons:?}"
        );
    });
}

#[test]
fn a_deployment_that_recreates_has_no_two_revisions_at_once() {
    simulate(|| async {
        let cluster = Cluster::builder().start().await.expect("a cluster");
        let object = workload(
            "Deployment",
            json!({"replicas": 2, "strategy": {"type": "Recreate"}}),
        );
        post(&cluster, &format!("{APPS}/deployments"), &object).await;
        run(&cluster, 5).await;
        let image =
            json!({"spec": {"template": {"spec": {"containers": [{"name": "a", "image": "web:2"}]}}}});
        merge(&cluster, &format!("{APPS}/deployments/w"), image).await;
        for _ in 0..40 {
            cluster.run_for(Duration::from_millis(250)).await;
            let mut pods = items(&get(&cluster, &format!("{CORE}/pods")).await);
            pods.retain(|pod| pod["status"]["phase"] != "Succeeded");
            let mut images: Vec<String> = pods
                .iter()
                .map(|pod| pod["spec"]["containers"][0]["image"].to_string())
                .collect();
            images.dedup();
            assert!(images.len() <= 1, "{images:?}");
        }
        assert_eq!(
            get(&cluster, &format!("{APPS}/deployments/w")).await["status"]["readyReplicas"],
            2
        );
    });
}

#[test]
fn a_stateful_set_goes_one_by_one() {
    simulate(|| async {
        let cluster = Cluster::builder()
            .object(json!({
                "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "standard",
                "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}, "provisioner": "example.com/disk",
            }))
            .start()
            .await
            .expect("a cluster");
        let claims = json!([{"metadata": {"name": "data"}, "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}]);
        let object = workload(
            "StatefulSet",
            json!({"replicas": 3, "serviceName": "w", "volumeClaimTemplates": claims}),
        );
        post(&cluster, &format!("{APPS}/statefulsets"), &object).await;
        run(&cluster, 15).await;
        let said = events(&cluster, "StatefulSet").await;
        assert_eq!(
            said[..3],
            [
                "SuccessfulCreate: Create Claim data-w-0 Pod w-0 in StatefulSet w success",
                "SuccessfulCreate: Create Pod w-0 in StatefulSet w successful",
                "SuccessfulCreate: Create Claim data-w-1 Pod w-1 in StatefulSet w success",
            ]
        );
        let set = get(&cluster, &format!("{APPS}/statefulsets/w")).await;
        assert_eq!(
            (&set["status"]["readyReplicas"], &set["status"]["currentReplicas"]),
            (&json!(3), &json!(3)),
            "{set:#}"
        );
        let claim = get(&cluster, &format!("{CORE}/persistentvolumeclaims/data-w-2")).await;
        assert_eq!(claim["status"]["phase"], "Bound", "{claim:#}");

        let image =
            json!({"spec": {"template": {"spec": {"containers": [{"name": "a", "image": "web:2"}]}}}});
        merge(&cluster, &format!("{APPS}/statefulsets/w"), image).await;
        run(&cluster, 30).await;
        let set = get(&cluster, &format!("{APPS}/statefulsets/w")).await;
        assert_eq!(
            set["status"]["currentRevision"], set["status"]["updateRevision"],
            "{set:#}"
        );
        let deleted: Vec<String> = events(&cluster, "StatefulSet")
            .await
            .into_iter()
            .filter(|line| line.starts_with("SuccessfulDelete"))
            .collect();
        assert_eq!(
            deleted,
            [
                "SuccessfulDelete: Delete Pod w-2 in StatefulSet w successful",
                "SuccessfulDelete: Delete Pod w-1 in StatefulSet w successful",
                "SuccessfulDelete: Delete Pod w-0 in StatefulSet w successful",
            ]
        );
        merge(
            &cluster,
            &format!("{APPS}/statefulsets/w"),
            json!({"spec": {"replicas": 1}}),
        )
        .await;
        run(&cluster, 10).await;
        assert_eq!(items(&get(&cluster, &format!("{CORE}/pods")).await).len(), 1);
        // Claims stay, unless the set says that they go with the pods that are too many.
        assert_eq!(
            items(&get(&cluster, &format!("{CORE}/persistentvolumeclaims")).await).len(),
            3
        );
        let policy = json!({"whenDeleted": "Retain", "whenScaled": "Delete"});
        for spec in [
            json!({"replicas": 3, "persistentVolumeClaimRetentionPolicy": policy}),
            json!({"replicas": 2}),
        ] {
            let path = format!("{APPS}/statefulsets/w");
            merge(&cluster, &path, json!({"spec": spec})).await;
            run(&cluster, 60).await;
        }
        let claims = items(&get(&cluster, &format!("{CORE}/persistentvolumeclaims")).await);
        let names: Vec<&Value> = claims.iter().map(|claim| &claim["metadata"]["name"]).collect();
        assert_eq!(names, ["data-w-0", "data-w-1"]);
    });
}

/// A claim that goes with the pod before is waited for: it is none of the next one's.
#[test]
fn a_pod_waits_for_the_claim_of_the_one_before() {
    simulate(|| async {
        let cluster = Cluster::builder().start().await.expect("a cluster");
        let claims = json!([{"metadata": {"name": "data"}, "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "none"}}]);
        let policy = json!({"whenDeleted": "Retain", "whenScaled": "Delete"});
        let object = workload(
            "StatefulSet",
            json!({"replicas": 2, "serviceName": "w", "volumeClaimTemplates": claims, "podManagementPolicy": "Parallel",
                "persistentVolumeClaimRetentionPolicy": policy}),
        );
        post(&cluster, &format!("{APPS}/statefulsets"), &object).await;
        run(&cluster, 10).await;
        let claim = format!("{CORE}/persistentvolumeclaims/data-w-1");
        let held = json!({"metadata": {"finalizers": ["example.com/held"]}});
        merge(&cluster, &claim, held).await;
        let path = format!("{APPS}/statefulsets/w");
        merge(&cluster, &path, json!({"spec": {"replicas": 1}})).await;
        run(&cluster, 60).await;
        merge(&cluster, &path, json!({"spec": {"replicas": 2}})).await;
        run(&cluster, 60).await;
        let pods = format!("{CORE}/pods");
        assert_eq!(items(&get(&cluster, &pods).await).len(), 1);
        let before = get(&cluster, &claim).await["metadata"]["uid"].clone();
        let said = events(&cluster, "StatefulSet").await;
        assert!(
            !said.iter().any(|line| line.starts_with("FailedCreate")),
            "{said:?}"
        );
        merge(&cluster, &claim, json!({"metadata": {"finalizers": null}})).await;
        run(&cluster, 10).await;
        assert_eq!(items(&get(&cluster, &pods).await).len(), 2);
        assert_ne!(get(&cluster, &claim).await["metadata"]["uid"], before);
    });
}

#[test]
fn a_daemon_set_is_on_every_node() {
    simulate(|| async {
        let cluster = Cluster::builder().nodes(3).start().await.expect("a cluster");
        post(
            &cluster,
            &format!("{APPS}/daemonsets"),
            &workload("DaemonSet", json!({})),
        )
        .await;
        run(&cluster, 5).await;
        let mut nodes: Vec<String> = items(&get(&cluster, &format!("{CORE}/pods")).await)
            .iter()
            .map(|pod| pod["spec"]["nodeName"].as_str().unwrap_or_default().to_owned())
            .collect();
        nodes.sort();
        assert_eq!(nodes, ["node1", "node2", "node3"]);
        let status = get(&cluster, &format!("{APPS}/daemonsets/w")).await["status"].clone();
        assert_eq!(
            (&status["desiredNumberScheduled"], &status["numberAvailable"]),
            (&json!(3), &json!(3))
        );
        let image =
            json!({"spec": {"template": {"spec": {"containers": [{"name": "a", "image": "web:2"}]}}}});
        merge(&cluster, &format!("{APPS}/daemonsets/w"), image).await;
        run(&cluster, 20).await;
        let status = get(&cluster, &format!("{APPS}/daemonsets/w")).await["status"].clone();
        assert_eq!(
            (&status["updatedNumberScheduled"], &status["numberAvailable"]),
            (&json!(3), &json!(3))
        );
    });
}

fn job(spec: Value, script: &str) -> Value {
    let mut object = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [
            {"name": "a", "image": "busybox:1", "command": ["sh", "-c", script]},
        ]}}},
    });
    for (field, value) in spec.as_object().expect("a spec") {
        object["spec"][field] = value.clone();
    }
    object
}

#[test]
fn jobs_complete_and_fail() {
    simulate(|| async {
        let cluster = Cluster::builder().start().await.expect("a cluster");
        post(
            &cluster,
            &format!("{BATCH}/jobs"),
            &job(json!({"completions": 3, "parallelism": 2}), "sleep 1"),
        )
        .await;
        run(&cluster, 20).await;
        let done = get(&cluster, &format!("{BATCH}/jobs/j")).await;
        assert_eq!(
            (&done["status"]["succeeded"], &done["status"]["active"]),
            (&json!(3), &Value::Null),
            "{done:#}"
        );
        let kinds: Vec<&Value> = done["status"]["conditions"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|c| &c["type"])
            .collect();
        assert_eq!(kinds, ["SuccessCriteriaMet", "Complete"]);
        assert!(
            events(&cluster, "Job")
                .await
                .contains(&"Completed: Job completed".to_owned())
        );

        let mut failing = job(
            json!({"backoffLimit": 1, "ttlSecondsAfterFinished": 30}),
            "exit 1",
        );
        failing["metadata"]["name"] = json!("f");
        post(&cluster, &format!("{BATCH}/jobs"), &failing).await;
        run(&cluster, 35).await;
        let failed = get(&cluster, &format!("{BATCH}/jobs/f")).await;
        assert_eq!(failed["status"]["failed"], 2, "{failed:#}");
        assert!(
            events(&cluster, "Job")
                .await
                .contains(&"BackoffLimitExceeded: Job has reached the specified backoff limit".to_owned())
        );
        run(&cluster, 40).await;
        assert_eq!(get(&cluster, &format!("{BATCH}/jobs/f")).await["code"], 404);

        let mut indexed = job(
            json!({"completions": 3, "parallelism": 3, "completionMode": "Indexed"}),
            "exit 0",
        );
        indexed["metadata"]["name"] = json!("i");
        post(&cluster, &format!("{BATCH}/jobs"), &indexed).await;
        run(&cluster, 15).await;
        assert_eq!(
            get(&cluster, &format!("{BATCH}/jobs/i")).await["status"]["completedIndexes"],
            "0-2"
        );

        // One index fails for good after one more try; the others are not troubled by it.
        let mut limited = job(
            json!({"completions": 3, "parallelism": 3, "completionMode": "Indexed", "backoffLimitPerIndex": 1}),
            "exit $((JOB_COMPLETION_INDEX == 1))",
        );
        limited["metadata"]["name"] = json!("l");
        post(&cluster, &format!("{BATCH}/jobs"), &limited).await;
        run(&cluster, 40).await;
        let ended = get(&cluster, &format!("{BATCH}/jobs/l")).await;
        assert_eq!(
            (
                &ended["status"]["completedIndexes"],
                &ended["status"]["failedIndexes"]
            ),
            (&json!("0,2"), &json!("1")),
            "{ended:#}"
        );
        assert_eq!(ended["status"]["failed"], 2, "{ended:#}");
        let said = events(&cluster, "Job").await;
        assert!(
            said.contains(&"FailedIndexes: Job has failed indexes".to_owned()),
            "{said:#?}"
        );
    });
}

#[test]
fn a_cron_job_makes_jobs_by_the_clock() {
    simulate(|| async {
        let cluster = Cluster::builder().start().await.expect("a cluster");
        let template = job(json!({}), "exit 0")["spec"].clone();
        let cron = json!({
            "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "c"},
            "spec": {"schedule": "*/5 * * * *", "successfulJobsHistoryLimit": 2, "jobTemplate": {"spec": template}},
        });
        post(&cluster, &format!("{BATCH}/cronjobs"), &cron).await;
        run(&cluster, 21 * 60).await;
        let jobs = items(&get(&cluster, &format!("{BATCH}/jobs")).await);
        assert_eq!(jobs.len(), 2, "{jobs:#?}");
        let said = events(&cluster, "CronJob").await;
        assert_eq!(
            said.iter()
                .filter(|line| line.starts_with("SuccessfulCreate"))
                .count(),
            4,
            "{said:#?}"
        );
        assert_eq!(
            said.iter()
                .filter(|line| line.starts_with("SawCompletedJob"))
                .count(),
            4,
            "{said:#?}"
        );
    });
}

#[test]
fn pods_leave_a_node_that_fails() {
    simulate(|| async {
        let cluster = Cluster::builder().nodes(2).start().await.expect("a cluster");
        deploy(&cluster, json!({"replicas": 2})).await;
        run(&cluster, 5).await;
        let node = get(&cluster, "/api/v1/nodes/node1").await;
        let mut conditions = node["status"]["conditions"].clone();
        for condition in conditions
            .as_array_mut()
            .into_iter()
            .flatten()
            .filter(|c| c["type"] == "Ready")
        {
            condition["status"] = json!("Unknown");
        }
        merge(
            &cluster,
            "/api/v1/nodes/node1/status",
            json!({"status": {"conditions": conditions}}),
        )
        .await;
        run(&cluster, 10).await;
        let node = get(&cluster, "/api/v1/nodes/node1").await;
        assert_eq!(
            node["spec"]["taints"].as_array().map(Array::len),
            Some(2),
            "{node:#}"
        );
        // Pods tolerate that for five minutes.
        run(&cluster, 280).await;
        let on = |pods: &Value, name: &str| {
            items(pods)
                .iter()
                .filter(|pod| pod["spec"]["nodeName"] == name)
                .count()
        };
        let pods = get(&cluster, &format!("{CORE}/pods")).await;
        assert_eq!((on(&pods, "node1"), on(&pods, "node2")), (1, 1));
        run(&cluster, 60).await;
        let pods = get(&cluster, &format!("{CORE}/pods")).await;
        assert_eq!(on(&pods, "node2"), 2, "{pods:#}");
    });
}

#[test]
fn a_pod_that_fits_nowhere_says_why_and_drives_others_away() {
    simulate(|| async {
        let cluster = Cluster::builder().nodes(1).start().await.expect("a cluster");
        let pod = |name: &str, cpu: &str, class: &str| {
            json!({
                "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
                "spec": {"priorityClassName": class, "terminationGracePeriodSeconds": 1, "containers": [
                    {"name": "a", "image": "web:1", "resources": {"requests": {"cpu": cpu}}}]},
            })
        };
        for (name, value) in [("low", 1), ("high", 1000)] {
            let class = json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value});
            post(&cluster, "/apis/scheduling.k8s.io/v1/priorityclasses", &class).await;
        }
        post(&cluster, &format!("{CORE}/pods"), &pod("big", "9", "low")).await;
        post(&cluster, &format!("{CORE}/pods"), &pod("one", "6", "low")).await;
        post(&cluster, &format!("{CORE}/pods"), &pod("two", "6", "low")).await;
        run(&cluster, 3).await;
        let said = events(&cluster, "Pod").await;
        let failed = |why: &str, help: &str| {
            format!(
                "FailedScheduling: 0/1 nodes are available: {why}. no new claims to deallocate, preemption: 0/1 nodes are available: {help}."
            )
        };
        assert!(
            said.contains(&failed(
                "1 Insufficient cpu",
                "1 Preemption is not helpful for scheduling"
            )),
            "{said:#?}"
        );
        assert!(
            said.contains(&failed(
                "1 Insufficient cpu",
                "1 No preemption victims found for incoming pod"
            )),
            "{said:#?}"
        );
        let two = get(&cluster, &format!("{CORE}/pods/two")).await;
        assert_eq!(
            two["status"]["conditions"][0]["reason"], "Unschedulable",
            "{two:#}"
        );

        post(&cluster, &format!("{CORE}/pods"), &pod("urgent", "6", "high")).await;
        run(&cluster, 10).await;
        assert_eq!(
            get(&cluster, &format!("{CORE}/pods/urgent")).await["status"]["phase"],
            "Running"
        );
        assert_eq!(get(&cluster, &format!("{CORE}/pods/one")).await["code"], 404);
    });
}

#[test]
fn budgets_count_what_may_go() {
    simulate(|| async {
        let cluster = Cluster::builder().start().await.expect("a cluster");
        deploy(&cluster, json!({"replicas": 3})).await;
        let budget = json!({
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"},
            "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}},
        });
        let path = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
        post(&cluster, path, &budget).await;
        run(&cluster, 5).await;
        let status = get(&cluster, &format!("{path}/b")).await["status"].clone();
        assert_eq!(
            (&status["currentHealthy"], &status["disruptionsAllowed"]),
            (&json!(3), &json!(1)),
            "{status:#}"
        );
    });
}

/// The real one hashes a dump of a Go struct; ours hashes the template's JSON. It follows from the template alone.
#[test]
fn a_replica_set_is_named_after_its_template() {
    let name = |image: &'static str| {
        let mut name = String::new();
        simulate(async || {
            let cluster = Cluster::builder().nodes(0).start().await.expect("a cluster");
            let mut web = workload("Deployment", json!({"replicas": 0}));
            web["spec"]["template"]["spec"]["containers"][0]["image"] = json!(image);
            post(&cluster, &format!("{APPS}/deployments"), &web).await;
            cluster.run_for(Duration::from_secs(1)).await;
            let sets = items(&get(&cluster, &format!("{APPS}/replicasets")).await);
            let [set] = sets.as_slice() else {
                panic!("{sets:?}")
            };
            let hash = set["metadata"]["labels"]["pod-template-hash"]
                .as_str()
                .expect("a hash");
            name = set["metadata"]["name"].as_str().expect("a name").to_owned();
            assert_eq!(name, format!("w-{hash}"));
        });
        name
    };
    assert_eq!(name("web:1"), name("web:1"));
    assert_ne!(name("web:1"), name("web:2"));
}
