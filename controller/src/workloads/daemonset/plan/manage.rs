//! A pod for each node that fits, and none elsewhere.

use std::sync::Arc;
use std::time::Duration;

use client_kit::EventType;

use super::change::Change;
use super::view::{Place, View, is_preparing_delete, is_terminating};
use crate::pods::availability::until_available;
use crate::pods::refresh::shortest;
use crate::pods::{CachedPod, PodAction, pod};

/// The changes that the nodes need.
#[derive(Default)]
pub(super) struct Manage<'v> {
    pub(super) change: Change<'v>,
    /// The events about pods that have failed.
    pub(super) events: Vec<PodAction>,
    /// The nodes of those pods.
    pub(super) failed: Vec<String>,
    pub(super) requeue: Option<Duration>,
}

/// Plans for every node.
pub(super) fn plan<'v>(view: &'v View<'v>) -> Manage<'v> {
    let mut manage = Manage::default();
    for place in &view.places {
        one(view, place, &mut manage);
    }
    let unbound = view.strays.iter().filter(|pod| pod::node(pod).is_empty());
    let unbound = unbound.filter(|pod| !is_terminating(pod)).copied();
    manage.change.delete.extend(unbound);
    if let Some(room) = room(view) {
        manage.change.create.truncate(room);
    }
    manage
}

fn one<'v>(view: &'v View<'v>, place: &'v Place<'v>, manage: &mut Manage<'v>) {
    if place.pods.is_empty() {
        if place.fit.run {
            manage.change.create.push(place.node.name());
        }
        return;
    }
    let alive = place.pods.iter().copied().filter(|pod| !is_terminating(pod));
    if !place.fit.stay {
        return manage.change.delete.extend(alive);
    }
    let mut running = Vec::new();
    for pod in alive {
        if pod::phase(pod) == "Failed" {
            failed(view, place, pod, manage);
        } else if is_preparing_delete(pod) {
            // Again: the hook may be done with it.
            manage.change.delete.push(pod);
        } else {
            running.push(pod);
        }
    }
    if !view.settings.surges {
        return manage.change.delete.extend(running.into_iter().skip(1));
    }
    if running.is_empty() && place.fit.run {
        manage.change.create.push(place.node.name());
    }
    if running.len() > 1 {
        beside(view, &running, manage);
    }
}

/// A pod that has failed goes, unless another one on its node has done so lately.
fn failed<'v>(view: &View<'_>, place: &Place<'_>, pod: &'v Arc<CachedPod>, manage: &mut Manage<'v>) {
    let node = place.node.name();
    if manage.failed.iter().any(|failed| failed == node) {
        return;
    }
    if let Some(delay) = view.observed.held.get(node) {
        manage.requeue = shortest(manage.requeue, Some(*delay));
        return;
    }
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let name = pod::name(pod);
    manage.failed.push(node.to_owned());
    manage.events.push(PodAction::Event {
        kind: EventType::Warning,
        reason: "FailedDaemonPod",
        message: format!("Found failed daemon pod {namespace}/{name} on node {node}, will try to kill it"),
    });
    manage.change.delete.push(pod);
}

/// Of several pods on a node the oldest new one and the oldest old one stay, and the old one only for as long as it serves and the
/// new one is not available.
fn beside<'v>(view: &View<'_>, running: &[&'v Arc<CachedPod>], manage: &mut Manage<'v>) {
    let (mut new, mut old) = (None, None);
    for pod in running.iter().copied() {
        let first = if view.is_labelled_new(pod) {
            &mut new
        } else {
            &mut old
        };
        match first {
            Some(_) => manage.change.delete.push(pod),
            None => *first = Some(pod),
        }
    }
    let (Some(new), Some(old)) = (new, old) else {
        return;
    };
    if !pod::is_ready(old) || view.is_available(new) {
        manage.change.delete.push(old);
    } else if pod::is_ready(new) {
        let left = until_available(new, view.settings.min_ready_s, view.now());
        manage.requeue = shortest(manage.requeue, left);
    }
}

/// How many pods may be made, where the partition limits that.
fn room(view: &View<'_>) -> Option<usize> {
    let settings = &view.settings;
    if !settings.rolling || settings.partition == 0 || !settings.progressive {
        return None;
    }
    let has_new = |place: &&Place<'_>| view.pair(place).is_some_and(|pair| pair.new.is_some());
    let new = view.places.iter().filter(has_new).count();
    let desired = usize::try_from(view.desired).unwrap_or(0);
    Some(desired.saturating_sub(new + settings.partition.min(desired)))
}

#[cfg(test)]
#[path = "manage_tests.rs"]
mod tests;
