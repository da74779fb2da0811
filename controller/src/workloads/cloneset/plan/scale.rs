//! Adding and removing pods.

use std::collections::BTreeSet;
use std::sync::Arc;

use client_kit::EventType;
use kube::ResourceExt;
use serde_json::{Value, json};

use super::action::Action;
use super::view::View;
use crate::api::labels;
use crate::pods::CachedPod;
use crate::pods::lifecycle::{self, state};
use crate::pods::pod::{self, Pod};
use crate::pods::removal;
use crate::pods::sort::deletion::{self, Ranking};
use crate::pods::{PodAction, PodRef};
use crate::workloads::cloneset::diff::Diff;

/// The actions of scaling, and whether they change anything: a pass that scales does not update.
pub(crate) struct Scale {
    pub(crate) actions: Vec<Action>,
    pub(crate) modifies: bool,
}

impl Scale {
    fn nothing() -> Self {
        Self {
            actions: Vec::new(),
            modifies: false,
        }
    }

    fn modifying(actions: Vec<PodAction>) -> Self {
        Self {
            modifies: !actions.is_empty(),
            actions: actions.into_iter().map(Action::Pod).collect(),
        }
    }
}

/// Plans the first of these that there is to do: take back pods from deletion, create, delete held pods whose hook is
/// gone, delete marked pods, shrink.
pub(crate) fn plan(view: &View<'_>) -> Scale {
    let specified: Vec<&Arc<CachedPod>> = view.pods.iter().filter(|pod| view.is_specified(pod)).collect();
    let held: Vec<&Arc<CachedPod>> = view
        .pods
        .iter()
        .filter(|pod| view.is_preparing_delete(pod))
        .collect();
    let planned: BTreeSet<&str> = specified.iter().chain(&held).map(|pod| pod::name(pod)).collect();

    let regret = regret(view, &held, planned.len());
    if !regret.is_empty() {
        return Scale::modifying(regret);
    }
    let diff = view.diff_for_scaling();
    let limited: Vec<PodAction> = (diff.scale_up > diff.scale_up_limit)
        .then(|| PodAction::Event {
            kind: EventType::Warning,
            reason: "ScaleUpLimited",
            message: format!(
                "scaleUp is limited because of scaleStrategy.maxUnavailable, limit: {}",
                diff.scale_up_limit
            ),
        })
        .into_iter()
        .collect();
    if diff.scale_up_limit > 0 {
        return grow(view, &diff, limited);
    }
    let deleted_held = delete(view, held.iter().copied());
    if !deleted_held.is_empty() || diff.scale_up > 0 {
        // A pod that was held may be what the others wait for.
        let modifies = !deleted_held.is_empty();
        let actions = limited.into_iter().chain(deleted_held).map(Action::Pod).collect();
        return Scale { actions, modifies };
    }
    // Marked pods that are not ready go in any case, and leave the less to those that are.
    let broken = specified
        .iter()
        .filter(|pod| !view.is_preparing_delete(pod) && !view.is_ready(pod))
        .count();
    let mut ready_limit = i32::try_from(i64::from(diff.delete_ready_limit) - count(broken)).unwrap_or(0);
    let marked = specified
        .iter()
        .copied()
        .filter(|pod| !view.is_preparing_delete(pod));
    let deleted_marked = delete(view, within_limit(view, marked, &mut ready_limit));
    if !deleted_marked.is_empty() {
        return Scale::modifying(deleted_marked);
    }
    if diff.scale_down > 0 && planned.is_empty() {
        let chosen = choose(view, &diff);
        let chosen = within_limit(view, chosen.iter(), &mut ready_limit);
        return Scale::modifying(delete(view, chosen));
    }
    Scale::nothing()
}

/// Pods held before deletion that are needed after all.
fn regret(view: &View<'_>, held: &[&Arc<CachedPod>], planned: usize) -> Vec<PodAction> {
    let marks_not_ready = view.lifecycle().is_some_and(|lifecycle| {
        [
            &lifecycle.pre_delete,
            &lifecycle.in_place_update,
            &lifecycle.pre_normal,
        ]
        .into_iter()
        .flatten()
        .any(|hook| hook.mark_pod_not_ready == Some(true))
    });
    if marks_not_ready {
        return Vec::new();
    }
    let needed = i64::from(view.settings.replicas) - count(view.pods.len()) + count(planned);
    held.iter()
        .filter(|pod| !view.is_specified(pod))
        .take(usize::try_from(needed).unwrap_or(0))
        .map(|pod| set_state(view, pod, state::PREPARING_NORMAL))
        .collect()
}

fn count(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}

