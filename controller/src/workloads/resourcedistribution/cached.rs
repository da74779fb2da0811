//! A Secret or ConfigMap as its cache holds it.

use std::marker::PhantomData;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde_json::Value;

use crate::api::v1alpha1::ResourceDistribution;
use crate::kit::controller_of_kind;
use crate::kit::views::{lean_metadata, view_of_kind};

/// An object of kind `K`. Of one that no distribution controls, the name, the version and the owners are enough: a
/// cluster has many Secrets, and their content would fill the cache.
#[derive(Debug)]
pub(super) struct CachedObject<K> {
    metadata: ObjectMeta,
    /// The whole object, if a distribution controls it.
    object: Option<Arc<Value>>,
    kind: PhantomData<fn() -> K>,
}

impl<K> CachedObject<K> {
    /// The whole object, if a distribution controls it.
    pub(super) fn object(&self) -> Option<&Value> {
        self.object.as_deref()
    }
}

/// The name of the distribution that controls an object.
pub(super) fn distribution_of(metadata: &ObjectMeta) -> Option<&str> {
    controller_of_kind::<ResourceDistribution>(metadata).map(|owner| &*owner.name)
}

impl<K> Clone for CachedObject<K> {
    fn clone(&self) -> Self {
        Self {
            metadata: self.metadata.clone(),
            object: self.object.clone(),
            kind: PhantomData,
        }
    }
}

impl<K: Resource<DynamicType = ()>> From<Value> for CachedObject<K> {
    fn from(mut object: Value) -> Self {
        let metadata = object.get("metadata").cloned().unwrap_or_default();
        let metadata: ObjectMeta = serde_json::from_value(metadata).unwrap_or_default();
        if distribution_of(&metadata).is_none() {
            let metadata = lean_metadata(metadata);
            return Self {
                metadata,
                object: None,
                kind: PhantomData,
            };
        }
        if let Some(fields) = object.as_object_mut() {
            // Objects of a list do not say of what kind they are.
            fields.insert("apiVersion".to_owned(), K::api_version(&()).into());
            fields.insert("kind".to_owned(), K::kind(&()).into());
        }
        Self {
            metadata,
            object: Some(Arc::new(object)),
            kind: PhantomData,
        }
    }
}

view_of_kind!(CachedObject);

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Secret;
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case::copy("apps.kruise.io/v1alpha1", "ResourceDistribution", true)]
    #[case::of_another_version("apps.kruise.io/v1beta1", "ResourceDistribution", true)]
    #[case::of_another_group("example.com/v1", "ResourceDistribution", false)]
    #[case::of_another_kind("apps.kruise.io/v1alpha1", "CloneSet", false)]
    fn only_copies_are_held_whole(#[case] api_version: &str, #[case] kind: &str, #[case] whole: bool) {
        let owner =
            json!({ "apiVersion": api_version, "kind": kind, "name": "rd", "uid": "u", "controller": true });
        let metadata =
            json!({ "name": "s", "namespace": "a", "labels": { "l": "1" }, "ownerReferences": [owner] });
        let secret: CachedObject<Secret> =
            serde_json::from_value(json!({ "metadata": metadata, "data": { "k": "dg==" } })).unwrap();
        assert_eq!(secret.meta().name.as_deref(), Some("s"));
        assert_eq!(secret.meta().labels.is_some(), whole);
        let expected =
            json!({ "apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": { "k": "dg==" } });
        assert_eq!(secret.object(), whole.then_some(&expected));
    }
}
