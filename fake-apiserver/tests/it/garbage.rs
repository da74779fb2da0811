//! The clean-up by built-in controllers: dependents by propagation policy, the content of namespaces.

use rstest::rstest;
use shared_json::{Value, json};

use crate::support::play;

/// An owner `o` and its dependent `d` with these finalizers; then the owner's deletion under `policy`, and the expected steps.
fn owned(finalizers: &[&str], policy: &str, then: &[Value]) -> Value {
    let mut steps = vec![
        json!({"do": "POST /api/v1/namespaces/default/configmaps", "body": {"metadata": {"name": "o"}}, "code": 201, "save": {"uid": "/metadata/uid"}}),
        json!({"do": "POST /api/v1/namespaces/default/configmaps", "code": 201, "body": {"metadata": {
            "name": "d", "finalizers": finalizers, "ownerReferences": [
                {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "$uid", "blockOwnerDeletion": true}]}}}),
        json!({"wait": 1, "do": format!("DELETE /api/v1/namespaces/default/configmaps/o?propagationPolicy={policy}")}),
    ];
    steps.extend(then.iter().cloned());
    Value::from(steps)
}

#[rstest]
#[case::background(owned(&[], "Background", &[
    json!({"do": "GET /api/v1/namespaces/default/configmaps/o", "code": 404}),
    json!({"wait": 60, "do": "GET /api/v1/namespaces/default/configmaps/d", "code": 404}),
]))]
#[case::foreground(owned(&["e.com/f"], "Foreground", &[
    json!({"wait": 60, "do": "GET /api/v1/namespaces/default/configmaps/o", "has": {"/metadata/finalizers": ["foregroundDeletion"]}}),
    json!({"do": "PATCH /api/v1/namespaces/default/configmaps/d", "type": "merge", "body": {"metadata": {"finalizers": null}}}),
    json!({"wait": 60, "do": "GET /api/v1/namespaces/default/configmaps/d", "code": 404}),
    json!({"do": "GET /api/v1/namespaces/default/configmaps/o", "code": 404}),
]))]
#[case::orphan(owned(&[], "Orphan", &[
    json!({"wait": 60, "do": "GET /api/v1/namespaces/default/configmaps/o", "code": 404}),
    json!({"do": "GET /api/v1/namespaces/default/configmaps/d", "has": {"/metadata/ownerReferences": null}}),
]))]
#[case::an_owner_that_never_was(json!([
    {"do": "POST /api/v1/namespaces/default/configmaps", "code": 201, "body": {"metadata": {"name": "d", "ownerReferences": [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "gone"}]}}},
    {"wait": 60, "do": "GET /api/v1/namespaces/default/configmaps/d", "code": 404},
]))]
#[case::an_owner_whose_kind_goes_too(json!([
    {"do": "POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions", "code": 201, "body": {
        "metadata": {"name": "owners.e.com"},
        "spec": {"group": "e.com", "scope": "Namespaced", "names": {"plural": "owners", "kind": "Owner"}, "versions": [
            {"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}}},
    {"wait": 1, "do": "POST /apis/e.com/v1/namespaces/default/owners", "body": {"apiVersion": "e.com/v1", "kind": "Owner", "metadata": {"name": "o"}},
     "code": 201, "save": {"uid": "/metadata/uid"}},
    {"do": "POST /api/v1/namespaces/default/configmaps", "code": 201, "body": {"metadata": {"name": "d", "ownerReferences": [
        {"apiVersion": "e.com/v1", "kind": "Owner", "name": "o", "uid": "$uid"}]}}},
    {"do": "POST /apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies", "code": 201, "body": {"metadata": {"name": "keep"}, "spec": {
        "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["DELETE"], "resources": ["configmaps"]}]},
        "validations": [{"expression": "false"}]}}},
    {"do": "POST /apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings", "code": 201, "body": {
        "metadata": {"name": "keep"}, "spec": {"policyName": "keep", "validationActions": ["Deny"]}}},
    {"wait": 1, "do": "DELETE /apis/e.com/v1/namespaces/default/owners/o"},
    {"wait": 5, "do": "DELETE /apis/apiextensions.k8s.io/v1/customresourcedefinitions/owners.e.com"},
    {"wait": 60, "do": "GET /api/v1/namespaces/default/configmaps/d"},
    {"do": "DELETE /apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/keep"},
    {"wait": 120, "do": "GET /api/v1/namespaces/default/configmaps/d", "code": 404},
]))]
#[case::an_owner_whose_kind_comes_later(json!([
    {"do": "POST /api/v1/namespaces/default/configmaps", "code": 201, "body": {"metadata": {"name": "d", "ownerReferences": [
        {"apiVersion": "e.com/v1", "kind": "Owner", "name": "o", "uid": "gone"}]}}},
    {"wait": 60, "do": "GET /api/v1/namespaces/default/configmaps/d"},
    {"do": "POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions", "code": 201, "body": {
        "metadata": {"name": "owners.e.com"},
        "spec": {"group": "e.com", "scope": "Namespaced", "names": {"plural": "owners", "kind": "Owner"}, "versions": [
            {"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}}},
    {"wait": 120, "do": "GET /api/v1/namespaces/default/configmaps/d", "code": 404},
]))]
#[case::a_namespace(json!([
    {"do": "POST /api/v1/namespaces", "body": {"metadata": {"name": "n"}}, "code": 201,
     "has": {"/spec/finalizers": ["kubernetes"], "/status/phase": "Active", "/metadata/labels": {"kubernetes.io/metadata.name": "n"}}},
    {"wait": 1, "do": "GET /api/v1/namespaces/n/serviceaccounts/default"},
    {"do": "POST /api/v1/namespaces/n/configmaps", "body": {"metadata": {"name": "a", "finalizers": ["e.com/f"]}}, "code": 201},
    {"do": "DELETE /api/v1/namespaces/n", "has": {"/status/phase": "Terminating"}},
    {"wait": 60, "do": "POST /api/v1/namespaces/n/configmaps", "body": {"metadata": {"name": "b"}}, "code": 403,
     "has": {"/details/causes/0/reason": "NamespaceTerminating"}},
    {"do": "PATCH /api/v1/namespaces/n/configmaps/a", "type": "merge", "body": {"metadata": {"finalizers": null}}},
    {"wait": 60, "do": "GET /api/v1/namespaces/n", "code": 404},
]))]
fn cleans_up(#[case] steps: Value) {
    play(true, steps);
}
