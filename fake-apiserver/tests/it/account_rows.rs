//! Rows of the objects of every namespace, and of the tokens in Secrets.

use shared_json::{Value, json};

use crate::support::play;

const ACCOUNTS: &str = "/api/v1/namespaces/n/serviceaccounts";
const MAPS: &str = "/api/v1/namespaces/n/configmaps";
const SECRETS: &str = "/api/v1/namespaces/n/secrets";

/// A namespace `n`, requests there, and a read some seconds later: a path and the expected values at pointers of it.
#[track_caller]
fn check(steps: &[Value], path: &str, code: u16, has: Value) {
    let mut all =
        vec![json!({"do": "POST /api/v1/namespaces", "body": {"metadata": {"name": "n"}}, "code": 201})];
    for step in steps {
        let mut step = step.clone();
        step["wait"] = json!(1);
        all.push(step);
    }
    all.push(json!({"wait": 3, "do": format!("GET {path}"), "code": code, "has": has}));
    play(true, Value::from(all));
}

fn delete(path: &str) -> Value {
    json!({"do": format!("DELETE {path}")})
}

fn merge(path: &str, body: Value) -> Value {
    json!({"do": format!("PATCH {path}"), "type": "merge", "body": body})
}

#[test]
fn what_every_namespace_has() {
    let account = format!("{ACCOUNTS}/default");
    let map = format!("{MAPS}/kube-root-ca.crt");
    let said = "/metadata/annotations/kubernetes.io~1description";
    check(
        &[],
        &account,
        200,
        json!({"/metadata/name": "default", "/secrets": null, "/metadata/labels": null}),
    );
    check(&[], &map, 200, json!({"/data/ca.crt": ""}));
    check(
        &[delete(&account)],
        &account,
        200,
        json!({"/metadata/name": "default"}),
    );
    check(&[delete(&map)], &map, 200, json!({"/data/ca.crt": ""}));
    check(
        &[merge(&map, json!({"data": {"ca.crt": "x"}}))],
        &map,
        200,
        json!({"/data/ca.crt": ""}),
    );
    check(
        &[merge(&map, json!({"data": {"more": "x"}}))],
        &map,
        200,
        json!({"/data/more": null}),
    );
    check(
        &[merge(&map, json!({"data": null}))],
        &map,
        200,
        json!({"/data/ca.crt": ""}),
    );
    check(
        &[merge(
            &map,
            json!({"metadata": {"annotations": {"kubernetes.io/description": "mine"}}}),
        )],
        &map,
        200,
        json!({said: "mine"}),
    );
    check(
        &[merge(
            &map,
            json!({"metadata": {"annotations": {"a": "b"}, "labels": {"l": "m"}}}),
        )],
        &map,
        200,
        json!({"/metadata/annotations/a": "b", "/metadata/labels/l": "m"}),
    );
    check(
        &[merge(
            &account,
            json!({"metadata": {"labels": {"l": "m"}}, "imagePullSecrets": [{"name": "s"}]}),
        )],
        &account,
        200,
        json!({"/metadata/labels/l": "m", "/imagePullSecrets/0/name": "s"}),
    );
    // Other accounts are nobody's business.
    let other = format!("{ACCOUNTS}/a");
    let made = json!({"do": format!("POST {ACCOUNTS}"), "body": {"metadata": {"name": "a"}}, "code": 201});
    check(&[made, delete(&other)], &other, 404, json!({}));
    // Nor are namespaces that are on their way out.
    let held = json!({"do": format!("POST {MAPS}"), "body": {"metadata": {"name": "a", "finalizers": ["e.com/f"]}}, "code": 201});
    let wait = json!({"wait": 10, "do": format!("GET {MAPS}/a")});
    check(
        &[
            held.clone(),
            delete("/api/v1/namespaces/n"),
            wait.clone(),
            wait.clone(),
            wait.clone(),
            wait.clone(),
            wait.clone(),
        ],
        &account,
        404,
        json!({}),
    );
    check(
        &[
            held,
            delete("/api/v1/namespaces/n"),
            wait.clone(),
            wait.clone(),
            wait.clone(),
            wait.clone(),
            wait,
        ],
        &map,
        404,
        json!({}),
    );
}

