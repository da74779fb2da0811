//! Wall time: only ever for reports and benchmarks, never for the behaviour of a run.

use std::time::{Duration, Instant};

/// Measures wall time.
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Begins to measure.
    #[must_use]
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place where wall time is measured"
    )]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// The time since the start.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}
