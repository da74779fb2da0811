//! The status of a set.

use crate::api::v1beta1::SidecarSetStatus;
use crate::pods::Revisions;
use crate::workloads::sidecarset::observe::Observed;
use crate::workloads::sidecarset::sidecars::Sidecars;

/// The status of the observed moment.
pub(super) fn plan(observed: &Observed, revisions: &Revisions) -> SidecarSetStatus {
    let sidecars = Sidecars::of(&observed.set);
    let mut status = SidecarSetStatus {
        observed_generation: observed.set.metadata.generation.unwrap_or_default(),
        latest_revision: revisions.update.name.clone(),
        collision_count: Some(revisions.collision_count),
        ..SidecarSetStatus::default()
    };
    for pod in &observed.pods {
        let updated = sidecars.is_updated(pod);
        let ready = sidecars.all_run(pod) && sidecars.is_ready(pod);
        status.matched_pods += 1;
        status.updated_pods += i32::from(updated);
        status.ready_pods += i32::from(ready);
        status.updated_ready_pods += i32::from(updated && ready);
    }
    status
}

/// Whether `new` is worth a write: it is of a later generation, or says something else.
pub(in crate::workloads::sidecarset) fn differs(new: &SidecarSetStatus, old: &SidecarSetStatus) -> bool {
    let timeless = |status: &SidecarSetStatus| SidecarSetStatus {
        observed_generation: 0,
        ..status.clone()
    };
    new.observed_generation > old.observed_generation || timeless(new) != timeless(old)
}
