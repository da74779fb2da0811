//! Brings pods to the update revision, and ends those that are marked to be deleted.

use std::collections::BTreeSet;
use std::sync::Arc;

use client_kit::EventType;

use super::Which;
use super::claims::{self, Growth};
use super::pass::Part;
use super::view::{View, is_terminating};
use crate::api::labels;
use crate::pods::inplace::change;
use crate::pods::inplace::step::{self, Step};
use crate::pods::lifecycle::state;
use crate::pods::sort::priority;
use crate::pods::{CachedPod, PodAction};
use crate::pods::{availability, pod, refresh, removal, revision};

/// The longest time after which a pod that becomes available is looked at again.
const WAIT_S_MAX: u64 = 300;

/// The part of a pass that updates.
#[derive(Default)]
pub(super) struct Update {
    pub(super) part: Part,
    /// How many pods of the current revision it updates, deletes or has held before their update.
    pub(super) left_current: i32,
}

/// Plans as many updates as the strategy allows now.
pub(super) fn plan(view: &View<'_>) -> Update {
    let mut update = Update::default();
    let condemned: Vec<Arc<CachedPod>> = view.condemned.iter().map(|(_, pod)| Arc::clone(pod)).collect();
    let refreshed = refresh::plan(&view.care(&condemned));
    let in_slots: Vec<Arc<CachedPod>> = view.pods_in_slots().cloned().collect();
    let modifies = refreshed.modifies || refresh::plan(&view.care(&in_slots)).modifies;
    update.part.act(refreshed.actions);
    if modifies || view.settings.paused {
        return update;
    }
    let Some(partition) = view.settings.partition else {
        return update;
    };
    let mut unavailable = unavailable(view, &mut update.part);
    let full = |unavailable: &BTreeSet<i32>| {
        i32::try_from(unavailable.len()).unwrap_or(i32::MAX) >= view.settings.max_unavailable
    };
    let mut ended = BTreeSet::new();
    for slot in view.slots.iter().rev() {
        let Ok(pod) = &slot.pod else { continue };
        let in_budget = unavailable.contains(&slot.ordinal) || !full(&unavailable);
        if !pod.facts().marked || !in_budget {
            continue;
        }
        // Go deletes those that terminate already again, at each pass.
        if !is_terminating(pod) {
            update.part.act(end(view, pod));
        }
        unavailable.insert(slot.ordinal);
        ended.insert(slot.ordinal);
    }
    let mut is_full = false;
    for (ordinal, pod) in candidates(view, partition) {
        let growth = claims::growth(view, ordinal);
        if view.is_updated(&pod) && matches!(growth, Growth::Done | Growth::Waiting) {
            continue;
        }
        is_full |= full(&unavailable) && !unavailable.contains(&ordinal);
        // A pod that a hook took out of service for its update or deletion takes its place in the budget until that is done. OpenKruise
        // stops here for good where such a pod is below others.
        if is_full && !has_begun(&pod) {
            continue;
        }
        match growth {
            Growth::Done => {}
            Growth::Waiting => {
                unavailable.insert(ordinal);
                continue;
            }
            Growth::Wanted(actions) => {
                update.part.actions.extend(actions);
                unavailable.insert(ordinal);
                continue;
            }
            Growth::Impossible(claim) => {
                update.part.act(cannot_grow(&claim));
                break;
            }
        }
        // The slots end those that have failed.
        let is_over = matches!(pod::phase(&pod), "Failed" | "Succeeded");
        if !ended.contains(&ordinal) && !is_terminating(&pod) && !is_over {
            one(view, &pod, &mut update);
        }
        unavailable.insert(ordinal);
    }
    update
}

/// The ordinals of the pods that are not available, those to come included.
fn unavailable(view: &View<'_>, part: &mut Part) -> BTreeSet<i32> {
    let mut out = BTreeSet::new();
    for slot in &view.slots {
        let serves = slot.pod.as_ref().is_ok_and(|pod| {
            part.look_again(view.wait_of(pod).filter(|wait| wait.as_secs() <= WAIT_S_MAX));
            let in_place = pod.in_place();
            let changes = in_place.waiting.is_some()
                || match &in_place.state {
                    None => false,
                    Some(Ok(state)) => !in_place.arrived || state.has_next(),
                    Some(Err(_)) => true,
                };
            view.is_healthy(pod)
                && view.is_available(pod)
                && !changes
                && !claims::some_growing(view, slot.ordinal)
        });
        if !serves {
            out.insert(slot.ordinal);
        }
    }
    out
}

