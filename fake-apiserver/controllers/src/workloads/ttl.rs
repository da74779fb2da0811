//! Removes finished jobs after their time.

use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use machinery::meta::{ObjectMeta as _, at};
use shared_json::Value;

use super::job_plan::is_finished;
use crate::runtime::{Cache, Controller, Cx, Key, Next, Res, list, text, time, until};

/// The controller.
pub(crate) struct TtlAfterFinished;

/// How long a job that has ended stays; nothing if its time is over, none if it has no such time.
fn left(job: &Value, now: Timestamp) -> Option<Duration> {
    let ttl = at(job, "spec.ttlSecondsAfterFinished").and_then(Value::as_u64)?;
    let finished = list(job, "status.conditions").iter().find(|condition| {
        matches!(text(condition, "type"), "Complete" | "Failed") && text(condition, "status") == "True"
    })?;
    let over = time(finished, "lastTransitionTime")?
        .saturating_add(Duration::from_secs(ttl))
        .ok()?;
    Some(until(over, now).unwrap_or_default())
}

#[async_trait]
impl Controller for TtlAfterFinished {
    fn name(&self) -> &'static str {
        "ttl-after-finished-controller"
    }

    fn watches(&self) -> &'static [Res] {
        &[Res::Jobs]
    }

    fn affected(&self, _: &Cache, _: Res, object: &Value, _: Option<&Value>) -> Vec<Key> {
        let limited = at(object, "spec.ttlSecondsAfterFinished").is_some_and(Value::is_number);
        if limited && is_finished(object) && !object.is_terminating() {
            vec![Key::of(object)]
        } else {
            Vec::new()
        }
    }

    async fn sync(&mut self, cx: &mut Cx<'_>, key: &Key) -> Result<Next, kube::Error> {
        let Some(job) = cx.cache.get(Res::Jobs, &key.namespace, &key.name).cloned() else {
            return Ok(Next::Change);
        };
        match left(&job, cx.now()) {
            None => return Ok(Next::Change),
            Some(left) if !left.is_zero() => return Ok(Next::After(left)),
            Some(_) => {}
        }
        cx.delete(Res::Jobs, &job, Some("Foreground")).await?;
        Ok(Next::Change)
    }
}

#[cfg(test)]
mod tests {
    use shared_json::json;

    use super::*;

    /// The job's seconds, its conditions (`Type=Status@second`), the second that it is, and how many seconds it stays.
    #[track_caller]
    fn check(ttl: Value, conditions: &[&str], now: i64, expected: Option<u64>) {
        let conditions: Vec<Value> = conditions
            .iter()
            .map(|short| {
                let (kind, rest) = short.split_once('=').unwrap();
                let (status, second) = rest.split_once('@').unwrap();
                let at = Timestamp::from_second(second.parse().unwrap()).unwrap();
                json!({"type": kind, "status": status, "lastTransitionTime": at.to_string()})
            })
            .collect();
        let job = json!({
            "metadata": {"name": "j"}, "spec": {"ttlSecondsAfterFinished": ttl}, "status": {"conditions": conditions},
        });
        let found = left(&job, Timestamp::from_second(now).unwrap());
        assert_eq!(found, expected.map(Duration::from_secs), "{job} at {now}");
    }

    #[test]
    fn how_long_jobs_stay() {
        check(json!(10), &["Complete=True@100"], 100, Some(10));
        check(json!(10), &["Complete=True@100"], 104, Some(6));
        check(json!(10), &["Complete=True@100"], 109, Some(1));
        check(json!(10), &["Complete=True@100"], 110, Some(0));
        check(json!(10), &["Complete=True@100"], 500, Some(0));
        check(json!(10), &["Failed=True@100"], 104, Some(6));
        check(json!(10), &["Failed=True@100"], 110, Some(0));
        check(json!(0), &["Complete=True@100"], 100, Some(0));
        check(json!(0), &["Failed=True@100"], 100, Some(0));
        // A clock that is behind makes it longer.
        check(json!(10), &["Complete=True@100"], 95, Some(15));
        // Only the end counts, and only since it is true.
        check(
            json!(10),
            &["SuccessCriteriaMet=True@50", "Complete=True@100"],
            104,
            Some(6),
        );
        check(
            json!(10),
            &["FailureTarget=True@50", "Failed=True@100"],
            104,
            Some(6),
        );
        check(
            json!(10),
            &["Suspended=False@150", "Complete=True@100"],
            104,
            Some(6),
        );
        check(json!(10), &["SuccessCriteriaMet=True@50"], 104, None);
        check(json!(10), &["FailureTarget=True@50"], 104, None);
        check(json!(10), &["Complete=False@100"], 104, None);
        check(json!(10), &["Complete=False@50", "Failed=True@100"], 104, Some(6));
        check(json!(10), &["Suspended=True@100"], 104, None);
        check(json!(10), &[], 104, None);
        check(Value::Null, &["Complete=True@100"], 104, None);
        check(json!(1_000_000), &["Complete=True@100"], 100, Some(1_000_000));
    }

    #[test]
    fn which_jobs_are_looked_at() {
        let job = |ttl: Value, kind: &str, more: Value| {
            let mut job = json!({
                "metadata": {"name": "j", "namespace": "d"}, "spec": {"ttlSecondsAfterFinished": ttl},
                "status": {"conditions": [{"type": kind, "status": "True"}]},
            });
            job.merge(&more);
            job
        };
        for (job, expected) in [
            (job(json!(0), "Complete", json!({})), 1),
            (job(json!(5), "Failed", json!({})), 1),
            (job(json!(5), "Suspended", json!({})), 0),
            (job(Value::Null, "Complete", json!({})), 0),
            (
                job(
                    json!(5),
                    "Complete",
                    json!({"metadata": {"deletionTimestamp": "x"}}),
                ),
                0,
            ),
        ] {
            let keys = TtlAfterFinished.affected(&Cache::default(), Res::Jobs, &job, None);
            assert_eq!(keys.len(), expected, "{job}");
        }
    }
}
