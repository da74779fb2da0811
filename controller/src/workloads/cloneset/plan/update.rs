//! Bringing pods to another revision.

use std::sync::Arc;

use super::action::{Action, Update};
use super::view::View;
use crate::api::labels;
use crate::pods::availability::has_revision;
use crate::pods::inplace::change;
use crate::pods::inplace::state::Change;
use crate::pods::inplace::step::{self, Step};
use crate::pods::lifecycle::state;
use crate::pods::pod;
use crate::pods::refresh::shortest;
use crate::pods::revision;
use crate::pods::sort::update::{self, UpdateOrder};
use crate::pods::{CachedPod, Revision};
use crate::pods::{PodAction, PodRef};
use crate::workloads::cloneset::diff::Diff;

/// Plans as many updates as the strategy allows now.
pub(crate) fn plan(view: &View<'_>) -> Update {
    let mut update = Update::default();
    if view.settings.paused || view.update_type() == "OnDelete" {
        return update;
    }
    let diff = view.diff();
    if diff.update == 0 {
        return update;
    }
    let target = if diff.update > 0 {
        &view.revisions.update
    } else {
        &view.revisions.current
    };
    for pod in chosen(view, &diff, target) {
        if view.gates.ask_leave {
            let pod = PodRef::of(&pod);
            update.actions.push(PodAction::AskLeave { pod }.into());
        }
        one(view, &pod, target, &mut update);
    }
    update
}

/// The pods to update now.
fn chosen(view: &View<'_>, diff: &Diff, target: &Revision) -> Vec<Arc<CachedPod>> {
    let waits = |pod: &&Arc<CachedPod>| {
        view.is_updated(pod) != (diff.update > 0)
            && match &*pod.facts().state {
                state::PREPARING_DELETE => false,
                state::UPDATED => true,
                _ => pod.in_place().waiting.is_none(),
            }
    };
    let waiting: Vec<Arc<CachedPod>> = view.pods.iter().filter(waits).cloned().collect();
    let strategy = view.set().spec.update_strategy.as_ref();
    let order = UpdateOrder {
        priority: strategy.and_then(|strategy| strategy.priority_strategy.as_ref()),
        scatter: strategy
            .and_then(|strategy| strategy.scatter_strategy.as_deref())
            .unwrap_or_default(),
    };
    let mut waiting = update::sort(waiting, &view.pods, order);
    waiting.truncate(usize::try_from(diff.update.unsigned_abs()).unwrap_or(usize::MAX));
    limit(view, waiting, diff.update_max_unavailable, target)
}

/// Cuts the list where more pods would be unavailable than may be: in the new revision, and in all.
fn limit(view: &View<'_>, waiting: Vec<Arc<CachedPod>>, max: i32, target: &Revision) -> Vec<Arc<CachedPod>> {
    let unavailable: Vec<&Arc<CachedPod>> = view.pods.iter().filter(|pod| !view.is_available(pod)).collect();
    let count = |length: usize| i32::try_from(length).unwrap_or(i32::MAX);
    let in_target = count(
        unavailable
            .iter()
            .filter(|pod| has_revision(pod, &target.name))
            .count(),
    );
    let mut total = count(unavailable.len());
    let mut chosen = Vec::new();
    for pod in waiting {
        if in_target + count(chosen.len()) >= max {
            break;
        }
        // A pod that is not available already costs nothing.
        if view.is_available(&pod) {
            if total >= max {
                break;
            }
            total += 1;
        }
        chosen.push(pod);
    }
    chosen
}

fn one(view: &View<'_>, pod: &Arc<CachedPod>, target: &Revision, update: &mut Update) {
    let kind = view.update_type();
    if matches!(kind, "InPlaceIfPossible" | "InPlaceOnly") {
        let label = pod::label(pod, labels::REVISION_HASH).unwrap_or_default();
        let old = view
            .revisions
            .all
            .iter()
            .find(|revision| revision::same(&revision.name, label));
        let claims_stay = |old: &&Revision| {
            let same = kind == "InPlaceOnly" || old.has_claims_of(target);
            same || !view.gates.recreate_for_claims
        };
        let change = old.filter(claims_stay).and_then(|old| {
            let label = view.revision_label(&target.name);
            change::change(
                &old.template,
                &target.template,
                label,
                view.grace_seconds(),
                view.gates.in_place(),
            )
        });
        if let Some(change) = change {
            return in_place(view, pod, &change, (kind, &target.name), update);
        }
        if kind == "InPlaceOnly" {
            let name = pod::name(pod);
            let message =
                format!("find Pod {name} update strategy is InPlaceOnly but can not update in-place");
            return update.actions.push(PodAction::Fail(message).into());
        }
    }
    let recreate = PodAction::Recreate {
        pod: PodRef::of(pod),
        marked: pod::label(pod, labels::SPECIFIED_DELETE) == Some("true"),
        revision: target.name.clone(),
    };
    update.actions.push(recreate.into());
}

fn in_place(
    view: &View<'_>,
    pod: &Arc<CachedPod>,
    change: &Change,
    (kind, name): (&str, &str),
    update: &mut Update,
) {
    let stepped = step::plan(&Step {
        pod,
        change,
        revision: name,
        hook: view.in_place_hook(),
        template_hash: true,
        state_for_all: true,
        or_recreate: kind != "InPlaceOnly",
        now: view.now(),
    });
    update
        .actions
        .extend(stepped.actions.into_iter().map(Action::Pod));
    update.requeue = shortest(update.requeue, stepped.requeue);
}
