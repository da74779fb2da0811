//! Lists: selectors, pages, versions, forms.

use rstest::rstest;
use shared_json::{Value, json};

use crate::support::play;

/// Three config maps, `a` and `b` labelled `x=1`, and then `steps`.
fn three(steps: &[Value]) -> Value {
    let make = |name: &str, labels: Value| {
        json!({"do": "POST /api/v1/namespaces/default/configmaps", "body": {"metadata": {"name": name, "labels": labels}}, "code": 201,
            "save": {"rv": "/metadata/resourceVersion"}})
    };
    let mut all = vec![
        make("a", json!({"x": "1"})),
        make("b", json!({"x": "1", "y": "2"})),
        make("c", json!({})),
    ];
    all.extend(steps.iter().cloned());
    Value::from(all)
}

const LIST: &str = "GET /api/v1/namespaces/default/configmaps";

fn listed(query: &str, names: &[&str]) -> Value {
    let mut has = json!({format!("/items/{}", names.len()): null});
    for (index, name) in names.iter().enumerate() {
        has[format!("/items/{index}/metadata/name")] = json!(name);
    }
    json!({"do": format!("{LIST}{query}"), "has": has})
}

#[rstest]
#[case::everything(three(&[listed("", &["a", "b", "c"])]))]
#[case::by_label(three(&[
    listed("?labelSelector=x%3D1", &["a", "b"]),
    listed("?labelSelector=x%3D1,!y", &["a"]),
    listed("?labelSelector=y%20in%20(1,2)", &["b"]),
    listed("?labelSelector=x!%3D1", &["c"]),
]))]
#[case::by_field(three(&[
    listed("?fieldSelector=metadata.name%3Db", &["b"]),
    listed("?fieldSelector=metadata.name!%3Db", &["a", "c"]),
    json!({"do": format!("{LIST}?fieldSelector=data%3Dx"), "code": 400,
        "has": {"/message": "\"data\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""}}),
]))]
#[case::a_bad_selector(json!([
    {"do": format!("{LIST}?labelSelector=a%3D%3Ex"), "code": 400, "has": {"/message": "unable to parse requirement: found '>', expected: identifier"}},
]))]
#[case::by_pages(three(&[
    json!({"do": format!("{LIST}?limit=2"), "save": {"next": "/metadata/continue", "at": "/metadata/resourceVersion"},
        "has": {"/items/1/metadata/name": "b", "/items/2": null, "/metadata/remainingItemCount": 1}}),
    json!({"do": "POST /api/v1/namespaces/default/configmaps", "body": {"metadata": {"name": "d"}}, "code": 201}),
    // A later page shows what was there when the first one was made.
    json!({"do": format!("{LIST}?limit=2&continue=$next"),
        "has": {"/items/0/metadata/name": "c", "/items/1": null, "/metadata/resourceVersion": "$at", "/metadata/continue": null}}),
    json!({"do": format!("{LIST}?continue=garbage"), "code": 400}),
]))]
#[case::by_pages_that_are_too_old(three(&[
    json!({"do": format!("{LIST}?limit=1"), "save": {"next": "/metadata/continue"}}),
    json!({"do": "POST /api/v1/namespaces/default/configmaps", "body": {"metadata": {"name": "ab"}}, "code": 201}),
    json!({"wait": 299, "do": format!("{LIST}?continue=$next"), "has": {"/items/0/metadata/name": "b"}}),
    json!({"wait": 301, "do": format!("{LIST}?limit=1&continue=$next"), "code": 410, "save": {"other": "/metadata/continue"},
        "has": {"/reason": "Expired", "/message": "The provided continue parameter is too old to display a consistent list result. \
         You can start a new list without the continue parameter, or use the continue token in this response to retrieve the \
         remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, \
         modified, or deleted between the time the first chunk was returned and now may show up in the list."}}),
    json!({"do": format!("{LIST}?limit=1&continue=$other"), "has": {"/items/0/metadata/name": "ab", "/items/1": null}}),
    json!({"do": format!("{LIST}?resourceVersion=$rv&resourceVersionMatch=Exact"), "code": 410,
        "has": {"/reason": "Expired", "/message": "The resourceVersion for the provided list is too old."}}),
]))]
#[case::at_a_version(three(&[
    json!({"do": "DELETE /api/v1/namespaces/default/configmaps/a"}),
    json!({"do": format!("{LIST}?resourceVersion=$rv&resourceVersionMatch=Exact"), "has": {"/items/0/metadata/name": "a", "/metadata/resourceVersion": "$rv"}}),
    json!({"do": format!("{LIST}?resourceVersion=$rv&resourceVersionMatch=NotOlderThan"), "has": {"/items/0/metadata/name": "b"}}),
    json!({"do": format!("{LIST}?resourceVersion=999999"), "code": 504, "has": {"/details/causes/0/reason": "ResourceVersionTooLarge"}}),
    json!({"do": format!("{LIST}?resourceVersion=x"), "code": 400}),
]))]
#[case::of_what_is_not_served(json!([
    {"do": "GET /api/v1/namespaces/default/nothings", "code": 404, "has": {"/message": "the server could not find the requested resource"}},
    {"do": "GET /apis/nothing.example.com/v1/things", "code": 404, "has": {"/kind": null}},
    {"do": "PUT /api/v1/namespaces/default/configmaps", "code": 405},
]))]
fn lists(#[case] steps: Value) {
    play(false, steps);
}
