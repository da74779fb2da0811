//! Removes finished jobs after their time.

use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;

use super::job_plan::is_finished;
use crate::controllers::runtime::{Cache, Controller, Cx, Key, Next, Res, list, text, time, until};
use crate::meta::{ObjectMeta as _, at};

/// The controller.
pub(in crate::controllers) struct TtlAfterFinished;

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
        let ttl = at(&job, "spec.ttlSecondsAfterFinished").and_then(Value::as_u64);
        let finished = list(&job, "status.conditions")
            .iter()
            .find(|condition| {
                matches!(text(condition, "type"), "Complete" | "Failed")
                    && text(condition, "status") == "True"
            })
            .and_then(|condition| time(condition, "lastTransitionTime"));
        let (Some(ttl), Some(finished)) = (ttl, finished) else {
            return Ok(Next::Change);
        };
        let left = finished
            .saturating_add(Duration::from_secs(ttl))
            .ok()
            .and_then(|at| until(at, cx.now()));
        if let Some(left) = left {
            return Ok(Next::After(left));
        }
        cx.delete(Res::Jobs, &job, Some("Foreground")).await?;
        Ok(Next::Change)
    }
}