/// A Secret `t` of this type, with these annotations and data, in a namespace with an account `a`.
fn token(kind: &str, annotations: Value, data: Value) -> Vec<Value> {
    vec![
        json!({"do": format!("POST {ACCOUNTS}"), "body": {"metadata": {"name": "a"}}, "code": 201, "save": {"uid": "/metadata/uid"}}),
        json!({"do": format!("POST {SECRETS}"), "code": 201, "body": {
            "metadata": {"name": "t", "annotations": annotations}, "type": kind, "data": data,
        }}),
    ]
}

#[test]
fn tokens_in_secrets() {
    const KIND: &str = "kubernetes.io/service-account-token";
    const NAME: &str = "kubernetes.io/service-account.name";
    const UID: &str = "kubernetes.io/service-account.uid";
    let secret = format!("{SECRETS}/t");
    let of_a = || json!({NAME: "a"});
    let filled = json!({"/data/namespace": "bg==", "/data/ca.crt": "", "/type": KIND});
    let then = |more: Vec<Value>| {
        let mut steps = token(KIND, of_a(), Value::Null);
        steps.extend(more);
        steps
    };
    check(&token(KIND, of_a(), Value::Null), &secret, 200, filled.clone());
    check(
        &token(KIND, of_a(), json!({"own": "eA=="})),
        &secret,
        200,
        json!({"/data/own": "eA==", "/data/namespace": "bg=="}),
    );
    check(
        &token(KIND, json!({NAME: "a", UID: "$uid"}), Value::Null),
        &secret,
        200,
        filled.clone(),
    );
    check(
        &token(KIND, json!({NAME: "a", UID: "other"}), Value::Null),
        &secret,
        404,
        json!({}),
    );
    check(
        &token(KIND, json!({NAME: "nobody"}), Value::Null),
        &secret,
        404,
        json!({}),
    );
    check(
        &token("Opaque", of_a(), Value::Null),
        &secret,
        200,
        json!({"/data": null}),
    );
    check(
        &then(vec![merge(&secret, json!({"data": {"token": null}}))]),
        &secret,
        200,
        filled.clone(),
    );
    // What somebody has put there stays, unless it is nothing.
    check(
        &then(vec![merge(&secret, json!({"data": {"namespace": "eA=="}}))]),
        &secret,
        200,
        json!({"/data/namespace": "eA=="}),
    );
    check(
        &then(vec![merge(&secret, json!({"data": {"namespace": ""}}))]),
        &secret,
        200,
        json!({"/data/namespace": "bg=="}),
    );
    check(
        &token(
            KIND,
            of_a(),
            json!({"token": "eA==", "namespace": "eA==", "ca.crt": ""}),
        ),
        &secret,
        200,
        json!({"/data/token": "eA==", "/data/namespace": "eA==", "/metadata/annotations/kubernetes.io~1service-account.uid": null}),
    );
    check(
        &then(vec![delete(&format!("{ACCOUNTS}/a"))]),
        &secret,
        404,
        json!({}),
    );
    let again = json!({"do": format!("POST {ACCOUNTS}"), "body": {"metadata": {"name": "a"}}, "code": 201});
    check(
        &then(vec![delete(&format!("{ACCOUNTS}/a")), again]),
        &secret,
        404,
        json!({}),
    );
    check(&then(vec![delete(&secret)]), &secret, 404, json!({}));
    check(
        &then(vec![]),
        &format!("{ACCOUNTS}/a"),
        200,
        json!({"/secrets": null}),
    );
    check(
        &then(vec![merge(&secret, json!({"data": {"ca.crt": "eA=="}}))]),
        &secret,
        200,
        json!({"/data/ca.crt": ""}),
    );
    check(
        &then(vec![merge(
            &secret,
            json!({"metadata": {"annotations": {NAME: "nobody"}}}),
        )]),
        &secret,
        404,
        json!({}),
    );
    // What is complete is left alone, whatever it says of its account.
    check(
        &then(vec![merge(
            &secret,
            json!({"metadata": {"annotations": {UID: null}}}),
        )]),
        &secret,
        200,
        json!({"/metadata/annotations/kubernetes.io~1service-account.uid": null}),
    );
    check(
        &then(vec![merge(
            &secret,
            json!({"metadata": {"annotations": {UID: "other"}}}),
        )]),
        &secret,
        404,
        json!({}),
    );
}

