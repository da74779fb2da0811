//! A Secret as its cache holds it.

use std::marker::PhantomData;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;

use super::secrets::SOURCE;
use crate::kit::views::{lean_metadata, view_of_kind};

/// A Secret. Of one that is no copy for the daemon the name and the version are enough: a cluster has many Secrets, and their
/// content would fill the cache.
#[derive(Debug)]
pub(super) struct HeldSecret<K> {
    metadata: ObjectMeta,
    /// The Secret, if it is a copy.
    secret: Option<Arc<Secret>>,
    kind: PhantomData<fn() -> K>,
}

impl<K> HeldSecret<K> {
    /// The Secret, if it is a copy.
    pub(super) fn secret(&self) -> Option<&Arc<Secret>> {
        self.secret.as_ref()
    }
}

impl<K> Clone for HeldSecret<K> {
    fn clone(&self) -> Self {
        Self {
            metadata: self.metadata.clone(),
            secret: self.secret.clone(),
            kind: PhantomData,
        }
    }
}

impl<K> From<Value> for HeldSecret<K> {
    fn from(object: Value) -> Self {
        let metadata = object.get("metadata").cloned().unwrap_or_default();
        let metadata: ObjectMeta = serde_json::from_value(metadata).unwrap_or_default();
        let annotations = metadata.annotations.as_ref();
        let is_copy = annotations.is_some_and(|annotations| annotations.contains_key(SOURCE));
        let secret = is_copy.then(|| serde_json::from_value(object).ok()).flatten();
        Self {
            metadata: lean_metadata(metadata),
            secret: secret.map(Arc::new),
            kind: PhantomData,
        }
    }
}

view_of_kind!(HeldSecret);

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case::copy(json!({ SOURCE: "d/a" }), true)]
    #[case::another(json!({ "a": "b" }), false)]
    #[case::bare(json!(null), false)]
    fn the_content_of_copies_is_held(#[case] annotations: Value, #[case] is_held: bool) {
        let object =
            json!({ "metadata": { "name": "a", "namespace": "n", "annotations": annotations }, "data": {} });
        let held: HeldSecret<Secret> = HeldSecret::from(object);
        assert_eq!(held.secret().is_some(), is_held);
        assert_eq!(held.metadata.name.as_deref(), Some("a"));
    }
}
