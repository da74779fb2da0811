//! A Secret as its cache holds it.

use std::marker::PhantomData;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;

use crate::images::SECRETS_NAMESPACE;
use crate::kit::views::{lean_metadata, view_of_kind};

/// A Secret. Of one outside the daemon's namespace the name and the version are enough: a cluster has many Secrets, and their
/// content would fill the cache.
#[derive(Debug)]
pub(super) struct HeldSecret<K> {
    metadata: ObjectMeta,
    /// The Secret, if the daemon may read it.
    secret: Option<Arc<Secret>>,
    kind: PhantomData<fn() -> K>,
}

impl<K> HeldSecret<K> {
    /// The Secret, if the daemon may read it.
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
        let is_readable = metadata.namespace.as_deref() == Some(SECRETS_NAMESPACE);
        let secret = is_readable.then(|| serde_json::from_value(object).ok()).flatten();
        Self {
            metadata: lean_metadata(metadata),
            secret: secret.map(Arc::new),
            kind: PhantomData,
        }
    }
}

view_of_kind!(HeldSecret);
