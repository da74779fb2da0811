//! Whether a pod is in service, and since when.

use std::time::Duration;

use jiff::Timestamp;

use super::CachedPod;
use super::lifecycle::state;
use super::pod::{self, Pod};
use super::revision;

/// Whether the pod's label names `revision`.
pub fn has_revision(pod: &CachedPod, revision: &str) -> bool {
    revision::same(&pod.facts().revision, revision)
}

/// In service: normal, running, ready for at least `min_ready_s`, and not being updated in place.
pub fn is_available(pod: &CachedPod, min_ready_s: i32, now: Timestamp) -> bool {
    matches!(&*pod.facts().state, "" | state::NORMAL) && serves(pod, min_ready_s, now)
}

/// The same, wherever in its life the pod is.
pub fn serves(pod: &CachedPod, min_ready_s: i32, now: Timestamp) -> bool {
    if !pod.facts().update_ready {
        return false;
    }
    if min_ready_s <= 0 {
        return true;
    }
    available_at(pod, min_ready_s).is_some_and(|at| at < now)
}

/// When a pod that is ready has been so for long enough.
pub fn available_at(pod: &Pod, min_ready_s: i32) -> Option<Timestamp> {
    let wait = Duration::from_secs(u64::try_from(min_ready_s).unwrap_or(0));
    pod::ready_since(pod)?.checked_add(wait).ok()
}

/// The time until a ready pod becomes available. Kubernetes asks for *more* than `minReadySeconds`, hence the millisecond.
pub fn until_available(pod: &Pod, min_ready_s: i32, now: Timestamp) -> Option<Duration> {
    let left = available_at(pod, min_ready_s)?.duration_since(now);
    let left = Duration::try_from(left).unwrap_or(Duration::ZERO);
    Some(left + Duration::from_millis(1))
}
