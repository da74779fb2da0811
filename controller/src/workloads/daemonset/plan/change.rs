//! Pods to make and to delete, and the actions for them: no more at a time than the set's burst.

use std::sync::Arc;

use super::Action;
use super::view::View;
use crate::pods::removal;
use crate::pods::{CachedPod, PodAction};

/// Pods to make and to delete.
#[derive(Debug, Clone, Default)]
pub(super) struct Change<'v> {
    /// The nodes that get a pod.
    pub(super) create: Vec<&'v str>,
    /// The pods that go.
    pub(super) delete: Vec<&'v Arc<CachedPod>>,
}

impl Change<'_> {
    /// The actions: pods that a hook holds are left to it first, the others of `delete` go at once.
    pub(super) fn actions(&self, view: &View<'_>) -> Vec<Action> {
        let ends = self
            .delete
            .iter()
            .flat_map(|pod| removal::plan(pod, view.pre_delete(), Vec::new(), view.now()));
        let (mut deletions, patches): (Vec<PodAction>, Vec<PodAction>) =
            ends.partition(|action| matches!(action, PodAction::DeletePod { .. }));
        deletions.truncate(view.settings.burst);
        let mut actions: Vec<Action> = patches.into_iter().map(Action::Pod).collect();
        let nodes: Vec<String> = self
            .create
            .iter()
            .take(view.settings.burst)
            .map(|node| (*node).to_owned())
            .collect();
        if !nodes.is_empty() {
            actions.push(Action::Create { nodes });
        }
        if !deletions.is_empty() {
            actions.push(Action::Together(deletions));
        }
        actions
    }
}
