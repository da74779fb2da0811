//! The numbers of a DaemonSet's spec, with percentages resolved.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::api::v1beta1::{DaemonSet, RollingUpdateDaemonSetStrategy};
use crate::kit::numbers::{Round, scaled};

/// How many old revisions are kept when `revisionHistoryLimit` is not set.
pub(super) const DEFAULT_HISTORY_LIMIT: i32 = 10;
/// How many pods are made or deleted at a time when `burstReplicas` is not set.
pub(super) const DEFAULT_BURST: i32 = 250;
/// The numbers of a spec.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Settings {
    /// Whether pods are updated.
    pub(super) rolling: bool,
    /// Whether updates are paused.
    pub(super) paused: bool,
    /// Whether pods are updated in place where that is possible.
    pub(super) in_place: bool,
    /// How many nodes keep the old revision.
    pub(super) partition: usize,
    /// Whether the partition holds for new pods, too.
    pub(super) progressive: bool,
    /// How many pods are made, and how many are deleted, at a time.
    pub(super) burst: usize,
    /// How many pods may be unavailable during an update.
    pub(super) max_unavailable: usize,
    /// How many nodes may have an old and a new pod.
    pub(super) max_surge: usize,
    /// For how many seconds a pod must have been ready to be available.
    pub(super) min_ready_s: i32,
}

/// The details of a rolling update, if there are any.
pub(super) fn rolling_update(set: &DaemonSet) -> Option<&RollingUpdateDaemonSetStrategy> {
    set.spec.update_strategy.as_ref()?.rolling_update.as_ref()
}

/// Whether the pods of a set are updated by the controller.
pub(super) fn is_rolling(set: &DaemonSet) -> bool {
    let strategy = set.spec.update_strategy.as_ref();
    let kind = strategy.and_then(|strategy| strategy.kind.as_deref());
    matches!(kind, None | Some("" | "RollingUpdate"))
}

impl Settings {
    /// The numbers of `set`, of which so many nodes are to have a pod.
    pub(super) fn of(set: &DaemonSet, desired: i32) -> Self {
        let rolling = is_rolling(set);
        let details = rolling_update(set).filter(|_| rolling);
        let resolve = |value: Option<&IntOrString>, round| {
            let number = value.and_then(|value| scaled(value, desired, round).ok());
            count(number.unwrap_or(0))
        };
        let max_surge = resolve(details.and_then(|details| details.max_surge.as_ref()), Round::Up);
        let max_unavailable = resolve(
            details.and_then(|details| details.max_unavailable.as_ref()),
            Round::Up,
        );
        let scale = set.spec.scale_strategy.as_ref();
        Self {
            rolling,
            paused: details.is_some_and(|details| details.paused == Some(true)),
            in_place: details.is_some_and(|details| details.kind.as_deref() == Some("InPlaceIfPossible")),
            partition: resolve(
                details.and_then(|details| details.partition.as_ref()),
                Round::Down,
            ),
            progressive: scale.is_some_and(|scale| scale.partitioned_scaling == Some(true)),
            burst: burst(set.spec.burst_replicas.as_ref(), desired),
            max_unavailable: match (max_unavailable, max_surge, desired) {
                (0, 0, 1..) => 1,
                (number, ..) => number,
            },
            max_surge,
            min_ready_s: set.spec.min_ready_seconds.unwrap_or(0).max(0),
        }
    }
}

/// A number that may be less than nothing.
fn count(number: i32) -> usize {
    usize::try_from(number).unwrap_or(0)
}

/// How many pods are made or deleted at a time. A percentage is at least 1, or nothing would ever happen.
fn burst(value: Option<&IntOrString>, desired: i32) -> usize {
    let Some(value) = value else {
        return count(DEFAULT_BURST);
    };
    let number = count(scaled(value, desired, Round::Down).unwrap_or(0));
    match value {
        IntOrString::String(text) if text.ends_with('%') && !text.starts_with("0%") => number.max(1),
        _ => number,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    #[rstest]
    #[case::row_8(json!("50%"), 5, 2)]
    #[case::row_9_never_nothing(json!("10%"), 5, 1)]
    #[case::a_number(json!(7), 5, 7)]
    #[case::zero(json!(0), 5, 0)]
    #[case::zero_percent(json!("0%"), 5, 0)]
    #[case::negative(json!(-1), 5, 0)]
    #[case::no_number(json!("x"), 5, 0)]
    #[case::none(json!(null), 5, 250)]
    fn bursts(#[case] value: Value, #[case] desired: i32, #[case] expect: usize) {
        let value: Option<IntOrString> = serde_json::from_value(value).unwrap();
        assert_eq!(burst(value.as_ref(), desired), expect);
    }

    /// maxUnavailable, maxSurge and partition of so many nodes.
    #[rstest]
    #[case::row_21(json!({ "maxUnavailable": "30%" }), 5, [2, 0, 0])]
    #[case::row_27(json!({ "maxUnavailable": 1, "partition": "50%" }), 4, [1, 0, 2])]
    #[case::row_29(json!({ "maxUnavailable": 1, "partition": "34%" }), 3, [1, 0, 1])]
    #[case::row_35(json!({ "maxSurge": "50%" }), 3, [0, 2, 0])]
    #[case::neither(json!({}), 3, [1, 0, 0])]
    #[case::neither_of_no_node(json!({}), 0, [0, 0, 0])]
    #[case::both_zero(json!({ "maxUnavailable": "0%", "maxSurge": 0 }), 3, [1, 0, 0])]
    fn rolling(#[case] details: Value, #[case] desired: i32, #[case] expect: [usize; 3]) {
        let set: DaemonSet =
            serde_json::from_value(json!({ "metadata": {}, "spec": { "selector": {}, "template": {},
            "updateStrategy": { "rollingUpdate": details } } }))
            .unwrap();
        let settings = Settings::of(&set, desired);
        let got = [settings.max_unavailable, settings.max_surge, settings.partition];
        assert_eq!(got, expect);
    }
}
