//! One pass of the controller over a set.

use std::time::Duration;

use super::view::View;
use super::{Action, condemned, predownload, slots, status, update};
use crate::api::v1beta1::StatefulSetStatus;
use crate::pods::availability::has_revision;
use crate::pods::refresh::shortest;
use crate::pods::revision::History;
use crate::pods::{PodAction, Revisions};
use crate::workloads::statefulset::gates::Gates;
use crate::workloads::statefulset::observe::Observed;
use crate::workloads::statefulset::settings::DEFAULT_HISTORY_LIMIT;

/// The work of a pass.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::workloads::statefulset) struct Plan {
    /// Done in this order; the first failure ends it.
    pub(in crate::workloads::statefulset) actions: Vec<Action>,
    /// The status to write afterwards, also after a failure.
    pub(in crate::workloads::statefulset) status: StatefulSetStatus,
    /// The names of revisions to delete last.
    pub(in crate::workloads::statefulset) history: Vec<String>,
    /// When to look again at the latest.
    pub(in crate::workloads::statefulset) requeue: Option<Duration>,
}

/// A part of a pass.
#[derive(Default)]
pub(super) struct Part {
    pub(super) actions: Vec<Action>,
    /// Whether the parts after it have to wait for another pass.
    pub(super) ends: bool,
    pub(super) requeue: Option<Duration>,
}

impl Part {
    pub(super) fn act(&mut self, actions: impl IntoIterator<Item = PodAction>) {
        self.actions.extend(actions.into_iter().map(Action::Pod));
    }

    pub(super) fn look_again(&mut self, delay: Option<Duration>) {
        self.requeue = shortest(self.requeue, delay);
    }

    fn join(&mut self, other: Self) {
        self.actions.extend(other.actions);
        self.ends |= other.ends;
        self.look_again(other.requeue);
    }
}

/// Plans a pass.
pub(in crate::workloads::statefulset) fn plan(
    observed: &Observed,
    revisions: &Revisions,
    gates: Gates,
) -> Plan {
    let view = View::new(observed, revisions, gates);
    let mut part = Part::default();
    let mut left = 0;
    if observed.set.metadata.deletion_timestamp.is_none() {
        part.act(predownload::plan(&view));
        part.join(slots::plan(&view));
        if !part.ends {
            part.join(condemned::plan(&view));
        }
        if !part.ends && view.settings.rolling {
            let update = update::plan(&view);
            left = update.left_current;
            part.join(update.part);
        }
    }
    Plan {
        actions: part.actions,
        status: status::plan(&view, left),
        history: history(&view),
        requeue: part.requeue,
    }
}

/// The names of the revisions beyond the limit that no pod runs, oldest first.
fn history(view: &View<'_>) -> Vec<String> {
    let limit = view.set().spec.revision_history_limit;
    let limit = usize::try_from(limit.unwrap_or(DEFAULT_HISTORY_LIMIT)).unwrap_or(0);
    let in_use = |name: &str| view.all_pods().any(|pod| has_revision(pod, name));
    view.revisions.beyond(limit, History::Unused, in_use)
}

#[cfg(test)]
#[path = "pass_tests.rs"]
mod tests;
