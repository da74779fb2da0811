//! What came of a run, for people and for machines.

pub mod console;
pub mod json;
pub mod junit;
pub mod stopwatch;

use crate::run::outcome::{ScenarioOutcome, Status};

/// How many scenarios ended how.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// As they should.
    pub passed: usize,
    /// Not as they should.
    pub failed: usize,
    /// Not tried.
    pub skipped: usize,
}

impl Totals {
    /// Counts.
    #[must_use]
    pub fn of(outcomes: &[ScenarioOutcome]) -> Self {
        let count = |status| outcomes.iter().filter(|outcome| outcome.status == status).count();
        Self {
            passed: count(Status::Passed),
            failed: count(Status::Failed),
            skipped: count(Status::Skipped),
        }
    }
}

impl std::fmt::Display for Totals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} passed, {} failed, {} skipped",
            self.passed, self.failed, self.skipped
        )
    }
}
