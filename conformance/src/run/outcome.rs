//! The outcome of a run.

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

/// The outcome of one step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepOutcome {
    /// The step's name.
    pub name: String,
    /// The commands, as a person would have typed them.
    pub commands: Vec<String>,
    /// The rendered step.
    pub text: String,
    /// How it ended.
    pub status: Status,
    /// The difference from the expectation, or the error; empty if there is none.
    pub diff: String,
    /// The expectation's source, such as `recording 1.0.1/s1-cs-demo`; empty if there is no expectation.
    pub judged_by: Vec<String>,
    /// Known differences that were forgiven, with their reasons.
    pub forgiven: Vec<String>,
}

/// The outcome of one scenario.
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
