//! How many pods of an owner there are, and how far they are.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::CachedPod;
use super::availability::{has_revision, is_available, until_available};
use super::refresh::shortest;

/// Numbers of pods.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PodCounts {
    /// Of all pods.
    pub all: i32,
    /// Of those that are ready.
    pub ready: i32,
    /// Of those that are available.
    pub available: i32,
    /// Of those of the newest revision.
    pub updated: i32,
    /// Of those of the newest revision that are ready.
    pub updated_ready: i32,
    /// Of those of the newest revision that are available.
    pub updated_available: i32,
}

/// Counts pods that neither ended nor terminate, and says when a number changes by itself at the latest. Updated are those of
/// the revision; available are those that have been ready for `min_ready_s`.
pub fn count(
    pods: &[Arc<CachedPod>],
    revision: &str,
    min_ready_s: i32,
    now: Timestamp,
) -> (PodCounts, Option<Duration>) {
    let mut counts = PodCounts::default();
    let mut requeue = None;
    for pod in pods {
        let (ready, available) = (pod.facts().update_ready, is_available(pod, min_ready_s, now));
        counts.all += 1;
        counts.ready += i32::from(ready);
        counts.available += i32::from(available);
        if has_revision(pod, revision) {
            counts.updated += 1;
            counts.updated_ready += i32::from(ready);
            counts.updated_available += i32::from(available);
        }
        if !available && is_available(pod, 0, now) {
            requeue = shortest(requeue, until_available(pod, min_ready_s, now));
        }
    }
    (counts, requeue)
}
