//! The rules: the steps for a pod, as a pure function.

use super::groups::{Way, way, with_statuses};
use crate::pods::pod::{self, ContainerStatus, Pod, RestartPolicy};

/// Something to do for a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// Its containers get images that end: names and images.
    Images(Vec<(String, String)>),
    /// It gets its final phase, `Succeeded` or `Failed`, although sidecars run.
    End(&'static str),
    /// A request to stop these containers is made.
    Request(Vec<String>),
}

/// Whether the sidecars of a pod are to be ended: it is the pod of a job whose other containers are done.
pub(super) fn is_due(pod: &Pod) -> bool {
    let policy = pod.spec.restart_policy;
    if pod.metadata.deletion_timestamp.is_some()
        || pod::phase(pod) == "Pending"
        || policy == RestartPolicy::Always
    {
        return false;
    }
    let Some(containers) = with_statuses(pod) else {
        return false;
    };
    let (mut has_sidecars, mut sidecars_ended) = (false, true);
    for (container, status) in containers {
        if way(container, false) == Way::Main {
            let is_done = match policy {
                RestartPolicy::OnFailure => status.state.exit_code == Some(0),
                RestartPolicy::Never | RestartPolicy::Always => has_ended(status),
            };
            if !is_done {
                return false;
            }
        } else {
            has_sidecars = true;
            sidecars_ended &= has_ended(status);
        }
    }
    has_sidecars && !sidecars_ended
}

fn has_ended(status: &ContainerStatus) -> bool {
    status.state.exit_code.is_some()
}

/// The steps for a pod on such a node, in this order. There is at most one request for a pod.
pub(super) fn plan(pod: &Pod, is_virtual: bool, is_requested: bool) -> Vec<Step> {
    if !is_due(pod) {
        return Vec::new();
    }
    let (mut images, mut now, mut at_the_end) = (Vec::new(), Vec::new(), Vec::new());
    let (mut by_image_ended, mut succeeded) = (true, true);
    for (container, status) in with_statuses(pod).unwrap_or_default() {
        let is_left = !has_ended(status);
        match way(container, is_virtual) {
            Way::Main => succeeded &= status.state.exit_code == Some(0),
            Way::Never => {}
            Way::Image(image) => {
                by_image_ended &= !is_left;
                if is_left && container.image.as_deref() != Some(&*image) {
                    images.push((container.name.clone(), image));
                }
            }
            Way::Request if is_left => now.push(container.name.clone()),
            Way::RequestAtTheEnd if is_left => at_the_end.push(container.name.clone()),
            Way::Request | Way::RequestAtTheEnd => {}
        }
    }
    let mut steps = Vec::new();
    if !images.is_empty() {
        steps.push(Step::Images(images));
    }
    let ends = now.is_empty() && by_image_ended && !at_the_end.is_empty();
    if !now.is_empty() && !is_requested {
        steps.push(Step::Request(now));
    }
    if ends {
        if !matches!(pod::phase(pod), "Succeeded" | "Failed") {
            steps.push(Step::End(if succeeded { "Succeeded" } else { "Failed" }));
        }
        if !is_requested {
            steps.push(Step::Request(at_the_end));
        }
    }
    steps
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
