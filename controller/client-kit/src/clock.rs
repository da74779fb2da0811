//! Where the time comes from.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

/// A source of the current time. Every timestamp that is written into an object comes from one of these.
pub trait Clock: Send + Sync + 'static {
    /// The current time.
    fn now(&self) -> Timestamp;

    /// The current time cut to whole seconds, as `metav1.Time` is encoded.
    fn now_seconds(&self) -> Timestamp {
        Timestamp::from_second(self.now().as_second()).unwrap_or(Timestamp::UNIX_EPOCH)
    }
}

/// A clock that many owners share.
pub type SharedClock = Arc<dyn Clock>;

/// The system's clock. A manager on a real cluster uses it, and nothing else may.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place where the wall clock is read"
    )]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// Tokio's clock, counted from a chosen start. With a paused runtime it is virtual time.
#[derive(Debug, Clone, Copy)]
pub struct TokioClock {
    start: Timestamp,
    origin: tokio::time::Instant,
}

impl TokioClock {
    /// A clock that reads `start` now. Must be called within a tokio runtime.
    #[must_use]
    pub fn starting_at(start: Timestamp) -> Self {
        Self {
            start,
            origin: tokio::time::Instant::now(),
        }
    }

    /// The time since the clock's start.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.origin.elapsed()
    }
}

impl Clock for TokioClock {
    fn now(&self) -> Timestamp {
        self.start
            .saturating_add(self.origin.elapsed())
            .unwrap_or(Timestamp::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn follows_virtual_time() {
        let clock = TokioClock::starting_at(Timestamp::UNIX_EPOCH);
        tokio::time::sleep(Duration::from_millis(30_500)).await;
        assert_eq!(clock.now().as_millisecond(), 30_500);
        assert_eq!(clock.now_seconds().as_millisecond(), 30_000);
    }
}
