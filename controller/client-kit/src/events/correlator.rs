//! The decision on each event: the rules of client-go's `EventCorrelator`, without I/O.

use jiff::Timestamp;

use super::cache::{CACHE_ENTRIES_MAX, Digest, LruCache};
use super::event::{Event, Keys};

/// From this many different messages on, similar events are summed up (client-go: 10).
const SIMILAR_EVENTS_MAX: usize = 10;
/// Similar events that are further apart than this start anew, in seconds (client-go: 600).
const SIMILAR_INTERVAL_S: f64 = 600.0;
/// How many events one source may write about one object in a row (client-go: 25).
const SPAM_BURST: f64 = 25.0;
/// How many more it may write per second (client-go: one in five minutes).
const SPAM_REFILL_PER_S: f64 = 1.0 / 300.0;
/// The beginning of a summary's message.
const COMBINED: &str = "(combined from similar events): ";

/// The decision on an event.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// Create it.
    Create(Correlated),
    /// It exists: patch count, last time and message. If it is gone by now, create it.
    Patch(Correlated),
    /// Drop it: its source has written too much about this object.
    Drop,
}

/// An event to write, and the key that [`EventCorrelator::written`] takes to learn its final name.
#[derive(Debug, Clone, PartialEq)]
pub struct Correlated {
    /// The event, with the name and count to write.
    pub event: Event,
    key: Digest,
}

#[derive(Debug, Default)]
struct Similar {
    /// In order.
    messages: Vec<Digest>,
    last: Option<Timestamp>,
}

#[derive(Debug, Default)]
struct Observed {
    /// None so far if 0.
    count: u32,
    first: Timestamp,
    name: Box<str>,
}

#[derive(Debug)]
struct Bucket {
    tokens: f64,
    filled: Timestamp,
}

/// Counts, sums up and limits events.
#[derive(Debug)]
pub struct EventCorrelator {
    similar: LruCache<Similar>,
    observed: LruCache<Observed>,
    buckets: LruCache<Bucket>,
}

impl Default for EventCorrelator {
    fn default() -> Self {
        Self::new()
    }
}

impl EventCorrelator {
    /// A correlator that has seen nothing.
    #[must_use]
    pub fn new() -> Self {
        Self {
            similar: LruCache::new(CACHE_ENTRIES_MAX),
            observed: LruCache::new(CACHE_ENTRIES_MAX),
            buckets: LruCache::new(CACHE_ENTRIES_MAX),
        }
    }

    /// Decides on `event`, seen at `now`.
    pub fn correlate(&mut self, event: Event, now: Timestamp) -> Decision {
        let keys = event.keys();
        let (event, key) = self.aggregate(event, &keys, now);
        let correlated = self.observe(event, key);
        // As in client-go the filter comes last: a dropped event is counted all the same.
        if !self.may_write(keys.source, now) {
            return Decision::Drop;
        }
        if correlated.event.count > 1 {
            Decision::Patch(correlated)
        } else {
            Decision::Create(correlated)
        }
    }

    /// Tells under which name an event was created, when it had to take another one.
    pub fn written(&mut self, correlated: &Correlated) {
        let observed = self.observed.entry(correlated.key, Observed::default);
        observed.name = correlated.event.name.as_str().into();
    }

    fn aggregate(&mut self, event: Event, keys: &Keys, now: Timestamp) -> (Event, Digest) {
        let similar = self.similar.entry(keys.similar, Similar::default);
        if similar
            .last
            .is_some_and(|last| seconds_between(last, now) > SIMILAR_INTERVAL_S)
        {
            similar.messages.clear();
        }
        let message = Digest::of(&event.message);
        if let Err(place) = similar.messages.binary_search(&message) {
            // Most are alone.
            similar.messages.reserve_exact(1);
            similar.messages.insert(place, message);
        }
        similar.last = Some(now);
        if similar.messages.len() < SIMILAR_EVENTS_MAX {
            return (event, keys.same);
        }
        // client-go forgets an arbitrary message here; the first one in order keeps a run repeatable.
        similar.messages.remove(0);
        let message = format!("{COMBINED}{}", event.message);
        (Event { message, ..event }, keys.similar)
    }

    fn observe(&mut self, mut event: Event, key: Digest) -> Correlated {
        let observed = self.observed.entry(key, Observed::default);
        if observed.count > 0 {
            event.name = String::from(&*observed.name);
            event.first = observed.first;
            event.count = observed.count.saturating_add(1);
        }
        *observed = Observed {
            count: event.count,
            first: event.first,
            name: event.name.as_str().into(),
        };
        Correlated { event, key }
    }

