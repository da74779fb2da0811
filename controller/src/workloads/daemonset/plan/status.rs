//! The status of a set.

use super::view::View;
use crate::api::v1beta1::DaemonSetStatus;
use crate::pods::pod;

/// The status of the observed set, which belongs to the spec of `generation`.
pub(super) fn plan(view: &View<'_>, generation: i64) -> DaemonSetStatus {
    let old = view.set().status.clone().unwrap_or_default();
    let collisions = Some(view.revisions.collision_count).filter(|count| *count > 0);
    let mut status = DaemonSetStatus {
        observed_generation: generation,
        desired_number_scheduled: view.desired,
        update_revision: view.hash().to_owned(),
        collision_count: collisions.or(old.collision_count),
        conditions: old.conditions,
        ..DaemonSetStatus::default()
    };
    for place in &view.places {
        // Of several pods the first counts, be it on its way out.
        let Some(first) = place.pods.first() else { continue };
        if !place.fit.run {
            status.number_misscheduled += 1;
            continue;
        }
        status.current_number_scheduled += 1;
        status.number_ready += i32::from(pod::is_ready(first));
        status.number_available += i32::from(view.is_available(first));
        status.updated_number_scheduled += i32::from(view.is_new(first));
    }
    status.number_unavailable = view.desired - status.number_available;
    status
}
