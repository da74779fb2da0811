//! One pass of the controller over a set.

use std::collections::BTreeSet;

use super::action::{Action, Phase, Plan, Planner, Update};
use super::view::View;
use super::{housekeeping, predownload, scale, status, update};
use crate::pods::PodAction;
use crate::pods::Revisions;
use crate::pods::availability::has_revision;
use crate::pods::pod;
use crate::pods::refresh::{self, Care, Ways, shortest};
use crate::pods::revision::History;
use crate::workloads::cloneset::gates::Gates;
use crate::workloads::cloneset::observe::Observed;
use crate::workloads::cloneset::settings::DEFAULT_HISTORY_LIMIT;

/// The rules of OpenKruise 1.9.
#[derive(Debug, Clone, Copy, Default)]
pub struct CloneSetPlanner {
    /// The feature gates that are on.
    pub gates: Gates,
}

impl Planner for CloneSetPlanner {
    fn plan(&self, observed: &Observed, revisions: &Revisions) -> Plan {
        let view = View::new(observed, revisions, self.gates);
        let (status, requeue) = status::plan(&view);
        let mut plan = Plan {
            prepare: Vec::new(),
            sync: Vec::new(),
            phase: Phase::Update,
            status,
            finish: finish(&view),
            requeue,
        };
        if observed.set.metadata.deletion_timestamp.is_some() {
            return plan;
        }
        let prepare = housekeeping::plan(observed)
            .into_iter()
            .chain(predownload::plan(&view));
        plan.prepare = prepare.map(Action::Pod).collect();
        let scale = scale::plan(&view);
        plan.sync = scale.actions;
        if scale.modifies {
            plan.phase = Phase::Scale;
            return plan;
        }
        let update = refresh_and_update(&view);
        plan.sync.extend(update.actions);
        plan.requeue = shortest(plan.requeue, update.requeue);
        plan
    }

    fn plan_unscaled(&self, observed: &Observed, revisions: &Revisions) -> Update {
        refresh_and_update(&View::new(observed, revisions, self.gates))
    }
}

fn refresh_and_update(view: &View<'_>) -> Update {
    let refresh = refresh::plan(&Care {
        pods: &view.pods,
        lifecycle: view.lifecycle(),
        update_revision: &view.revisions.update.name,
        now: view.now(),
        ways: Ways {
            template_hash: true,
            normal_once_scheduled: true,
            updated_without_hook: false,
        },
    });
    let mut all = Update {
        actions: refresh.actions.into_iter().map(Action::Pod).collect(),
        requeue: refresh.requeue,
    };
    if !refresh.modifies {
        let update = update::plan(view);
        all.actions.extend(update.actions);
        all.requeue = shortest(all.requeue, update.requeue);
    }
    all
}

/// The tidying at the end: names of pods that are gone, revisions that no pod runs.
fn finish(view: &View<'_>) -> Vec<Action> {
    let mut actions = Vec::new();
    let active: BTreeSet<&str> = view.pods.iter().map(|pod| pod::name(pod)).collect();
    let wanted = view
        .set()
        .spec
        .scale_strategy
        .as_ref()
        .and_then(|strategy| strategy.pods_to_delete.as_deref());
    if let Some(wanted) = wanted {
        let keep: Vec<String> = wanted
            .iter()
            .filter(|name| active.contains(name.as_str()))
            .cloned()
            .collect();
        if keep.len() < wanted.len() {
            actions.push(Action::TrimPodsToDelete { keep });
        }
    }
    actions.extend(
        history(view)
            .into_iter()
            .map(|name| PodAction::DeleteRevision { name }.into()),
    );
    actions
}

/// The names of the revisions beyond the limit that no pod runs, oldest first.
fn history(view: &View<'_>) -> Vec<String> {
    let limit = view
        .set()
        .spec
        .revision_history_limit
        .unwrap_or(DEFAULT_HISTORY_LIMIT);
    let limit = usize::try_from(limit).unwrap_or(0);
    let in_use = |name: &str| view.pods.iter().any(|pod| has_revision(pod, name));
    view.revisions.beyond(limit, History::Unused, in_use)
}

#[cfg(test)]
#[path = "pass_tests.rs"]
mod tests;