#[test]
fn tokens_that_accounts_name() {
    const KIND: &str = "kubernetes.io/service-account-token";
    const NAME: &str = "kubernetes.io/service-account.name";
    let (account, secret) = (format!("{ACCOUNTS}/a"), format!("{SECRETS}/t"));
    let named = |kind: &str, names: Value| {
        let mut steps = token(kind, json!({NAME: "a"}), Value::Null);
        steps.push(merge(&account, json!({"secrets": names})));
        steps.push(delete(&secret));
        steps
    };
    check(
        &named(KIND, json!([{"name": "t"}])),
        &account,
        200,
        json!({"/secrets": null}),
    );
    check(
        &named(KIND, json!([{"name": "t"}, {"name": "x"}])),
        &account,
        200,
        json!({"/secrets/0/name": "x", "/secrets/1": null}),
    );
    check(
        &named(KIND, json!([{"name": "x"}])),
        &account,
        200,
        json!({"/secrets/0/name": "x"}),
    );
    check(
        &named("Opaque", json!([{"name": "t"}])),
        &account,
        200,
        json!({"/secrets/0/name": "t"}),
    );
    let mut others = token(KIND, json!({NAME: "a"}), Value::Null);
    others.push(json!({
        "do": format!("POST {ACCOUNTS}"), "body": {"metadata": {"name": "b"}, "secrets": [{"name": "t"}]}, "code": 201,
    }));
    others.push(delete(&secret));
    check(
        &others,
        &format!("{ACCOUNTS}/b"),
        200,
        json!({"/secrets/0/name": "t"}),
    );
}

/// A token that is bound to an object tells of it, and of the node of a pod even if there is no such node.
#[test]
fn bound_tokens_tell_of_their_objects() {
    let review = |kind: &str, name: &str, has: Value| {
        let bound = json!({"apiVersion": "v1", "kind": kind, "name": name});
        [
            json!({"do": "POST /api/v1/namespaces/default/serviceaccounts/a/token", "code": 201,
                "body": {"spec": {"boundObjectRef": bound}}, "save": {"token": "/status/token"}}),
            json!({"do": "POST /apis/authentication.k8s.io/v1/tokenreviews", "code": 201,
                "body": {"spec": {"token": "$token"}}, "has": has}),
        ]
    };
    let pod = |name: &str, node: &str| {
        let spec =
            json!({"nodeName": node, "serviceAccountName": "a", "containers": [{"name": "c", "image": "i"}]});
        json!({"do": "POST /api/v1/namespaces/default/pods", "code": 201, "save": {name: "/metadata/uid"},
            "body": {"metadata": {"name": name}, "spec": spec}})
    };
    let extra = |field: &str| format!("/status/user/extra/authentication.kubernetes.io~1{field}");
    let mut steps = vec![
        json!({"do": "POST /api/v1/namespaces/default/serviceaccounts", "body": {"metadata": {"name": "a"}}, "code": 201}),
        json!({"do": "POST /api/v1/nodes", "body": {"metadata": {"name": "here"}}, "code": 201, "save": {"here": "/metadata/uid"}}),
        pod("one", "here"),
        pod("two", "gone"),
        pod("three", ""),
    ];
    let told = |pod: Value, uid: Value, node: Value, node_uid: Value| {
        json!({"/status/authenticated": true, extra("pod-name"): pod, extra("pod-uid"): uid,
            extra("node-name"): node, extra("node-uid"): node_uid})
    };
    let none = Value::Null;
    steps.extend(review(
        "Pod",
        "one",
        told(json!(["one"]), json!(["$one"]), json!(["here"]), json!(["$here"])),
    ));
    steps.extend(review(
        "Pod",
        "two",
        told(json!(["two"]), json!(["$two"]), json!(["gone"]), none.clone()),
    ));
    steps.extend(review(
        "Pod",
        "three",
        told(json!(["three"]), json!(["$three"]), none.clone(), none.clone()),
    ));
    steps.extend(review(
        "Node",
        "here",
        told(none.clone(), none, json!(["here"]), json!(["$here"])),
    ));
    play(false, Value::from(steps));
}
