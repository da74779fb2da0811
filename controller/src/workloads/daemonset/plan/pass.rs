//! One pass of the controller over a set.

use std::time::Duration;

use super::view::View;
use super::{Action, doubles, manage, predownload, status, update};
use crate::api::v1beta1::DaemonSetStatus;
use crate::pods::availability::has_revision;
use crate::pods::refresh::{self, Care, Ways, shortest};
use crate::pods::revision::{History, short};
use crate::pods::{PodAction, Revisions};
use crate::workloads::daemonset::gates::Gates;
use crate::workloads::daemonset::observe::Observed;
use crate::workloads::daemonset::settings::DEFAULT_HISTORY_LIMIT;

/// The work of a pass.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::workloads::daemonset) struct Plan {
    /// Done in this order; a failure ends it, and the status is not written.
    pub(in crate::workloads::daemonset) actions: Vec<Action>,
    /// The nodes whose pods have failed and go.
    pub(in crate::workloads::daemonset) failed: Vec<String>,
    /// The status to write afterwards.
    pub(in crate::workloads::daemonset) status: DaemonSetStatus,
    /// The names of revisions to delete before.
    pub(in crate::workloads::daemonset) history: Vec<String>,
    /// When to look again at the latest.
    pub(in crate::workloads::daemonset) requeue: Option<Duration>,
}

/// The part of a pass that needs no knowledge of the passes before: the status, which belongs to the generation that it
/// belonged to.
pub(in crate::workloads::daemonset) fn status_alone(
    observed: &Observed,
    revisions: &Revisions,
    gates: Gates,
) -> Plan {
    let view = View::new(observed, revisions, gates);
    Plan {
        actions: Vec::new(),
        failed: Vec::new(),
        status: status::plan(&view, observed_generation(&view)),
        history: Vec::new(),
        requeue: None,
    }
}

/// Plans a pass.
pub(in crate::workloads::daemonset) fn plan(
    observed: &Observed,
    revisions: &Revisions,
    gates: Gates,
) -> Plan {
    let view = View::new(observed, revisions, gates);
    let doubles = doubles::plan(&view);
    if !doubles.is_empty() {
        return Plan {
            actions: doubles.into_iter().map(Action::Pod).collect(),
            ..status_alone(observed, revisions, gates)
        };
    }
    let managed = manage::plan(&view);
    let early = predownload::plan(&view).into_iter().chain(managed.events);
    let mut actions: Vec<Action> = early.map(Action::Pod).collect();
    let changes = managed.change.actions(&view);
    let is_settled = changes.is_empty();
    actions.extend(changes);
    let mut generation = observed_generation(&view);
    let mut history = Vec::new();
    let mut requeue = managed.requeue;
    if is_settled {
        generation = view.set().metadata.generation.unwrap_or(0);
        let refreshed = refresh::plan(&care(&view));
        requeue = shortest(requeue, refreshed.requeue);
        actions.extend(refreshed.actions.into_iter().map(Action::Pod));
        if view.settings.rolling && !view.settings.paused {
            actions.extend(updates(&view));
        }
        history = self::history(&view);
    }
    let status = status::plan(&view, generation);
    if status.number_ready != status.number_available {
        let wait = u64::try_from(view.settings.min_ready_s).unwrap_or(0);
        requeue = shortest(
            requeue,
            Some(Duration::from_secs(wait)).filter(|wait| !wait.is_zero()),
        );
    }
    Plan {
        actions,
        failed: managed.failed,
        status,
        history,
        requeue,
    }
}

fn observed_generation(view: &View<'_>) -> i64 {
    let status = view.set().status.as_ref();
    status.map_or(0, |status| status.observed_generation)
}

/// How pods are looked after: they have no hooks but the one before their deletion.
fn care<'v>(view: &View<'v>) -> Care<'v> {
    Care {
        pods: &view.observed.pods,
        lifecycle: None,
        update_revision: &view.revisions.update.name,
        now: view.now(),
        ways: Ways {
            template_hash: false,
            normal_once_scheduled: false,
            updated_without_hook: false,
        },
    }
}

/// The actions of an update: first those in place, since a failure there ends the pass.
fn updates(view: &View<'_>) -> Vec<Action> {
    let update = match update::plan(view) {
        Ok(update) => update,
        Err(message) => return vec![PodAction::Fail(message).into()],
    };
    let mut actions = Vec::new();
    if !update.in_place.is_empty() {
        actions.push(Action::Together(update.in_place));
    }
    actions.extend(update.change.actions(view));
    actions
}

/// The names of the old revisions beyond the limit that no pod runs, oldest first.
fn history(view: &View<'_>) -> Vec<String> {
    let limit = view.set().spec.revision_history_limit;
    let limit = usize::try_from(limit.unwrap_or(DEFAULT_HISTORY_LIMIT)).unwrap_or(0);
    let in_use = |name: &str| {
        view.observed
            .pods
            .iter()
            .any(|pod| has_revision(pod, short(name)))
    };
    view.revisions.beyond(limit, History::All, in_use)
}

#[cfg(test)]
#[path = "pass_tests.rs"]
mod tests;
