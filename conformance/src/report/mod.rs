//! The outcome of a run, for people and for machines.

pub mod console;
pub mod json;
pub mod junit;
pub mod stopwatch;

use std::io::{Stdout, Write};

use crate::run::outcome::{ScenarioOutcome, Status};

/// How much a run prints.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Verbosity {
    /// The failures, and the totals.
    Quiet,
    /// As `Lines`, without a line for a success: a progress bar counts those.
    Progress,
    /// The scenarios that say so step by step, and a line for each other one.
    #[default]
    Lines,
    /// Every step whole.
    Verbose,
}

/// Where a run prints.
pub trait Output: Write + Send {
    /// Is called whenever one more of `of` plays has ended.
    fn played(&mut self, outcome: &ScenarioOutcome, of: usize) {
        let _ = (outcome, of);
    }
}

impl Output for Vec<u8> {}
impl Output for Stdout {}

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
