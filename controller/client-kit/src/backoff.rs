//! Waiting longer each time: client-go's `flowcontrol.Backoff`.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

/// Keys that have failed, how long each waits after its next failure, and since when. A key that did not fail for twice the longest
/// wait is forgotten.
///
/// ```
/// use std::time::Duration;
/// use client_kit::Backoff;
/// use jiff::Timestamp;
///
/// let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(900));
/// let now = Timestamp::UNIX_EPOCH;
/// assert_eq!(backoff.delay(&"a", now), None);
/// backoff.note("a", now);
/// assert_eq!(backoff.delay(&"a", now), Some(Duration::from_secs(1)));
/// ```
#[derive(Debug, Clone)]
pub struct Backoff<K> {
    first: Duration,
    longest: Duration,
    known: BTreeMap<K, (Duration, Timestamp)>,
}

impl<K: Ord> Backoff<K> {
    /// Waits for `first` after a failure, and twice as long after each further one, up to `longest`.
    #[must_use]
    pub fn new(first: Duration, longest: Duration) -> Self {
        Self {
            first,
            longest,
            known: BTreeMap::new(),
        }
    }

    /// How long a key waits in all; none if its wait is over.
    #[must_use]
    pub fn delay(&self, key: &K, now: Timestamp) -> Option<Duration> {
        let (delay, since) = self.known.get(key)?;
        (passed(*since, now) < *delay).then_some(*delay)
    }

    /// The key has failed.
    pub fn note(&mut self, key: K, now: Timestamp) {
        let (first, longest) = (self.first, self.longest);
        self.known
            .retain(|_, (_, since)| passed(*since, now) <= longest * 2);
        let known = self.known.get(&key);
        let delay = known.map_or(first, |(delay, _)| (*delay * 2).min(longest));
        self.known.insert(key, (delay, now));
    }
}

fn passed(since: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(since)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// The seconds at which a key failed, and how long it waits at a second.
    #[rstest]
    #[case::first(&[], 0, 0)]
    #[case::at_once(&[0], 0, 1)]
    #[case::a_second_later(&[0], 1, 0)]
    #[case::twice_as_long(&[0, 1], 2, 2)]
    #[case::twice_as_long_is_over(&[0, 1], 3, 0)]
    #[case::four_times(&[0, 1, 3], 6, 4)]
    #[case::up_to_a_quarter_of_an_hour(&[0, 1, 3, 7, 15, 31, 63, 127, 255, 511, 1023, 1923], 2000, 900)]
    #[case::forgotten(&[0, 1, 3, 1804], 1804, 1)]
    #[case::not_forgotten_yet(&[0, 1, 3, 1803], 1803, 8)]
    fn waits(#[case] failures: &[i64], #[case] now: i64, #[case] expected: u64) {
        let at = |second: i64| Timestamp::from_second(second).expect("a second");
        let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(900));
        for second in failures {
            backoff.note("key", at(*second));
        }
        let found = backoff.delay(&"key", at(now)).unwrap_or_default();
        assert_eq!(found, Duration::from_secs(expected));
        assert_eq!(backoff.delay(&"other", at(now)), None);
    }
}
