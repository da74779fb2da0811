//! The next actions of a deployment, and its status: pure.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use machinery::meta::{ObjectMeta as _, string_map};
use shared_json::{Value, json};

use super::pods::scaled;
use crate::runtime::{condition, list, number, text, time, until};

pub(super) const REVISION: &str = "deployment.kubernetes.io/revision";
pub(super) const REVISION_HISTORY: &str = "deployment.kubernetes.io/revision-history";
pub(super) const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
pub(super) const MAX: &str = "deployment.kubernetes.io/max-replicas";
const PROGRESSING: &str = "Progressing";
const FAILURE: &str = "ReplicaFailure";
/// Why there is no new set.
pub(super) const NOT_CREATED: &str = "ReplicaSetCreateError";
/// The value for "no deadline".
const NO_DEADLINE: i64 = 2_147_483_647;

/// A ReplicaSet and how many pods it is to have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Scale {
    pub name: String,
    pub from: i64,
    pub to: i64,
}

pub(super) fn replicas(object: &Value) -> i64 {
    number(object, "spec.replicas", 1)
}

/// How many are available; of a set that was made smaller, and has not said so yet, no more than it keeps.
fn available(set: &Value) -> i64 {
    number(set, "status.availableReplicas", 0).min(replicas(set))
}

fn is_rolling(deployment: &Value) -> bool {
    text(deployment, "spec.strategy.type") != "Recreate"
}

/// The number of pods that may exist above the wanted one.
pub(super) fn max_surge(deployment: &Value) -> i64 {
    bounds(deployment).0
}

/// Surge and unavailability; both zero would never move, so one pod may then be unavailable.
fn bounds(deployment: &Value) -> (i64, i64) {
    if !is_rolling(deployment) {
        return (0, 0);
    }
    let wanted = replicas(deployment);
    let of = |field: &str, up: bool| {
        scaled(
            deployment.pointer(&format!("/spec/strategy/rollingUpdate/{field}")),
            wanted,
            up,
            0,
        )
    };
    let (surge, unavailable) = (of("maxSurge", true), of("maxUnavailable", false));
    if surge == 0 && unavailable == 0 {
        (0, 1)
    } else {
        (surge, unavailable)
    }
}

fn max_unavailable(deployment: &Value) -> i64 {
    if replicas(deployment) == 0 {
        return 0;
    }
    bounds(deployment).1.min(replicas(deployment))
}

fn total(sets: &[Arc<Value>]) -> i64 {
    sets.iter().map(|set| replicas(set)).sum()
}

/// How many pods a new set is to have, as things are.
pub(super) fn new_size(deployment: &Value, old: &[Arc<Value>], new: Option<&Value>) -> i64 {
    let wanted = replicas(deployment);
    let present = new.map_or(0, replicas);
    if !is_rolling(deployment) {
        return wanted;
    }
    let limit = wanted + max_surge(deployment);
    let current = total(old) + present;
    if current >= limit {
        return present;
    }
    present + (limit - current).min(wanted - present)
}

/// One step of a rolling update: the new set grows, or else the old ones shrink.
pub(super) fn rolling(deployment: &Value, new: &Arc<Value>, old: &[Arc<Value>]) -> Vec<Scale> {
    let wanted = replicas(deployment);
    let present = replicas(new);
    let size = if present > wanted {
        wanted
    } else {
        new_size(deployment, old, Some(new))
    };
    if size != present {
        return vec![scale(new, size)];
    }
    let old_total = total(old);
    if old_total == 0 {
        return Vec::new();
    }
    let min_available = wanted - max_unavailable(deployment);
    let new_unavailable = present - available(new);
    let mut may_go = old_total + present - min_available - new_unavailable;
    if may_go <= 0 {
        return Vec::new();
    }
    // Pods that are of no use go first, then as many of the others as can be spared.
    let mut sizes: Vec<i64> = old.iter().map(|set| replicas(set)).collect();
    let mut steps = Vec::new();
    let mut shrink = |set: &Value, size: &mut i64, by: i64| {
        if by > 0 {
            steps.push(Scale {
                from: *size,
                ..scale(set, *size - by)
            });
        }
        *size -= by;
    };
    for (set, size) in old.iter().zip(&mut sizes) {
        let useless = (*size - available(set)).clamp(0, may_go.max(0));
        shrink(set, size, useless);
        may_go -= useless;
    }
    let all_available: i64 = old.iter().map(|set| available(set)).sum::<i64>() + available(new);
    let mut spare = all_available - min_available;
    for (set, size) in old.iter().zip(&mut sizes) {
        let gone = (*size).min(spare.max(0));
        shrink(set, size, gone);
        spare -= gone;
    }
    steps
}

