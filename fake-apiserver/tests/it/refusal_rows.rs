//! The first error of refused requests, and its wording: rows from the source of 1.36.2.

use http::Method;
use rstest::rstest;
use shared_json::{Value, json};

use fake_apiserver::Cluster;

use crate::support::{play, request, simulate};

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WIDGETS: &str = "/apis/e.com/v1/namespaces/default/widgets";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const PODS: &str = "/api/v1/namespaces/default/pods";
const BLOCKED: &str = "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; \
                       correct the existing errors to complete validation";

/// Widgets of at most five, of a version that goes.
fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.e.com"},
        "spec": {
            "group": "e.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "deprecated": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {"n": {"type": "integer"}},
                        "x-kubernetes-validations": [{"rule": "self.n < 5", "message": "too many"}]},
                    "status": {"type": "object", "properties": {"n": {"type": "integer"}}},
                }}},
                "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"}},
            }],
        },
    })
}

fn widget(metadata: Value, n: i64) -> Value {
    json!({"apiVersion": "e.com/v1", "kind": "Widget", "metadata": metadata, "spec": {"n": n}})
}

/// A definition, one widget, and then requests.
fn widgets(steps: Value) {
    let mut all = vec![
        json!({"do": format!("POST {CRDS}"), "body": definition(), "code": 201}),
        json!({"do": format!("POST {WIDGETS}"), "body": widget(json!({"name": "w"}), 1), "code": 201,
            "save": {"rv": "/metadata/resourceVersion"}}),
    ];
    all.extend(steps.as_array().into_iter().flatten().cloned());
    play(false, Value::from(all));
}

fn refused(request: &str, code: u16, message: &str) -> Value {
    json!({"do": request, "code": code, "has": {"/message": message}})
}

/// `crdHandler` does not look at the existing methods: a method without a verb is none of the resource's.
#[test]
fn methods_of_custom_resources() {
    let unsupported = " is not supported on resources of kind \"widgets.e.com\"";
    widgets(json!([
        refused(&format!("OPTIONS {WIDGETS}"), 405, unsupported),
        refused(&format!("OPTIONS {WIDGETS}/w"), 405, unsupported),
        refused(&format!("TRACE {WIDGETS}/w/status"), 405, unsupported),
        refused(&format!("OPTIONS {WIDGETS}/w/nothing"), 404, "widgets.e.com \"w\" not found"),
        // A path without the namespace goes on to who knows nothing of it.
        {"do": "OPTIONS /apis/e.com/v1/widgets", "code": 404, "has": {"/kind": null}},
        {"do": "PUT /apis/e.com/v1/widgets", "code": 404, "has": {"/kind": null}},
        {"do": format!("HEAD {WIDGETS}/w"), "code": 200},
        {"do": format!("HEAD {WIDGETS}/w/status"), "code": 200},
        {"do": format!("HEAD {WIDGETS}"), "code": 200},
        {"do": format!("HEAD {WIDGETS}/v"), "code": 404},
        {"do": "HEAD /apis/e.com/v1/widgets", "code": 200},
        {"do": format!("HEAD {MAPS}"), "code": 405},
        {"do": format!("OPTIONS {MAPS}"), "code": 405,
            "has": {"/message": "the server does not allow this method on the requested resource"}},
    ]));
}

/// Their handler finds out itself that nothing is named, and of a patch first that it is one.
#[test]
fn changes_of_no_custom_resource() {
    let mut unnamed = refused(&format!("PUT {WIDGETS}?dryRun=x"), 400, "name must be provided");
    unnamed["body"] = widget(json!({"name": "w"}), 2);
    let mut patch = refused(
        &format!("PATCH {WIDGETS}?force=true"),
        400,
        "name must be provided",
    );
    patch["type"] = json!("merge");
    patch["body"] = json!({});
    let mut strategic = refused(
        &format!("PATCH {WIDGETS}?force=true"),
        415,
        "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, \
         application/merge-patch+json, application/apply-patch+yaml",
    );
    strategic["type"] = json!("strategic");
    widgets(json!([unnamed, patch, strategic]));
}

