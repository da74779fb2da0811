//! How fast an autoscaler may follow the proposed size. Pure.
//!
//! Rules and texts are those of kube-controller-manager's `horizontal.go`.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use machinery::meta::at;
use shared_json::{Value, json};

use crate::runtime::{list, number, text};

/// How long the highest proposal counts when it is about fewer replicas (the real default).
const DOWN_STABILIZATION_S: i64 = 300;
/// Without rules of its own a workload may double, or reach this.
const UP_MINIMUM: i64 = 4;

/// An autoscaler's memory of its passes.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// The proposed sizes, with their times.
    proposals: Vec<(Timestamp, i64)>,
    /// By how much the workload has grown (shrunk, if negative) when.
    changes: Vec<(Timestamp, i64)>,
}

/// A condition to be: type, whether it is true, reason, message.
pub(super) type Condition = (&'static str, bool, &'static str, String);

/// The bounds of an autoscaler.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub min: i64,
    pub max: i64,
}

fn within(events: &[(Timestamp, i64)], now: Timestamp, seconds: i64) -> impl Iterator<Item = i64> + '_ {
    // What is exactly so old has left it: the real one's passes are some milliseconds more than their period apart.
    let window = SignedDuration::from_secs(seconds);
    events
        .iter()
        .filter(move |(at, _)| now.duration_since(*at) < window)
        .map(|(_, value)| *value)
}

impl Memory {
    /// A workload is looked at for the first time: its size counts as a proposal.
    pub(super) fn first_look(&mut self, now: Timestamp, current: i64) {
        if self.proposals.is_empty() {
            self.proposals.push((now, current));
        }
    }

    /// The workload was brought from one size to another. Only rules ask for that.
    pub(super) fn changed(&mut self, behavior: Option<&Value>, now: Timestamp, from: i64, to: i64) {
        if behavior.is_some() {
            self.changes.push((now, to - from));
        }
    }

    /// Forgets events older than the longest window, an hour.
    pub(super) fn forget(&mut self, now: Timestamp) {
        let since = now.saturating_sub(Duration::from_secs(3600)).unwrap_or(now);
        self.proposals.retain(|(at, _)| *at > since);
        self.changes.retain(|(at, _)| *at > since);
    }

    /// The size that may be reached now, and the conditions that say why.
    pub(super) fn limit(
        &mut self,
        behavior: Option<&Value>,
        current: i64,
        proposed: i64,
        bounds: Bounds,
        now: Timestamp,
    ) -> (i64, Vec<Condition>) {
        let (stable, steady) = match behavior {
            None => self.stabilized(proposed, now),
            Some(behavior) => self.stabilized_by_rules(behavior, current, proposed, now),
        };
        self.proposals.push((now, proposed));
        let (size, limited) = match behavior {
            None => by_default(current, stable, bounds),
            Some(behavior) => self.by_rules(behavior, current, stable, bounds, now),
        };
        (size, vec![steady, limited])
    }

    fn stabilized(&self, proposed: i64, now: Timestamp) -> (i64, Condition) {
        let highest = within(&self.proposals, now, DOWN_STABILIZATION_S).max();
        match highest.filter(|highest| *highest > proposed) {
            Some(highest) => (highest, steady("ScaleDownStabilized", "higher", "highest")),
            None => (proposed, ready()),
        }
    }

    fn stabilized_by_rules(
        &self,
        behavior: &Value,
        current: i64,
        proposed: i64,
        now: Timestamp,
    ) -> (i64, Condition) {
        let window = |side: &str, default: i64| {
            number(behavior, &format!("{side}.stabilizationWindowSeconds"), default)
        };
        let lowest = within(&self.proposals, now, window("scaleUp", 0)).fold(proposed, i64::min);
        let highest =
            within(&self.proposals, now, window("scaleDown", DOWN_STABILIZATION_S)).fold(proposed, i64::max);
        // Upwards the least, downwards the most that was proposed in the window.
        let stable = current.max(lowest).min(highest);
        if stable == proposed {
            (stable, ready())
        } else if proposed >= current {
            (stable, steady("ScaleUpStabilized", "lower", "lowest"))
        } else {
            (stable, steady("ScaleDownStabilized", "higher", "highest"))
        }
    }

