//! Rows of the garbage collector: objects and their owners, actions, and the remaining objects.

use fake_apiserver::Cluster;
use shared_json::{Value, json};

use crate::support::{request, send, simulate};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const NONE: &str = "11111111-2222-3333-4444-555555555555";

/// An object's name and metadata from its short form: `name<owner!,other+finalizer`. An owner with `!` may not go before it; one that
/// begins with `?` never was, one with `~` is named by another kind, one with `=` by another name.
async fn metadata(cluster: &Cluster, short: &str) -> (String, Value) {
    let mut finalizers = short.split('+');
    let head = finalizers.next().unwrap_or_default();
    let finalizers: Vec<String> = finalizers.map(|name| format!("e.com/{name}")).collect();
    let (name, owners) = head.split_once('<').unwrap_or((head, ""));
    let mut references = Vec::new();
    for owner in owners.split(',').filter(|owner| !owner.is_empty()) {
        let plain = owner.trim_end_matches('!').trim_start_matches(['?', '~', '=']);
        let uid = if owner.starts_with('?') {
            json!(NONE)
        } else {
            let (_, found) = request(cluster, "GET", &format!("{MAPS}/{plain}"), &Value::Null).await;
            found["metadata"]["uid"].clone()
        };
        references.push(json!({
            "apiVersion": "v1", "kind": if owner.starts_with('~') { "Secret" } else { "ConfigMap" },
            "name": if owner.starts_with('=') { "other" } else { plain }, "uid": uid,
            "blockOwnerDeletion": owner.ends_with('!'),
        }));
    }
    let metadata = json!({"name": name, "ownerReferences": references, "finalizers": finalizers});
    (name.to_owned(), metadata)
}

/// The objects that are there, in the form above, with `*` after those that are on their way out.
async fn shown(cluster: &Cluster) -> String {
    let (_, list) = request(cluster, "GET", MAPS, &Value::Null).await;
    let texts = |object: &Value, field: &str| {
        let items = object["metadata"][field].as_array().cloned().unwrap_or_default();
        let names = items.into_iter().map(|item| {
            let blocks = if item["blockOwnerDeletion"] == true {
                "!"
            } else {
                ""
            };
            let name = item.as_str().or(item["name"].as_str()).unwrap_or_default();
            format!("{}{blocks}", name.trim_start_matches("e.com/"))
        });
        names.collect::<Vec<String>>()
    };
    let mut out = Vec::new();
    for object in list["items"].as_array().into_iter().flatten() {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        if name == "kube-root-ca.crt" {
            continue;
        }
        let owners = texts(object, "ownerReferences").join(",");
        let mut line = name.to_owned();
        if !owners.is_empty() {
            line = format!("{line}<{owners}");
        }
        for finalizer in texts(object, "finalizers") {
            line = format!("{line}+{finalizer}");
        }
        if object["metadata"]["deletionTimestamp"].is_string() {
            line += "*";
        }
        out.push(line);
    }
    out.join(" ")
}

/// `steps`: `make OBJECT`, `delete NAME [POLICY]`, `free NAME` (of its finalizers), `own OBJECT` (gives it those owners); some seconds pass
/// after each.
#[track_caller]
fn check(steps: &[&str], expected: &str) {
    let steps: Vec<String> = steps.iter().map(|step| (*step).to_owned()).collect();
    let shown_steps = steps.join("; ");
    let mut found = String::new();
    let slot = &mut found;
    simulate(move || async move {
        let cluster = Cluster::builder().nodes(0).start().await.expect("a cluster");
        for step in steps {
            let words: Vec<&str> = step.split(' ').collect();
            let (code, answer) = match words.as_slice() {
                ["make", short] => {
                    let (_, metadata) = metadata(&cluster, short).await;
                    request(&cluster, "POST", MAPS, &json!({"metadata": metadata})).await
                }
                ["delete", name, policy @ ..] => {
                    let options = policy
                        .first()
                        .map_or(Value::Null, |policy| json!({"propagationPolicy": policy}));
                    request(&cluster, "DELETE", &format!("{MAPS}/{name}"), &options).await
                }
                ["free", name] => {
                    let body = json!({"metadata": {"finalizers": null}});
                    let kind = "application/merge-patch+json";
                    send(&cluster, "PATCH", &format!("{MAPS}/{name}"), kind, &body).await
                }
                ["own", short] => {
                    let (name, metadata) = metadata(&cluster, short).await;
                    let body = json!({"metadata": {"ownerReferences": metadata["ownerReferences"]}});
                    let kind = "application/merge-patch+json";
                    send(&cluster, "PATCH", &format!("{MAPS}/{name}"), kind, &body).await
                }
                other => panic!("{other:?}"),
            };
            assert!(code < 300, "{step}: {answer}");
            cluster.run_for(std::time::Duration::from_secs(3)).await;
        }
        *slot = shown(&cluster).await;
    });
    assert_eq!(found, expected, "{shown_steps}");
}

