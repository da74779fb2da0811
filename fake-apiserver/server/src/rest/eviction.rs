//! Eviction: a deletion that disruption budgets may refuse.

use http::StatusCode;
use machinery::meta::{ObjectMeta, at, string_map, text};
use machinery::selector::matches_selector;
use machinery::status::ApiError;
use shared_json::{Value, json};
use store::{Change, GroupResource, Stored};

use super::delete::{DeleteOptions, check_preconditions, delete};
use super::ownership::Ownership;
use super::subresource::{self, context_of, success};
use super::subresource_body::{self, Taken};
use super::update::update;
use super::write::Update;
use crate::commit_errors;
use crate::context::{Answer, Context, Shown};
use crate::message::payload::Payload;
use crate::message::request::Verb;

const REFUSED: &str = "Cannot evict pod as it would violate the pod's disruption budget.";
/// How many pods may be on their way out by one budget.
const DISRUPTED_MOST: usize = 2000;
const RETRIES_MAX: usize = 5;
const EVICTION: Taken = Taken {
    kind: "Eviction",
    package: "policy",
    group: "policy",
};

fn number(value: &Value, path: &str) -> i64 {
    at(value, path).and_then(Value::as_i64).unwrap_or_default()
}

/// Evicts the pod that the path names.
pub(super) async fn evict(context: &Context, body: &Payload) -> Result<Answer, ApiError> {
    let mut eviction = subresource_body::read(context, body, EVICTION)?;
    if eviction.name() != context.request.name {
        return Err(ApiError::bad_request(
            "name in URL does not match name in Eviction object",
        ));
    }
    check_dry_run(context, &eviction)?;
    subresource::judge(context, &mut eviction).await?;
    let given = eviction.get("deleteOptions").unwrap_or(&Value::Null);
    let pod = context.existing()?;
    let mut options = DeleteOptions::from_value(context, given)?;
    if !ends_anyway(&pod.value) {
        let needs_this_version = spend(context, &options, &pod)?;
        if needs_this_version {
            options.resource_version = Some(pod.value.resource_version().to_owned());
        }
    }
    check_preconditions(context, &options, &pod.value)?;
    if !options.dry_run {
        let now = context.state().now();
        let make = |old: &Value| {
            let mut pod = old.clone();
            mark(&mut pod, &now);
            Ok(pod)
        };
        let change = Update {
            make: &make,
            sent: &|_| None,
            // The pod's own storage writes this, beside those who keep track of owners.
            ownership: Ownership::Applied,
            unconditional: true,
            judged: true,
        };
        update(&context_of(context, "status"), &change).await?;
        options.resource_version = None;
    }
    let mut target = context_of(context, "");
    target.request.verb = Verb::Delete;
    options.judged = true;
    delete(&target, &options).await?;
    Ok(Answer::created(Shown::Made(success())))
}

/// Where both the request and its options say that it is for show, they must say so alike.
fn check_dry_run(context: &Context, eviction: &Value) -> Result<(), ApiError> {
    let asked = &context.params.dry_run_given;
    let given = at(eviction, "deleteOptions.dryRun").and_then(Value::as_array);
    let given: Vec<&str> = given.into_iter().flatten().filter_map(Value::as_str).collect();
    if asked.is_empty() || given.is_empty() || *asked == given {
        return Ok(());
    }
    let why = format!(
        "Non-matching dry-run options in request and content: [{}] and [{}]",
        asked.join(" "),
        given.join(" ")
    );
    Err(ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "", why))
}

/// Budgets have no say over pods that have ended, have not begun or are going.
fn ends_anyway(pod: &Value) -> bool {
    pod.is_terminating() || matches!(text(pod, "status.phase"), "Succeeded" | "Failed" | "Pending")
}

fn is_ready(pod: &Value) -> bool {
    let conditions = at(pod, "status.conditions").and_then(Value::as_array);
    conditions
        .into_iter()
        .flatten()
        .any(|condition| text(condition, "type") == "Ready" && text(condition, "status") == "True")
}

/// Takes one disruption from the pod's budget. Returns whether the pod must be as it is now.
fn spend(context: &Context, options: &DeleteOptions, pod: &Stored) -> Result<bool, ApiError> {
    let store = &context.state().store;
    let table = GroupResource::new("policy", "poddisruptionbudgets");
    let labels = string_map(&pod.value, "labels");
    for _ in 0..RETRIES_MAX {
        let all = store.list(&table, Some(&pod.key.namespace), None, None);
        let mut budgets = all.map_err(ApiError::expired)?.items;
        budgets.retain(|budget| matches_selector(at(&budget.value, "spec.selector"), labels));
        let budget = match budgets.as_slice() {
            [] => return Ok(false),
            [one] => one,
            _ => {
                let message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not \
                               support.";
                return Err(ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "", message));
            }
        };
        let (healthy, desired) = (
            number(&budget.value, "status.currentHealthy"),
            number(&budget.value, "status.desiredHealthy"),
        );
        if !is_ready(&pod.value) {
            let always = text(&budget.value, "spec.unhealthyPodEvictionPolicy") == "AlwaysAllow";
            if always || healthy >= desired && desired > 0 {
                return Ok(true);
            }
        }
        check(&budget.value)?;
        if options.dry_run {
            return Ok(false);
        }
        let spent = spent(&budget.value, &pod.key.name, &context.state().now());
        match store.commit(&table, &budget.key, Some(budget.revision), Change::Put(spent)) {
            Ok(_) => return Ok(false),
            Err(error) => {
                if let Some(refusal) = commit_errors::refusal(error) {
                    return Err(refusal);
                }
            }
        }
    }
    Err(ApiError::modified(&table, ""))
}

