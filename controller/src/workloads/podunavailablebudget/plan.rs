//! The status of a budget, from its pods.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::observe::Observed;
use crate::api::labels;
use crate::api::v1alpha1::{PodUnavailableBudget, PodUnavailableBudgetSpec, PodUnavailableBudgetStatus};
use crate::injection::budgets::is_available;
use crate::kit::numbers::{NumberError, Round, scaled};
use crate::pods::pod;
use crate::pods::{CachedPod, PodRef};

/// How long a pod that may be deleted or evicted has until then (OpenKruise: the same).
const DISRUPTED: SignedDuration = SignedDuration::from_secs(20);
/// How long a pod that may be updated has to get out of service (OpenKruise: the same).
const UNAVAILABLE: SignedDuration = SignedDuration::from_secs(10);

/// The next status of a budget, and its consequences.
#[derive(Debug, PartialEq)]
pub(super) struct Next {
    /// The status.
    pub(super) status: PodUnavailableBudgetStatus,
    /// The pods that were to be deleted, and were not.
    pub(super) not_deleted: Vec<String>,
    /// When the next record is over.
    pub(super) requeue: Option<Duration>,
}

/// The active pods that do not name a budget yet.
pub(super) fn unrelated(observed: &Observed) -> Vec<PodRef> {
    let unrelated = |pod: &&std::sync::Arc<CachedPod>| {
        pod::annotation(pod, labels::RELATED_BUDGET).is_none_or(str::is_empty)
    };
    observed
        .pods
        .iter()
        .filter(unrelated)
        .map(|pod| PodRef::of(pod))
        .collect()
}

/// How many of `total` pods must be available.
///
/// # Errors
/// That a number cannot be read.
pub(super) fn desired(spec: &PodUnavailableBudgetSpec, total: i32) -> Result<i32, NumberError> {
    if let Some(unavailable) = &spec.max_unavailable {
        let unavailable = scaled(unavailable, total, Round::Up)?;
        return Ok(total.saturating_sub(unavailable).max(0));
    }
    match &spec.min_available {
        Some(IntOrString::Int(number)) => Ok(*number),
        Some(percent) => scaled(percent, total, Round::Up),
        None => Ok(0),
    }
}

/// The next status of a budget of which `desired` pods must be available.
pub(super) fn next(budget: &PodUnavailableBudget, observed: &Observed, desired: i32) -> Next {
    let old = budget.status.clone().unwrap_or_default();
    let names: BTreeSet<&str> = observed.pods.iter().map(|pod| pod::name(pod)).collect();
    let disrupted = Records::of(&old.disrupted_pods, &names, DISRUPTED, observed.now);
    let unavailable = Records::of(&old.unavailable_pods, &names, UNAVAILABLE, observed.now);
    let is_recorded = |pod: &CachedPod| {
        let name = pod::name(pod);
        disrupted.kept.contains_key(name) || unavailable.kept.contains_key(name)
    };
    let available = observed
        .pods
        .iter()
        .filter(|pod| !is_recorded(pod) && is_available(pod));
    let current = i32::try_from(available.count()).unwrap_or(i32::MAX);
    Next {
        requeue: [disrupted.next, unavailable.next].into_iter().flatten().min(),
        not_deleted: disrupted.over,
        status: PodUnavailableBudgetStatus {
            observed_generation: budget.metadata.generation.unwrap_or_default(),
            disrupted_pods: disrupted.kept,
            unavailable_pods: unavailable.kept,
            unavailable_allowed: current.saturating_sub(desired).max(0),
            current_available: current,
            desired_available: desired,
            total_replicas: observed.total,
        },
    }
}

/// Records of pods.
struct Records {
    /// Those that stay.
    kept: BTreeMap<String, Time>,
    /// The names of those whose time is over.
    over: Vec<String>,
    /// When the next one is over.
    next: Option<Duration>,
}

impl Records {
    /// Of `records` those of pods that there are, for as long as they last.
    fn of(
        records: &BTreeMap<String, Time>,
        names: &BTreeSet<&str>,
        lasts: SignedDuration,
        now: Timestamp,
    ) -> Self {
        let mut out = Self {
            kept: BTreeMap::new(),
            over: Vec::new(),
            next: None,
        };
        for (name, time) in records.iter().filter(|(name, _)| names.contains(name.as_str())) {
            let left = time
                .0
                .saturating_add(lasts)
                .unwrap_or(Timestamp::MAX)
                .duration_since(now);
            if left.is_negative() {
                out.over.push(name.clone());
                continue;
            }
            // At its very end a record still counts, so that the next look comes after it.
            let left = left.unsigned_abs().max(Duration::from_millis(1));
            out.next = Some(out.next.map_or(left, |next| next.min(left)));
            out.kept.insert(name.clone(), time.clone());
        }
        out
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