pub(super) fn scale(set: &Value, to: i64) -> Scale {
    Scale {
        name: set.name().to_owned(),
        from: replicas(set),
        to,
    }
}

/// Whether the number of replicas was changed since the sets were last sized.
pub(super) fn is_scaling(deployment: &Value, sets: &[Arc<Value>]) -> bool {
    sets.iter().filter(|set| replicas(set) > 0).any(|set| {
        string_map(set, "annotations")
            .get(DESIRED)
            .and_then(Value::as_str)
            .and_then(|text| text.parse().ok())
            .is_some_and(|desired: i64| desired != replicas(deployment))
    })
}

/// Sizes after the number of replicas was changed: one active set takes all, several share in proportion.
pub(super) fn proportional(deployment: &Value, new: Option<&Arc<Value>>, old: &[Arc<Value>]) -> Vec<Scale> {
    let wanted = replicas(deployment);
    let all: Vec<&Arc<Value>> = new.into_iter().chain(old).collect();
    let active: Vec<&Arc<Value>> = all.iter().filter(|set| replicas(set) > 0).copied().collect();
    let single = match active.as_slice() {
        [] => new.or(old.last()),
        [only] => Some(*only),
        _ => None,
    };
    if let Some(set) = single {
        return if replicas(set) == wanted {
            Vec::new()
        } else {
            vec![scale(set, wanted)]
        };
    }
    let saturated = new.is_some_and(|new| {
        replicas(new) == wanted
            && available(new) == wanted
            && string_map(new, "annotations")
                .get(DESIRED)
                .and_then(Value::as_str)
                == Some(&wanted.to_string())
    });
    if saturated {
        return old
            .iter()
            .filter(|set| replicas(set) > 0)
            .map(|set| scale(set, 0))
            .collect();
    }
    if !is_rolling(deployment) {
        return Vec::new();
    }
    let limit = if wanted > 0 {
        wanted + max_surge(deployment)
    } else {
        0
    };
    let sum: i64 = active.iter().map(|set| replicas(set)).sum();
    let to_add = limit - sum;
    let mut sets = active;
    // Larger sets first; of equal ones the newest when growing, the oldest when shrinking.
    sets.sort_by(|one, other| {
        let age = text(one, "metadata.creationTimestamp").cmp(text(other, "metadata.creationTimestamp"));
        let age = if to_add > 0 { age.reverse() } else { age };
        replicas(other)
            .cmp(&replicas(one))
            .then(age)
            .then_with(|| one.name().cmp(other.name()))
    });
    let mut added = 0;
    let mut sizes: Vec<i64> = sets
        .iter()
        .map(|set| {
            let size = replicas(set);
            let share = share(set, limit, deployment);
            let room = to_add - added;
            // More at once than there is to add is not added, nor removed. But while others grow, a set may shrink.
            let share = match to_add {
                _ if room == 0 => 0,
                1.. => share.min(room),
                _ => share.max(room),
            };
            added += share;
            size + share
        })
        .collect();
    if let Some(first) = sizes.first_mut() {
        *first = (*first + to_add - added).max(0);
    }
    sets.into_iter()
        .zip(sizes)
        .filter(|(set, size)| replicas(set) != *size)
        .map(|(set, size)| scale(set, size))
        .collect()
}

/// A set's part of a change of the whole.
fn share(set: &Value, limit: i64, deployment: &Value) -> i64 {
    let size = replicas(set);
    let before = string_map(set, "annotations")
        .get(MAX)
        .and_then(Value::as_str)
        .and_then(|text| text.parse::<i64>().ok())
        .filter(|max| *max > 0)
        .unwrap_or_else(|| number(deployment, "status.replicas", 0));
    if before == 0 {
        return if limit == 0 { -size } else { 0 };
    }
    // Rounded to the nearest, halves away from zero.
    let product = size * limit;
    (2 * product + before) / (2 * before) - size
}

/// A deployment's sets and the status that follows.
pub(super) struct View<'a> {
    pub deployment: &'a Value,
    pub new: Option<&'a Arc<Value>>,
    pub old: &'a [Arc<Value>],
    /// Whether it is a rollout, whose progress is reported.
    pub rolls: bool,
    pub now: Timestamp,
    pub stamp: &'a str,
}

