//! The policies of a job: which failed pods fail it or are not counted, and which indexes are enough.

use std::collections::BTreeSet;

use machinery::meta::ObjectMeta as _;
use shared_json::{Value, json};

use super::job_indexes::indexes;
use crate::runtime::{list, number, text};

/// The failure policy's verdict on a failed pod: the action of the rule, and the reason.
pub(super) fn of_failure<'j>(job: &'j Value, pod: &Value) -> Option<(&'j str, String)> {
    for (number, rule) in list(job, "spec.podFailurePolicy.rules").iter().enumerate() {
        let action = text(rule, "action");
        if let Some(codes) = rule.get("onExitCodes") {
            let container = text(codes, "containerName");
            let statuses = list(pod, "status.containerStatuses").iter();
            for status in statuses.chain(list(pod, "status.initContainerStatuses")) {
                let code = number_of(status);
                if (container.is_empty() || container == text(status, "name"))
                    && code != 0
                    && (list(codes, "values").contains(&json!(code)) == (text(codes, "operator") == "In"))
                {
                    let text = format!(
                        "Container {} for pod {}/{} failed with exit code {code} matching {action} rule at index {number}",
                        text(status, "name"),
                        pod.namespace(),
                        pod.name()
                    );
                    return Some((action, text));
                }
            }
        }
        for pattern in list(rule, "onPodConditions") {
            let wanted = text(pattern, "status");
            let wanted = if wanted.is_empty() { "True" } else { wanted };
            let found = list(pod, "status.conditions").iter().any(|condition| {
                text(condition, "type") == text(pattern, "type") && text(condition, "status") == wanted
            });
            if found {
                let text = format!(
                    "Pod {}/{} has condition {} matching {action} rule at index {number}",
                    pod.namespace(),
                    pod.name(),
                    text(pattern, "type")
                );
                return Some((action, text));
            }
        }
    }
    None
}

/// The message of the success policy's first rule that these indexes meet.
pub(super) fn of_success(job: &Value, done: &BTreeSet<i64>) -> Option<String> {
    for (number, rule) in list(job, "spec.successPolicy.rules").iter().enumerate() {
        let among = rule.get("succeededIndexes").and_then(Value::as_str).map(indexes);
        let count = rule.get("succeededCount").and_then(Value::as_i64);
        let matching = match &among {
            Some(among) => done.intersection(among).count(),
            None => done.len(),
        };
        let needed = count.unwrap_or_else(|| {
            among
                .as_ref()
                .map_or(i64::MAX, |among| i64::try_from(among.len()).unwrap_or(i64::MAX))
        });
        if i64::try_from(matching).unwrap_or_default() >= needed {
            return Some(format!("Matched rules at index {number}"));
        }
    }
    None
}

fn number_of(status: &Value) -> i64 {
    number(status, "state.terminated.exitCode", 0)
}
