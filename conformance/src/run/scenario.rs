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
use crate::history::{Change, Slice};
use crate::recording::roles::Roles;
use crate::recording::{Recording, pairing};
use crate::render::{self, Time};
use crate::scenario::Scenario;
use crate::snapshot;

/// A recording that judges a scenario, its pods called as in the scenario.
#[derive(Debug, Clone)]
pub struct Judge {
    recording: Recording,
    /// The pods that the scenario names.
    roles: Roles,
}

impl Judge {
    /// A recording, its pods renamed.
    #[must_use]
    pub fn new(scenario: &Scenario, recording: &Recording, names: &BTreeMap<String, String>) -> Self {
        // The annotation speaks of suffixes; with the dash before them they are found in names only.
        let names = names
            .iter()
            .map(|(from, to)| (format!("-{from}"), format!("-{to}")))
            .collect();
        let renamed = Recording {
            history: pairing::rename(&recording.history, &names),
            ..recording.clone()
        };
        Self {
            roles: Roles::named_in(&renamed, &scenario.told()),
            recording: renamed,
        }
    }

    /// How its step and the same step of a run look; nothing if it has no such step.
    fn compare(&self, index: usize, run: &Ran<'_>, text: &str) -> Option<(String, String)> {
        self.recording.steps.get(index)?;
        let recorded = play::recorded(&self.recording, index);
        Some(match run.time {
            Time::Virtual => (render::step(recorded), text.to_owned()),
            Time::Real => {
                let history = self.renamed(run.history);
                render::both(recorded, run.slice(&history), Time::Real)
            }
        })
    }

    /// The changes of a run in real time, its pods called as those of the recording. The pods of one burst are alike, and which of
    /// them a workload takes first may depend on the whole second in which each became ready. Those that the scenario names stay.
    fn renamed(&self, history: &[Change]) -> Vec<Change> {
        pairing::rename(
            history,
            &pairing::pair_pods(&self.recording, history, &self.roles),
        )
    }
}

/// A step of a run.
struct Ran<'a> {
    /// All changes until the step's end.
    history: &'a [Change],
    /// Where the step begins among them.
    from: usize,
    time: Time,
}

impl Ran<'_> {
    /// The step, from the changes of the run with other names.
    fn slice<'h>(&self, history: &'h [Change]) -> Slice<'h> {
        Slice {
            before: &history[..self.from],
            during: &history[self.from..],
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
        let ran = Ran {
            history: &history,
            from,
            time: play::time_of(backend),
        };
        let text = render::step(ran.slice(&history));
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
        judge(scenario, &mut outcome, &ran, index, judges, snapshots);
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
fn judge(
    scenario: &Scenario,
    outcome: &mut StepOutcome,
    ran: &Ran<'_>,
    index: usize,
    judges: &[Judge],
    snapshots: bool,
) {
    for judge in judges {
        let Some((expected, text)) = judge.compare(index, ran, &outcome.text) else {
            continue;
        };
        let source = format!("recording {}", judge.recording.name);
        let diff = compare::unified(&expected, &text, &source);
        if !diff.is_empty() {
            outcome.status = Status::Failed;
            outcome.diff.push_str(&diff);
        }
        outcome.judged_by.push(source);
    }
    match snapshot::read(scenario.folder(), index, &outcome.name) {
        Some(snapshot) => {
            let text = match ran.time {
                Time::Virtual => outcome.text.clone(),
                Time::Real => {
                    let history = judges.first().map(|judge| judge.renamed(ran.history));
                    let history = history.as_deref().unwrap_or(ran.history);
                    render::in_order_of(&snapshot.text, ran.slice(history))
                }
            };
            let diff = compare::unified(&snapshot.text, &text, "its snapshot");
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

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Arc;

    use rstest::rstest;

    use super::*;
    use crate::history::ChangeKind;
    use crate::recording::Step;

    fn change(at_ms: i64, resource: &str, object: Value) -> Change {
        Change {
            at_ms,
            resource: resource.to_owned(),
            kind: ChangeKind::Added,
            object: Arc::new(object),
        }
    }

    /// Three pods of one burst, and an event about some of them at some second, in words such as `2 a-1`.
    fn history(events: &str) -> Vec<Change> {
        let pods = ["a-1", "a-2", "a-3"];
        let created = pods.map(|name| change(0, "pods", json!({"metadata": {"name": name}})));
        let event = |word: &str| {
            let (second, pod) = word.split_once(' ').unwrap();
            let object = json!({
                "metadata": {"name": word}, "involvedObject": {"kind": "CloneSet", "name": "a"}, "type": "Normal",
                "reason": "SuccessfulUpdatePodInPlace", "message": format!("update {pod}"),
            });
            change(second.parse::<i64>().unwrap() * 1000, "events", object)
        };
        created.into_iter().chain(events.split(", ").map(event)).collect()
    }

    /// The recording updates one pod after the other; the scenario names the first of them.
    #[rstest]
    #[case::as_recorded("2 a-1, 30 a-2, 60 a-3", true)]
    #[case::equal_pods_the_other_way("2 a-1, 30 a-3, 60 a-2", true)]
    #[case::another_pod_than_the_named_one("2 a-2, 30 a-1, 60 a-3", false)]
    #[case::one_less("2 a-1, 30 a-2", false)]
    #[case::a_pod_that_is_not_of_the_burst("2 a-1, 30 a-2, 60 a-4", false)]
    fn equal_pods_of_a_run_in_real_time_take_each_others_part(#[case] run: &str, #[case] alike: bool) {
        let step = json!({"name": "update", "t": 0.0, "settled_t": 90.0, "do": []});
        let recording = Recording {
            name: "r".to_owned(),
            folder: PathBuf::new(),
            steps: vec![shared_json::from_value::<Step>(step).unwrap()],
            history: history("2 a-1, 30 a-2, 60 a-3"),
            began: None,
            namespace: "default".to_owned(),
            gates: String::new(),
        };
        let judge = Judge {
            roles: Roles::named_in(&recording, "podsToDelete: [a-1]"),
            recording,
        };
        let run = history(run);
        let compared = |time| {
            let ran = Ran {
                history: &run,
                from: 0,
                time,
            };
            let text = render::step(ran.slice(&run));
            let (expected, text) = judge.compare(0, &ran, &text).unwrap();
            expected == text
        };
        assert_eq!(compared(Time::Real), alike);
        // Where time is virtual, a run makes the recorded choices.
        assert_eq!(compared(Time::Virtual), run == history("2 a-1, 30 a-2, 60 a-3"));
    }
}
