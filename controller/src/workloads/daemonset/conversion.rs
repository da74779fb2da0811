//! The two versions of a DaemonSet.

use serde_json::{Value, json};

use crate::kit::conversion::Conversion;

/// The annotation by which a set of `v1alpha1` says that its partition holds for new pods, too.
const PROGRESSIVE: &str = "daemonset.kruise.io/progressive-create-pod";

/// Between `v1alpha1` and `v1beta1`.
pub(super) const CONVERSION: Conversion = Conversion {
    group: "apps.kruise.io",
    kind: "DaemonSet",
    versions: &["v1alpha1", "v1beta1"],
    convert: |set, version| {
        match version {
            "v1beta1" => up(set),
            _ => down(set),
        }
        Ok(())
    },
};

/// An annotation becomes a field, and stays. The type `Surging` has no name any more.
fn up(set: &mut Value) {
    let annotations = set.pointer("/metadata/annotations");
    let is_progressive = annotations.and_then(|all| all.get(PROGRESSIVE)) == Some(&json!("true"));
    if let (true, Some(spec)) = (is_progressive, set.get_mut("spec").and_then(Value::as_object_mut)) {
        spec.insert("scaleStrategy".to_owned(), json!({ "partitionedScaling": true }));
    }
    let kind = set.pointer_mut("/spec/updateStrategy/rollingUpdate/rollingUpdateType");
    if let Some(kind) = kind.filter(|kind| **kind == json!("Surging")) {
        *kind = json!("Standard");
    }
    rename(set, "daemonSetHash", "updateRevision");
}

/// A field becomes an annotation. One that is there already stays, whatever the field says.
fn down(set: &mut Value) {
    let is_progressive = set.pointer("/spec/scaleStrategy/partitionedScaling") == Some(&json!(true));
    if let Some(spec) = set.get_mut("spec").and_then(Value::as_object_mut) {
        spec.remove("scaleStrategy");
    }
    if let (true, Some(metadata)) = (
        is_progressive,
        set.get_mut("metadata").and_then(Value::as_object_mut),
    ) {
        let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
        if let Some(annotations) = annotations.as_object_mut() {
            annotations.insert(PROGRESSIVE.to_owned(), json!("true"));
        }
    }
    rename(set, "updateRevision", "daemonSetHash");
}

/// Gives a field of the status another name.
fn rename(set: &mut Value, from: &str, to: &str) {
    if let Some(status) = set.get_mut("status").and_then(Value::as_object_mut)
        && let Some(value) = status.remove(from)
    {
        status.insert(to.to_owned(), value);
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const OLD: &str = "apps.kruise.io/v1alpha1";
    const NEW: &str = "apps.kruise.io/v1beta1";

    fn check(version: &str, mut set: Value, wanted: &str, mut expect: Value) {
        set["apiVersion"] = json!(version);
        expect["apiVersion"] = json!(wanted);
        assert_eq!(CONVERSION.to(set, wanted), Ok(expect));
    }

    #[rstest]
    #[case::annotation(
        json!({ "metadata": { "annotations": { PROGRESSIVE: "true" } }, "spec": {} }),
        json!({ "metadata": { "annotations": { PROGRESSIVE: "true" } }, "spec": { "scaleStrategy": { "partitionedScaling": true } } })
    )]
    #[case::annotation_of_another_value(
        json!({ "metadata": { "annotations": { PROGRESSIVE: "false" } }, "spec": {} }),
        json!({ "metadata": { "annotations": { PROGRESSIVE: "false" } }, "spec": {} })
    )]
    #[case::surging(
        json!({ "spec": { "updateStrategy": { "rollingUpdate": { "rollingUpdateType": "Surging", "maxSurge": 1 } } } }),
        json!({ "spec": { "updateStrategy": { "rollingUpdate": { "rollingUpdateType": "Standard", "maxSurge": 1 } } } })
    )]
    #[case::hash(
        json!({ "status": { "daemonSetHash": "78f5b9ffbf", "numberReady": 2 } }),
        json!({ "status": { "updateRevision": "78f5b9ffbf", "numberReady": 2 } })
    )]
    #[case::nothing(json!({}), json!({}))]
    fn to_the_stored_version(#[case] set: Value, #[case] expect: Value) {
        check(OLD, set, NEW, expect);
    }

    #[rstest]
    #[case::field(
        json!({ "metadata": { "name": "s" }, "spec": { "scaleStrategy": { "partitionedScaling": true }, "minReadySeconds": 1 } }),
        json!({ "metadata": { "name": "s", "annotations": { PROGRESSIVE: "true" } }, "spec": { "minReadySeconds": 1 } })
    )]
    #[case::field_that_is_off(
        json!({ "metadata": { "annotations": { PROGRESSIVE: "true" } }, "spec": { "scaleStrategy": { "partitionedScaling": false } } }),
        json!({ "metadata": { "annotations": { PROGRESSIVE: "true" } }, "spec": {} })
    )]
    #[case::hash(json!({ "status": { "updateRevision": "x" } }), json!({ "status": { "daemonSetHash": "x" } }))]
    #[case::bad_input(json!({ "metadata": 1, "spec": [], "status": "x" }), json!({ "metadata": 1, "spec": [], "status": "x" }))]
    fn to_the_older_version(#[case] set: Value, #[case] expect: Value) {
        check(NEW, set, OLD, expect);
    }
}
