//! Images that are pulled before pods are updated in place (feature gate `PreDownloadImageForInPlaceUpdate`).

use kube::ResourceExt as _;

use super::view::View;
use crate::pods::PodAction;
use crate::pods::inplace::change;
use crate::pods::pull_jobs::{self, JobSource, Rollout};

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
        owner: &view.owner,
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
    let rolling = view.rolling().filter(|_| settings.rolling);
    let policy = rolling.and_then(|rolling| rolling.pod_update_policy.as_deref());
    let in_place = matches!(policy, Some("InPlaceIfPossible" | "InPlaceOnly"));
    let all_at_once = settings.partition == Some(0) && settings.max_unavailable >= settings.replicas;
    if !in_place || settings.replicas <= REPLICAS_MIN || all_at_once {
        return true;
    }
    let (current, update) = (&view.revisions.current, &view.revisions.update);
    let options = view.gates.in_place();
    change::change(&current.template, &update.template, &update.name, 0, options).is_none()
}
