//! The times for which jobs are made.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use pod_rules::schedule::Schedule;

use crate::api::v1beta1::AdvancedCronJob;

/// The missed time of a schedule at a moment, and the wait until the next time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Due {
    /// The last time that has come and for which there is no job, unless it is too late for one.
    pub(super) missed: Option<Timestamp>,
    /// How long it is until the next time, if there is one.
    pub(super) wait: Option<Duration>,
}

/// The schedule of `cron`, if it is one. A time zone that is none is left out.
pub(super) fn schedule(cron: &AdvancedCronJob) -> Option<Schedule> {
    let text = &cron.spec.schedule;
    let zone = cron.spec.time_zone.as_deref().unwrap_or_default();
    if text.contains("TZ") {
        return Schedule::parse(text, "").ok();
    }
    Schedule::parse(text, zone)
        .or_else(|_| Schedule::parse(text, ""))
        .ok()
}

/// The missed time of `schedule` at `now`, after a last job for `last`, and the wait until the next time.
pub(super) fn due(
    cron: &AdvancedCronJob,
    schedule: &Schedule,
    last: Option<Timestamp>,
    now: Timestamp,
) -> Due {
    let created = cron.metadata.creation_timestamp.as_ref().map(|time| time.0);
    let deadline = cron.spec.starting_deadline_seconds.map(SignedDuration::from_secs);
    let mut earliest = last.or(created).unwrap_or(now);
    if let Some(deadline) = deadline {
        earliest = earliest.max(now.saturating_sub(deadline).unwrap_or(Timestamp::MIN));
    }
    Due {
        missed: schedule.last(earliest, now).filter(|missed| {
            deadline.is_none_or(|deadline| missed.saturating_add(deadline).is_ok_and(|end| end >= now))
        }),
        wait: schedule
            .next(now)
            .map(|next| Duration::try_from(next.duration_since(now)).unwrap_or_default()),
    }
}
