//! Images that are pulled before pods are updated (feature gate `PreDownloadImageForDaemonSetUpdate`).

use kube::ResourceExt as _;
use serde_json::Value;

use super::view::View;
use crate::kit::Owner;
use crate::pods::PodAction;
use crate::pods::pull_jobs::{self, JobSource};

/// Makes the jobs for a new revision once, and takes them away when every node has it. By the status, as OpenKruise does.
pub(super) fn plan(view: &View<'_>) -> Vec<PodAction> {
    if !view.gates.predownload {
        return Vec::new();
    }
    let set = view.set();
    let status = set.status.clone().unwrap_or_default();
    if status.updated_number_scheduled == status.desired_number_scheduled
        && status.update_revision == view.hash()
    {
        return pull_jobs::delete(&view.observed.jobs);
    }
    let update = &view.revisions.update;
    let source = JobSource {
        owner: &Owner::of(set),
        annotations: set.annotations(),
        selector: &set.spec.selector,
        template: &set.spec.template,
        update: &update.name,
        revisions: &view.observed.revisions,
    };
    if source.is_decided() {
        return Vec::new();
    }
    let settings = &view.settings;
    let desired = usize::try_from(status.desired_number_scheduled).unwrap_or(0);
    let all_at_once = settings.partition == 0 && settings.max_unavailable >= desired;
    if !settings.rolling || all_at_once {
        return source.ignore();
    }
    let all = view.revisions.all.iter();
    let old: Vec<&Value> = all
        .filter(|revision| revision.name != update.name)
        .map(|revision| &revision.template)
        .collect();
    source.create(pull_jobs::images(&old, &update.template))
}
