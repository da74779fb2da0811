//! How a CloneSet owns objects.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{Resource, ResourceExt};

use crate::api::v1alpha1::CloneSet;

/// The reference by which a set owns its pods, claims and revisions.
pub(crate) fn reference(set: &CloneSet) -> OwnerReference {
    OwnerReference {
        api_version: CloneSet::api_version(&()).into_owned(),
        kind: CloneSet::kind(&()).into_owned(),
        name: set.name_any(),
        uid: set.uid().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}
