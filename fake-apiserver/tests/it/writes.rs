//! Create, update, metadata, options.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use client_kit::{AliasNames, Seed, SeededNames};
use fake_apiserver::{Cluster, Webhook, WebhookKind, WebhookRule};
use rstest::rstest;
use shared_json::{Value, json};

use crate::support::{exchange, play, request, simulate};

#[rstest]
#[case::a_second_create(json!([
    {"do": "POST /api/v1/namespaces/default/configmaps", "body": {"metadata": {"name": "a"}}, "code": 201,
     "has": {"/kind": "ConfigMap", "/metadata/namespace": "default", "/metadata/generation": null}},
    {"do": "POST /api/v1/namespaces/default/configmaps", "body": {"metadata": {"name": "a"}}, "code": 409,
     "has": {"/reason": "AlreadyExists", "/message": "configmaps \"a\" already exists"}},
]))]
#[case::a_stale_update(json!([
    {"do": "POST /api/v1/namespaces/default/configmaps", "body": {"metadata": {"name": "a"}}, "code": 201,
     "save": {"rv": "/metadata/resourceVersion"}},
    {"do": "PUT /api/v1/namespaces/default/configmaps/a", "body": {"metadata": {"name": "a", "resourceVersion": "$rv"}, "data": {"k": "1"}}},
    {"do": "PUT /api/v1/namespaces/default/configmaps/a", "body": {"metadata": {"name": "a", "resourceVersion": "$rv"}, "data": {"k": "2"}},
     "code": 409, "has": {"/reason": "Conflict", "/message": "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please apply your changes to the latest version and try again"}},
    {"do": "PUT /api/v1/namespaces/default/configmaps/a", "body": {"metadata": {"name": "a"}, "data": {"k": "3"}}, "has": {"/data/k": "3"}},
]))]
#[case::an_update_that_changes_nothing(json!([
    {"do": "POST /api/v1/namespaces/default/configmaps", "body": {"metadata": {"name": "a"}, "data": {"k": "1"}}, "code": 201,
     "save": {"rv": "/metadata/resourceVersion"}},
    {"do": "PUT /api/v1/namespaces/default/configmaps/a", "body": {"metadata": {"name": "a"}, "data": {"k": "1"}},
     "has": {"/metadata/resourceVersion": "$rv"}},
]))]
#[case::an_update_of_another_uid(json!([
    {"do": "POST /api/v1/namespaces/default/configmaps", "body": {"metadata": {"name": "a"}}, "code": 201},
    {"do": "PUT /api/v1/namespaces/default/configmaps/a", "body": {"metadata": {"name": "a", "uid": "x"}}, "code": 409},
    {"do": "PATCH /api/v1/namespaces/default/configmaps/a", "type": "merge", "body": {"metadata": {"uid": "x"}}, "code": 422,
     "has": {"/details/causes/0/field": "metadata.uid"}},
]))]
#[case::what_a_client_may_not_set(json!([
    {"do": "POST /api/v1/namespaces/default/configmaps", "code": 201, "save": {"uid": "/metadata/uid"},
     "body": {"metadata": {"name": "a", "uid": "x", "creationTimestamp": "2001-01-01T00:00:00Z", "deletionTimestamp": "2001-01-01T00:00:00Z"}},
     "has": {"/metadata/deletionTimestamp": null, "/metadata/creationTimestamp": "2026-01-01T00:00:00Z"}},
    {"do": "POST /api/v1/namespaces/default/configmaps", "body": {"metadata": {"name": "b", "resourceVersion": "5"}}, "code": 500,
     "has": {"/message": "resourceVersion should not be set on objects to be created"}},
]))]
#[case::a_generated_name(json!([
    {"do": "POST /api/v1/namespaces/default/configmaps", "body": {"metadata": {"generateName": "a-"}}, "code": 201,
     "has": {"/metadata/generateName": "a-"}, "save": {"name": "/metadata/name"}},
    {"do": "GET /api/v1/namespaces/default/configmaps/$name", "has": {"/metadata/name": "$name"}},
]))]
#[case::no_name(json!([
    {"do": "POST /api/v1/namespaces/default/configmaps", "body": {}, "code": 422,
     "has": {"/message": "ConfigMap \"\" is invalid: metadata.name: Required value: name or generateName is required"}},
]))]
#[case::another_namespace(json!([
    {"do": "POST /api/v1/namespaces/default/configmaps", "body": {"metadata": {"name": "a", "namespace": "b"}}, "code": 400},
    {"do": "POST /api/v1/namespaces/nowhere/configmaps", "body": {"metadata": {"name": "a"}}, "code": 404,
     "has": {"/message": "namespaces \"nowhere\" not found"}},
]))]
#[case::another_kind(json!([
    {"do": "POST /api/v1/namespaces/default/configmaps", "body": {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}, "code": 400,
     "has": {"/message": "Secret in version \"v1\" cannot be handled as a ConfigMap: converting (v1.Secret) to (core.ConfigMap): unknown conversion"}},
]))]
#[case::dry_run(json!([
    {"do": "POST /api/v1/namespaces/default/configmaps?dryRun=All", "body": {"metadata": {"name": "a"}}, "code": 201},
    {"do": "GET /api/v1/namespaces/default/configmaps/a", "code": 404},
    {"do": "POST /api/v1/namespaces/default/configmaps?dryRun=Some", "body": {"metadata": {"name": "a"}}, "code": 422,
     "has": {"/message": "CreateOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"Some\"]: supported values: \"All\""}},
]))]
#[case::unknown_fields(json!([
    {"do": "POST /api/v1/namespaces/default/configmaps?fieldValidation=Strict", "body": {"metadata": {"name": "a"}, "nope": 1}, "code": 400,
     "has": {"/message": "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: strict decoding error: unknown field \"nope\""}},
    {"do": "POST /api/v1/namespaces/default/configmaps?fieldValidation=Ignore", "body": {"metadata": {"name": "a"}, "nope": 1}, "code": 201,
     "has": {"/nope": null}},
]))]
#[case::a_wrong_type(json!([
    {"do": "POST /api/v1/namespaces/default/configmaps", "body": {"metadata": {"name": "a"}, "data": {"k": 5}}, "code": 400,
     "has": {"/message": "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: json: cannot unmarshal number into Go struct field ConfigMap.data of type string"}},
]))]
#[case::the_generation_of_a_workload(json!([
    {"do": "POST /apis/apps/v1/namespaces/default/deployments", "code": 201, "has": {"/metadata/generation": 1, "/spec/replicas": 1},
     "body": {"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}}},
    {"do": "PATCH /apis/apps/v1/namespaces/default/deployments/d", "type": "merge", "body": {"spec": {"replicas": 2}}, "has": {"/metadata/generation": 2}},
    {"do": "PATCH /apis/apps/v1/namespaces/default/deployments/d", "type": "merge", "body": {"metadata": {"labels": {"x": "y"}}}, "has": {"/metadata/generation": 2}},
    {"do": "PATCH /apis/apps/v1/namespaces/default/deployments/d/status", "type": "merge", "body": {"status": {"replicas": 2}, "spec": {"replicas": 9}},
     "has": {"/metadata/generation": 2, "/status/replicas": 2, "/spec/replicas": 2}},
    {"do": "PATCH /apis/apps/v1/namespaces/default/deployments/d", "type": "merge", "body": {"status": {"replicas": 7}}, "has": {"/status/replicas": 2}},
    {"do": "PATCH /apis/apps/v1/namespaces/default/deployments/d", "type": "merge", "body": {"spec": {"selector": {"matchLabels": {"a": "c"}}}}, "code": 422,
     "has": {"/details/causes/0/field": "spec.template.metadata.labels", "/details/causes/1/field": "spec.selector"}},
]))]
#[case::scale(json!([
    {"do": "POST /apis/apps/v1/namespaces/default/replicasets", "code": 201,
     "body": {"metadata": {"name": "r"}, "spec": {"replicas": 3, "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}}},
    {"do": "GET /apis/apps/v1/namespaces/default/replicasets/r/scale", "has": {"/kind": "Scale", "/spec/replicas": 3, "/status/selector": "a=b"}},
    {"do": "PATCH /apis/apps/v1/namespaces/default/replicasets/r/scale", "type": "merge", "body": {"spec": {"replicas": 5}}, "has": {"/spec/replicas": 5}},
    {"do": "GET /apis/apps/v1/namespaces/default/replicasets/r", "has": {"/spec/replicas": 5, "/metadata/generation": 2}},
]))]
#[case::what_is_immutable(json!([
    {"do": "POST /api/v1/namespaces/default/configmaps", "body": {"metadata": {"name": "a"}, "immutable": true, "data": {"k": "v"}}, "code": 201},
    {"do": "PATCH /api/v1/namespaces/default/configmaps/a", "type": "merge", "body": {"data": {"k": "w"}}, "code": 422,
     "has": {"/message": "ConfigMap \"a\" is invalid: data: Forbidden: field is immutable when `immutable` is set"}},
    {"do": "PATCH /api/v1/namespaces/default/configmaps/a", "type": "merge", "body": {"metadata": {"labels": {"l": "m"}}}},
]))]
fn writes(#[case] steps: Value) {
    play(false, steps);
}

