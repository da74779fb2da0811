//! What came of a run.

use std::time::Duration;

use serde::Serialize;

/// How a scenario or a step ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// As it should be.
    Passed,
    /// Not as it should be.
    Failed,
    /// It could not be tried; the reason says why.
    Skipped,
}

/// What came of one step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepOutcome {
    /// The step's name.
    pub name: String,
    /// What was done, as a person would have typed it.
    pub commands: Vec<String>,
    /// What the step looked like afterwards.
    pub text: String,
    /// How it ended.
    pub status: Status,
    /// The difference from what was expected, or what went wrong; empty if nothing did.
    pub diff: String,
    /// What was expected and from where, such as `recording 1.0.1/s1-cs-demo`; empty if nothing was.
    pub judged_by: Vec<String>,
    /// Known differences that were forgiven, with their reasons.
    pub forgiven: Vec<String>,
}

/// What came of one scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScenarioOutcome {
    /// Its name.
    pub name: String,
    /// How it ended.
    pub status: Status,
    /// Why it was skipped, or failed before its first step.
    pub reason: String,
    /// Its steps, as far as it came.
    pub steps: Vec<StepOutcome>,
    /// How long it took.
    pub wall: Duration,
    /// How long that was on the cluster's clock; none where that is the one on the wall.
    pub virtual_time: Option<Duration>,
}

impl ScenarioOutcome {
    /// A scenario that is wrong itself.
    #[must_use]
    pub fn wrong(name: &str, reason: String) -> Self {
        Self {
            status: Status::Failed,
            ..Self::skipped(name, reason)
        }
    }

    /// A scenario that was not tried.
    #[must_use]
    pub fn skipped(name: &str, reason: String) -> Self {
        Self {
            name: name.to_owned(),
            status: Status::Skipped,
            reason,
            steps: Vec::new(),
            wall: Duration::ZERO,
            virtual_time: None,
        }
    }
}