fn make(kind: &str, status: &str, reason: &str, message: String, stamp: &str) -> Value {
    json!({
        "type": kind, "status": status, "reason": reason, "message": message,
        "lastUpdateTime": stamp, "lastTransitionTime": stamp,
    })
}

/// Puts a condition in the place of one of its type, which keeps its transition time while its status stays. Nothing
/// changes if status and reason are the same.
pub(super) fn set_condition(conditions: &mut Vec<Value>, mut new: Value) {
    let old = conditions
        .iter()
        .position(|condition| condition["type"] == new["type"]);
    if let Some(at) = old {
        let before = &conditions[at];
        if before["status"] == new["status"] && before["reason"] == new["reason"] {
            return;
        }
        if before["status"] == new["status"] {
            new["lastTransitionTime"] = before["lastTransitionTime"].clone();
        }
        conditions.remove(at);
    }
    conditions.push(new);
}

/// The condition about a set that was made or found; or that could not be.
pub(super) fn new_set_condition(reason: &str, message: String, stamp: &str) -> Value {
    let status = if reason == NOT_CREATED { "False" } else { "True" };
    make(PROGRESSING, status, reason, message, stamp)
}

/// Whether progress is reported at all.
pub(super) fn has_deadline(deployment: &Value) -> bool {
    number(deployment, "spec.progressDeadlineSeconds", 600) != NO_DEADLINE
}

/// The status, and when its deadline is to be looked at.
pub(super) fn status(view: &View<'_>) -> (Value, Option<Duration>) {
    let d = view.deployment;
    let sum = |field: &str| -> i64 {
        view.new
            .into_iter()
            .chain(view.old)
            .map(|set| number(set, &format!("status.{field}"), 0))
            .sum()
    };
    let wanted = replicas(d);
    let spec_total = total(view.old) + view.new.map_or(0, |new| replicas(new));
    let available = sum("availableReplicas");
    let updated = view.new.map_or(0, |new| number(new, "status.replicas", 0));
    let mut status =
        json!({"observedGeneration": d.generation(), "terminatingReplicas": sum("terminatingReplicas")});
    for (field, count) in [
        ("replicas", sum("replicas")),
        ("updatedReplicas", updated),
        ("readyReplicas", sum("readyReplicas")),
        ("availableReplicas", available),
        ("unavailableReplicas", (spec_total - available).max(0)),
    ] {
        if count > 0 {
            status[field] = Value::from(count);
        }
    }
    if let Some(count) = d.pointer("/status/collisionCount") {
        status["collisionCount"] = count.clone();
    }
    let mut conditions = list(d, "status.conditions").to_vec();
    let enough = available >= wanted - max_unavailable(d);
    set_condition(
        &mut conditions,
        if enough {
            make(
                "Available",
                "True",
                "MinimumReplicasAvailable",
                "Deployment has minimum availability.".to_owned(),
                view.stamp,
            )
        } else {
            make(
                "Available",
                "False",
                "MinimumReplicasUnavailable",
                "Deployment does not have minimum availability.".to_owned(),
                view.stamp,
            )
        },
    );
    let next = if view.rolls {
        let next = progress(view, &status, &mut conditions);
        match failure_of_sets(view) {
            Some(failure) => set_condition(&mut conditions, failure),
            None => conditions.retain(|condition| condition["type"] != FAILURE),
        }
        next
    } else {
        None
    };
    status["conditions"] = Value::from(conditions);
    (status, next)
}

/// Why a set could not make or delete its pods: of the new set first.
fn failure_of_sets(view: &View<'_>) -> Option<Value> {
    let failed = view
        .new
        .into_iter()
        .chain(view.old)
        .find_map(|set| condition(set, FAILURE))?;
    let mut told = failed.clone();
    told["lastUpdateTime"] = told["lastTransitionTime"].clone();
    Some(told)
}

/// Whether all that is wanted is there and new.
pub(super) fn is_complete(deployment: &Value, status: &Value) -> bool {
    let count = |field: &str| number(status, field, 0);
    let wanted = replicas(deployment);
    count("updatedReplicas") == wanted && count("replicas") == wanted && count("availableReplicas") == wanted
}

