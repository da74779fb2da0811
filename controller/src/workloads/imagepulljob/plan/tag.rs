//! The tag that a job writes into the list of a node.

use client_kit::Random;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt as _;

use super::Observed;
use crate::api::v1beta1::{
    ImagePullJob, ImageTagPullPolicy, ImageTagSpec, NodeImage, ReferenceObject, SandboxConfig,
};
use crate::images::{BACKOFF_LIMIT, ImageReference, TIMEOUT_S};

/// Under this kind and version jobs own tags.
const OWNER: (&str, &str) = ("apps.kruise.io/v1beta1", "ImagePullJob");
/// For how many seconds a tag of a job without an end stays after its own …
const NEVER_TTL_S: i64 = 86_400;
/// … give or take so many.
const NEVER_SPREAD_S: i64 = 600;
/// For how many seconds such a tag may be pulled at least.
const NEVER_DEADLINE_S: i64 = 1800;
/// By how many seconds the times of the tags of jobs differ at most.
const SPREAD_S: u64 = 300;

/// A job's wish of a node.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::workloads::imagepulljob) struct Wish {
    image: ImageReference,
    owner: ObjectReference,
    policy: ImageTagPullPolicy,
    image_pull_policy: String,
    sandbox: Option<SandboxConfig>,
    secrets: Vec<ReferenceObject>,
    now: Timestamp,
}

impl Wish {
    /// The wish of a job. Its tags stay for `kept_s` seconds longer than the job says, and for some by chance.
    pub(in crate::workloads::imagepulljob) fn of(
        observed: &Observed,
        kept_s: i64,
        random: &mut Random,
    ) -> Self {
        let job = &observed.job;
        let owner = ObjectReference {
            api_version: Some(OWNER.0.to_owned()),
            kind: Some(OWNER.1.to_owned()),
            name: job.metadata.name.clone(),
            namespace: job.metadata.namespace.clone(),
            uid: job.uid(),
            ..ObjectReference::default()
        };
        Self {
            image: observed.image.clone(),
            owner,
            policy: policy(job, kept_s, random),
            image_pull_policy: job.spec.template.image_pull_policy.clone().unwrap_or_default(),
            sandbox: job.spec.template.sandbox_config.clone(),
            secrets: observed.secrets.clone(),
            now: observed.now,
        }
    }
}

fn policy(job: &ImagePullJob, kept_s: i64, random: &mut Random) -> ImageTagPullPolicy {
    let pull = job.spec.template.pull_policy.as_ref();
    let timeout = pull.and_then(|pull| pull.timeout_seconds).unwrap_or(TIMEOUT_S);
    let retries = pull.and_then(|pull| pull.backoff_limit).unwrap_or(BACKOFF_LIMIT);
    let completion = &job.spec.template.completion_policy;
    let (ttl, deadline) = if completion.kind.as_deref() == Some("Never") {
        let chance = number(random.below(2 * NEVER_SPREAD_S.unsigned_abs()));
        let ttl = NEVER_TTL_S + chance - NEVER_SPREAD_S;
        (ttl, Some(NEVER_DEADLINE_S.max(i64::from(timeout))))
    } else {
        let deadline = completion.active_deadline_seconds;
        let all_attempts = i64::from(timeout).saturating_mul(i64::from(retries));
        let own = completion.ttl_seconds_after_finished.map(i64::from);
        let ttl = own.or(deadline).unwrap_or(all_attempts);
        let ttl = ttl
            .saturating_add(kept_s)
            .saturating_add(number(random.below(SPREAD_S)));
        (ttl, deadline)
    };
    ImageTagPullPolicy {
        timeout_seconds: Some(timeout),
        backoff_limit: Some(retries),
        ttl_seconds_after_finished: Some(i32::try_from(ttl).unwrap_or(i32::MAX)),
        active_deadline_seconds: deadline,
    }
}

fn number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The list of a node with the wish in it; nothing where it is there already.
pub(in crate::workloads::imagepulljob) fn put(node: &NodeImage, wish: &Wish) -> Option<NodeImage> {
    let left_over = node.tag_status(&wish.image.name, &wish.image.tag);
    let version = left_over.map_or(-1, |status| status.version).saturating_add(1);
    let mut changed = node.clone();
    let image = changed.spec.images.entry(wish.image.name.clone()).or_default();
    image.sandbox_config.clone_from(&wish.sandbox);
    let mut lacks_secret = false;
    for secret in &wish.secrets {
        let mut known = image.pull_secrets.iter();
        if !known.any(|known| (&known.namespace, &known.name) == (&secret.namespace, &secret.name)) {
            lacks_secret = true;
            image.pull_secrets.push(secret.clone());
        }
    }
    match image.tags.iter_mut().find(|tag| tag.tag == wish.image.tag) {
        Some(tag)
            if tag
                .owner_references
                .iter()
                .any(|owner| owner.uid == wish.owner.uid) =>
        {
            return lacks_secret.then_some(changed);
        }
        Some(tag) => {
            tag.version = tag.version.saturating_add(1);
            tag.owner_references.push(wish.owner.clone());
            tag.created_at = Some(Time(wish.now));
            tag.image_pull_policy.clone_from(&wish.image_pull_policy);
        }
        None => image.tags.push(ImageTagSpec {
            tag: wish.image.tag.clone(),
            created_at: Some(Time(wish.now)),
            pull_policy: Some(wish.policy.clone()),
            owner_references: vec![wish.owner.clone()],
            version,
            image_pull_policy: wish.image_pull_policy.clone(),
        }),
    }
    image.tags.sort_by(|one, other| one.tag.cmp(&other.tag));
    Some(changed)
}
