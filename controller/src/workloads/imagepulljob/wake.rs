//! Which jobs a change of another object concerns.

use k8s_openapi::api::core::v1::Secret;
use kube::{Resource as _, ResourceExt as _};

use super::held_secret::HeldSecret;
use super::select::Wanted;
use crate::api::v1beta1::{ImagePullJob, NodeImage};
use crate::images::ImageReference;
use crate::kit::{Change, Informer, ObjectKey, WorkQueue};
use crate::pods::CachedPod;
use crate::pods::pod::{self, Pod};

/// Whether a job is neither over nor being deleted.
fn is_active(job: &ImagePullJob) -> bool {
    let end = job
        .status
        .as_ref()
        .and_then(|status| status.completion_time.as_ref());
    job.metadata.deletion_timestamp.is_none() && end.is_none()
}

/// The list of a node changed: jobs that want the node now or did before, and those whose image is listed otherwise.
pub(super) fn image_changed(
    jobs: &Informer<ImagePullJob>,
    pods: &Informer<CachedPod>,
    change: &Change<'_, NodeImage>,
    queue: &WorkQueue<ObjectKey>,
) {
    for job in jobs.all().iter().filter(|job| is_active(job)) {
        let wanted = Wanted::of(job);
        let wants = |image: &NodeImage| {
            wanted
                .wants(image)
                .unwrap_or_else(|| has_pod(&wanted, job, pods, &image.name_any()))
        };
        let is_concerned = match change {
            Change::Added(image) | Change::Deleted(image) => wants(image),
            Change::Updated(old, new) => {
                let goes = old.meta().deletion_timestamp != new.meta().deletion_timestamp;
                (goes || old.labels() != new.labels() || differs(job, old, new))
                    && (wants(old) != wants(new) || wants(new) && (goes || differs(job, old, new)))
            }
        };
        if is_concerned {
            queue.add(ObjectKey::of(job.as_ref()));
        }
    }
}

/// Whether a pod that a job selects is on a node.
fn has_pod(wanted: &Wanted, job: &ImagePullJob, pods: &Informer<CachedPod>, node: &str) -> bool {
    let pods = pods.in_namespace(&job.namespace().unwrap_or_default());
    pods.iter()
        .any(|pod| pod::node(pod) == node && wanted.wants_node_of(pod))
}

/// Whether two versions of a list differ in the image of a job.
fn differs(job: &ImagePullJob, old: &NodeImage, new: &NodeImage) -> bool {
    let Ok(ImageReference { name, tag }) = ImageReference::parse(&job.spec.image) else {
        return false;
    };
    let images = [old, new].map(|image| image.spec.images.get(&name));
    let [of_old, of_new] =
        images.map(|image| image.map(|image| (&image.pull_secrets, &image.sandbox_config)));
    of_old != of_new
        || old.tag(&name, &tag) != new.tag(&name, &tag)
        || old.tag_status(&name, &tag) != new.tag_status(&name, &tag)
}

/// A pod changed: jobs that want its node because of it, now or before.
pub(super) fn pod_changed(
    jobs: &Informer<ImagePullJob>,
    change: &Change<'_, CachedPod>,
    queue: &WorkQueue<ObjectKey>,
) {
    let (Change::Added(pod) | Change::Updated(_, pod) | Change::Deleted(pod)) = change;
    for job in jobs.in_namespace(pod.metadata.namespace.as_deref().unwrap_or_default()) {
        if job.spec.template.pod_selector.is_none() || !is_active(&job) {
            continue;
        }
        let wanted = Wanted::of(&job);
        let wants = |pod: &Pod| wanted.wants_node_of(pod);
        let is_concerned = match change {
            Change::Added(pod) | Change::Deleted(pod) => wants(pod),
            Change::Updated(old, new) => {
                let goes = old.metadata.deletion_timestamp != new.metadata.deletion_timestamp;
                wants(old) != wants(new) || goes && wants(new)
            }
        };
        if is_concerned {
            queue.add(ObjectKey::of(job.as_ref()));
        }
    }
}

/// A Secret came or changed: the jobs that use it. Those in the namespace of the copies wake none.
pub(super) fn secret_changed(
    jobs: &Informer<ImagePullJob>,
    copies_in: &str,
    change: &Change<'_, HeldSecret<Secret>>,
    queue: &WorkQueue<ObjectKey>,
) {
    let (Change::Added(secret) | Change::Updated(_, secret)) = change else {
        return;
    };
    let namespace = secret.namespace().unwrap_or_default();
    if namespace == copies_in {
        return;
    }
    let name = secret.name_any();
    for job in jobs.in_namespace(&namespace).iter().filter(|job| is_active(job)) {
        if job
            .spec
            .template
            .pull_secrets
            .iter()
            .flatten()
            .any(|used| *used == name)
        {
            queue.add(ObjectKey::of(job.as_ref()));
        }
    }
}

#[cfg(test)]
#[path = "wake_tests.rs"]
mod tests;
