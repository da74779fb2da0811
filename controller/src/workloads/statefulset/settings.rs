//! The numbers of a StatefulSet's spec, with percentages resolved.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::gates::Gates;
use crate::api::v1beta1::StatefulSet;
use crate::kit::numbers::{Round, scaled};

/// How many old revisions are kept when `revisionHistoryLimit` is not set.
pub(super) const DEFAULT_HISTORY_LIMIT: i32 = 10;

/// The numbers of a spec.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Settings {
    /// How many pods.
    pub(super) replicas: i32,
    /// The first ordinal.
    pub(super) start: i32,
    /// Whether one pod comes and goes after the other.
    pub(super) ordered: bool,
    /// Whether pods are updated.
    pub(super) rolling: bool,
    /// How many pods keep the old revision; none without the details of a rolling update.
    pub(super) partition: Option<i32>,
    /// How many pods may be unavailable during an update.
    pub(super) max_unavailable: i32,
    /// How many pods may be unavailable while pods are added, if that is limited.
    pub(super) scale_max_unavailable: Option<i32>,
    /// For how many seconds a pod must have been ready to be available.
    pub(super) min_ready_s: i32,
    /// Whether the claims of a pod grow with their templates before the pod is updated.
    pub(super) grows_claims: bool,
    /// Whether updates are paused.
    pub(super) paused: bool,
    /// For how many seconds a pod is out of service before it is changed in place.
    pub(super) grace_s: i32,
}

impl Settings {
    /// The numbers of `set`.
    pub(super) fn of(set: &StatefulSet, gates: Gates) -> Self {
        let spec = &set.spec;
        let replicas = spec.replicas.unwrap_or(1).max(0);
        let update = spec.update_strategy.as_ref();
        let rolling = update.and_then(|update| update.rolling_update.as_ref());
        let kind = update.and_then(|update| update.kind.as_deref());
        let start = spec.ordinals.as_ref().and_then(|ordinals| ordinals.start);
        let scale = spec.scale_strategy.as_ref();
        let in_place = rolling.and_then(|rolling| rolling.in_place_update_strategy.as_ref());
        Self {
            replicas,
            start: start.filter(|_| gates.start_ordinal).unwrap_or(0).max(0),
            ordered: spec.pod_management_policy.as_deref() != Some("Parallel"),
            rolling: matches!(kind, None | Some("" | "RollingUpdate")),
            partition: rolling.map(|rolling| rolling.partition.unwrap_or(0).max(0)),
            max_unavailable: at_least_one(
                rolling.and_then(|rolling| rolling.max_unavailable.as_ref()),
                replicas,
            ),
            scale_max_unavailable: scale
                .and_then(|scale| scale.max_unavailable.as_ref())
                .map(|value| at_least_one(Some(value), replicas)),
            min_ready_s: rolling
                .and_then(|rolling| rolling.min_ready_seconds)
                .unwrap_or(0)
                .max(0),
            grows_claims: gates.resize_claims
                && spec
                    .volume_claim_update_strategy
                    .as_ref()
                    .and_then(|strategy| strategy.kind.as_deref())
                    == Some("OnPodRollingUpdate"),
            paused: rolling.is_some_and(|rolling| rolling.paused == Some(true)),
            grace_s: in_place
                .and_then(|in_place| in_place.grace_period_seconds)
                .unwrap_or(0),
        }
    }
}

/// The number, or the percentage of `replicas` rounded down; 1 where that is less, or no number.
fn at_least_one(value: Option<&IntOrString>, replicas: i32) -> i32 {
    let number = value.and_then(|value| scaled(value, replicas, Round::Down).ok());
    number.unwrap_or(1).max(1)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    #[rstest]
    #[case::row_17(json!("50%"), 5, 2)]
    #[case::row_18(json!("30%"), 3, 1)]
    #[case::row_19(json!("100%"), 3, 3)]
    #[case::row_20(json!(7), 5, 7)]
    #[case::of_the_tutorial(json!("20%"), 3, 1)]
    #[case::zero(json!(0), 3, 1)]
    #[case::no_number(json!("many"), 3, 1)]
    fn max_unavailable(#[case] value: Value, #[case] replicas: i32, #[case] expect: i32) {
        let value = serde_json::from_value(value).unwrap();
        assert_eq!(at_least_one(Some(&value), replicas), expect);
    }
}