/// A name in the path has no meaning for the created object.
#[test]
fn what_is_posted_to_a_name() {
    widgets(json!([
        {"do": format!("POST {WIDGETS}/other"), "body": widget(json!({"name": "mine"}), 2), "code": 201,
            "has": {"/metadata/name": "mine"}},
        {"do": format!("GET {WIDGETS}/mine")},
        {"do": format!("GET {WIDGETS}/other"), "code": 404},
        {"do": format!("POST {WIDGETS}/w"), "body": widget(json!({"name": "w"}), 2), "code": 409},
        {"do": format!("POST {MAPS}/a"), "code": 405,
            "body": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}},
    ]));
}

/// Errors in the metadata count for the rules if they are of a kind that leaves them open: missing or too long values.
#[test]
fn rules_beside_wrong_metadata() {
    let long = "a".repeat(256 * 1024 + 1);
    let label = "metadata.labels: Invalid value: \"a b\": a valid label must be an empty string or consist of alphanumeric \
                 characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or \
                 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
    let too_long = "metadata.annotations: Too long: may not be more than 262144 bytes";
    let wrong = |name: &str, what: &str| format!("Widget.e.com \"{name}\" is invalid: [{what}]");
    widgets(json!([
        {"do": format!("POST {WIDGETS}"), "body": widget(json!({}), 7), "code": 422, "has": {"/message":
            wrong("", &format!("metadata.name: Required value: name or generateName is required, {BLOCKED}"))}},
        {"do": format!("POST {WIDGETS}"), "body": widget(json!({"name": "v", "annotations": {"a": long}}), 7), "code": 422,
            "has": {"/message": wrong("v", &format!("{too_long}, {BLOCKED}"))}},
        {"do": format!("POST {WIDGETS}"), "body": widget(json!({"name": "v", "labels": {"a": "a b"}}), 7), "code": 422,
            "has": {"/message": wrong("v", &format!("{label}, spec: Invalid value: too many"))}},
        {"do": format!("PUT {WIDGETS}/w"), "code": 422,
            "body": widget(json!({"name": "w", "resourceVersion": "$rv", "annotations": {"a": long}}), 7),
            "has": {"/message": wrong("w", &format!("{too_long}, {BLOCKED}"))}},
        // The numbers of the scale come before the rules, and leave nothing open.
        {"do": format!("POST {WIDGETS}"), "code": 422,
            "body": {"apiVersion": "e.com/v1", "kind": "Widget", "metadata": {"name": "v"}, "spec": {"n": 3_000_000_000_i64}},
            "has": {"/message": wrong("v", ".spec.n: Invalid value: 3000000000: should be less than or equal to 2147483647, \
                spec: Invalid value: too many")}},
        {"do": format!("PATCH {WIDGETS}/w/status"), "type": "merge", "body": {"status": {"n": -1}}, "code": 422, "has": {"/message":
            "Widget.e.com \"w\" is invalid: .status.n: Invalid value: -1: should be a non-negative integer"}},
    ]));
}

/// A custom resource is read, its metadata included, before its kind is compared.
#[rstest]
#[case::no_version(json!({"apiVersion": null, "kind": "Widget", "metadata": {"name": "v"}}),
    "Object 'apiVersion' is missing in 'object has no apiVersion field'")]
#[case::a_name_of_another_kind(json!({"apiVersion": "e.com/v1", "kind": "Gadget", "metadata": {"name": 0}}),
    "Gadget in version \"v1\" cannot be handled as a Gadget: json: cannot unmarshal number into Go struct field \
     ObjectMeta.name of type string")]
#[case::a_name_of_another_version(json!({"apiVersion": "e.com/v2", "kind": "Widget", "metadata": {"name": 0}}),
    "Widget in version \"v2\" cannot be handled as a Widget: json: cannot unmarshal number into Go struct field \
     ObjectMeta.name of type string")]
