//! Plays a scenario.

use std::collections::BTreeMap;
use std::time::Duration;

use shared_json::{Value, json};

use super::operations::Player;
use super::outcome::{ScenarioOutcome, Status, StepOutcome};
use super::{compare, play};
use crate::assertion::Bindings;
use crate::backend::Backend;
use crate::error::Error;
use crate::history::Slice;
use crate::recording::{Recording, pairing};
use crate::render;
use crate::scenario::Scenario;
use crate::snapshot;

/// A recording that judges a scenario, its pods called as in the scenario.
#[derive(Debug, Clone)]
pub struct Judge {
    /// The recording's name.
    pub name: String,
    /// Its steps, rendered.
    pub steps: Vec<String>,
}

impl Judge {
    /// A recording, its pods renamed.
    #[must_use]
    pub fn new(recording: &Recording, names: &BTreeMap<String, String>) -> Self {
        // The annotation speaks of suffixes; with the dash before them they are found in names only.
        let names = names
            .iter()
            .map(|(from, to)| (format!("-{from}"), format!("-{to}")))
            .collect();
        let renamed = Recording {
            history: pairing::rename(&recording.history, &names),
            ..recording.clone()
        };
        let steps = (0..renamed.steps.len())
            .map(|index| play::rendered(&renamed, index))
            .collect();
        Self {
            name: recording.name.clone(),
            steps,
        }
    }
}

/// Called after each step, with its outcome.
pub type OnStep<'a> = &'a mut dyn FnMut(&StepOutcome);

/// Plays a scenario on a backend; `snapshots` says whether each step must have one that nothing else judges.
///
/// # Errors
/// If the scenario itself is wrong. Failures of the cluster are part of the outcome.
pub async fn run(
    scenario: &Scenario,
    backend: &Backend,
    judges: &[Judge],
    snapshots: bool,
    on_step: OnStep<'_>,
) -> Result<ScenarioOutcome, Error> {
    let clock = backend.clock();
    let began = clock.now();
    for (prefix, suffixes) in &scenario.extras.pod_names {
        backend.name_pods(prefix, suffixes);
    }
    let spec = &scenario.test.spec;
    let templated = spec.namespace_template.as_ref();
    let namespace = spec
        .namespace
        .clone()
        .or_else(|| templated.map(|template| text_or(template, "/metadata/name", "chainsaw")))
        .unwrap_or_else(|| "default".to_owned());
    let mut bindings = Bindings::default();
    bindings.set("namespace", Value::from(namespace.clone()));
    bindings.set("values", scenario.values.clone());
    // Chainsaw's own objects, which functions that ask a cluster take.
    bindings.set("client", json!({}));
    bindings.set("config", json!({}));
    bindings.set(
        "test",
        json!({"id": 1, "scenarioId": scenario.variant, "metadata": {"name": scenario.test.metadata.name}}),
    );
    let mut player = Player::new(scenario, backend, &namespace, bindings.compiled_by(spec.compiler));
    player
        .bind(&scenario.test.spec.bindings)
        .await
        .map_err(|why| scenario_error(scenario, &why))?;
    let elsewhere = player
        .cluster()
        .await
        .map_err(|why| scenario_error(scenario, &why))?;
    if !elsewhere.is_empty() {
        let reason = format!("not played here: cluster {elsewhere}");
        return Ok(ScenarioOutcome::skipped(&scenario.name, reason));
    }
    player
        .make_namespace(&namespace)
        .await
        .map_err(|why| scenario_error(scenario, &why))?;
    let mut steps: Vec<StepOutcome> = Vec::new();
    let mut failed = false;
    for (index, step) in scenario.test.spec.steps.iter().enumerate() {
        let from = backend.history_len();
        for fault in scenario.extras.faults.get(&step.name).into_iter().flatten() {
            backend.add_fault(fault.clone());
        }
        let result = player.step(step).await;
        backend.settle().await;
        let history = backend.history();
        let text = render::step(Slice {
            before: &history[..from],
            during: &history[from..],
        });
        let commands = player.take_commands();
        let name = if step.name.is_empty() {
            format!("step {}", index + 1)
        } else {
            step.name.clone()
        };
        let mut outcome = StepOutcome {
            name,
            commands,
            text,
            status: Status::Passed,
            diff: String::new(),
            judged_by: Vec::new(),
            forgiven: Vec::new(),
        };
        judge(scenario, &mut outcome, index, judges, snapshots);
        let stops = result.is_err();
        if let Err(why) = result {
            outcome.status = Status::Failed;
            outcome.diff = format!("{why}\n{}", outcome.diff);
        }
        on_step(&outcome);
        failed |= outcome.status == Status::Failed;
        steps.push(outcome);
        // What looks wrong is told and the scenario goes on; what could not be done ends it.
        if stops {
            player.catch(&step.catch).await;
            player.catch(&scenario.test.spec.catch).await;
            break;
        }
    }
    let refused = player.take_refusal();
    player.clean_up().await;
    if let Some(refused) = refused {
        return Err(refused);
    }
    let elapsed = clock.now().duration_since(began);
    Ok(ScenarioOutcome {
        name: scenario.name.clone(),
        status: if failed { Status::Failed } else { Status::Passed },
        reason: String::new(),
        steps,
        wall: Duration::ZERO,
        virtual_time: Duration::try_from(elapsed).ok(),
    })
}

fn text_or(value: &Value, pointer: &str, otherwise: &str) -> String {
    let found = value.pointer(pointer).and_then(Value::as_str);
    found.unwrap_or(otherwise).to_owned()
}

fn scenario_error(scenario: &Scenario, why: &str) -> Error {
    Error::Parse {
        path: scenario.path.clone(),
        line: 0,
        column: 0,
        why: why.to_owned(),
        help: "see the scenario's bindings".to_owned(),
    }
}

/// Compares a step with the recordings, and with its snapshot.
fn judge(scenario: &Scenario, outcome: &mut StepOutcome, index: usize, judges: &[Judge], snapshots: bool) {
    for judge in judges {
        let Some(expected) = judge.steps.get(index) else {
            continue;
        };
        let source = format!("recording {}", judge.name);
        let diff = compare::unified(expected, &outcome.text, &source);
        if !diff.is_empty() {
            outcome.status = Status::Failed;
            outcome.diff.push_str(&diff);
        }
        outcome.judged_by.push(source);
    }
    match snapshot::read(scenario.folder(), index, &outcome.name) {
        Some(snapshot) => {
            let diff = compare::unified(&snapshot.text, &outcome.text, "its snapshot");
            if !diff.is_empty() && outcome.diff.is_empty() {
                outcome.status = Status::Failed;
                outcome.diff.push_str(&diff);
            }
            outcome.judged_by.push("snapshot".to_owned());
        }
        None if judges.is_empty() && snapshots => {
            outcome.diff.push_str(
                "the step has neither a recording nor a snapshot; look at it, then run with --bless\n",
            );
            outcome.status = Status::Failed;
        }
        None => {}
    }
}