    fn by_rules(
        &self,
        behavior: &Value,
        current: i64,
        wanted: i64,
        bounds: Bounds,
        now: Timestamp,
    ) -> (i64, Condition) {
        let side = if wanted > current { "scaleUp" } else { "scaleDown" };
        let rules = at(behavior, side).cloned().unwrap_or_else(|| json!({}));
        let up = wanted > current;
        let defaults = default_policies(up);
        let policies = match list(&rules, "policies") {
            [] => defaults.as_slice(),
            policies => policies,
        };
        let reach = |policy: &Value| {
            let changes = within(&self.changes, now, number(policy, "periodSeconds", 0));
            let base = current - changes.sum::<i64>();
            let value = number(policy, "value", 0);
            match (text(policy, "type"), up) {
                ("Percent", true) => (base as f64 * (1.0 + value as f64 / 100.0)).ceil() as i64,
                ("Percent", false) => (base as f64 * (1.0 - value as f64 / 100.0)) as i64,
                (_, true) => base + value,
                (_, false) => base - value,
            }
        };
        let reaches = policies.iter().map(reach);
        let reached = match (text(&rules, "selectPolicy"), up) {
            ("Disabled", _) => Some(current),
            ("Min", true) | ("" | "Max", false) => reaches.min(),
            _ => reaches.max(),
        };
        let reached = reached.unwrap_or(current);
        if wanted > current {
            let limit = reached.max(current);
            let (limit, reason, message) = if limit < bounds.max {
                (
                    limit,
                    "ScaleUpLimit",
                    "the desired replica count is increasing faster than the maximum scale rate",
                )
            } else {
                (
                    bounds.max,
                    "TooManyReplicas",
                    "the desired replica count is more than the maximum replica count",
                )
            };
            if wanted > limit {
                return (limit, limited(reason, message));
            }
        } else if wanted < current {
            let limit = reached.min(current);
            let (limit, reason, message) = if limit > bounds.min {
                (
                    limit,
                    "ScaleDownLimit",
                    "the desired replica count is decreasing faster than the maximum scale rate",
                )
            } else {
                (
                    bounds.min,
                    "TooFewReplicas",
                    "the desired replica count is less than the minimum replica count",
                )
            };
            if wanted < limit {
                return (limit, limited(reason, message));
            }
        }
        (wanted, in_range())
    }
}

fn default_policies(up: bool) -> Vec<Value> {
    let percent = json!({"type": "Percent", "value": 100, "periodSeconds": 15});
    if up {
        vec![json!({"type": "Pods", "value": 4, "periodSeconds": 15}), percent]
    } else {
        vec![percent]
    }
}

fn by_default(current: i64, wanted: i64, bounds: Bounds) -> (i64, Condition) {
    let fastest = (2 * current).max(UP_MINIMUM);
    let (most, reason, message) = if fastest < bounds.max {
        (
            fastest,
            "ScaleUpLimit",
            "the desired replica count is increasing faster than the maximum scale rate",
        )
    } else {
        (
            bounds.max,
            "TooManyReplicas",
            "the desired replica count is more than the maximum replica count",
        )
    };
    if wanted < bounds.min {
        let message = "the desired replica count is less than the minimum replica count";
        (bounds.min, limited("TooFewReplicas", message))
    } else if wanted > most {
        (most, limited(reason, message))
    } else {
        (wanted, in_range())
    }
}

fn limited(reason: &'static str, message: &str) -> Condition {
    ("ScalingLimited", true, reason, message.to_owned())
}

fn in_range() -> Condition {
    let message = "the desired count is within the acceptable range";
    ("ScalingLimited", false, "DesiredWithinRange", message.to_owned())
}