#[test]
fn background() {
    check(&["make a", "make b<a", "delete a"], "");
    check(&["make a", "make b<a!", "delete a Background"], "");
    check(&["make a", "make b<a", "make c<b", "make d<c", "delete a"], "");
    check(&["make a", "make b<a+f", "make c<b", "delete a"], "b<a+f* c<b");
    check(&["make a", "make b<a+f", "make c<b", "delete a", "free b"], "");
    check(&["make a", "make b<a", "delete b"], "a");
    check(&["make a", "make b", "make c<a,b", "delete a"], "b c<b");
    check(&["make a", "make b", "make c<a,b!", "delete a", "delete b"], "");
    check(&["make a", "make b<a", "own a<b", "delete a"], "");
    check(&["make a+f", "make b<a", "delete a"], "a+f* b<a");
    check(&["make a+f", "make b<a", "delete a", "free a"], "");
}

#[test]
fn owners_that_are_none() {
    check(&["make b<?gone"], "");
    check(&["make a", "make b<a,?gone"], "a b<a");
    check(&["make b<?gone+f"], "b<gone+f*");
    check(&["make a", "make b<~a"], "a");
    check(&["make a", "make b<=a"], "a");
    check(&["make a", "make b", "own b<?gone"], "a");
    check(&["make a", "make b<a", "own b", "delete a"], "b");
}

#[test]
fn foreground() {
    check(&["make a", "delete a Foreground"], "");
    check(&["make a", "make b<a!", "delete a Foreground"], "");
    check(
        &["make a", "make b<a!+f", "delete a Foreground"],
        "a+foregroundDeletion* b<a!+f*",
    );
    check(&["make a", "make b<a!+f", "delete a Foreground", "free b"], "");
    check(
        &["make a", "make b<a!", "make c<b!+f", "delete a Foreground"],
        "a+foregroundDeletion* b<a!+foregroundDeletion* c<b!+f*",
    );
    // One that does not block goes after its owner.
    check(&["make a", "make b<a+f", "delete a Foreground"], "b<a+f*");
    check(
        &["make a", "make b", "make c<a!,b", "delete a Foreground"],
        "b c<b",
    );
    check(&["make a", "make b<a!+f", "delete a Foreground", "own b"], "b+f*");
    check(
        &["make a", "make b<a!+f", "delete a Foreground", "own b<a"],
        "b<a+f*",
    );
    check(
        &["make a", "make b<a!+f", "delete a Foreground", "free a"],
        "b<a!+f*",
    );
    check(&["make a+f", "delete a Foreground", "make b<a!"], "a+f* b<a!");
    check(
        &[
            "make a",
            "make b<a!+f",
            "make c<a!",
            "delete a Foreground",
            "free b",
        ],
        "",
    );
}

/// Kubernetes' own suite: "should not be blocked by dependency circle".
#[test]
fn foreground_in_a_circle() {
    check(&["make a", "make b<a!", "own a<b!", "delete a Foreground"], "");
    check(
        &[
            "make a",
            "make b<a!",
            "make c<b!",
            "own a<c!",
            "delete a Foreground",
        ],
        "",
    );
    check(
        &["make a", "make b<a!+f", "own a<b!", "delete a Foreground"],
        "b<a+f*",
    );
    check(&["make a", "make b<a", "own a<b", "delete a Foreground"], "");
}

#[test]
fn orphans() {
    check(&["make a", "delete a Orphan"], "");
    check(&["make a", "make b<a!", "delete a Orphan"], "b");
    check(&["make a", "make b<a", "make c<b", "delete a Orphan"], "b c<b");
    check(
        &["make a", "make b<a", "make c<b", "delete a Orphan", "delete b"],
        "",
    );
    check(&["make a", "make b", "make c<a,b", "delete a Orphan"], "b c<b");
    check(&["make a+f", "make b<a", "delete a Orphan"], "a+f* b");
    check(&["make a", "make b<a+f", "delete a Orphan"], "b+f");
}
