//! The report as JSON.

use shared_json::{Value, json};

use super::Totals;
use crate::run::outcome::ScenarioOutcome;

/// `{"scenarios":[{"name","status","seconds_wall","seconds_virtual","steps":[{"name","status","diff"}]}],"passed",…}`
#[must_use]
pub fn report(outcomes: &[ScenarioOutcome]) -> Value {
    let totals = Totals::of(outcomes);
    let scenarios: Vec<Value> = outcomes
        .iter()
        .map(|outcome| {
            let steps: Vec<Value> = outcome
                .steps
                .iter()
                .map(|step| json!({"name": step.name, "status": step.status, "diff": step.diff}))
                .collect();
            json!({
                "name": outcome.name, "status": outcome.status, "reason": outcome.reason,
                "seconds_wall": outcome.wall.as_secs_f64(), "seconds_virtual": outcome.virtual_time.map(|time| time.as_secs_f64()),
                "steps": steps,
            })
        })
        .collect();
    json!({
        "scenarios": scenarios, "passed": totals.passed, "failed": totals.failed, "skipped": totals.skipped,
    })
}
