//! Which pods are upgraded now.

use std::sync::Arc;

use kube::core::{Selector, SelectorExt};

use crate::kit::numbers::NumberError;
use crate::pods::sort::update::{UpdateOrder, without_hooks};
use crate::pods::{CachedPod, pod};
use crate::workloads::sidecarset::observe::Observed;
use crate::workloads::sidecarset::settings::{Settings, scatter_terms};
use crate::workloads::sidecarset::sidecars::Sidecars;

/// The pods of a pass.
#[derive(Debug, Default)]
pub(super) struct Candidates {
    /// Pods that differ from the present version by more than images.
    pub(super) not_upgradable: Vec<Arc<CachedPod>>,
    /// Pods to upgrade.
    pub(super) chosen: Vec<Arc<CachedPod>>,
}

/// Finds the pods of a pass.
///
/// # Errors
/// If a number of the spec cannot be read.
pub(super) fn find(observed: &Observed) -> Result<Candidates, NumberError> {
    let sidecars = Sidecars::of(&observed.set);
    let strategy = observed.set.spec.update_strategy.as_ref();
    let selector = strategy.and_then(|strategy| strategy.selector.as_ref());
    // A selector that cannot be read selects nothing.
    let matcher = selector.map(|selector| Selector::try_from(selector.clone()).ok());
    let selected = |pod: &CachedPod| match &matcher {
        None => true,
        Some(matcher) => matcher
            .as_ref()
            .is_some_and(|matcher| matcher.matches(pod::all_labels(pod))),
    };
    let mut candidates = Candidates::default();
    let mut waiting = Vec::new();
    for pod in &observed.pods {
        if sidecars.is_updated(pod) || !selected(pod) {
            continue;
        }
        if !sidecars.is_upgradable(pod) {
            candidates.not_upgradable.push(Arc::clone(pod));
        } else if !sidecars.is_between_images(pod) {
            waiting.push(Arc::clone(pod));
        }
    }
    let terms = scatter_terms(strategy, &observed.pods);
    let order = UpdateOrder {
        priority: strategy.and_then(|strategy| strategy.priority_strategy.as_ref()),
        scatter: &terms,
    };
    let waiting = without_hooks(waiting, &observed.pods, order);
    let settings = Settings::of(strategy, observed.pods.len())?;
    candidates.chosen = choose(observed, &sidecars, waiting, &settings);
    Ok(candidates)
}

/// Takes as many of the waiting pods as partition and `maxUnavailable` allow.
fn choose(
    observed: &Observed,
    sidecars: &Sidecars<'_>,
    mut waiting: Vec<Arc<CachedPod>>,
    settings: &Settings,
) -> Vec<Arc<CachedPod>> {
    waiting.truncate(waiting.len().saturating_sub(settings.partition));
    let is_busy = |pod: &&Arc<CachedPod>| {
        sidecars.is_updated(pod) && !(sidecars.all_run(pod) && sidecars.is_ready(pod))
    };
    let mut busy = observed.pods.iter().filter(is_busy).count();
    let in_budget = |pod: &Arc<CachedPod>| {
        // A pod that does not serve costs nothing.
        if !sidecars.is_ready(pod) {
            return true;
        }
        busy += 1;
        busy <= settings.max_unavailable
    };
    waiting.into_iter().take_while(in_budget).collect()
}
