//! Objects that caches hold as something smaller: the traits that make such a type one of kube's resources.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// Makes `$view<K>`, which is made of a JSON object and has a field `metadata`, a resource of the kind `K` that can be read from JSON.
#[macro_export]
macro_rules! view_of_kind {
    ($view:ident) => {
        impl<'de, K: kube::Resource<DynamicType = ()>> serde::Deserialize<'de> for $view<K> {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                <serde_json::Value as serde::Deserialize>::deserialize(deserializer).map(Self::from)
            }
        }

        impl<K: kube::Resource<DynamicType = ()>> kube::Resource for $view<K> {
            type DynamicType = ();
            type Scope = K::Scope;

            fn kind((): &()) -> std::borrow::Cow<'_, str> {
                K::kind(&())
            }

            fn group((): &()) -> std::borrow::Cow<'_, str> {
                K::group(&())
            }

            fn version((): &()) -> std::borrow::Cow<'_, str> {
                K::version(&())
            }

            fn plural((): &()) -> std::borrow::Cow<'_, str> {
                K::plural(&())
            }

            fn meta(&self) -> &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
                &self.metadata
            }

            fn meta_mut(&mut self) -> &mut k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
                &mut self.metadata
            }
        }
    };
}

pub use view_of_kind;

/// The metadata that a cache needs of any object: its name, its version and its owners.
pub fn lean_metadata(metadata: ObjectMeta) -> ObjectMeta {
    ObjectMeta {
        name: metadata.name,
        namespace: metadata.namespace,
        uid: metadata.uid,
        resource_version: metadata.resource_version,
        owner_references: metadata.owner_references,
        ..ObjectMeta::default()
    }
}
