//! Brings pods to the update revision, as many at a time as may be unavailable.

use std::sync::Arc;

use kube::ResourceExt as _;
use kube::core::SelectorExt as _;

use super::change::Change;
use super::surge;
use super::view::{Pair, Place, View, is_preparing_delete, unless_held};
use crate::api::labels;
use crate::pods::inplace::change;
use crate::pods::inplace::step::{self, Step};
use crate::pods::{CachedPod, PodAction, pod, revision};
use crate::workloads::daemonset::nodes::update_selector;

/// The actions of an update in this pass.
#[derive(Default)]
pub(super) struct Update<'v> {
    /// Updates of pods in place.
    pub(super) in_place: Vec<PodAction>,
    /// Pods to make and to delete.
    pub(super) change: Change<'v>,
}

/// Plans as many updates as the strategy allows now.
///
/// # Errors
/// A selector of nodes that is none.
pub(super) fn plan<'v>(view: &'v View<'v>) -> Result<Update<'v>, String> {
    let listed = listed(view)?;
    if view.settings.max_surge > 0 {
        return Ok(Update {
            in_place: Vec::new(),
            change: surge::plan(view, &listed),
        });
    }
    let mut update = Update::default();
    for pod in replaceable(view, &listed) {
        match in_place(view, pod) {
            Some(_) if update.in_place.len() >= view.settings.burst => {}
            Some(action) => update.in_place.push(action),
            None => update.change.delete.push(pod),
        }
    }
    Ok(update)
}

/// The nodes that an update looks at, in this order: those that have a new pod, those whose old one is on its way out, then the
/// others; the nodes of the partition are left out at the end.
fn listed<'v>(view: &'v View<'v>) -> Result<Vec<(&'v Place<'v>, Option<Pair<'v>>)>, String> {
    let selector = update_selector(view.set())?;
    let (mut updated, mut updating, mut selected, mut rest) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut count = 0_usize;
    let descending = view.places.iter().rev();
    for place in descending.filter(|place| place.fit.run || !place.pods.is_empty()) {
        count += 1;
        let pair = view.pair(place);
        let group = match pair {
            None | Some(Pair { new: Some(_), .. }) => &mut updated,
            Some(Pair { old, .. }) if unless_held(old).is_none() => &mut updating,
            Some(_) => match &selector {
                Some(selector) if selector.matches(place.node.labels()) => &mut selected,
                _ => &mut rest,
            },
        };
        group.push((place, pair));
    }
    updated.extend(updating);
    updated.extend(if selector.is_some() { selected } else { rest });
    updated.truncate(count.saturating_sub(view.settings.partition));
    Ok(updated)
}

/// The old pods that may be replaced now: those that do not serve, and as many others as may be unavailable.
fn replaceable<'v>(view: &View<'_>, listed: &[(&'v Place<'v>, Option<Pair<'v>>)]) -> Vec<&'v Arc<CachedPod>> {
    let mut unavailable = 0_usize;
    let (mut free, mut candidates) = (Vec::new(), Vec::new());
    for (_, pair) in listed {
        let Some(pair) = pair else {
            unavailable += 1;
            continue;
        };
        match (unless_held(pair.new), unless_held(pair.old), pair.new) {
            (None, None, _) | (Some(_), Some(_), _) => unavailable += 1,
            (_, _, Some(new)) => {
                unavailable += usize::from(!view.is_available(new));
                unavailable += usize::from(is_preparing_delete(new));
            }
            (_, Some(old), None) if view.is_available(old) => candidates.push(old),
            (_, Some(old), None) => {
                // OpenKruise takes a pod that an update in place has taken out of service for one that does not serve by itself.
                unavailable += usize::from(pod::is_taken_out(old));
                free.push(old);
            }
            (Some(_), None, None) => {}
        }
    }
    let room = view.settings.max_unavailable.saturating_sub(unavailable);
    free.extend(candidates.into_iter().take(room));
    free
}

/// The update of a pod in place, if it can be updated so.
fn in_place(view: &View<'_>, pod: &Arc<CachedPod>) -> Option<PodAction> {
    if !view.settings.in_place || !pod::has_gate(pod, labels::IN_PLACE_READY) {
        return None;
    }
    let target = &view.revisions.update;
    let label = pod::label(pod, labels::REVISION_HASH)?;
    let mut known = view.revisions.all.iter();
    let old = known.find(|revision| revision::same(&revision.name, label))?;
    let options = view.gates.in_place();
    let change = change::change(&old.template, &target.template, view.hash(), 0, options)?;
    let stepped = step::plan(&Step {
        pod,
        change: &change,
        revision: &target.name,
        hook: None,
        template_hash: false,
        state_for_all: false,
        or_recreate: false,
        now: view.now(),
    });
    stepped.actions.into_iter().next()
}

#[cfg(test)]
#[path = "update_tests.rs"]
mod tests;
