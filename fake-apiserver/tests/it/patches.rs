//! The four kinds of patches.

use rstest::rstest;
use shared_json::{Value, json};

use crate::support::play;

#[rstest]
#[case::json(json!([
    {"do": "POST /api/v1/namespaces/default/configmaps", "body": {"metadata": {"name": "a"}, "data": {"k": "1"}}, "code": 201},
    {"do": "PATCH /api/v1/namespaces/default/configmaps/a", "type": "json",
     "body": [{"op": "test", "path": "/data/k", "value": "1"}, {"op": "replace", "path": "/data/k", "value": "2"}], "has": {"/data/k": "2"}},
    {"do": "PATCH /api/v1/namespaces/default/configmaps/a", "type": "json", "body": [{"op": "test", "path": "/data/k", "value": "1"}], "code": 422,
     "has": {"/reason": "Invalid"}},
]))]
#[case::merge(json!([
    {"do": "POST /api/v1/namespaces/default/configmaps", "body": {"metadata": {"name": "a"}, "data": {"k": "1", "l": "2"}}, "code": 201},
    {"do": "PATCH /api/v1/namespaces/default/configmaps/a", "type": "merge", "body": {"data": {"k": null, "m": "3"}},
     "has": {"/data": {"l": "2", "m": "3"}}},
    {"do": "PATCH /api/v1/namespaces/default/configmaps/a", "type": "merge", "body": {"metadata": {"name": "b"}}, "code": 400},
    {"do": "PATCH /api/v1/namespaces/default/configmaps/missing", "type": "merge", "body": {}, "code": 404},
]))]
#[case::strategic(json!([
    {"do": "POST /api/v1/namespaces/default/podtemplates", "code": 201,
     "body": {"metadata": {"name": "p"}, "template": {"spec": {"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "1"}]}}}},
    {"do": "PATCH /api/v1/namespaces/default/podtemplates/p", "type": "strategic",
     "body": {"template": {"spec": {"containers": [{"name": "b", "image": "2"}]}}},
     "has": {"/template/spec/containers/0/image": "1", "/template/spec/containers/1/image": "2"}},
    {"do": "PATCH /api/v1/namespaces/default/podtemplates/p", "type": "strategic",
     "body": {"template": {"spec": {"containers": [{"name": "a", "$patch": "delete"}]}}},
     "has": {"/template/spec/containers/0/name": "b", "/template/spec/containers/1": null}},
]))]
#[case::apply(json!([
    {"do": "PATCH /api/v1/namespaces/default/configmaps/a?fieldManager=m1", "type": "apply", "code": 201,
     "body": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "1", "l": "1"}}},
    {"do": "PATCH /api/v1/namespaces/default/configmaps/a?fieldManager=m2", "type": "apply", "code": 409,
     "body": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "2"}},
     "has": {"/details/causes/0/message": "conflict with \"m1\"", "/details/causes/0/field": ".data.k"}},
    {"do": "PATCH /api/v1/namespaces/default/configmaps/a?fieldManager=m2&force=true", "type": "apply",
     "body": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "2"}}, "has": {"/data": {"k": "2", "l": "1"}}},
    {"do": "PATCH /api/v1/namespaces/default/configmaps/a?fieldManager=m1", "type": "apply",
     "body": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}, "has": {"/data": {"k": "2"}}},
    {"do": "PATCH /api/v1/namespaces/default/configmaps/a", "type": "apply", "code": 422,
     "body": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}},
     "has": {"/message": "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch"}},
]))]
#[case::unknown(json!([
    {"do": "PATCH /api/v1/namespaces/default/configmaps/a", "type": "text/plain", "body": {}, "code": 415, "has": {"/reason": "UnsupportedMediaType"}},
]))]
fn patches(#[case] steps: Value) {
    play(false, steps);
}