fn grow(view: &View<'_>, diff: &Diff, limited: Vec<PodAction>) -> Scale {
    let mut actions: Vec<Action> = limited.into_iter().map(Action::Pod).collect();
    let id = |labels: &std::collections::BTreeMap<String, String>| labels.get(labels::INSTANCE_ID).cloned();
    // A pod that has ended and stays keeps its name: to ask for it again would fail for good.
    let stays = |pod: &&Arc<CachedPod>| pod.metadata.deletion_timestamp.is_none();
    let taken: BTreeSet<String> = view
        .observed
        .pods
        .iter()
        .filter(stays)
        .filter_map(|pod| id(pod.labels()))
        .collect();
    // Without reuse a claim goes with its pod, which may still be there.
    let reuse = view
        .set()
        .spec
        .scale_strategy
        .as_ref()
        .is_none_or(|strategy| strategy.disable_pvc_reuse != Some(true));
    let orphaned: BTreeSet<String> = view
        .observed
        .claims
        .iter()
        .filter(|_| reuse)
        .filter_map(|claim| id(claim.labels()))
        .filter(|id| !taken.contains(id))
        .collect();
    actions.push(Action::CreatePods {
        count: diff.scale_up_limit,
        of_current: diff.scale_up_old.min(diff.scale_up_limit),
        reuse_ids: orphaned.into_iter().collect(),
        taken_ids: taken.into_iter().collect(),
        existing_claims: view
            .observed
            .claims
            .iter()
            .map(|claim| claim.name_any())
            .collect(),
        short_hash: view.gates.short_hash,
    });
    Scale {
        actions,
        modifies: true,
    }
}

/// Those that are not ready, and as many ready ones as may be deleted.
fn within_limit<'p>(
    view: &View<'_>,
    pods: impl Iterator<Item = &'p Arc<CachedPod>>,
    ready_limit: &mut i32,
) -> impl Iterator<Item = &'p Arc<CachedPod>> {
    pods.filter(move |pod| {
        if !view.is_ready(pod) {
            return true;
        }
        *ready_limit -= 1;
        *ready_limit >= 0
    })
}

/// Deletes the pods, or has them held first where a hook asks for it.
fn delete<'p>(view: &View<'_>, pods: impl Iterator<Item = &'p Arc<CachedPod>>) -> Vec<PodAction> {
    pods.flat_map(|pod| removal::plan(pod, view.pre_delete(), claims_of(view, pod), view.now()))
        .collect()
}

fn claims_of(view: &View<'_>, pod: &Pod) -> Vec<String> {
    let Some(id) = pod::label(pod, labels::INSTANCE_ID) else {
        return Vec::new();
    };
    let of_pod = view
        .observed
        .claims
        .iter()
        .filter(|claim| claim.labels().get(labels::INSTANCE_ID).is_some_and(|l| l == id));
    of_pod.map(|claim| claim.name_any()).collect()
}

fn set_state(view: &View<'_>, pod: &Pod, state: &str) -> PodAction {
    let patch = json!({ "metadata": lifecycle::state_patch(state, view.now()) });
    PodAction::PatchPod {
        pod: PodRef::of(pod),
        patch: patch.into(),
    }
}

/// The pods to give up: of the old revision those beyond the partition, then of the new one.
fn choose(view: &View<'_>, diff: &Diff) -> Vec<Arc<CachedPod>> {
    let old_share = diff.scale_down_old.min(diff.scale_down);
    let mut chosen = choose_among(view, |pod| !view.is_updated_for_scaling(pod), old_share);
    chosen.extend(choose_among(
        view,
        |pod| view.is_updated_for_scaling(pod),
        diff.scale_down - old_share,
    ));
    chosen
}

fn choose_among(view: &View<'_>, which: impl Fn(&CachedPod) -> bool, count: i32) -> Vec<Arc<CachedPod>> {
    let mut pods: Vec<Arc<CachedPod>> = view.pods.iter().filter(|pod| which(pod)).cloned().collect();
    let available = |pod: &CachedPod| view.is_available(pod);
    let keys = topology_keys(&view.set().spec.template);
    deletion::sort(
        &mut pods,
        &Ranking {
            available: &available,
            topology_keys: &keys,
            nodes: &view.observed.nodes,
        },
    );
    pods.truncate(usize::try_from(count).unwrap_or(0));
    pods
}

fn topology_keys(template: &Value) -> Vec<String> {
    let list = template
        .pointer("/spec/topologySpreadConstraints")
        .and_then(Value::as_array);
    let keys = list
        .into_iter()
        .flatten()
        .filter_map(|constraint| constraint.get("topologyKey")?.as_str());
    keys.map(str::to_owned).collect()
}
