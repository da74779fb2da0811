//! From version `v1alpha1` to `v1beta1`.

use serde_json::{Map, Value, json};

use crate::injection::sidecars::selection::NAMESPACE_NAME;

/// Brings a set of version `v1alpha1` into the form of `v1beta1`: a namespace becomes a selector, and wins over one that is there.
///
/// The custom version stays a label: see `custom_version` in `injection::sidecars::history`.
pub(super) fn to_v1beta1(set: &mut Value) {
    if set.get("apiVersion").and_then(Value::as_str) != Some("apps.kruise.io/v1alpha1") {
        return;
    }
    let Some(spec) = set.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    let namespace = spec.remove("namespace");
    let namespace = namespace.as_ref().and_then(Value::as_str);
    if let Some(namespace) = namespace.filter(|namespace| !namespace.is_empty()) {
        let labels = Map::from_iter([(NAMESPACE_NAME.to_owned(), json!(namespace))]);
        spec.insert("namespaceSelector".to_owned(), json!({ "matchLabels": labels }));
    }
}
