//! Deletion: preconditions, finalizers, grace, collections, namespaces.

use rstest::rstest;
use shared_json::{Value, json};

use crate::support::play;

#[rstest]
#[case::at_once(json!([
    {"do": "POST /api/v1/namespaces/default/configmaps", "body": {"metadata": {"name": "a"}}, "code": 201, "save": {"uid": "/metadata/uid"}},
    {"do": "DELETE /api/v1/namespaces/default/configmaps/a", "has": {"/status": "Success", "/details/uid": "$uid"}},
    {"do": "DELETE /api/v1/namespaces/default/configmaps/a", "code": 404, "has": {"/message": "configmaps \"a\" not found"}},
]))]
#[case::preconditions(json!([
    {"do": "POST /api/v1/namespaces/default/configmaps", "body": {"metadata": {"name": "a"}}, "code": 201,
     "save": {"uid": "/metadata/uid", "rv": "/metadata/resourceVersion"}},
    {"do": "DELETE /api/v1/namespaces/default/configmaps/a", "body": {"preconditions": {"uid": "other"}}, "code": 409},
    {"do": "DELETE /api/v1/namespaces/default/configmaps/a", "body": {"preconditions": {"resourceVersion": "1"}}, "code": 409},
    {"do": "DELETE /api/v1/namespaces/default/configmaps/a", "body": {"preconditions": {"uid": "$uid", "resourceVersion": "$rv"}}},
]))]
#[case::a_finalizer(json!([
    {"do": "POST /api/v1/namespaces/default/configmaps", "body": {"metadata": {"name": "a", "finalizers": ["e.com/f"]}}, "code": 201},
    {"do": "DELETE /api/v1/namespaces/default/configmaps/a",
     "has": {"/kind": "ConfigMap", "/metadata/deletionGracePeriodSeconds": 0, "/metadata/deletionTimestamp": "2026-01-01T00:00:00Z"}},
    {"do": "POST /api/v1/namespaces/default/configmaps", "body": {"metadata": {"name": "a"}}, "code": 409,
     "has": {"/message": "object is being deleted: configmaps \"a\" already exists"}},
    {"do": "PATCH /api/v1/namespaces/default/configmaps/a", "type": "merge", "body": {"metadata": {"finalizers": ["e.com/f", "e.com/g"]}}, "code": 422},
    {"do": "PATCH /api/v1/namespaces/default/configmaps/a", "type": "merge", "body": {"metadata": {"finalizers": null}}},
    {"do": "GET /api/v1/namespaces/default/configmaps/a", "code": 404},
]))]
#[case::a_pod_without_a_node(json!([
    {"do": "POST /api/v1/namespaces/default/serviceaccounts", "body": {"metadata": {"name": "default"}}, "code": 201},
    {"do": "POST /api/v1/namespaces/default/pods", "body": {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}, "code": 201},
    {"do": "DELETE /api/v1/namespaces/default/pods/p", "has": {"/kind": "Pod"}},
    {"do": "GET /api/v1/namespaces/default/pods/p", "code": 404},
]))]
#[case::a_pod_on_a_node(json!([
    {"do": "POST /api/v1/namespaces/default/serviceaccounts", "body": {"metadata": {"name": "default"}}, "code": 201},
    {"do": "POST /api/v1/namespaces/default/pods", "body": {"metadata": {"name": "p"}, "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}}, "code": 201},
    {"do": "DELETE /api/v1/namespaces/default/pods/p?gracePeriodSeconds=5",
     "has": {"/metadata/deletionGracePeriodSeconds": 5, "/metadata/deletionTimestamp": "2026-01-01T00:00:05Z"}},
    {"do": "DELETE /api/v1/namespaces/default/pods/p", "has": {"/metadata/deletionGracePeriodSeconds": 5}},
    {"do": "DELETE /api/v1/namespaces/default/pods/p?gracePeriodSeconds=0"},
    {"do": "GET /api/v1/namespaces/default/pods/p", "code": 404},
]))]
#[case::a_collection(json!([
    {"do": "POST /api/v1/namespaces/default/configmaps", "body": {"metadata": {"name": "a", "labels": {"x": "1"}}}, "code": 201},
    {"do": "POST /api/v1/namespaces/default/configmaps", "body": {"metadata": {"name": "b", "labels": {"x": "2"}}}, "code": 201},
    {"do": "DELETE /api/v1/namespaces/default/configmaps?labelSelector=x%3D1", "has": {"/items/0/metadata/name": "a", "/items/1": null}},
    {"do": "GET /api/v1/namespaces/default/configmaps", "has": {"/items/0/metadata/name": "b", "/items/1": null}},
]))]
#[case::bad_options(json!([
    {"do": "DELETE /api/v1/namespaces/default/configmaps/a?propagationPolicy=Nope", "code": 422,
     "has": {"/details/causes/0/field": "propagationPolicy"}},
]))]
#[case::a_dry_run(json!([
    {"do": "POST /api/v1/namespaces/default/configmaps", "body": {"metadata": {"name": "a"}}, "code": 201},
    {"do": "DELETE /api/v1/namespaces/default/configmaps/a?dryRun=All", "has": {"/status": "Success"}},
    {"do": "GET /api/v1/namespaces/default/configmaps/a"},
]))]
#[case::a_namespace_that_lives_forever(json!([
    {"do": "DELETE /api/v1/namespaces/default", "code": 403},
]))]
fn deletions(#[case] steps: Value) {
    play(false, steps);
}