/// The complaints about fields of a body, in their order; the request is a creation, or a patch of `p`.
#[rstest]
#[case::of_json("application/json", r#"{"zz": 1, "data": {"x": "1", "x": "2"}, "metadata": {"name": "a", "yy": 1}, "data": {}, "aa": 1}"#,
    &["unknown field \"zz\"", "duplicate field \"data.x\"", "unknown field \"metadata.yy\"", "duplicate field \"data\"", "unknown field \"aa\""])]
#[case::of_what_is_unknown_twice("application/json", r#"{"zz": 1, "metadata": {"name": "a"}, "zz": {"a": 1, "a": 2}}"#, &["unknown field \"zz\""])]
#[case::of_yaml("application/yaml", "zz: 1\nmetadata:\n  yy: 1\n  name: a\naa: 1\n",
    &["unknown field \"aa\"", "unknown field \"metadata.yy\"", "unknown field \"zz\""])]
#[case::of_yaml_with_keys_given_again("application/yaml", "zz: 1\nmetadata:\n  name: a\n  name: a\naa: 1\naa: 2\n",
    &["yaml: unmarshal errors:\n  line 4: key \"name\" already set in map\n  line 6: key \"aa\" already set in map",
      "unknown field \"aa\"", "unknown field \"zz\""])]