/// The pods that may be updated, in this order.
fn candidates(view: &View<'_>, partition: i32) -> Vec<(i32, Arc<CachedPod>)> {
    let count = usize::try_from(view.settings.replicas.saturating_sub(partition)).unwrap_or(0);
    let descending = view.slots.iter().rev();
    let present = descending.filter_map(|slot| Some((slot.ordinal, Arc::clone(slot.pod.as_ref().ok()?))));
    let Some(unordered) = view
        .rolling()
        .and_then(|rolling| rolling.unordered_update.as_ref())
    else {
        let first = i64::from(view.settings.start) + i64::from(partition);
        // A pod that is to come takes a place, too.
        let slots = view.slots.iter().rev();
        let slots = slots.filter(|slot| i64::from(slot.ordinal) >= first).take(count);
        return slots
            .filter_map(|slot| Some((slot.ordinal, Arc::clone(slot.pod.as_ref().ok()?))))
            .collect();
    };
    let (mut done, waiting): (Vec<_>, Vec<_>) =
        present.partition(|(_, pod)| is_terminating(pod) || view.counts_as_updated(pod));
    let to_come = view
        .slots
        .iter()
        .filter(|slot| matches!(slot.pod, Err(Which::Update)));
    let taken = done.len() + to_come.count();
    let mut pods: Vec<Arc<CachedPod>> = waiting.iter().map(|(_, pod)| Arc::clone(pod)).collect();
    if let Some(strategy) = &unordered.priority_strategy {
        priority::sort(&mut pods, strategy);
    }
    let ordinal_of = |pod: &CachedPod| {
        let same = waiting
            .iter()
            .find(|(_, other)| pod::name(other) == pod::name(pod));
        same.map_or(0, |(ordinal, _)| *ordinal)
    };
    let waiting = pods.into_iter().map(|pod| (ordinal_of(&pod), pod));
    done.extend(waiting.take(count.saturating_sub(taken)));
    done
}

/// Whether the update or the deletion of a pod has begun, with a hook before it.
fn has_begun(pod: &CachedPod) -> bool {
    matches!(
        &*pod.facts().state,
        state::PREPARING_UPDATE | state::PREPARING_DELETE
    )
}

/// Says that a claim cannot follow its template, and fails.
fn cannot_grow(claim: &str) -> [PodAction; 2] {
    let because = "contains diff other than spec resource, wait pvc to be deleted";
    [
        PodAction::Event {
            kind: EventType::Warning,
            reason: "FailedUpdatePVC",
            message: format!("failed to update pvc {claim}: {because}"),
        },
        PodAction::Fail(format!("can not patch pvc {claim}: {because}")),
    ]
}

/// Ends a pod.
fn end(view: &View<'_>, pod: &CachedPod) -> Vec<PodAction> {
    removal::plan(pod, view.pre_delete(), Vec::new(), view.now())
}

/// Brings one pod to the update revision.
fn one(view: &View<'_>, pod: &Arc<CachedPod>, update: &mut Update) {
    let target = &view.revisions.update;
    let policy = view
        .rolling()
        .and_then(|rolling| rolling.pod_update_policy.as_deref());
    let is_current = availability::has_revision(pod, &view.revisions.current.name);
    // Its deletion has begun. OpenKruise fails here at each pass, and updates nothing more.
    let ends = &*pod.facts().state == state::PREPARING_DELETE;
    if let Some(policy @ ("InPlaceIfPossible" | "InPlaceOnly")) = policy
        && !ends
    {
        let label = pod::label(pod, labels::REVISION_HASH).unwrap_or_default();
        let mut known = view.revisions.all.iter();
        let old = known.find(|revision| revision::same(&revision.name, label));
        let options = view.gates.in_place();
        let change = old.and_then(|old| {
            change::change(
                &old.template,
                &target.template,
                &target.name,
                view.settings.grace_s,
                options,
            )
        });
        if let Some(change) = change {
            if &*pod.facts().state == state::UPDATED && view.in_place_hook().is_none() {
                return;
            }
            let stepped = step::plan(&Step {
                pod,
                change: &change,
                revision: &target.name,
                hook: view.in_place_hook(),
                template_hash: false,
                state_for_all: false,
                or_recreate: false,
                now: view.now(),
            });
            // One that a hook holds before its update counts as gone, too; one that it holds before its deletion does not.
            update.left_current += i32::from(is_current);
            update.part.look_again(stepped.requeue);
            return update.part.act(stepped.actions);
        }
        if policy == "InPlaceOnly" {
            let name = pod::name(pod);
            let message = format!("find strategy is InPlaceOnly but Pod {name} can not update in-place");
            return update.part.act([PodAction::Fail(message)]);
        }
    }
    let actions = end(view, pod);
    let deletes = |action: &PodAction| matches!(action, PodAction::DeletePod { .. });
    update.left_current += i32::from(is_current && actions.iter().any(deletes));
    update.part.act(actions);
}
