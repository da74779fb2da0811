//! Moments and delays.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::pods::refresh::shortest;

/// The moment so long after another one. Beyond all times there is none.
pub(super) fn after(moment: Option<Timestamp>, wait: SignedDuration) -> Option<Timestamp> {
    moment?.checked_add(wait).ok()
}

/// Whether a moment has passed. One that is now has not.
pub(super) fn is_past(moment: Option<Timestamp>, now: Timestamp) -> bool {
    moment.is_some_and(|moment| moment < now)
}

/// The delays after which a pass looks again: the shortest counts.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Requeue(pub(super) Option<Duration>);

impl Requeue {
    /// Looks again once a moment has passed.
    pub(super) fn past(&mut self, moment: Option<Timestamp>, now: Timestamp) {
        let wait = moment.map(|moment| moment.duration_since(now));
        let wait = wait.and_then(|wait| Duration::try_from(wait).ok());
        self.0 = shortest(self.0, wait.map(|wait| wait + Duration::from_millis(1)));
    }

    /// Looks again after a while, if that is one.
    pub(super) fn after(&mut self, wait: SignedDuration) {
        let wait = Duration::try_from(wait).ok().filter(|wait| !wait.is_zero());
        self.0 = shortest(self.0, wait);
    }
}
