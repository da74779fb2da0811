//! Custom resources: definitions, pruning, defaults, validation, subresources, columns.

use rstest::rstest;
use shared_json::{Value, json};

use crate::support::play;

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WIDGETS: &str = "/apis/e.com/v1/namespaces/default/widgets";

/// The definition of widgets with this schema of their spec.
fn definition(spec: Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.e.com"},
        "spec": {
            "group": "e.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": spec, "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}},
                "subresources": {"status": {}, "scale": {
                    "specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n", "labelSelectorPath": ".status.selector"}},
            }],
        },
    })
}

/// A definition of two versions without a status of its own: the second is not stored, and has a field that the first has not.
fn two_versions(steps: &[Value]) -> Value {
    let version = |name: &str, fields: Value| {
        let spec = json!({"type": "object", "properties": fields});
        json!({"name": name, "served": true, "storage": name == "v1",
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec,
                "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}}})
    };
    let text = json!({"type": "string"});
    let mut definition = definition(json!({"type": "object"}));
    definition["spec"]["versions"] = json!([
        version("v1", json!({"a": text, "d": {"type": "string", "default": "x"}})),
        version("v2", json!({"a": text, "d": text, "only": text})),
    ]);
    let mut all = vec![json!({"do": format!("POST {CRDS}"), "body": definition, "code": 201})];
    all.extend(steps.iter().cloned());
    Value::from(all)
}

/// A definition of a spec with numbers that fractions limit.
fn measured(steps: &[Value]) -> Value {
    let spec = json!({"type": "object", "properties": {
        "least": {"type": "number", "minimum": 1.5}, "step": {"type": "number", "multipleOf": 0.5}}});
    let mut definition = definition(spec);
    definition["spec"]["versions"][0]["subresources"] = json!({});
    let mut all = vec![json!({"do": format!("POST {CRDS}"), "body": definition, "code": 201})];
    all.extend(steps.iter().cloned());
    Value::from(all)
}

/// A creation of a widget in a version, with and without a dry run.
fn made_in(version: &str, query: &str, name: &str, spec: Value, code: u16, has: Value) -> Value {
    let body = json!({"apiVersion": format!("e.com/{version}"), "kind": "Widget", "metadata": {"name": name}, "spec": spec});
    json!({"do": format!("POST /apis/e.com/{version}/namespaces/default/widgets{query}"), "body": body, "code": code, "has": has})
}

/// A definition, and then requests for widgets.
fn defined(steps: &[Value]) -> Value {
    let spec = json!({"type": "object", "required": ["n"], "properties": {
        "n": {"type": "integer", "minimum": 0}, "mode": {"type": "string", "default": "easy", "enum": ["easy", "hard"]}}});
    let mut all = vec![json!({"do": format!("POST {CRDS}"), "body": definition(spec), "code": 201})];
    all.extend(steps.iter().cloned());
    Value::from(all)
}

fn create(spec: Value, code: u16, has: Value) -> Value {
    let body = json!({"apiVersion": "e.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": spec, "status": {"n": 9}});
    json!({"do": format!("POST {WIDGETS}"), "body": body, "code": code, "has": has, "save": {"rv": "/metadata/resourceVersion"}})
}

#[rstest]
#[case::pruned_and_defaulted(defined(&[create(json!({"n": 1, "zzz": 1}), 201,
    json!({"/spec": {"n": 1, "mode": "easy"}, "/status": null, "/metadata/generation": 1}))]))]
#[case::out_of_range(defined(&[create(json!({"n": -1}), 422, json!({"/message":
    "Widget.e.com \"w\" is invalid: [spec.n: Invalid value: -1: spec.n in body should be greater than or equal to 0, \
     .spec.n: Invalid value: -1: should be a non-negative integer]"}))]))]