fn progress(view: &View<'_>, status: &Value, conditions: &mut Vec<Value>) -> Option<Duration> {
    let d = view.deployment;
    let current = condition(d, PROGRESSING);
    let reason = current
        .map(|condition| text(condition, "reason"))
        .unwrap_or_default();
    if !has_deadline(d) {
        conditions.retain(|condition| condition["type"] != PROGRESSING);
        return None;
    }
    let deadline = number(d, "spec.progressDeadlineSeconds", 600);
    let count = |object: &Value, field: &str| number(object, field, 0);
    let settled =
        count(status, "replicas") == count(status, "updatedReplicas") && reason == "NewReplicaSetAvailable";
    if settled {
        return None;
    }
    let name = match view.new {
        Some(new) => format!("ReplicaSet \"{}\"", new.name()),
        None => format!("Deployment \"{}\"", d.name()),
    };
    let old = d.get("status").cloned().unwrap_or_default();
    let old_pods = |status: &Value| count(status, "replicas") - count(status, "updatedReplicas");
    let moves = count(status, "updatedReplicas") > count(&old, "updatedReplicas")
        || old_pods(status) < old_pods(&old)
        || count(status, "readyReplicas") > count(&old, "readyReplicas")
        || count(status, "availableReplicas") > count(&old, "availableReplicas");
    if is_complete(d, status) {
        let text = format!("{name} has successfully progressed.");
        set_condition(
            conditions,
            make(PROGRESSING, "True", "NewReplicaSetAvailable", text, view.stamp),
        );
        return None;
    }
    if moves {
        let mut new = make(
            PROGRESSING,
            "True",
            "ReplicaSetUpdated",
            format!("{name} is progressing."),
            view.stamp,
        );
        if let Some(current) = current.filter(|current| text(current, "status") == "True") {
            new["lastTransitionTime"] = current["lastTransitionTime"].clone();
        }
        conditions.retain(|condition| condition["type"] != PROGRESSING);
        conditions.push(new);
        return Some(seconds(deadline));
    }
    let since = current.and_then(|current| time(current, "lastUpdateTime"))?;
    // Of one that was complete a new rollout is told soon.
    if matches!(reason, "ProgressDeadlineExceeded" | "NewReplicaSetAvailable") {
        return None;
    }
    let at = since.saturating_add(seconds(deadline)).ok()?;
    let left = until(at, view.now);
    if left.is_none() {
        let text = format!("{name} has timed out progressing.");
        set_condition(
            conditions,
            make(PROGRESSING, "False", "ProgressDeadlineExceeded", text, view.stamp),
        );
    }
    // A moment more: the deadline must have passed.
    left.map(|left| left + Duration::from_secs(1))
}

