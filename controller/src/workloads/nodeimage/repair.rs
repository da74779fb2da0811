//! Tags for which a daemon does not answer.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::api::v1beta1::{ImageStatus, ImageTagSpec, ImageTagStatus, NodeImage, NodeImageStatus};
use crate::images::ImageReference;

/// How long a daemon may take to answer, and to end a pull that has used up its time.
const PATIENCE: SignedDuration = SignedDuration::from_mins(10);

/// A tag that has failed.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Failed {
    /// The image with its tag.
    pub(super) image: String,
    /// Why.
    pub(super) message: &'static str,
    /// The objects that asked for it.
    pub(super) owners: Vec<ObjectReference>,
}

/// The tags that have failed meanwhile.
pub(super) struct Repaired {
    /// The status with them, if there are any.
    pub(super) status: Option<NodeImageStatus>,
    /// The tags.
    pub(super) failed: Vec<Failed>,
    /// When the next one fails.
    pub(super) due: Option<Timestamp>,
}

/// Fails the tags of which the daemon has said nothing for too long, or that it has not ended in time.
pub(super) fn repair(image: &NodeImage, now: Timestamp) -> Repaired {
    let mut repaired = Repaired {
        status: None,
        failed: Vec::new(),
        due: None,
    };
    let mut status = image.status.clone().unwrap_or_default();
    for (name, spec) in &image.spec.images {
        for tag in &spec.tags {
            let Some((due, message)) = deadline(image, name, tag) else {
                continue;
            };
            if due > now {
                repaired.due = repaired.due.into_iter().chain([due]).min();
                continue;
            }
            let known = image.tag_status(name, &tag.tag);
            let known = known.filter(|known| known.version == tag.version).cloned();
            let failed = ImageTagStatus {
                tag: tag.tag.clone(),
                phase: "Failed".to_owned(),
                version: tag.version,
                completion_time: Some(Time(now)),
                message: message.to_owned(),
                ..known.unwrap_or_default()
            };
            put(&mut status, name, failed);
            repaired.failed.push(Failed {
                image: ImageReference::text(name, &tag.tag),
                message,
                owners: tag.owner_references.clone(),
            });
        }
    }
    if !repaired.failed.is_empty() {
        count(&mut status, image);
        repaired.status = Some(status);
    }
    repaired
}

/// When a tag that is not over fails, and why.
fn deadline(image: &NodeImage, name: &str, tag: &ImageTagSpec) -> Option<(Timestamp, &'static str)> {
    let created = tag.created_at.as_ref()?.0;
    let status = image.tag_status(name, &tag.tag);
    let status = status.filter(|status| status.version == tag.version);
    let (seconds, message) = match status {
        None => (0, "node has not responded for a long time"),
        Some(status) if status.completion_time.is_some() => return None,
        Some(_) => {
            let deadline = tag.pull_policy.as_ref()?.active_deadline_seconds?;
            (deadline, "pulling exceeds the activeDeadlineSeconds")
        }
    };
    let due = created.checked_add(SignedDuration::from_secs(seconds)).ok()?;
    Some((due.checked_add(PATIENCE).ok()?, message))
}

fn put(status: &mut NodeImageStatus, name: &str, tag: ImageTagStatus) {
    let tags = &mut status.image_statuses.entry(name.to_owned()).or_default().tags;
    match tags.iter_mut().find(|known| known.tag == tag.tag) {
        Some(known) => *known = tag,
        None => tags.push(tag),
    }
}

/// Drops the statuses of tags that are not asked for any more, and counts the rest.
fn count(status: &mut NodeImageStatus, image: &NodeImage) {
    let images = &mut status.image_statuses;
    for (name, known) in images.iter_mut() {
        known.tags.retain(|tag| image.tag(name, &tag.tag).is_some());
    }
    images.retain(|_, known| !known.tags.is_empty());
    let tags: Vec<&ImageTagStatus> = images
        .values()
        .flat_map(|known: &ImageStatus| &known.tags)
        .collect();
    let of = |phase: &str| number(tags.iter().filter(|tag| tag.phase == phase).count());
    (status.succeeded, status.failed, status.pulling) = (of("Succeeded"), of("Failed"), of("Pulling"));
    status.desired = number(image.spec.images.values().map(|spec| spec.tags.len()).sum());
}

fn number(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