    fn may_write(&mut self, source: Digest, now: Timestamp) -> bool {
        let bucket = self.buckets.entry(source, || Bucket {
            tokens: SPAM_BURST,
            filled: now,
        });
        let refill = seconds_between(bucket.filled, now).max(0.0) * SPAM_REFILL_PER_S;
        bucket.tokens = (bucket.tokens + refill).min(SPAM_BURST);
        bucket.filled = now;
        let may = bucket.tokens >= 1.0;
        if may {
            bucket.tokens -= 1.0;
        }
        may
    }
}

fn seconds_between(from: Timestamp, to: Timestamp) -> f64 {
    to.duration_since(from).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::{EventSource, EventType};
    use k8s_openapi::api::core::v1::ObjectReference;

    fn event(object: &str, reason: &str, message: &str, at_s: i64) -> Event {
        let now = Timestamp::from_second(at_s).unwrap_or_default();
        Event {
            name: format!("{object}.{at_s:x}"),
            object: ObjectReference {
                name: Some(object.to_owned()),
                ..ObjectReference::default()
            },
            source: EventSource {
                component: "tester".to_owned(),
                ..EventSource::default()
            },
            kind: EventType::Normal,
            reason: reason.to_owned(),
            message: message.to_owned(),
            first: now,
            last: now,
            count: 1,
            annotations: std::collections::BTreeMap::new(),
        }
    }

    /// Feeds `(object, reason, message, second)` rows and renders the decisions, one word or line each.
    fn decide(rows: impl IntoIterator<Item = (String, &'static str, String, i64)>) -> Vec<String> {
        let mut correlator = EventCorrelator::new();
        rows.into_iter()
            .map(|(object, reason, message, at)| {
                let now = Timestamp::from_second(at).unwrap_or_default();
                match correlator.correlate(event(&object, reason, &message, at), now) {
                    Decision::Create(c) => {
                        format!("create {} x{} {}", c.event.name, c.event.count, c.event.message)
                    }
                    Decision::Patch(c) => {
                        format!("patch {} x{} {}", c.event.name, c.event.count, c.event.message)
                    }
                    Decision::Drop => "drop".to_owned(),
                }
            })
            .collect()
    }

    fn row(
        object: &str,
        reason: &'static str,
        message: &str,
        at: i64,
    ) -> (String, &'static str, String, i64) {
        (object.to_owned(), reason, message.to_owned(), at)
    }

    #[test]
    fn the_same_event_is_counted() {
        let got = decide([
            row("a", "R", "m", 1),
            row("a", "R", "m", 2),
            row("b", "R", "m", 3),
            row("a", "S", "m", 4),
        ]);
        assert_eq!(
            got,
            [
                "create a.1 x1 m",
                "patch a.1 x2 m",
                "create b.3 x1 m",
                "create a.4 x1 m"
            ]
        );
    }

    #[test]
    fn the_tenth_similar_one_is_summed_up() {
        let got = decide((1..=12).map(|n| row("a", "R", &format!("m{n}"), n)));
        assert_eq!(got[8], "create a.9 x1 m9");
        assert_eq!(got[9], "create a.a x1 (combined from similar events): m10");
        assert_eq!(got[10], "patch a.a x2 (combined from similar events): m11");
        assert_eq!(got[11], "patch a.a x3 (combined from similar events): m12");
    }

    #[test]
    fn similar_ones_far_apart_are_not() {
        let got = decide((1..=12).map(|n| row("a", "R", &format!("m{n}"), n * 601)));
        assert!(got.iter().all(|line| line.starts_with("create")), "{got:?}");
    }

    #[test]
    fn a_talkative_source_is_cut_off_and_recovers() {
        let mut rows: Vec<_> = (1..=27).map(|_| row("a", "R", "m", 1)).collect();
        rows.push(row("b", "R", "m", 1));
        rows.push(row("a", "R", "m", 302));
        let got = decide(rows);
        assert_eq!(got[24], "patch a.1 x25 m");
        assert_eq!(&got[25..27], ["drop", "drop"]);
        assert_eq!(got[27], "create b.1 x1 m");
        assert_eq!(got[28], "patch a.1 x28 m", "dropped ones count");
    }
}