#[case::a_name_of_no_version(json!({"kind": "Widget", "metadata": {"name": 0}}),
    "Object 'apiVersion' is missing in 'object has no apiVersion field'")]
#[case::a_name(json!({"apiVersion": "e.com/v1", "kind": "Widget", "metadata": {"name": 0}}),
    "Widget in version \"v1\" cannot be handled as a Widget: json: cannot unmarshal number into Go struct field \
     ObjectMeta.name of type string")]
fn custom_resources_are_read_first(#[case] body: Value, #[case] message: &str) {
    widgets(
        json!([{"do": format!("POST {WIDGETS}"), "body": body, "code": 400, "has": {"/message": message}}]),
    );
}

/// Nor is one that a patch has made.
#[test]
fn a_patch_takes_the_version_away() {
    let patch = json!([{"op": "replace", "path": "/apiVersion", "value": null}]);
    simulate(|| async move {
        let cluster = Cluster::builder().nodes(0).start().await.expect("a cluster");
        request(&cluster, "POST", CRDS, &definition()).await;
        request(&cluster, "POST", WIDGETS, &widget(json!({"name": "w"}), 1)).await;
        let (code, answer) = crate::support::send(
            &cluster,
            "PATCH",
            &format!("{WIDGETS}/w"),
            "application/json-patch+json",
            &patch,
        )
        .await;
        let message = answer["message"].as_str().unwrap_or_default();
        assert_eq!(code, 422, "{answer}");
        assert!(
            message.ends_with(": .apiVersion accessor error: <nil> is of the type <nil>, expected string"),
            "{message}"
        );
    });
}

/// A refusal that no handler has seen warns of nothing; one that it has warns that the version goes.
#[test]
fn what_is_told_beside_a_refusal() {
    simulate(|| async {
        let cluster = Cluster::builder().nodes(0).start().await.expect("a cluster");
        request(&cluster, "POST", CRDS, &definition()).await;
        let endpoints = "/api/v1/namespaces/default/endpoints";
        for (method, path, media_type, accept, code, warns) in [
            (
                Method::PATCH,
                format!("{endpoints}/a?force=true"),
                "image/png",
                "",
                415,
                false,
            ),
            (
                Method::PATCH,
                format!("{endpoints}/a?fieldValidation=x"),
                "image/png",
                "",
                415,
                false,
            ),
            (Method::GET, endpoints.to_owned(), "", "image/png", 406, false),
            (
                Method::POST,
                format!("{endpoints}/a?dryRun=x"),
                "application/json",
                "image/png",
                405,
                false,
            ),
            (
                Method::PATCH,
                format!("{endpoints}/a"),
                "application/merge-patch+json",
                "",
                404,
                true,
            ),
            (Method::OPTIONS, format!("{WIDGETS}/w"), "", "", 405, true),
            (Method::PATCH, WIDGETS.to_owned(), "image/png", "", 415, true),
        ] {
            let asked = http::Request::builder().method(&method).uri(&path);
            let asked = asked.header("content-type", media_type).header("accept", accept);
            let asked = asked
                .body(kube::client::Body::from(b"{}".to_vec()))
                .expect("a request");
            let answer = cluster.client().send(asked).await.expect("an answer");
            let told = answer.headers().contains_key("warning");
            assert_eq!((answer.status().as_u16(), told), (code, warns), "{method} {path}");
        }
    });
}

/// A client that turns off field validation of a patch gets the error of the library that applies it.
#[test]
fn operations_that_are_none() {
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
    let patch = |query: &str, body: Value, code: u16, message: &str| json!({"do": format!("PATCH {MAPS}/a{query}"), "type": "json", "body": body, "code": code, "has": {"/message": message}});
    let closely = "error decoding patch: json: cannot unmarshal";
    let hidden = "the server rejected our request due to an error in our request";
    play(
        false,
        json!([
            {"do": format!("POST {MAPS}"), "body": map, "code": 201},
            patch("", json!([5]), 400, &format!("{closely} number into Go value of type handlers.jsonPatchOp")),
            patch("", json!([{"op": 1, "path": "/a"}, 5]), 400,
                &format!("{closely} number into Go struct field jsonPatchOp.op of type string")),
            patch("?fieldValidation=Ignore", json!([5]), 400,
                "json: cannot unmarshal number into Go value of type jsonpatch.Operation"),
            patch("?fieldValidation=Ignore", json!({"op": "add"}), 400,
                "json: cannot unmarshal object into Go value of type jsonpatch.Patch"),
            patch("?fieldValidation=Ignore", json!([{"op": 1, "path": "/a"}]), 422, hidden),
            patch("?fieldValidation=Ignore", json!([null]), 422, hidden),
        ]),
    );
}

