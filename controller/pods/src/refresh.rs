//! The care that every pod of an owner gets in each pass, also when updates are paused.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kruise_api::labels;
use kruise_api::v1alpha1::{Lifecycle, LifecycleHook};
use serde_json::{Value, json};

use super::availability::has_revision;
use crate::CachedPod;
use crate::conditions::{ready_again_patch, ready_patch};
use crate::inplace::apply::{self, Applied};
use crate::inplace::complete;
use crate::inplace::state::{Change, UpdateState};
use crate::lifecycle::{self, state};
use crate::pod::{self, Pod};
use crate::revision;
use crate::{PodAction, PodRef};

/// How many actions a pass has at most. Each is some KiB until it is carried out, and the next pass goes on with the others.
const ACTIONS_MAX: usize = 1_000;

/// The pods to look after, and their owner's settings for them.
#[derive(Clone, Copy)]
pub struct Care<'a> {
    /// The pods.
    pub pods: &'a [Arc<CachedPod>],
    /// The hooks.
    pub lifecycle: Option<&'a Lifecycle>,
    /// The name of the revision that pods are to have.
    pub update_revision: &'a str,
    /// When.
    pub now: Timestamp,
    /// The differences between kinds.
    pub ways: Ways,
}

/// The differences between kinds.
#[derive(Debug, Clone, Copy)]
pub struct Ways {
    /// Whether pods have the label `pod-template-hash`.
    pub template_hash: bool,
    /// Whether a new pod that no hook holds must be scheduled to become `Normal`.
    pub normal_once_scheduled: bool,
    /// Whether a pod that was updated in place becomes `Updated` first where there are hooks, but none for updates in place.
    pub updated_without_hook: bool,
}

impl<'a> Care<'a> {
    fn in_place_hook(&self) -> Option<&'a LifecycleHook> {
        self.lifecycle?.in_place_update.as_ref()
    }
}

/// The result of looking after the pods.
#[derive(Default)]
pub struct Refresh {
    /// What to do to the pods.
    pub actions: Vec<PodAction>,
    /// Whether the pods must be seen again before anything is updated.
    pub modifies: bool,
    /// When a grace period ends.
    pub requeue: Option<Duration>,
}

/// Moves pods on: their updates in place, their lifecycles, their labels. Where too many wait for that, nothing is updated before
/// all have moved.
pub fn plan(care: &Care<'_>) -> Refresh {
    let mut refresh = Refresh::default();
    for pod in care.pods {
        if refresh.actions.len() >= ACTIONS_MAX {
            refresh.modifies = true;
            refresh.requeue = Some(Duration::ZERO);
            break;
        }
        one(care, pod, &mut refresh);
    }
    refresh
}

fn one(care: &Care<'_>, pod: &Arc<CachedPod>, refresh: &mut Refresh) {
    match in_place(pod, care.now) {
        Step::Wait(delay) => refresh.requeue = shortest(refresh.requeue, Some(delay)),
        Step::Nothing => {}
        Step::Patch(Applied { patch, resize }) => {
            refresh.actions.extend(resize.map(|patch| PodAction::ResizePod {
                pod: PodRef::of(pod),
                patch: patch.into(),
            }));
            refresh.actions.push(PodAction::PatchPod {
                pod: PodRef::of(pod),
                patch: patch.into(),
            });
            refresh.modifies = true;
            return;
        }
        Step::Done(Some(patch)) => refresh.actions.push(PodAction::PatchPodStatus {
            pod: PodRef::of(pod),
            patch: patch.into(),
        }),
        Step::Done(None) => {}
        Step::Broken(message) => return refresh.actions.push(PodAction::Fail(message)),
    }
    let mut patch = json!({});
    let next = next_state(care, pod);
    let marks = care
        .in_place_hook()
        .is_some_and(|hook| hook.mark_pod_not_ready == Some(true));
    // Where the hook is gone by now, nobody else would put the pod into service again. While it is there, a pod that is
    // rolled back stays out of service until its next update, as in OpenKruise.
    let over: &[&str] = match next.unwrap_or(&pod.facts().state) {
        state::PREPARING_DELETE => &[],
        state::PREPARING_UPDATE | state::UPDATING => &[lifecycle::PRE_DELETE_KEY],
        _ if marks && next != Some(state::UPDATED) => &[lifecycle::PRE_DELETE_KEY],
        _ => &[lifecycle::PRE_DELETE_KEY, lifecycle::PRE_UPDATE_KEY],
    };
    let ready = ready_again_patch(pod, over, care.now);
    refresh
        .actions
        .extend(ready.map(|patch| PodAction::PatchPodStatus {
            pod: PodRef::of(pod),
            patch: patch.into(),
        }));
    if let Some(next) = next {
        patch = lifecycle::state_patch(next, care.now);
    }
    if care.ways.template_hash
        && pod::label(pod, labels::TEMPLATE_HASH).is_none()
        && let Some(name) = pod::label(pod, labels::REVISION_HASH)
    {
        // Pods from before OpenKruise 1.1.
        kruise_kit::json::merge(
            &mut patch,
            json!({ "labels": { labels::TEMPLATE_HASH: revision::short(name) } }),
        );
    }
    if patch != json!({}) {
        refresh.actions.push(PodAction::PatchPod {
            pod: PodRef::of(pod),
            patch: json!({ "metadata": patch }).into(),
        });
        refresh.modifies = true;
    }
}

