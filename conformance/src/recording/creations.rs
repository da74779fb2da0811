//! The speed of a recording's API server: the times at which it created pods.
//!
//! OpenKruise ranks pods by times in whole seconds. On a busy machine the pods of one burst were created in different seconds,
//! and the order of a later update follows from that. A run under the same conditions creates each pod as late after the
//! step's beginning as the recorded server did.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::load::Recording;
use crate::history::{ChangeKind, text};

/// A creation or deletion that comes earlier than the recorded one by more than this is another one.
const EARLIER_MAX: Duration = Duration::from_secs(4);

/// The requests whose deletions are paced.
pub const REQUESTS: &str = "containerrecreaterequests";

/// How long before the end of its second a pod was created of which the recorder heard in a later second.
const BEFORE_NEXT_SECOND_MS: i64 = 50;

/// When a recording's pods were created, by name, in milliseconds of the recording's time. Of a name that comes again the first. When
/// requests were deleted, by their resource and name.
pub type Creations = BTreeMap<String, i64>;

/// Reads the times of creation out of a recording.
#[must_use]
pub fn of(recording: &Recording) -> Creations {
    let zero_ms = recording
        .began
        .map(|began| began.as_millisecond() - recording.start_ms(0));
    let mut out = Creations::new();
    for change in &recording.history {
        if change.resource == REQUESTS && change.kind == ChangeKind::Deleted {
            out.entry(format!("{REQUESTS}/{}", change.name()))
                .or_insert(change.at_ms);
        }
        if change.resource != "pods" || change.kind != ChangeKind::Added {
            continue;
        }
        let created: Option<Timestamp> = text(&change.object, "/metadata/creationTimestamp").parse().ok();
        let latest = zero_ms
            .zip(created)
            .map(|(zero, created)| created.as_millisecond() + 1000 - BEFORE_NEXT_SECOND_MS - zero);
        let at_ms = latest.map_or(change.at_ms, |latest| change.at_ms.min(latest));
        out.entry(change.name()).or_insert(at_ms);
    }
    out
}

/// The times at which a run is to create its pods.
#[derive(Debug, Default)]
pub struct CreationPace {
    creations: Creations,
    progress: Mutex<Progress>,
}

#[derive(Debug, Default)]
struct Progress {
    /// The present step's beginning, in the recording's time and in the run's.
    step: Option<(i64, Instant)>,
    /// The pods that were created, and the requests that were deleted.
    created: BTreeSet<String>,
}

impl CreationPace {
    /// The pace of these creations.
    #[must_use]
    pub fn new(creations: Creations) -> Self {
        Self {
            creations,
            progress: Mutex::default(),
        }
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The run begins the step that began at `at_ms` of the recording.
    pub fn begin_step(&self, at_ms: i64) {
        self.progress().step = Some((at_ms, Instant::now()));
    }

    /// When the pod of this name that is about to be created is due. `None` if it may be created at once, as one whose name was there
    /// before: the server refuses it while the other one is ending.
    #[must_use]
    pub fn due(&self, pod: &str) -> Option<Instant> {
        self.due_by(pod)
    }

    /// When the deletion of the request of this name is due. `None` if it may be deleted at once.
    #[must_use]
    pub fn deletion_due(&self, request: &str) -> Option<Instant> {
        self.due_by(&format!("{REQUESTS}/{request}"))
    }

    fn due_by(&self, key: &str) -> Option<Instant> {
        let recorded_ms = self.creations.get(key)?;
        let mut progress = self.progress();
        if !progress.created.insert(key.to_owned()) {
            return None;
        }
        let (step_ms, since) = progress.step?;
        let offset_ms = u64::try_from(recorded_ms - step_ms).ok()?;
        let due = since + Duration::from_millis(offset_ms);
        let early = due.saturating_duration_since(Instant::now());
        (!early.is_zero() && early <= EARLIER_MAX).then_some(due)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use std::sync::Arc;

    use shared_json::json;

    use super::*;
    use crate::history::Change;

    fn recording(pods: &[(i64, &str, &str)]) -> Recording {
        let change = |(at_ms, name, created): &(i64, &str, &str)| Change {
            at_ms: *at_ms,
            resource: "pods".to_owned(),
            kind: ChangeKind::Added,
            object: Arc::new(json!({"metadata": {"name": name, "creationTimestamp": created}})),
        };
        Recording {
            name: "r".to_owned(),
            folder: std::path::PathBuf::new(),
            steps: Vec::new(),
            history: pods.iter().map(change).collect(),
            began: "2026-01-01T00:00:00.300Z".parse().ok(),
            namespace: "default".to_owned(),
            gates: String::new(),
        }
    }

    #[test]
    fn a_late_report_does_not_move_a_pod_into_the_next_second() {
        let recording = recording(&[
            (500, "in-time", "2026-01-01T00:00:00Z"),
            (900, "late", "2026-01-01T00:00:00Z"),
        ]);
        let expected = [("in-time", 500), ("late", 650)];
        let expected = expected.map(|(name, times)| (name.to_owned(), times));
        assert_eq!(of(&recording), Creations::from(expected));
    }

    #[rstest]
    #[case::later_than_now("a", 1000, Some(500))]
    #[case::overdue("a", 1600, None)]
    #[case::of_an_earlier_step("before", 1000, None)]
    #[case::of_a_much_later_time("much-later", 1000, None)]
    #[case::unknown("b", 1000, None)]
    #[tokio::test(start_paused = true)]
    async fn a_pod_is_due_as_late_as_the_recorded_one(
        #[case] pod: &str,
        #[case] after_ms: u64,
        #[case] expected: Option<u64>,
    ) {
        let times = [("a", 11_500), ("before", 9_000), ("much-later", 16_000)];
        let times = times.map(|(name, at_ms)| (name.to_owned(), at_ms));
        let pace = CreationPace::new(Creations::from(times));
        pace.begin_step(10_000);
        tokio::time::sleep(Duration::from_millis(after_ms)).await;
        let left = pace.due(pod).map(|due| due - Instant::now());
        assert_eq!(left, expected.map(Duration::from_millis));
        // The next pod of that name is another one.
        assert_eq!(pace.due(pod), None);
    }
    #[rstest]
    #[case::a_little_later(2000, Some(3500))]
    #[case::much_later(1000, None)]
    #[case::overdue(6000, None)]
    #[tokio::test(start_paused = true)]
    async fn a_request_is_deleted_as_late_as_the_recorded_one(
        #[case] after_ms: u64,
        #[case] expected: Option<u64>,
    ) {
        let times = [(format!("{REQUESTS}/a"), 15_500)];
        let pace = CreationPace::new(Creations::from(times));
        pace.begin_step(10_000);
        tokio::time::sleep(Duration::from_millis(after_ms)).await;
        let left = pace.deletion_due("a").map(|due| due - Instant::now());
        assert_eq!(left, expected.map(Duration::from_millis));
        assert_eq!(pace.deletion_due("b"), None);
    }
}
