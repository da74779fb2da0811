//! Who owns an object.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

/// The reference to an object's controller, if it has one.
pub(crate) fn controller_of(metadata: &ObjectMeta) -> Option<&OwnerReference> {
    metadata
        .owner_references
        .as_ref()?
        .iter()
        .find(|reference| reference.controller == Some(true))
}