/// Whether a budget has anything left.
fn check(budget: &Value) -> Result<(), ApiError> {
    let name = budget.name();
    let refused = |cause: String, seconds: u64| {
        let mut error = ApiError::new(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", REFUSED);
        let mut details = json!({"causes": [{"reason": "DisruptionBudget", "message": cause}]});
        if seconds > 0 {
            details["retryAfterSeconds"] = Value::from(seconds);
        }
        error.details = Some(details);
        Err(error)
    };
    if number(budget, "status.observedGeneration") < budget.generation() {
        let cause = format!("The disruption budget {name} is still being processed by the server.");
        return refused(cause, 10);
    }
    let table = GroupResource::new("policy", "poddisruptionbudget");
    let allowed = number(budget, "status.disruptionsAllowed");
    if allowed < 0 {
        return Err(ApiError::forbidden(
            &table,
            name,
            "pdb disruptions allowed is negative",
        ));
    }
    let disrupted = at(budget, "status.disruptedPods").and_then(Value::as_object);
    if disrupted.is_some_and(|pods| pods.len() > DISRUPTED_MOST) {
        let why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller";
        return Err(ApiError::forbidden(&table, name, why));
    }
    if allowed > 0 {
        return Ok(());
    }
    let conditions = at(budget, "status.conditions").and_then(Value::as_array);
    let failed = conditions.into_iter().flatten().find(|condition| {
        text(condition, "type") == "DisruptionAllowed"
            && text(condition, "status") == "False"
            && !text(condition, "message").is_empty()
    });
    let (reason, message) = failed.map_or(("", ""), |failed| {
        (text(failed, "reason"), text(failed, "message"))
    });
    let (healthy, desired) = (
        number(budget, "status.currentHealthy"),
        number(budget, "status.desiredHealthy"),
    );
    let begin = format!("The disruption budget {name}");
    let cause = if reason == "SyncFailed" {
        format!("{begin} does not allow evicting pods currently because it failed sync: {message}")
    } else if healthy <= desired {
        format!("{begin} needs {desired} healthy pods and has {healthy} currently")
    } else if failed.is_some() {
        format!("{begin} does not allow evicting pods currently ({reason}): {message}")
    } else {
        format!("{begin} does not allow evicting pods currently")
    };
    refused(cause, 0)
}

/// The budget with one disruption less.
fn spent(budget: &Value, pod: &str, now: &str) -> Value {
    let mut budget = budget.clone();
    let left = number(&budget, "status.disruptionsAllowed") - 1;
    let generation = budget.generation();
    let status = &mut budget["status"];
    status["disruptionsAllowed"] = Value::from(left);
    if !status.get("disruptedPods").is_some_and(Value::is_object) {
        status["disruptedPods"] = json!({});
    }
    status["disruptedPods"][pod] = Value::from(now);
    if left == 0
        && let Some(list) = status.get_mut("conditions").and_then(Value::as_array_mut)
    {
        for condition in list
            .iter_mut()
            .filter(|condition| text(condition, "type") == "DisruptionAllowed")
        {
            *condition = json!({
                "type": "DisruptionAllowed", "status": "False", "reason": "InsufficientPods", "message": "",
                "observedGeneration": generation, "lastTransitionTime": now,
            });
        }
    }
    budget
}

/// Says in the pod's status why it goes.
fn mark(pod: &mut Value, now: &str) {
    let condition = json!({
        "type": "DisruptionTarget", "status": "True", "lastProbeTime": null, "lastTransitionTime": now,
        "reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting",
    });
    if !at(pod, "status.conditions").is_some_and(Value::is_array) {
        pod["status"]["conditions"] = json!([]);
    }
    let Some(list) = pod
        .pointer_mut("/status/conditions")
        .and_then(Value::as_array_mut)
    else {
        return;
    };
    match list
        .iter_mut()
        .find(|present| text(present, "type") == "DisruptionTarget")
    {
        Some(present) if text(present, "status") == "True" => {}
        Some(present) => *present = condition,
        None => list.push(condition),
    }
}
