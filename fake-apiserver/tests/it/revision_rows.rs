//! Rows of DaemonSets that have a revision twice: the one that stays, and the labels of its pods. Source: the real controller's
//! `update.go` (of several revisions that are its present template only the newest stays, and all of its pods get that one's
//! label).

use std::time::Duration;

use fake_apiserver::Cluster;
use shared_json::{Value, json};

use crate::support::{request, send, simulate};

const SETS: &str = "/apis/apps/v1/namespaces/default/daemonsets";
const REVISIONS: &str = "/apis/apps/v1/namespaces/default/controllerrevisions";
const PODS: &str = "/api/v1/namespaces/default/pods";
const LABEL: &str = "controller-revision-hash";
const MERGE: &str = "application/merge-patch+json";

async fn items(cluster: &Cluster, path: &str) -> Vec<Value> {
    let (_, list) = request(cluster, "GET", path, &Value::Null).await;
    list["items"].as_array().into_iter().flatten().cloned().collect()
}

/// A set of one pod; its template is changed if it is `changed`. Then there is another revision, `twin`, of the data of the first or the last
/// revision, with this number and this label (none if it is empty); then the set is looked at again. Shown: the revisions as `1`, `2` (the
/// set's own) and `twin` with their numbers and labels, and the labels of the pods.
#[track_caller]
fn check(changed: bool, of_first: bool, number: i64, label: &str, expected: &str) {
    let told = format!("{changed} {of_first} {number} {label}");
    let label = label.to_owned();
    let mut found = String::new();
    let slot = &mut found;
    simulate(move || async move {
        let cluster = Cluster::builder().nodes(0).start().await.expect("a cluster");
        request(
            &cluster,
            "POST",
            "/api/v1/nodes",
            &json!({"metadata": {"name": "x"}}),
        )
        .await;
        let template = json!({
            "metadata": {"labels": {"app": "a"}},
            "spec": {"tolerations": [{"operator": "Exists"}], "containers": [{"name": "c", "image": "i:1"}]},
        });
        // Pods stay what they are until somebody deletes them.
        let spec = json!({
            "selector": {"matchLabels": {"app": "a"}}, "template": template, "updateStrategy": {"type": "OnDelete"},
        });
        let (code, set) = request(
            &cluster,
            "POST",
            SETS,
            &json!({"metadata": {"name": "s"}, "spec": spec}),
        )
        .await;
        assert_eq!(code, 201, "{set}");
        cluster.run_for(Duration::from_secs(2)).await;
        let path = format!("{SETS}/s");
        if changed {
            let change =
                json!({"spec": {"template": {"spec": {"priorityClassName": "system-node-critical"}}}});
            send(&cluster, "PATCH", &path, MERGE, &change).await;
            cluster.run_for(Duration::from_secs(2)).await;
        }
        let mut own = items(&cluster, REVISIONS).await;
        own.sort_by_key(|revision| revision["revision"].as_i64());
        let names: Vec<String> = own
            .iter()
            .map(|revision| {
                revision["metadata"]["name"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned()
            })
            .collect();
        let hashes: Vec<String> = own
            .iter()
            .map(|revision| {
                revision["metadata"]["labels"][LABEL]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned()
            })
            .collect();
        let source = if of_first { own.first() } else { own.last() };
        let source = source.expect("a revision").clone();
        let mut labels = json!({"app": "a"});
        if !label.is_empty() {
            labels[LABEL] = json!(label);
        }
        let twin = json!({
            "metadata": {"name": "twin", "labels": labels, "ownerReferences": source["metadata"]["ownerReferences"]},
            "data": source["data"], "revision": number,
        });
        let (code, answer) = request(&cluster, "POST", REVISIONS, &twin).await;
        assert_eq!(code, 201, "{answer}");
        let touch = json!({"metadata": {"annotations": {"a": "b"}}});
        send(&cluster, "PATCH", &path, MERGE, &touch).await;
        cluster.run_for(Duration::from_secs(2)).await;
        let short = |text: &str, known: &[String]| {
            let place = known.iter().position(|known| known == text);
            place.map_or_else(|| text.to_owned(), |place| (place + 1).to_string())
        };
        let mut lines: Vec<String> = Vec::new();
        for revision in items(&cluster, REVISIONS).await {
            let text = |pointer: &str| {
                revision
                    .pointer(pointer)
                    .and_then(Value::as_str)
                    .unwrap_or_default()
            };
            let label = short(text(&format!("/metadata/labels/{LABEL}")), &hashes);
            let name = short(text("/metadata/name"), &names);
            lines.push(format!("{name}={} {label}", revision["revision"]));
        }
        lines.sort();
        for pod in items(&cluster, PODS).await {
            let label = pod["metadata"]["labels"][LABEL]
                .as_str()
                .unwrap_or_default()
                .to_owned();
            lines.push(format!("pod {}", short(&label, &hashes)));
        }
        *slot = lines.join(", ");
    });
    assert_eq!(found, expected, "{told}");
}

#[test]
fn which_one_stays() {
    // The newest of those that are the present template.
    check(false, false, 7, "t", "twin=7 t, pod t");
    check(false, false, 2, "t", "twin=2 t, pod t");
    check(false, false, 0, "t", "1=1 1, pod 1");
    // One without a label has its name for one.
    check(false, false, 7, "", "twin=7 twin, pod twin");
    check(false, false, 0, "", "1=1 1, pod 1");
    // The pod is of the older template, and is labelled all the same.
    check(true, false, 7, "t", "1=1 1, twin=7 t, pod t");
    check(true, false, 0, "t", "1=1 1, 2=2 2, pod 2");
    // Of older templates there may be several.
    check(true, true, 0, "t", "1=1 1, 2=2 2, twin=0 t, pod 1");
    // The present one is made the newest again.
    check(true, true, 7, "t", "1=1 1, 2=8 2, twin=7 t, pod 1");
    check(true, true, 0, "", "1=1 1, 2=2 2, twin=0 twin, pod 1");
}
