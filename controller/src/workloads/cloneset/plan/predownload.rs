//! Images that are pulled before pods are updated in place (feature gate `PreDownloadImageForInPlaceUpdate`).

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt;

use super::view::View;
use crate::kit::Owner;
use crate::kit::numbers::{Round, scaled};
use crate::pods::PodAction;
use crate::pods::inplace::change;
use crate::pods::pull_jobs::{self, JobSource, Rollout};
use crate::workloads::cloneset::settings::DEFAULT_MAX_UNAVAILABLE;

/// Sets with no more pods than this are updated without.
const REPLICAS_MIN: i32 = 3;

/// Makes the jobs for a new revision once, and takes them away when every pod has it.
pub(super) fn plan(view: &View<'_>) -> Vec<PodAction> {
    if !view.gates.predownload {
        return Vec::new();
    }
    let set = view.set();
    let update = &view.revisions.update;
    let source = JobSource {
        owner: &Owner::of(set),
        annotations: set.annotations(),
        selector: &set.spec.selector,
        template: &set.spec.template,
        update: &update.name,
        revisions: &view.observed.revisions,
    };
    let status = set.status.as_ref();
    let status = status.filter(|status| status.update_revision == update.name);
    let rollout = Rollout {
        current: &view.revisions.current,
        update,
        replicas: view.settings.replicas,
        updated_ready: status.map_or(0, |status| status.updated_ready_replicas),
    };
    pull_jobs::plan(&source, &rollout, &view.observed.jobs, || needless(view))
}

/// Whether pulling early gains nothing: pods are recreated, there are few, or all are updated at once.
fn needless(view: &View<'_>) -> bool {
    let settings = &view.settings;
    if !matches!(view.update_type(), "InPlaceIfPossible" | "InPlaceOnly") || settings.replicas <= REPLICAS_MIN
    {
        return true;
    }
    let strategy = view.set().spec.update_strategy.as_ref();
    let default = IntOrString::String(DEFAULT_MAX_UNAVAILABLE.to_owned());
    let max_unavailable = strategy
        .and_then(|strategy| strategy.max_unavailable.as_ref())
        .unwrap_or(&default);
    let max_unavailable = scaled(max_unavailable, settings.replicas, Round::Down).unwrap_or(0);
    if settings.partition == 0 && max_unavailable >= settings.replicas {
        return true;
    }
    let (current, update) = (&view.revisions.current, &view.revisions.update);
    if view.gates.recreate_for_claims && !current.has_claims_of(update) {
        return true;
    }
    change::change(
        &current.template,
        &update.template,
        &update.name,
        0,
        view.gates.in_place(),
    )
    .is_none()
}
