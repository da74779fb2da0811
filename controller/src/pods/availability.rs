//! Whether a pod is in service, and since when.

use jiff::Timestamp;

use super::CachedPod;
use super::lifecycle::state;
use super::pod::{self, Pod};
use super::revision;

/// Whether the pod's label names `revision`.
pub(crate) fn has_revision(pod: &CachedPod, revision: &str) -> bool {
    revision::same(&pod.facts().revision, revision)
}

/// In service: normal, running, ready for at least `min_ready_s`, and not being updated in place.
pub(crate) fn is_available(pod: &CachedPod, min_ready_s: i32, now: Timestamp) -> bool {
    let facts = pod.facts();
    if !facts.update_ready || !matches!(&*facts.state, "" | state::NORMAL) {
        return false;
    }
    if min_ready_s == 0 {
        return true;
    }
    available_at(pod, min_ready_s).is_some_and(|at| at < now)
}

/// When a pod that is ready has been so for long enough.
pub(crate) fn available_at(pod: &Pod, min_ready_s: i32) -> Option<Timestamp> {
    let wait = std::time::Duration::from_secs(u64::try_from(min_ready_s).unwrap_or(0));
    pod::ready_since(pod)?.checked_add(wait).ok()
}