fn seconds(count: i64) -> Duration {
    Duration::from_secs(count.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn set(name: &str, size: i64, available: i64) -> Arc<Value> {
        Arc::new(json!({
            "metadata": {"name": name, "annotations": {DESIRED: "4", MAX: "5"}},
            "spec": {"replicas": size}, "status": {"availableReplicas": available},
        }))
    }

    fn deployment(size: i64, surge: Value, unavailable: Value) -> Value {
        json!({"metadata": {"name": "d"}, "spec": {
            "replicas": size, "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}},
        }})
    }

    #[rstest]
    // Grows up to the surge first …
    #[case(4, json!("25%"), json!("25%"), (0, 0), (4, 4), &["new 0 1"])]
    // … then the old one gives what can be spared.
    #[case(4, json!("25%"), json!("25%"), (1, 0), (4, 4), &["old 4 3"])]
    #[case(4, json!("25%"), json!("25%"), (1, 1), (3, 3), &["new 1 2"])]
    #[case(4, json!(0), json!(1), (0, 0), (4, 4), &["old 4 3"])]
    #[case(4, json!(0), json!(0), (0, 0), (4, 4), &["old 4 3"])]
    #[case(4, json!(1), json!(0), (1, 0), (4, 4), &[])]
    #[case(4, json!(1), json!(0), (1, 1), (4, 4), &["old 4 3"])]
    // Pods that never became available are no loss.
    #[case(4, json!(1), json!(0), (1, 0), (4, 2), &[])]
    #[case(4, json!(1), json!(1), (2, 0), (3, 0), &["new 2 2"; 0])]
    #[case(4, json!(0), json!(2), (4, 4), (2, 2), &["old 2 0"])]
    #[case(4, json!(1), json!(1), (4, 4), (0, 0), &[])]
    // Those of no use go in a step of their own.
    #[case(4, json!(1), json!(2), (1, 1), (4, 3), &["old 4 3", "old 3 1"])]
    #[case(10, json!(3), json!(2), (5, 0), (8, 8), &[])]
    #[case(10, json!(3), json!(2), (5, 4), (8, 8), &["old 8 4"])]
    #[case(10, json!(3), json!(2), (0, 0), (13, 13), &["old 13 8"])]
    #[case(2, json!(1), json!(1), (4, 4), (0, 0), &["new 4 2"])]
    fn steps(
        #[case] wanted: i64,
        #[case] surge: Value,
        #[case] unavailable: Value,
        #[case] new: (i64, i64),
        #[case] old: (i64, i64),
        #[case] expected: &[&str],
    ) {
        let steps = rolling(
            &deployment(wanted, surge, unavailable),
            &set("new", new.0, new.1),
            &[set("old", old.0, old.1)],
        );
        let steps: Vec<String> = steps
            .iter()
            .map(|step| format!("{} {} {}", step.name, step.from, step.to))
            .collect();
        assert_eq!(steps, expected);
    }

    #[rstest]
    #[case(8, (4, 4), (0, 0), &["new 4 8"])]
    #[case(0, (4, 4), (0, 0), &["new 4 0"])]
    #[case(8, (2, 2), (3, 3), &["old 3 6", "new 2 4"])]
    #[case(2, (2, 2), (3, 3), &["old 3 2", "new 2 1"])]
    #[case(4, (4, 4), (0, 0), &[])]
    fn sizes_after_a_change(
        #[case] wanted: i64,
        #[case] new: (i64, i64),
        #[case] old: (i64, i64),
        #[case] expected: &[&str],
    ) {
        let d = deployment(wanted, json!("25%"), json!("25%"));
        let new = set("new", new.0, new.1);
        let steps = proportional(&d, Some(&new), &[set("old", old.0, old.1)]);
        let steps: Vec<String> = steps
            .iter()
            .map(|step| format!("{} {} {}", step.name, step.from, step.to))
            .collect();
        assert_eq!(steps, expected);
    }

    /// The size in all that the sets were sized for, and their sizes.
    #[rstest]
    #[case::some_shrink_while_others_grow(8, "13", 3, 5, &["old 5 8", "new 3 2"])]
    #[case::in_proportion(20, "13", 5, 8, &["old 8 15", "new 5 10"])]
    #[case::a_little_more(11, "10", 3, 7, &["old 7 10", "new 3 4"])]
    #[case::nobody_knows(11, "0", 3, 7, &["old 7 11"])]
    #[case::down(5, "13", 5, 8, &["old 8 4", "new 5 3"])]
    #[case::to_nothing(0, "13", 5, 8, &["old 8 0", "new 5 0"])]
    #[case::to_nothing_and_nobody_knows(0, "0", 5, 8, &["old 8 0", "new 5 0"])]
    fn shares_of_a_change(
        #[case] wanted: i64,
        #[case] max: &str,
        #[case] new: i64,
        #[case] old: i64,
        #[case] expected: &[&str],
    ) {
        let sized = |name: &str, size: i64| {
            let mut set = Value::clone(&set(name, size, size));
            set["metadata"]["annotations"][MAX] = json!(max);
            Arc::new(set)
        };
        let d = deployment(wanted, json!("25%"), json!("25%"));
        let steps = proportional(&d, Some(&sized("new", new)), &[sized("old", old)]);
        let steps: Vec<String> = steps
            .iter()
            .map(|step| format!("{} {} {}", step.name, step.from, step.to))
            .collect();
        assert_eq!(steps, expected);
    }

    #[test]
    fn a_condition_keeps_its_time_while_its_status_stays() {
        let mut conditions = vec![make("A", "True", "R", String::new(), "1")];
        set_condition(&mut conditions, make("A", "True", "R", "other".to_owned(), "2"));
        assert_eq!(conditions, [make("A", "True", "R", String::new(), "1")]);
        set_condition(&mut conditions, make("A", "True", "S", String::new(), "2"));
        assert_eq!(
            (
                &conditions[0]["lastTransitionTime"],
                &conditions[0]["lastUpdateTime"]
            ),
            (&json!("1"), &json!("2"))
        );
        set_condition(&mut conditions, make("A", "False", "S", String::new(), "3"));
        assert_eq!(conditions[0]["lastTransitionTime"], "3");
    }
}
