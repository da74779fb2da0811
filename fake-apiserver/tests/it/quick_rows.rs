//! Rows of quick clusters: a Job, and the time until it has ended. On the virtual clock that is the time that nodes and controllers
//! wait, and nothing else.

use std::time::Duration;

use fake_apiserver::Cluster;
use rstest::rstest;
use shared_json::{Value, json};

use crate::support::{request, sh, simulate};

const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";
const PODS: &str = "/api/v1/namespaces/default/pods";
/// How often the object is looked at.
const LOOK: Duration = Duration::from_millis(5);

/// Waits until `is_so` says so of an object; how many milliseconds that took.
async fn until(cluster: &Cluster, path: &str, is_so: impl Fn(&Value) -> bool) -> u128 {
    let begin = tokio::time::Instant::now();
    loop {
        let (code, object) = request(cluster, "GET", path, &Value::Null).await;
        assert_eq!(code, 200, "{object}");
        if is_so(&object) {
            return begin.elapsed().as_millis();
        }
        let waited = begin.elapsed();
        assert!(waited < Duration::from_secs(900), "{object}");
        tokio::time::sleep(LOOK).await;
    }
}

fn ended(job: &Value) -> Option<&str> {
    let conditions = job["status"]["conditions"].as_array()?.iter();
    conditions
        .filter(|condition| condition["status"] == "True")
        .filter_map(|condition| condition["type"].as_str())
        .find(|kind| matches!(*kind, "Complete" | "Failed"))
}

#[rstest]
#[case::ten_in_a_row(true, json!({"completions": 10, "parallelism": 1}), "true", "Complete", 0..=1500)]
#[case::ten_at_once(true, json!({"completions": 10, "parallelism": 10}), "true", "Complete", 0..=300)]
#[case::one_that_fails(true, json!({"backoffLimit": 3}), "exit 1", "Failed", 0..=600)]
#[case::a_program_takes_its_time(true, json!({}), "sleep 2", "Complete", 2000..=2200)]
#[case::three_in_a_row_as_a_kubelet(false, json!({"completions": 3, "parallelism": 1}), "true", "Complete", 6000..=15_000)]
#[case::one_that_fails_as_a_kubelet(false, json!({"backoffLimit": 2}), "exit 1", "Failed", 30_000..=45_000)]
fn jobs(
    #[case] quick: bool,
    #[case] spec: Value,
    #[case] script: &str,
    #[case] end: &str,
    #[case] expected: std::ops::RangeInclusive<u128>,
) {
    simulate(|| async {
        let cluster = Cluster::builder().nodes(1).quick(quick).start().await;
        let cluster = cluster.expect("a cluster");
        let mut job =
            json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": spec});
        job["spec"]["template"]["spec"] = json!({"restartPolicy": "Never", "containers": [sh("a", script)]});
        let (code, answer) = request(&cluster, "POST", JOBS, &job).await;
        assert_eq!(code, 201, "{answer}");
        let path = format!("{JOBS}/j");
        let took = until(&cluster, &path, |job| ended(job).is_some()).await;
        let (_, job) = request(&cluster, "GET", &path, &Value::Null).await;
        assert_eq!(ended(&job), Some(end));
        assert!(expected.contains(&took), "{took} ms");
    });
}

/// A pod that lacks an object runs soon after somebody has made it, on a quick node.
#[rstest]
#[case::variables(json!({"envFrom": [{"configMapRef": {"name": "m"}}]}), json!([]), 0..=700)]
#[case::volume(json!({"volumeMounts": [{"name": "v", "mountPath": "/v"}]}), json!([{"name": "v", "configMap": {"name": "m"}}]), 0..=700)]
fn pods_that_lack_something(
    #[case] more: Value,
    #[case] volumes: Value,
    #[case] expected: std::ops::RangeInclusive<u128>,
) {
    simulate(|| async {
        let cluster = Cluster::builder().nodes(1).quick(true).start().await;
        let cluster = cluster.expect("a cluster");
        let mut container = crate::support::with(sh("a", "sleep 600"), more);
        container["name"] = json!("a");
        let spec = json!({"containers": [container], "volumes": volumes});
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec});
        let (code, answer) = request(&cluster, "POST", PODS, &pod).await;
        assert_eq!(code, 201, "{answer}");
        cluster.run_for(Duration::from_secs(25)).await;
        let map =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"a": "b"}});
        let (code, _) = request(&cluster, "POST", "/api/v1/namespaces/default/configmaps", &map).await;
        assert_eq!(code, 201);
        let runs = |pod: &Value| pod["status"]["phase"] == "Running";
        let took = until(&cluster, &format!("{PODS}/p"), runs).await;
        assert!(expected.contains(&took), "{took} ms");
    });
}