#[case::of_a_merge("application/merge-patch+json", r#"{"zz": 1, "data": {"x": "1", "x": "2"}, "aa": {"z": 1, "b": 1}}"#,
    &["duplicate field \"data.x\"", "unknown field \"aa\"", "unknown field \"zz\""])]
#[case::of_operations("application/json-patch+json", r#"[{"op": "add", "path": "/zz", "value": 1}, {"op": "add", "path": "/aa", "value": 1}]"#,
    &["unknown field \"aa\"", "unknown field \"zz\""])]
fn complaints_about_fields(
    #[case] media_type: &'static str,
    #[case] body: &'static str,
    #[case] expected: &[&str],
) {
    simulate(|| async {
        let cluster = Cluster::builder().nodes(0).controllers(false).start().await;
        let cluster = cluster.expect("a cluster");
        let maps = "/api/v1/namespaces/default/configmaps";
        let patched = json!({"metadata": {"name": "p"}});
        exchange(&cluster, "POST", maps, "application/json", &patched).await;
        let (method, path) = match media_type.contains("patch") {
            true => ("PATCH", format!("{maps}/p")),
            false => ("POST", maps.to_owned()),
        };
        let request = http::Request::builder()
            .method(method)
            .uri(format!("{path}?fieldValidation=Strict"))
            .header("content-type", media_type)
            .body(kube::client::Body::from(body.as_bytes().to_vec()))
            .expect("a request");
        let answer = cluster.client().send(request).await.expect("an answer");
        let bytes = answer.into_body().collect_bytes().await.expect("a body");
        let status: Value = shared_json::from_slice(&bytes).expect("a status");
        let message = status["message"].as_str().unwrap_or_default();
        let said = message
            .split_once("strict decoding error: ")
            .map(|(_, said)| said);
        assert_eq!(said, Some(expected.join(", ").as_str()), "{message}");
    });
}