/// The account that pods have.
fn account() -> Value {
    json!({"do": "POST /api/v1/namespaces/default/serviceaccounts", "code": 201,
        "body": {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}})
}

/// The `kind` and `apiVersion` of a scale must be text before they are looked up.
#[test]
fn kinds_of_scales() {
    simulate(|| async {
        let cluster = Cluster::builder()
            .nodes(0)
            .controllers(false)
            .start()
            .await
            .expect("a cluster");
        let sets = "/apis/apps/v1/namespaces/default/replicasets";
        let set = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "s"}, "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}});
        let (code, answer) = request(&cluster, "POST", sets, &set).await;
        assert_eq!(code, 201, "{answer}");
        let path = format!("{sets}/s/scale");
        let why = "couldn't get version/kind; json parse error: json: cannot unmarshal bool into Go struct field .kind of \
                   type string";
        let body = json!({"kind": false, "apiVersion": "x/v1"});
        let (code, answer) = request(&cluster, "PUT", &path, &body).await;
        let message = answer["message"].as_str().unwrap_or_default();
        assert_eq!(code, 400, "{answer}");
        let begin = format!("the object provided is unrecognized (must be of type Scale): {why} (");
        assert!(message.starts_with(&begin), "{message}");
        let (code, answer) = crate::support::send(
            &cluster,
            "PATCH",
            &path,
            "application/merge-patch+json",
            &json!({"kind": false}),
        )
        .await;
        let message = answer["message"].as_str().unwrap_or_default();
        assert_eq!(code, 422, "{answer}");
        assert!(message.ends_with(why), "{message}");
    });
}

/// A LimitRange is not refused for want of a name: it gets one, in a dry run, too.
#[test]
fn limits_without_a_name() {
    simulate(|| async {
        let cluster = Cluster::builder()
            .nodes(0)
            .controllers(false)
            .start()
            .await
            .expect("a cluster");
        let path = "/api/v1/namespaces/default/limitranges";
        for (query, metadata) in [
            ("?dryRun=All", Value::Null),
            ("", Value::Null),
            ("", json!({"labels": {"a": "b"}})),
        ] {
            let mut limits = json!({"apiVersion": "v1", "kind": "LimitRange", "spec": {"limits": []}});
            if !metadata.is_null() {
                limits["metadata"] = metadata;
            }
            let (code, answer) = request(&cluster, "POST", &format!("{path}{query}"), &limits).await;
            assert_eq!(code, 201, "{answer}");
            let name = answer["metadata"]["name"].as_str().unwrap_or_default();
            assert_eq!((name.len(), name.split('-').count()), (36, 5), "{answer}");
            assert_ne!(answer["metadata"]["uid"], answer["metadata"]["name"], "{answer}");
        }
        let (_, list) = request(&cluster, "GET", path, &Value::Null).await;
        assert_eq!(
            list["items"].as_array().map(|items| items.len()),
            Some(2),
            "{list}"
        );
        let mut named = json!({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"generateName": "l-"}, "spec": {"limits": []}});
        named["metadata"]["labels"] = json!({"a": "b"});
        let (_, answer) = request(&cluster, "POST", path, &named).await;
        let name = answer["metadata"]["name"].as_str().unwrap_or_default();
        assert!(name.starts_with("l-") && name.len() == 7, "{answer}");
    });
}

