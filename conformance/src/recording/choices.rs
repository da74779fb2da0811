//! The order in which a run's manager takes pods that are equal in every criterion: the recorded one.
//!
//! Go's caches list pods in the order of a map, which differs each time. A recording shows the order that came out. A run whose
//! manager lists its pods in the order in which the recording mentions them next takes the recorded one of several equal pods,
//! and any other one only if its own rules say so.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::load::Recording;
use super::pairing::Mentions;
use crate::history::Change;

/// The recorded mentions of pods, and how far a run has got.
#[derive(Debug, Default)]
pub struct Choices {
    /// The positions of each pod's mentions among all of the recording.
    recorded: BTreeMap<String, Vec<usize>>,
    run: Mutex<Mentions>,
}

impl Choices {
    /// The choices of a recording.
    #[must_use]
    pub fn of(recording: &Recording) -> Arc<Self> {
        Arc::new(Self {
            recorded: Mentions::of(&recording.history).into_positions(),
            run: Mutex::default(),
        })
    }

    /// The next change of the run.
    pub fn note(&self, change: &Change) {
        self.run
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .note(change);
    }

    /// The place of a pod in the run's lists: where the recording mentions it next. Pods that it mentions no more come last.
    #[must_use]
    pub fn place(&self, pod: &str) -> usize {
        let run = self.run.lock().unwrap_or_else(PoisonError::into_inner);
        let recorded = self.recorded.get(pod);
        let next = recorded.and_then(|positions| positions.get(run.of_pod(pod).len()));
        next.copied().unwrap_or(usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use shared_json::json;

    use super::*;
    use crate::history::ChangeKind;

    fn event(message: &str) -> Change {
        let object = json!({
            "metadata": {"name": message}, "involvedObject": {"kind": "CloneSet"}, "reason": "X", "message": message,
        });
        Change {
            at_ms: 0,
            resource: "events".to_owned(),
            kind: ChangeKind::Added,
            object: Arc::new(object),
        }
    }

    #[test]
    fn pods_come_in_the_order_of_their_next_mentions() {
        let events = ["update a-2", "update a-1", "delete a-1", "delete a-2"].map(event);
        let recorded = Mentions::of(&events).into_positions();
        let choices = Choices {
            recorded,
            run: Mutex::default(),
        };
        let places = |choices: &Choices| ["a-1", "a-2", "a-3"].map(|pod| choices.place(pod));
        assert_eq!(places(&choices), [1, 0, usize::MAX]);
        events[..2].iter().for_each(|change| choices.note(change));
        assert_eq!(places(&choices), [2, 3, usize::MAX]);
    }
}