#[case::missing(defined(&[create(json!({}), 422, json!({"/details/causes/0/reason": "FieldValueRequired", "/details/causes/0/field": "spec.n"}))]))]
#[case::not_in_the_enum(defined(&[create(json!({"n": 1, "mode": "odd"}), 422, json!({"/details/causes/0/reason": "FieldValueNotSupported"}))]))]
#[case::updates_need_a_version(defined(&[
    create(json!({"n": 1}), 201, json!({})),
    json!({"do": format!("PUT {WIDGETS}/w"), "code": 422,
        "body": {"apiVersion": "e.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"n": 2}},
        "has": {"/message": "widgets.e.com \"w\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update"}}),
    json!({"do": format!("PUT {WIDGETS}/w"), "has": {"/metadata/generation": 2, "/spec/n": 2},
        "body": {"apiVersion": "e.com/v1", "kind": "Widget", "metadata": {"name": "w", "resourceVersion": "$rv"}, "spec": {"n": 2}}}),
]))]
#[case::status(defined(&[
    create(json!({"n": 1}), 201, json!({})),
    json!({"do": format!("PATCH {WIDGETS}/w/status"), "type": "merge", "body": {"spec": {"n": 5}, "status": {"n": 1, "selector": "a=b"}},
        "has": {"/spec/n": 1, "/status/n": 1, "/metadata/generation": 1}}),
    json!({"do": format!("PATCH {WIDGETS}/w"), "type": "merge", "body": {"status": {"n": 7}}, "has": {"/status/n": 1}}),
    json!({"do": format!("GET {WIDGETS}/w/scale"), "has": {"/spec/replicas": 1, "/status": {"replicas": 1, "selector": "a=b"}}}),
    json!({"do": format!("PATCH {WIDGETS}/w/scale"), "type": "merge", "body": {"spec": {"replicas": 4}}, "has": {"/spec/replicas": 4}}),
    json!({"do": format!("GET {WIDGETS}/w"), "has": {"/spec/n": 4, "/metadata/generation": 2}}),
]))]
#[case::no_strategic_merge(defined(&[
    create(json!({"n": 1}), 201, json!({})),
    json!({"do": format!("PATCH {WIDGETS}/w"), "type": "strategic", "body": {}, "code": 415}),
]))]
#[case::established_and_gone(defined(&[
    json!({"do": format!("GET {CRDS}/widgets.e.com"), "has": {
        "/status/acceptedNames/listKind": "WidgetList", "/status/conditions/1/type": "Established", "/status/storedVersions": ["v1"]}}),
    create(json!({"n": 1}), 201, json!({})),
    json!({"do": format!("DELETE {CRDS}/widgets.e.com")}),
    json!({"wait": 30, "do": format!("GET {CRDS}/widgets.e.com"), "code": 404}),
    json!({"do": format!("GET {WIDGETS}/w"), "code": 404, "has": {"/kind": null}}),
]))]
#[case::dry_runs_go_through_the_stored_version(two_versions(&[
    made_in("v2", "?dryRun=All", "w", json!({"a": "q", "only": "z"}), 201, json!({"/spec": {"a": "q", "d": "x"}})),
    made_in("v2", "", "w", json!({"a": "q", "only": "z"}), 201, json!({"/spec": {"a": "q", "d": "x"}})),
    json!({"do": "PATCH /apis/e.com/v2/namespaces/default/widgets/w?dryRun=All", "type": "merge",
        "body": {"spec": {"a": "r", "d": null, "only": "z"}}, "has": {"/spec": {"a": "r", "d": "x"}, "/apiVersion": "e.com/v2"}}),
]))]
#[case::a_status_that_is_a_field_as_any_other(two_versions(&[
    made_in("v1", "", "w", json!({}), 201, json!({"/metadata/generation": 1})),
    json!({"do": format!("PATCH {WIDGETS}/w"), "type": "merge", "body": {"status": {"n": 1}}, "has": {"/metadata/generation": 2, "/status/n": 1}}),
    json!({"do": format!("PATCH {WIDGETS}/w"), "type": "merge", "body": {"metadata": {"labels": {"a": "b"}}}, "has": {"/metadata/generation": 2}}),
]))]
#[case::fractions_of_none_are_fractions(measured(&[
    made_in("v1", "", "a", json!({"least": 1.0}), 422, json!({"/message":
        "Widget.e.com \"a\" is invalid: spec.least: Invalid value: 1: spec.least in body should be greater than or equal to 1.5"})),
    made_in("v1", "", "b", json!({"least": 1}), 201, json!({"/spec/least": 1})),
    made_in("v1", "", "c", json!({"step": 1.0}), 201, json!({"/spec/step": 1})),
    made_in("v1", "", "d", json!({"step": 1}), 422, json!({"/details/causes/0/field": "spec.step"})),
    json!({"do": format!("PATCH {WIDGETS}/b"), "type": "merge", "body": {"spec": {"least": 1.0}}, "code": 422}),
    json!({"do": format!("PATCH {WIDGETS}/b"), "type": "merge", "body": {"spec": {"least": 2.0}}, "has": {"/spec/least": 2}}),
]))]
#[case::a_bad_schema(json!([
    {"do": format!("POST {CRDS}"), "body": definition(json!({"type": "strange"})), "code": 422,
     "has": {"/details/causes/0/field": "spec.validation.openAPIV3Schema.properties[spec].type"}},
    {"do": "GET /apis/e.com/v1", "code": 404},
]))]
fn custom_resources(#[case] steps: Value) {
    play(false, steps);
}
