//! Which budgets a change of another object concerns.

use std::time::Duration;

use kube::{Resource, ResourceExt as _};

use crate::api::labels;
use crate::api::v1alpha1::PodUnavailableBudget;
use crate::injection::budgets::is_available;
use crate::kit::{Change, Informer, ObjectKey, WorkQueue, selector};
use crate::pods::{CachedPod, pod};
use crate::targets::{Scales, is_named};

/// How long after a pod begins to terminate its budget is looked at (OpenKruise: the same).
const TERMINATING_DELAY: Duration = Duration::from_secs(5);

/// The budget that a pod names, if there is one.
fn budget_of(budgets: &Informer<PodUnavailableBudget>, pod: &CachedPod) -> Option<ObjectKey> {
    let name = pod::annotation(pod, labels::RELATED_BUDGET).filter(|name| !name.is_empty())?;
    let key = ObjectKey::new(&pod.namespace().unwrap_or_default(), name);
    budgets.get(&key).map(|_| key)
}

/// A pod changed.
pub(super) fn pod_changed(
    budgets: &Informer<PodUnavailableBudget>,
    change: &Change<'_, CachedPod>,
    queue: &WorkQueue<ObjectKey>,
) {
    match change {
        Change::Added(new) => {
            if let Some(key) = budget_of(budgets, new) {
                queue.add(key);
            }
        }
        Change::Updated(old, new) => {
            let Some(key) = budget_of(budgets, new) else {
                return;
            };
            let terminates = |pod: &CachedPod| pod.metadata.deletion_timestamp.is_some();
            match (terminates(old), terminates(new)) {
                (false, true) => queue.add_surely_after(key, TERMINATING_DELAY),
                (false, false) if is_available(old) != is_available(new) => queue.add(key),
                _ => {}
            }
        }
        Change::Deleted(_) => {}
    }
}

/// A workload changed.
pub(super) fn workload_changed<K: Resource<DynamicType = ()> + Scales>(
    budgets: &Informer<PodUnavailableBudget>,
    change: &Change<'_, K>,
    queue: &WorkQueue<ObjectKey>,
) {
    let workload = match change {
        Change::Updated(old, new) if old.replicas() == new.replicas() => return,
        Change::Added(workload) | Change::Updated(_, workload) | Change::Deleted(workload) => workload,
    };
    let (namespace, name) = (workload.namespace().unwrap_or_default(), workload.name_any());
    let (version, kind) = (K::api_version(&()), K::kind(&()));
    let concerns = |budget: &PodUnavailableBudget| match &budget.spec.target_ref {
        Some(target) => is_named(target, &version, &kind, &name),
        None => {
            let selector = budget.spec.selector.as_ref();
            selector.is_some_and(|selector| selector::selects(selector, &workload.pod_labels()) == Ok(true))
        }
    };
    let of_namespace = budgets.in_namespace(&namespace);
    if let Some(budget) = of_namespace.iter().find(|budget| concerns(budget)) {
        queue.add(ObjectKey::of(budget.as_ref()));
    }
}