/// `RawExtension` is kept as bytes by the real server. A Go client sends `<`, `>`, `&`, U+2028 and U+2029 as escapes, gets them
/// back as escapes, and compares the bytes. All JSON of the real server has these escapes.
#[test]
fn raw_json_has_the_escapes_of_go() {
    const DATA: &str =
        r#"{"spec":{"template":{"spec":{"args":["a \u003c b \u0026\u0026 c \u003e d","\u2028\u2029é"]}}}}"#;
    const REVISIONS: &str = "/apis/apps/v1/namespaces/default/controllerrevisions";
    simulate(|| async {
        let cluster = Cluster::builder().nodes(0).start().await.expect("a cluster");
        let data: Value = shared_json::from_str(DATA).expect("JSON");
        let revision =
            json!({"metadata": {"name": "r", "annotations": {"a": "<&>"}}, "revision": 1, "data": data});
        let (code, made) = exchange(&cluster, "POST", REVISIONS, "application/json", &revision).await;
        assert_eq!(code, 201, "{made}");
        let path = format!("{REVISIONS}/r");
        let (_, got) = exchange(&cluster, "GET", &path, "application/json", &Value::Null).await;
        let (_, listed) = exchange(&cluster, "GET", REVISIONS, "application/json", &Value::Null).await;
        for text in [made, got, listed] {
            assert!(text.contains(&format!("\"data\":{DATA}")), "{text}");
            assert!(text.contains(r#"{"a":"\u003c\u0026\u003e"}"#), "{text}");
        }
        let request = http::Request::get(path.as_str())
            .header("accept", "application/vnd.kubernetes.protobuf")
            .body(kube::client::Body::empty())
            .expect("a request");
        let answer = cluster.client().send(request).await.expect("an answer");
        let bytes = answer.into_body().collect_bytes().await.expect("a body");
        let found = bytes.windows(DATA.len()).any(|part| part == DATA.as_bytes());
        assert!(found, "{}", String::from_utf8_lossy(&bytes));
    });
}

/// A webhook that allows every ConfigMap, and counts what it is asked.
fn counting(asked: &Arc<AtomicUsize>) -> Webhook {
    let list = |text: &str| vec![text.to_owned()];
    let asked = Arc::clone(asked);
    Webhook {
        name: "count.example.com".to_owned(),
        kind: WebhookKind::Validating,
        rules: vec![WebhookRule {
            groups: list(""),
            versions: list("v1"),
            resources: list("configmaps"),
            operations: list("CREATE"),
        }],
        user: None,
        handler: Arc::new(move |_, mut review| {
            asked.fetch_add(1, Ordering::Relaxed);
            review["response"] = json!({"uid": review["request"]["uid"], "allowed": true});
            Box::pin(std::future::ready(review))
        }),
    }
}

/// A generated name that is taken is made up anew, up to seven times. Webhooks see the last one.
#[rstest]
#[case::the_first_is_free(0, 201)]
#[case::the_last_is_free(7, 201)]
#[case::none_is_free(8, 409)]
fn a_generated_name_is_tried_again(#[case] taken: usize, #[case] expected: u16) {
    simulate(move || async move {
        let mut suffixes: VecDeque<String> = std::iter::repeat_n("taken".to_owned(), taken).collect();
        suffixes.push_back("first".to_owned());
        let rest = Arc::new(SeededNames::new(Seed(0)));
        let names = AliasNames::new(BTreeMap::from([("a-".to_owned(), suffixes)]), rest);
        let asked = Arc::default();
        let builder = Cluster::builder()
            .nodes(0)
            .names(Arc::new(names))
            .webhook(counting(&asked));
        let cluster = builder.start().await.expect("a cluster");
        let path = "/api/v1/namespaces/default/configmaps";
        let first = json!({"metadata": {"name": "a-taken"}});
        assert_eq!(request(&cluster, "POST", path, &first).await.0, 201);
        let before = asked.load(Ordering::Relaxed);
        let generated = json!({"metadata": {"generateName": "a-"}});
        let (code, answer) = request(&cluster, "POST", path, &generated).await;
        assert_eq!(code, expected, "{answer}");
        assert_eq!(asked.load(Ordering::Relaxed) - before, 1);
        let told = match expected {
            201 => &answer["metadata"]["name"],
            _ => &answer["message"],
        };
        let wanted = match expected {
            201 => "a-first",
            _ => {
                "configmaps \"a-taken\" already exists, the server was not able to generate a unique name for the object"
            }
        };
        assert_eq!(told, wanted);
    });
}