/// The next step of an update in place.
enum Step {
    /// Its grace period has so long to go.
    Wait(Duration),
    /// It goes on by itself.
    Nothing,
    /// Patch the pod.
    Patch(Applied),
    /// There is none, or it is over; patch the status if it does not say so.
    Done(Option<Value>),
    /// Its annotations cannot be read.
    Broken(String),
}

fn in_place(pod: &CachedPod, now: Timestamp) -> Step {
    let update = pod.in_place();
    let state = match &update.state {
        Some(Err(message)) => return Step::Broken(message.clone()),
        Some(Ok(state)) => Some(state),
        None => None,
    };
    match &update.waiting {
        Some(Ok(change)) => return grace(pod, change, state.cloned().unwrap_or_default(), now),
        Some(Err(message)) => return Step::Broken(message.clone()),
        None => {}
    }
    let Some(state) = state else {
        return Step::Done(ready_patch(pod, now));
    };
    if !update.arrived {
        return Step::Nothing;
    }
    if state.has_next() {
        return match complete::pre_check(pod, state) {
            Ok(()) => Step::Patch(apply::next_batch(pod, state.clone(), now)),
            Err(_) => Step::Nothing,
        };
    }
    Step::Done(ready_patch(pod, now))
}

fn grace(pod: &Pod, change: &Change, state: UpdateState, now: Timestamp) -> Step {
    let current = pod::label(pod, labels::REVISION_HASH).unwrap_or_default();
    if !revision::same(current, &change.revision) {
        return Step::Patch(Applied::plain(apply::drop_grace(pod)));
    }
    let began = state.update_timestamp.parse::<Timestamp>().unwrap_or(now);
    let span = now.duration_since(began).as_millis();
    let left_ms = i128::from(change.grace_seconds) * 1000 - span;
    if left_ms <= 0 {
        return Step::Patch(apply::after_grace(pod, change, state, now));
    }
    let seconds = u64::try_from((left_ms + 999) / 1000).unwrap_or(1);
    Step::Wait(Duration::from_secs(seconds))
}

/// The lifecycle state the pod moves on to, if it does.
fn next_state(care: &Care<'_>, pod: &CachedPod) -> Option<&'static str> {
    let hook = care.in_place_hook();
    let after_update = || match hook {
        Some(hook) if !lifecycle::is_all_hooked(hook, pod) => state::UPDATED,
        None if care.lifecycle.is_some() && care.ways.updated_without_hook => state::UPDATED,
        _ => state::NORMAL,
    };
    match &*pod.facts().state {
        state::PREPARING_NORMAL => {
            let pre_normal = care.lifecycle.and_then(|lifecycle| lifecycle.pre_normal.as_ref());
            let goes_on = match pre_normal {
                Some(hook) => lifecycle::is_all_hooked(hook, pod),
                None => !care.ways.normal_once_scheduled || pod::is_true(pod, "PodScheduled"),
            };
            goes_on.then_some(state::NORMAL)
        }
        // The set was rolled back while the pod was held.
        state::PREPARING_UPDATE if has_revision(pod, care.update_revision) => Some(after_update()),
        state::UPDATING => {
            let update = pod.in_place();
            let done = match &update.state {
                Some(Ok(state)) => update.waiting.is_none() && !state.has_next() && update.arrived,
                Some(Err(_)) => false,
                None => true,
            };
            done.then(after_update)
        }
        state::UPDATED => hook
            .is_none_or(|hook| lifecycle::is_all_hooked(hook, pod))
            .then_some(state::NORMAL),
        _ => None,
    }
}

/// The shorter of two delays.
pub fn shortest(one: Option<Duration>, other: Option<Duration>) -> Option<Duration> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::test_pods::TestPod;

    #[rstest]
    #[case::all_at_once(3, (3, None))]
    #[case::as_many_as_a_pass_may(ACTIONS_MAX, (ACTIONS_MAX, None))]
    #[case::one_more(ACTIONS_MAX + 1, (ACTIONS_MAX, Some(Duration::ZERO)))]
    fn a_pass_moves_so_many_pods_on(#[case] pods: usize, #[case] expected: (usize, Option<Duration>)) {
        let pods: Vec<Arc<CachedPod>> = (0..pods)
            .map(|number| TestPod::new(&format!("p{number}")).state(state::PREPARING_NORMAL))
            .map(|pod| Arc::new(pod.build().into()))
            .collect();
        let refresh = plan(&Care {
            pods: &pods,
            lifecycle: None,
            update_revision: "r",
            now: Timestamp::UNIX_EPOCH,
            ways: Ways {
                template_hash: false,
                normal_once_scheduled: true,
                updated_without_hook: false,
            },
        });
        assert!(refresh.modifies);
        assert_eq!((refresh.actions.len(), refresh.requeue), expected);
    }
}
