//! Between the versions `v1alpha1` and `v1beta1`.
//!
//! They differ in two fields: `v1alpha1` has a namespace instead of a selector of namespaces, and a label for the custom version.

use serde_json::{Map, Value, json};

use crate::api::labels;
use crate::injection::sidecars::selection::NAMESPACE_NAME;
use crate::kit::conversion::Conversion;

const V1ALPHA1: &str = "apps.kruise.io/v1alpha1";
const V1BETA1: &str = "apps.kruise.io/v1beta1";

/// Between the versions.
pub(in crate::workloads::sidecarset) const CONVERSION: Conversion = Conversion {
    group: "apps.kruise.io",
    kind: "SidecarSet",
    versions: &["v1alpha1", "v1beta1"],
    convert: |set, version| {
        match version {
            "v1beta1" => to_v1beta1(set),
            _ => to_v1alpha1(set),
        }
        Ok(())
    },
};

/// Whether a set is of version `v1alpha1`.
pub(super) fn is_v1alpha1(set: &Value) -> bool {
    set.get("apiVersion").and_then(Value::as_str) == Some(V1ALPHA1)
}

/// Brings a set of version `v1alpha1` to `v1beta1`. Its namespace becomes a selector, and wins over one that is there; the label of its
/// custom version becomes a field.
pub(super) fn to_v1beta1(set: &mut Value) {
    if !is_v1alpha1(set) {
        return;
    }
    let label = set.pointer_mut("/metadata/labels").and_then(Value::as_object_mut);
    let version = label.and_then(|labels| labels.remove(labels::SIDECARS_CUSTOM_VERSION));
    let Some(fields) = set.as_object_mut() else { return };
    fields.insert("apiVersion".to_owned(), json!(V1BETA1));
    let Some(spec) = fields.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    if let Some(version) = version.filter(|version| *version != json!("")) {
        spec.insert("customVersion".to_owned(), version);
    }
    let namespace = spec.remove("namespace");
    let namespace = namespace.as_ref().and_then(Value::as_str);
    if let Some(namespace) = namespace.filter(|namespace| !namespace.is_empty()) {
        let labels = Map::from_iter([(NAMESPACE_NAME.to_owned(), json!(namespace))]);
        spec.insert("namespaceSelector".to_owned(), json!({ "matchLabels": labels }));
    }
}

/// Brings a set of version `v1beta1` to `v1alpha1`. The namespace stays a selector.
pub(super) fn to_v1alpha1(set: &mut Value) {
    let Some(fields) = set.as_object_mut() else { return };
    fields.insert("apiVersion".to_owned(), json!(V1ALPHA1));
    let spec = fields.get_mut("spec").and_then(Value::as_object_mut);
    let Some(version) = spec.and_then(|spec| spec.remove("customVersion")) else {
        return;
    };
    let metadata = fields.entry("metadata").or_insert_with(|| json!({}));
    let Some(metadata) = metadata.as_object_mut() else {
        return;
    };
    let labels = metadata.entry("labels").or_insert_with(|| json!({}));
    if labels.is_null() {
        *labels = json!({});
    }
    if let Some(labels) = labels.as_object_mut() {
        labels.insert(labels::SIDECARS_CUSTOM_VERSION.to_owned(), version);
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn set(version: &str, labels: Value, spec: Value) -> Value {
        json!({ "apiVersion": format!("apps.kruise.io/{version}"), "metadata": { "labels": labels }, "spec": spec })
    }

    #[rstest]
    #[case::namespace(json!({}), json!({ "namespace": "a" }),
        json!({}), json!({ "namespaceSelector": { "matchLabels": { "kubernetes.io/metadata.name": "a" } } }))]
    #[case::namespace_wins(json!({}), json!({ "namespace": "a", "namespaceSelector": { "matchLabels": { "team": "blue" } } }),
        json!({}), json!({ "namespaceSelector": { "matchLabels": { "kubernetes.io/metadata.name": "a" } } }))]
    #[case::empty_namespace(json!({}), json!({ "namespace": "", "namespaceSelector": { "matchLabels": { "team": "blue" } } }),
        json!({}), json!({ "namespaceSelector": { "matchLabels": { "team": "blue" } } }))]
    #[case::custom_version(json!({ "l": "1", "apps.kruise.io/sidecarset-custom-version": "v" }), json!({}),
        json!({ "l": "1" }), json!({ "customVersion": "v" }))]
    fn to_the_stored_version(
        #[case] labels: Value,
        #[case] spec: Value,
        #[case] labels_then: Value,
        #[case] spec_then: Value,
    ) {
        let mut got = set("v1alpha1", labels, spec);
        to_v1beta1(&mut got);
        let want = set("v1beta1", labels_then, spec_then);
        assert_eq!(got, want);
        to_v1beta1(&mut got);
        assert_eq!(got, want, "a fixed point");
    }

    #[rstest]
    #[case(json!({}), json!({ "customVersion": "v" }), json!({ "apps.kruise.io/sidecarset-custom-version": "v" }), json!({}))]
    #[case(Value::Null, json!({ "customVersion": "v" }), json!({ "apps.kruise.io/sidecarset-custom-version": "v" }), json!({}))]
    #[case(json!({}), json!({ "namespaceSelector": {} }), json!({}), json!({ "namespaceSelector": {} }))]
    fn to_the_older_version(
        #[case] labels: Value,
        #[case] spec: Value,
        #[case] labels_then: Value,
        #[case] spec_then: Value,
    ) {
        let mut got = set("v1beta1", labels, spec);
        to_v1alpha1(&mut got);
        assert_eq!(got, set("v1alpha1", labels_then, spec_then));
    }
}
