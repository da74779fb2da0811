//! Which requests a change of a pod concerns.

use kube::ResourceExt as _;

use crate::api::labels::REQUEST_POD_UID;
use crate::api::v1alpha1::ContainerRecreateRequest;
use crate::kit::{Change, Informer, ObjectKey, WorkQueue};
use crate::pods::CachedPod;
use crate::pods::pod;

/// Whether a change of a pod matters to requests.
fn matters(old: &CachedPod, new: &CachedPod) -> bool {
    old.metadata.deletion_timestamp.is_some() != new.metadata.deletion_timestamp.is_some()
        || pod::container_statuses(old) != pod::container_statuses(new)
}

/// A pod changed: those of its requests that have not ended are looked at.
pub(super) fn pod_changed(
    requests: &Informer<ContainerRecreateRequest>,
    change: &Change<'_, CachedPod>,
    queue: &WorkQueue<ObjectKey>,
) {
    let pod = match change {
        Change::Updated(old, new) if !matters(old, new) => return,
        Change::Added(pod) | Change::Updated(_, pod) | Change::Deleted(pod) => pod,
    };
    for request in requests.in_namespace(&pod.namespace().unwrap_or_default()) {
        let uid = request.labels().get(REQUEST_POD_UID).map(String::as_str);
        if uid == Some(pod::uid(pod)) && !request.is_over() {
            queue.add(ObjectKey::of(request.as_ref()));
        }
    }
}