fn ready() -> Condition {
    let message = "recommended size matches current size";
    ("AbleToScale", true, "ReadyForNewScale", message.to_owned())
}

fn steady(reason: &'static str, were: &str, applied: &str) -> Condition {
    let message = format!(
        "recent recommendations were {were} than current one, applying the {applied} recent recommendation"
    );
    ("AbleToScale", true, reason, message)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const WIDE: Bounds = Bounds { min: 1, max: 100 };

    fn at_second(second: i64) -> Timestamp {
        Timestamp::from_second(1_767_225_600 + second).expect("a time")
    }

    /// Passes at these seconds with these proposals, each made true at once; the sizes that came of it.
    fn sizes(
        behavior: Option<Value>,
        start: i64,
        bounds: Bounds,
        proposals: &[(i64, i64)],
    ) -> Vec<(i64, &'static str)> {
        let (mut memory, mut current) = (Memory::default(), start);
        let mut out = Vec::new();
        for (second, proposed) in proposals {
            let now = at_second(*second);
            memory.first_look(now, current);
            let (size, conditions) = memory.limit(behavior.as_ref(), current, *proposed, bounds, now);
            memory.changed(behavior.as_ref(), now, current, size);
            memory.forget(now);
            current = size;
            let limited = conditions
                .iter()
                .find(|condition| condition.0 == "ScalingLimited")
                .expect("a condition");
            out.push((size, limited.2));
        }
        out
    }

    #[rstest]
    #[case::doubles(2, WIDE, &[(0, 20), (15, 20), (30, 20)],
        &[(4, "ScaleUpLimit"), (8, "ScaleUpLimit"), (16, "ScaleUpLimit")])]
    #[case::from_one(1, WIDE, &[(0, 9)], &[(4, "ScaleUpLimit")])]
    #[case::most(3, Bounds { min: 1, max: 5 }, &[(0, 9)], &[(5, "TooManyReplicas")])]
    #[case::least(3, Bounds { min: 2, max: 5 }, &[(0, 1), (300, 1)], &[(3, "DesiredWithinRange"), (2, "TooFewReplicas")])]
    #[case::from_the_most(5, Bounds { min: 1, max: 5 }, &[(0, 6)], &[(5, "TooManyReplicas")])]
    #[case::just_the_most(3, Bounds { min: 1, max: 6 }, &[(0, 6)], &[(6, "DesiredWithinRange")])]
    #[case::the_same(3, WIDE, &[(0, 3), (15, 3)], &[(3, "DesiredWithinRange"), (3, "DesiredWithinRange")])]
    #[case::up_at_once_and_down_from_there(2, WIDE, &[(0, 4), (15, 1), (299, 1), (300, 1), (316, 1)],
        &[(4, "DesiredWithinRange"), (4, "DesiredWithinRange"), (4, "DesiredWithinRange"), (1, "DesiredWithinRange"),
            (1, "DesiredWithinRange")])]
    #[case::down_to_the_most_of_late(8, WIDE, &[(0, 8), (100, 5), (200, 2), (300, 2), (400, 2), (500, 2)],
        &[(8, "DesiredWithinRange"), (8, "DesiredWithinRange"), (8, "DesiredWithinRange"), (5, "DesiredWithinRange"),
            (2, "DesiredWithinRange"), (2, "DesiredWithinRange")])]
    #[case::down_only_after_five_minutes(8, WIDE, &[(0, 2), (290, 2), (301, 2)],
        &[(8, "DesiredWithinRange"), (8, "DesiredWithinRange"), (2, "DesiredWithinRange")])]
    fn by_default(
        #[case] start: i64,
        #[case] bounds: Bounds,
        #[case] proposals: &[(i64, i64)],
        #[case] expected: &[(i64, &str)],
    ) {
        assert_eq!(sizes(None, start, bounds, proposals), expected);
    }

    #[rstest]
    #[case::one_by_one(json!({"scaleUp": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}]}}), 2,
        &[(0, 9), (15, 9), (61, 9)], &[(3, "ScaleUpLimit"), (3, "ScaleUpLimit"), (4, "ScaleUpLimit")])]
    #[case::a_change_ages(json!({"scaleUp": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}]}}), 2,
        &[(0, 9), (59, 9), (60, 9)], &[(3, "ScaleUpLimit"), (3, "ScaleUpLimit"), (4, "ScaleUpLimit")])]
    #[case::by_percent(json!({"scaleUp": {"policies": [{"type": "Percent", "value": 10, "periodSeconds": 15}]}}), 5,
        &[(0, 9), (15, 9)], &[(6, "ScaleUpLimit"), (7, "ScaleUpLimit")])]
    #[case::the_most_of_two(json!({"scaleUp": {"policies": [{"type": "Percent", "value": 50, "periodSeconds": 15},
        {"type": "Pods", "value": 1, "periodSeconds": 15}]}}), 4, &[(0, 9)], &[(6, "ScaleUpLimit")])]
    #[case::the_least_of_two(json!({"scaleUp": {"selectPolicy": "Min", "policies": [
        {"type": "Percent", "value": 50, "periodSeconds": 15}, {"type": "Pods", "value": 1, "periodSeconds": 15}]}}), 4,
        &[(0, 9)], &[(5, "ScaleUpLimit")])]
    #[case::never_up(json!({"scaleUp": {"selectPolicy": "Disabled"}}), 4, &[(0, 9)], &[(4, "ScaleUpLimit")])]
    #[case::down_by_the_least(json!({"scaleDown": {"stabilizationWindowSeconds": 0, "selectPolicy": "Min", "policies": [
        {"type": "Percent", "value": 50, "periodSeconds": 15}, {"type": "Pods", "value": 1, "periodSeconds": 15}]}}), 8,
        &[(1, 1)], &[(7, "ScaleDownLimit")])]
    #[case::down_by_the_most(json!({"scaleDown": {"stabilizationWindowSeconds": 0, "policies": [
        {"type": "Percent", "value": 50, "periodSeconds": 15}, {"type": "Pods", "value": 1, "periodSeconds": 15}]}}), 8,
        &[(1, 1)], &[(4, "ScaleDownLimit")])]
    #[case::down_waits_as_by_default(json!({"scaleDown": {"policies": [{"type": "Pods", "value": 2, "periodSeconds": 15}]}}), 8,
        &[(0, 1), (285, 1), (300, 1), (315, 1)],
        &[(8, "DesiredWithinRange"), (8, "DesiredWithinRange"), (6, "ScaleDownLimit"), (4, "ScaleDownLimit")])]
    #[case::what_grew_may_shrink_again(json!({"scaleDown": {"stabilizationWindowSeconds": 0,
        "policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}]}}), 4,
        &[(0, 8), (15, 1)], &[(8, "DesiredWithinRange"), (3, "ScaleDownLimit")])]
    #[case::never_down(json!({"scaleDown": {"selectPolicy": "Disabled", "stabilizationWindowSeconds": 0}}), 5,
        &[(0, 1)], &[(5, "ScaleDownLimit")])]
    #[case::down_by_half(json!({"scaleDown": {"stabilizationWindowSeconds": 0,
        "policies": [{"type": "Percent", "value": 50, "periodSeconds": 15}]}}), 8,
        &[(1, 1), (17, 1)], &[(4, "ScaleDownLimit"), (2, "ScaleDownLimit")])]
    #[case::up_waits(json!({"scaleUp": {"stabilizationWindowSeconds": 60}}), 2,
        &[(0, 4), (30, 4), (61, 4)], &[(2, "DesiredWithinRange"), (2, "DesiredWithinRange"), (4, "DesiredWithinRange")])]
    fn by_rules(
        #[case] behavior: Value,
        #[case] start: i64,
        #[case] proposals: &[(i64, i64)],
        #[case] expected: &[(i64, &str)],
    ) {
        assert_eq!(sizes(Some(behavior), start, WIDE, proposals), expected);
    }
}
