//! Delays before failed things are tried again.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

/// The first delay, and the longest (the kubelet's, for restarts and pulls alike).
const DELAY_MIN: Duration = Duration::from_secs(10);
const DELAY_MAX: Duration = Duration::from_secs(300);
/// How long a delay is kept in mind.
const FORGOTTEN: Duration = Duration::from_secs(600);

struct Entry {
    delay: Duration,
    updated: Instant,
}

/// Delays by key: containers for restarts, images for pulls.
#[derive(Default)]
pub(super) struct Backoff(BTreeMap<String, Entry>);

impl Backoff {
    /// Whether a container that ended at `ended` may begin again. If so the next delay is twice as long; if not, gives the delay.
    /// Twice the longest delay after it last began everything is forgotten, whether it runs or waits.
    pub(super) fn restart(&mut self, key: &str, ended: Instant, now: Instant) -> Result<(), Duration> {
        self.0
            .retain(|_, entry| now.saturating_duration_since(entry.updated) <= FORGOTTEN);
        if let Some(entry) = self.0.get(key)
            && now.saturating_duration_since(ended) < entry.delay
        {
            return Err(entry.delay);
        }
        self.failed(key, ended, now);
        Ok(())
    }

    /// Whether a further try has to wait, counted from the last failure.
    pub(super) fn waits(&self, key: &str, now: Instant) -> bool {
        self.0
            .get(key)
            .is_some_and(|entry| now.saturating_duration_since(entry.updated) < entry.delay)
    }

    /// Notes a failure: the first delay, or twice the last.
    pub(super) fn failed(&mut self, key: &str, event: Instant, now: Instant) {
        let delay = match self.0.get(key) {
            Some(entry) if event.saturating_duration_since(entry.updated) <= FORGOTTEN => {
                (entry.delay * 2).min(DELAY_MAX)
            }
            _ => DELAY_MIN,
        };
        self.0.insert(key.to_owned(), Entry { delay, updated: now });
    }

    pub(super) fn forget(&mut self, key: &str) {
        self.0.remove(key);
    }
}

/// A duration as Go prints it: `10s`, `1m20s`, `5m0s`.
pub(super) fn go_duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, s) => format!("{s}s"),
        (0, m, s) => format!("{m}m{s}s"),
        (h, m, s) => format!("{h}h{m}m{s}s"),
    }
}

/// A duration as Go prints it, to the millisecond: `986ms`, `1.25s`, `1m0.5s`.
pub(super) fn go_fraction(duration: Duration) -> String {
    let ms = duration.subsec_millis();
    if duration.as_secs() == 0 && ms > 0 {
        return format!("{ms}ms");
    }
    let whole = go_duration(duration);
    if ms == 0 {
        return whole;
    }
    let fraction = format!("{ms:03}");
    format!(
        "{}.{}s",
        whole.trim_end_matches('s'),
        fraction.trim_end_matches('0')
    )
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(0, "0s")]
    #[case(986, "986ms")]
    #[case(1000, "1s")]
    #[case(1250, "1.25s")]
    #[case(3007, "3.007s")]
    #[case(60_500, "1m0.5s")]
    fn fractions(#[case] ms: u64, #[case] expected: &str) {
        assert_eq!(go_fraction(Duration::from_millis(ms)), expected);
    }

    #[tokio::test(start_paused = true)]
    async fn delays_grow_from_ten_seconds_to_five_minutes() {
        let mut backoff = Backoff::default();
        let mut delays = Vec::new();
        let mut ended = Instant::now();
        // The first restart is at once.
        assert_eq!(backoff.restart("a", ended, ended), Ok(()));
        for _ in 0..7 {
            let Err(delay) = backoff.restart("a", ended, ended) else {
                panic!("no delay");
            };
            delays.push(go_duration(delay));
            assert_eq!(backoff.restart("a", ended, ended + delay), Ok(()));
            ended += delay;
        }
        assert_eq!(delays, ["10s", "20s", "40s", "1m20s", "2m40s", "5m0s", "5m0s"]);
        let later = ended + Duration::from_secs(601);
        assert_eq!(backoff.restart("a", later, later), Ok(()));
        assert_eq!(backoff.restart("a", later, later), Err(DELAY_MIN));
    }

    #[tokio::test(start_paused = true)]
    async fn pulls_wait_from_their_last_failure() {
        let mut backoff = Backoff::default();
        let start = Instant::now();
        assert!(!backoff.waits("i", start));
        backoff.failed("i", start, start);
        assert!(backoff.waits("i", start + Duration::from_secs(9)));
        assert!(!backoff.waits("i", start + Duration::from_secs(10)));
        backoff.forget("i");
        assert!(!backoff.waits("i", start));
    }
}