/// The query of an eviction's creation sets no preconditions for the deletion of the pod.
#[test]
fn evictions_have_no_preconditions_in_their_query() {
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}});
    play(
        false,
        json!([
            account(),
            {"do": format!("POST {PODS}"), "body": pod, "code": 201},
            {"do": format!("POST {PODS}/p/eviction?resourceVersion=0&uid=x&propagationPolicy=Nope"), "body": eviction, "code": 201},
            {"do": format!("GET {PODS}/p"), "code": 404},
        ]),
    );
}

/// Of a deletion of many it is read first which, then how.
#[test]
fn deletions_of_many_are_read_in_order() {
    let select = "found '=', expected: !, identifier, or 'end of string'";
    let how = "propagationPolicy: Unsupported value: \"x\": supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\"";
    play(
        false,
        json!([
            refused(
                &format!("DELETE {MAPS}?labelSelector==&propagationPolicy=x"),
                400,
                select
            ),
            refused(
                &format!("DELETE {MAPS}?labelSelector==&gracePeriodSeconds=x"),
                400,
                select
            ),
            refused(
                &format!("DELETE {MAPS}?gracePeriodSeconds=x"),
                400,
                "strconv.ParseInt: parsing \"x\": invalid syntax"
            ),
            refused(
                &format!("DELETE {MAPS}?propagationPolicy=x"),
                422,
                &format!("DeleteOptions.meta.k8s.io \"\" is invalid: {how}")
            ),
        ]),
    );
}

/// Admission knows no name of an object without one.
#[test]
fn refusals_of_what_has_no_name() {
    let pod = |spec: Value| {
        let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {},
            "spec": {"containers": [{"name": "c", "image": "i"}]}});
        for (field, value) in spec.as_object().into_iter().flatten() {
            pod["spec"][field] = value.clone();
        }
        pod
    };
    play(
        false,
        json!([
            account(),
            {"do": format!("POST {PODS}"), "body": pod(json!({"serviceAccountName": "none"})), "code": 403, "has": {"/message":
                "pods \"Unknown\" is forbidden: error looking up service account default/none: serviceaccount \"none\" not found"}},
            {"do": format!("POST {PODS}"), "body": pod(json!({"priorityClassName": "none"})), "code": 403, "has": {"/message":
                "pods \"Unknown\" is forbidden: no PriorityClass with name none was found"}},
        ]),
    );
}

/// A table's rows are thought of when the objects are there.
#[test]
fn rows_of_tables_are_thought_of_last() {
    simulate(|| async {
        let cluster = Cluster::builder().nodes(0).start().await.expect("a cluster");
        for (path, code) in [
            (format!("{MAPS}?includeObject=x"), 400),
            (format!("{MAPS}/none?includeObject=x"), 404),
            (format!("{MAPS}?includeObject=x&continue=x"), 400),
        ] {
            let asked =
                http::Request::get(&path).header("accept", "application/json;as=Table;g=meta.k8s.io;v=v1");
            let asked = asked.body(kube::client::Body::empty()).expect("a request");
            let answer = cluster.client().send(asked).await.expect("an answer");
            assert_eq!(answer.status().as_u16(), code, "{path}");
            let body = answer.into_body().collect_bytes().await.expect("a body");
            let body = String::from_utf8_lossy(&body).into_owned();
            assert_eq!(
                body.contains("continue key is not valid"),
                path.contains("continue"),
                "{body}"
            );
        }
    });
}

/// Differs: the real server refuses it ("Pod Overhead set without corresponding RuntimeClass defined Overhead").
#[test]
fn an_empty_overhead_is_none() {
    let pod = json!({"metadata": {"name": "p"}, "spec": {"overhead": {}, "containers": [{"name": "c", "image": "i"}]}});
    play(
        false,
        json!([
            {"do": "POST /api/v1/namespaces/default/serviceaccounts", "body": {"metadata": {"name": "default"}}, "code": 201},
            {"do": format!("POST {PODS}"), "body": pod, "code": 201},
        ]),
    );
}
