//! A pod's phase, from its containers.

use shared_json::Value;

use super::containers::should_restart;
use super::record::{Kind, PodRecord};

/// The phase that the kubelet would show.
pub(super) fn phase(record: &PodRecord, pod: &Value) -> &'static str {
    if record.failed {
        return "Failed";
    }
    let init_failed = record.of_kinds(&[Kind::Init]).any(|container| {
        container.ended().is_some_and(|ended| ended.code != 0) && !should_restart(container, pod)
    });
    if init_failed {
        return "Failed";
    }
    let regular: Vec<_> = record.of_kinds(&[Kind::Regular]).collect();
    if record.stopped {
        let good = regular.iter().all(|container| container.has_succeeded());
        return if good { "Succeeded" } else { "Failed" };
    }
    // Those that begin anew have been active before: only what must end first makes the pod wait.
    if regular.iter().any(|container| container.is_taken_away()) {
        let begins = record
            .of_kinds(&[Kind::Init])
            .any(|container| container.is_running());
        return if begins { "Pending" } else { "Running" };
    }
    if !record.is_initialized()
        || regular.iter().any(|container| container.current.is_none())
        || regular.is_empty()
    {
        return "Pending";
    }
    if regular
        .iter()
        .any(|container| container.is_running() || should_restart(container, pod))
    {
        return "Running";
    }
    if regular.iter().all(|container| container.has_succeeded()) {
        return "Succeeded";
    }
    "Failed"
}

/// The phase of a pod whose containers have ended while its sandbox is still there.
pub(super) fn before_the_end(record: &PodRecord) -> &'static str {
    if record
        .of_kinds(&[Kind::Regular])
        .all(|container| container.current.is_some())
    {
        "Running"
    } else {
        "Pending"
    }
}

#[cfg(test)]
#[path = "phase_tests.rs"]
mod tests;
