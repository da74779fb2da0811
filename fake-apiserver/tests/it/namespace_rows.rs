//! Rows of namespaces that are being deleted: their finalizers, their content, failures meanwhile, and their status after some
//! seconds.

use std::time::Duration;

use fake_apiserver::Cluster;
use fake_apiserver::faults::Fault;
use shared_json::{Value, json};

use crate::support::{request, send, simulate};

const NAMESPACE: &str = "/api/v1/namespaces/n";

/// The finalizers left, and the conditions that are true (`told` if there are only false ones).
async fn shown(cluster: &Cluster) -> String {
    let (code, namespace) = request(cluster, "GET", NAMESPACE, &Value::Null).await;
    if code == 404 {
        return "gone".to_owned();
    }
    let texts = |value: &Value| -> Vec<String> {
        let items = value.as_array().into_iter().flatten();
        items.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let mut out = vec![texts(&namespace["spec"]["finalizers"]).join(",")];
    let conditions = namespace["status"]["conditions"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let wrong = conditions
        .iter()
        .filter(|condition| condition["status"] == "True");
    let wrong: Vec<&str> = wrong.filter_map(|condition| condition["type"].as_str()).collect();
    if wrong.is_empty() && !conditions.is_empty() {
        out.push("told".to_owned());
    }
    out.extend(
        wrong
            .iter()
            .map(|kind| kind.trim_start_matches("Namespace").to_owned()),
    );
    out.join(" ")
}

/// A namespace of these finalizers with ConfigMaps of these (`name+finalizer`) is deleted; then the steps are done: `free NAME` (of its
/// finalizers), `untell` (takes the conditions away), `let GO` (takes a finalizer of the namespace away), or seconds that pass.
#[track_caller]
fn check(finalizers: &[&str], maps: &[&str], faults: &str, steps: &[&str], expected: &str) {
    let told = format!("{finalizers:?} {maps:?} {faults} {steps:?}");
    let owned = |words: &[&str]| -> Vec<String> { words.iter().map(|word| (*word).to_owned()).collect() };
    let (finalizers, maps, faults, steps) = (owned(finalizers), owned(maps), faults.to_owned(), owned(steps));
    let mut found = String::new();
    let slot = &mut found;
    simulate(move || async move {
        let cluster = Cluster::builder().nodes(0).start().await.expect("a cluster");
        let path = format!("{NAMESPACE}/configmaps");
        let namespace = json!({"metadata": {"name": "n"}, "spec": {"finalizers": finalizers}});
        let (code, answer) = request(&cluster, "POST", "/api/v1/namespaces", &namespace).await;
        assert_eq!(code, 201, "{answer}");
        for map in &maps {
            let (name, finalizer) = map.split_once('+').unwrap_or((map, ""));
            let finalizers: Vec<&str> = Some(finalizer)
                .filter(|name| !name.is_empty())
                .into_iter()
                .collect();
            let map = json!({"metadata": {"name": name, "finalizers": finalizers}});
            let (code, answer) = request(&cluster, "POST", &path, &map).await;
            assert_eq!(code, 201, "{answer}");
        }
        cluster.run_for(Duration::from_secs(2)).await;
        for fault in Fault::from_yaml(&faults).expect("faults") {
            cluster.faults().add(fault);
        }
        request(&cluster, "DELETE", NAMESPACE, &Value::Null).await;
        let merge = "application/merge-patch+json";
        for step in &steps {
            let words: Vec<&str> = step.split(' ').collect();
            match words.as_slice() {
                ["free", name] => {
                    let body = json!({"metadata": {"finalizers": null}});
                    send(&cluster, "PATCH", &format!("{path}/{name}"), merge, &body).await;
                }
                ["untell"] => {
                    let body = json!({"status": {"conditions": null}});
                    let (code, _) =
                        send(&cluster, "PATCH", &format!("{NAMESPACE}/status"), merge, &body).await;
                    assert_eq!(code, 200);
                }
                ["let", name] => {
                    let (_, mut namespace) = request(&cluster, "GET", NAMESPACE, &Value::Null).await;
                    let finalizers = namespace["spec"]["finalizers"]
                        .as_array()
                        .cloned()
                        .unwrap_or_default();
                    let left: Vec<Value> = finalizers.into_iter().filter(|one| one != *name).collect();
                    namespace["spec"]["finalizers"] = json!(left);
                    request(&cluster, "PUT", &format!("{NAMESPACE}/finalize"), &namespace).await;
                }
                [seconds] => {
                    let seconds: u64 = seconds.parse().expect("seconds");
                    cluster.run_for(Duration::from_secs(seconds)).await;
                }
                other => panic!("{other:?}"),
            }
        }
        *slot = shown(&cluster).await;
    });
    assert_eq!(found, expected, "{told}");
}

const OWN: &[&str] = &["kubernetes"];

#[test]
fn who_has_to_let_it_go() {
    let none = "[]";
    // Five seconds are left to what is just being made there.
    check(OWN, &["a"], none, &["4"], "kubernetes");
    check(OWN, &["a"], none, &["7"], "gone");
    check(OWN, &[], none, &["7"], "gone");
    check(&["kubernetes", "e.com/f"], &["a"], none, &["7"], "e.com/f told");
    // Whoever is left is written in order, and once.
    check(
        &["e.com/b", "kubernetes", "e.com/a"],
        &[],
        none,
        &["7"],
        "e.com/a,e.com/b told",
    );
    check(
        &["e.com/b", "e.com/a", "e.com/b"],
        &[],
        none,
        &["7"],
        "e.com/a,e.com/b told",
    );
    // It is told of for as long as anybody is left.
    check(
        &["kubernetes", "e.com/f"],
        &[],
        none,
        &["12", "untell", "3"],
        "e.com/f",
    );
    check(
        &["kubernetes", "e.com/f"],
        &[],
        none,
        &["12", "untell", "7"],
        "e.com/f told",
    );
    check(
        &["kubernetes", "e.com/f"],
        &[],
        none,
        &["12", "let e.com/f", "1"],
        "gone",
    );
    check(
        &["kubernetes", "e.com/f"],
        &["a+e.com/x"],
        none,
        &["2", "let e.com/f", "1"],
        "kubernetes",
    );
    // One that everybody has let go has nobody to wait for, whatever is in it.
    check(
        &["e.com/f"],
        &["a+e.com/x"],
        none,
        &["1", "let e.com/f", "let kubernetes", "1"],
        "gone",
    );
}

#[test]
fn what_is_left_in_it() {
    let none = "[]";
    let held = "kubernetes ContentRemaining FinalizersRemaining";
    check(OWN, &["a+e.com/f"], none, &["7"], held);
    check(OWN, &["a+e.com/f"], none, &["60"], held);
    check(OWN, &["a+e.com/f"], none, &["7", "free a", "2"], held);
    check(OWN, &["a+e.com/f"], none, &["7", "free a", "12"], "gone");
    check(
        OWN,
        &["a+e.com/f", "b+e.com/f"],
        none,
        &["7", "free a", "20"],
        held,
    );
    check(
        &["kubernetes", "e.com/z"],
        &["a+e.com/f"],
        none,
        &["7", "free a", "20"],
        "e.com/z told",
    );
    check(
        &["kubernetes", "e.com/z"],
        &["a+e.com/f"],
        none,
        &["7", "let e.com/z", "20"],
        held,
    );
}

#[test]
fn what_goes_wrong() {
    let on = |verb: &str, times: &str, code: u16| {
        format!(
            "- {{on: {{verbs: [{verb}], resources: [configmaps]}}{times}, do: {{refuse: {{code: {code}}}}}}}\n"
        )
    };
    // What cannot be deleted at once is deleted one by one.
    for code in [404, 405] {
        check(
            OWN,
            &["a", "b"],
            &on("deletecollection", "", code),
            &["7"],
            "gone",
        );
        // What is not there any more has nothing to delete.
        check(OWN, &["a", "b"], &on("list", "", code), &["7"], "gone");
        // What cannot be deleted either way is still there.
        let neither = on("deletecollection", "", code) + &on("delete", "", code);
        check(
            OWN,
            &["a"],
            &neither,
            &["7"],
            "kubernetes DeletionContentFailure ContentRemaining",
        );
    }
    for code in [403, 409, 500, 503] {
        let failed = "kubernetes DeletionContentFailure";
        check(OWN, &["a"], &on("deletecollection", "", code), &["7"], failed);
        check(OWN, &["a"], &on("list", "", code), &["7"], failed);
        // It is tried again, and what is told then is told of the last try.
        let once = on("deletecollection", ", times: 1", code);
        check(OWN, &["a"], &once, &["20"], "gone");
        check(&["kubernetes", "e.com/f"], &["a"], &once, &["20"], "e.com/f told");
    }
    // The others go meanwhile.
    let accounts = on("deletecollection", "", 500).replace("configmaps", "serviceaccounts");
    let left = "kubernetes DeletionContentFailure";
    check(OWN, &["a"], &accounts, &["7"], left);
    check(OWN, &["a+e.com/f"], &accounts, &["7", "free a", "60"], left);
}
