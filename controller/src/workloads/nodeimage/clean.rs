//! Which tags of a list stay.

use jiff::{SignedDuration, Timestamp};

use super::observe::Observed;
use crate::api::v1beta1::{ImageSpec, ImageTagSpec, NodeImage, NodeImageSpec};

/// The group and the kind of the jobs that own tags.
const JOB: (&str, &str) = ("apps.kruise.io", "ImagePullJob");

/// A list without the tags that are over.
pub(super) struct Cleaned {
    /// The list.
    pub(super) spec: NodeImageSpec,
    /// When the next tag is over.
    pub(super) due: Option<Timestamp>,
}

/// Takes away tags that have no owner any more or that have been there for long enough, and Secrets that are gone.
pub(super) fn clean(observed: &Observed, image: &NodeImage) -> Cleaned {
    let mut cleaned = Cleaned {
        spec: NodeImageSpec::default(),
        due: None,
    };
    for (name, spec) in &image.spec.images {
        let mut tags: Vec<ImageTagSpec> = Vec::new();
        for tag in &spec.tags {
            let Some(tag) = owned(observed, tag) else { continue };
            let end = expiry(image, name, &tag);
            if end.is_some_and(|end| end <= observed.now) {
                continue;
            }
            cleaned.due = cleaned.due.into_iter().chain(end).min();
            tags.push(tag);
        }
        if tags.is_empty() {
            continue;
        }
        let mut secrets = spec.pull_secrets.clone();
        secrets.retain(|secret| !observed.missing_secrets.contains(secret));
        let spec = ImageSpec {
            pull_secrets: secrets,
            tags,
            sandbox_config: spec.sandbox_config.clone(),
        };
        cleaned.spec.images.insert(name.clone(), spec);
    }
    cleaned
}

/// A tag with the owners that are there. One whose last owner is gone goes with it; one that never had an owner stays.
fn owned(observed: &Observed, tag: &ImageTagSpec) -> Option<ImageTagSpec> {
    tag.created_at.as_ref()?;
    let mut tag = tag.clone();
    let (Some(jobs), false) = (&observed.jobs, tag.owner_references.is_empty()) else {
        return Some(tag);
    };
    tag.owner_references.retain(|owner| {
        let version = owner.api_version.as_deref().unwrap_or_default();
        let group = version.split_once('/').map_or("", |(group, _)| group);
        let is_job = (group, owner.kind.as_deref().unwrap_or_default()) == JOB;
        !is_job || owner.uid.as_ref().is_some_and(|uid| jobs.contains(uid))
    });
    (!tag.owner_references.is_empty()).then_some(tag)
}

/// When a tag that is over has been there for long enough.
fn expiry(image: &NodeImage, name: &str, tag: &ImageTagSpec) -> Option<Timestamp> {
    let ttl = tag.pull_policy.as_ref()?.ttl_seconds_after_finished?;
    let status = image.tag_status(name, &tag.tag)?;
    let end = status.completion_time.as_ref()?;
    if status.version != tag.version {
        return None;
    }
    end.0.checked_add(SignedDuration::from_secs(i64::from(ttl))).ok()
}
