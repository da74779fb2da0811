//! The numbers of a CloneSet's spec, with percentages resolved.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::api::v1alpha1::{CloneSet, CloneSetUpdateStrategy};
use crate::kit::numbers::{NumberError, Round, partition, scaled};

/// The default of `updateStrategy.maxUnavailable`.
pub(crate) const DEFAULT_MAX_UNAVAILABLE: &str = "20%";
/// How many old revisions are kept when `revisionHistoryLimit` is not set.
pub(crate) const DEFAULT_HISTORY_LIMIT: i32 = 10;

/// The numbers of a spec.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Settings {
    /// How many pods.
    pub(crate) replicas: i32,
    /// How many of them keep the old revision.
    pub(crate) partition: i32,
    /// How many there may be beyond the replicas.
    pub(crate) max_surge: i32,
    /// How many may be unavailable while updating and deleting.
    pub(crate) max_unavailable: i32,
    /// How many may be unavailable while adding.
    pub(crate) scale_max_unavailable: i32,
    /// For how many seconds a pod must have been ready to be available.
    pub(crate) min_ready_s: i32,
    /// Whether updates are paused.
    pub(crate) paused: bool,
}

impl Settings {
    /// The numbers of `set`. Texts that are no numbers count as zero, as in OpenKruise (its webhook refuses most).
    pub(crate) fn of(set: &CloneSet) -> Self {
        let none = CloneSetUpdateStrategy::default();
        let update = set.spec.update_strategy.as_ref().unwrap_or(&none);
        let replicas = set.spec.replicas.unwrap_or(1).max(0);
        let paused = update.paused.unwrap_or(false);
        let or_zero = |result: Result<i32, NumberError>| result.unwrap_or(0);
        let partition = update
            .partition
            .as_ref()
            .map_or(0, |value| or_zero(partition(value, replicas)));
        let max_surge = match &update.max_surge {
            Some(value) if !paused => or_zero(scaled(value, replicas, Round::Up)),
            _ => 0,
        };
        let round = if max_surge == 0 { Round::Up } else { Round::Down };
        let default = IntOrString::String(DEFAULT_MAX_UNAVAILABLE.to_owned());
        let max_unavailable = or_zero(scaled(
            update.max_unavailable.as_ref().unwrap_or(&default),
            replicas,
            round,
        ));
        let scale = set
            .spec
            .scale_strategy
            .as_ref()
            .and_then(|scale| scale.max_unavailable.as_ref());
        let scale_max_unavailable =
            scale.map_or(i32::MAX, |value| or_zero(scaled(value, replicas, Round::Up)));
        let min_ready_s = set.spec.min_ready_seconds.unwrap_or(0).max(0);
        Self {
            replicas,
            partition,
            max_surge,
            max_unavailable,
            scale_max_unavailable,
            min_ready_s,
            paused,
        }
    }
}
