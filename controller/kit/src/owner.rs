//! The owner of an object.

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::core::GroupVersionKind;
use kube::{Resource, ResourceExt as _};

use super::informer::ObjectKey;

/// An object that owns others, as it was when it was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// Its namespace and name.
    pub key: ObjectKey,
    /// Its group, version and kind.
    pub gvk: GroupVersionKind,
    /// Its uid.
    pub uid: String,
    /// Its version, which events about it name.
    version: Option<String>,
}

impl Owner {
    /// The object as an owner.
    pub fn of<K: Resource<DynamicType = ()>>(object: &K) -> Self {
        Self {
            key: ObjectKey::of(object),
            gvk: GroupVersionKind::gvk(&K::group(&()), &K::version(&()), &K::kind(&())),
            uid: object.uid().unwrap_or_default(),
            version: object.resource_version(),
        }
    }

    /// The same owner, whose objects are looked for in a namespace: one of the cluster has objects in several.
    pub fn in_namespace(&self, namespace: &str) -> Self {
        let mut owner = self.clone();
        namespace.clone_into(&mut owner.key.namespace);
        owner
    }

    /// The reference by which it owns objects.
    pub fn reference(&self) -> OwnerReference {
        OwnerReference {
            api_version: self.gvk.api_version(),
            kind: self.gvk.kind.clone(),
            name: self.key.name.clone(),
            uid: self.uid.clone(),
            controller: Some(true),
            block_owner_deletion: Some(true),
        }
    }

    /// The reference by which events are about it.
    pub fn subject(&self) -> ObjectReference {
        let namespace = (!self.key.namespace.is_empty()).then(|| self.key.namespace.clone());
        ObjectReference {
            api_version: Some(self.gvk.api_version()),
            kind: Some(self.gvk.kind.clone()),
            name: Some(self.key.name.clone()),
            namespace,
            uid: Some(self.uid.clone()),
            resource_version: self.version.clone(),
            field_path: None,
        }
    }

    /// Whether an object names it among its owners.
    pub fn owns(&self, object: &ObjectMeta) -> bool {
        let owners = object.owner_references.iter().flatten();
        owners.into_iter().any(|owner| owner.uid == self.uid)
    }
}

/// The reference to an object's controller, if it has one.
pub fn controller_of(metadata: &ObjectMeta) -> Option<&OwnerReference> {
    metadata
        .owner_references
        .as_ref()?
        .iter()
        .find(|reference| reference.controller == Some(true))
}

/// The reference to an object's controller, if that is of kind `K` in any version.
pub fn controller_of_kind<K: Resource<DynamicType = ()>>(metadata: &ObjectMeta) -> Option<&OwnerReference> {
    let owner = controller_of(metadata)?;
    let group = owner.api_version.split('/').next().unwrap_or_default();
    (owner.kind == K::kind(&()) && group == K::group(&())).then_some(owner)
}
