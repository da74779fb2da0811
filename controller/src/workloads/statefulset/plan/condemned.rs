//! The pods whose ordinal a set does not have any more: highest ordinal first, they go.

use super::pass::Part;
use super::view::{View, is_running_and_ready, is_terminating};
use super::{Action, claims};
use crate::pods::pod;
use crate::pods::removal;

/// Plans the end of the condemned pods: all of them, or one by one where the set's pods come and go so.
pub(super) fn plan(view: &View<'_>) -> Part {
    let mut part = Part::default();
    for (ordinal, pod) in &view.condemned {
        part.act(claims::owners(view, *ordinal, pod, true));
    }
    let end = |pod| removal::plan(pod, view.pre_delete(), Vec::new(), view.now());
    if !view.settings.ordered {
        let going = view.condemned.iter().filter(|(_, pod)| !is_terminating(pod));
        let batches: Vec<Vec<_>> = going
            .map(|(_, pod)| end(pod))
            .filter(|actions| !actions.is_empty())
            .collect();
        if !batches.is_empty() {
            part.actions.push(Action::Batches(batches));
        }
        return part;
    }
    let first_unhealthy = first_unhealthy(view);
    for (_, pod) in &view.condemned {
        let serves = is_running_and_ready(pod) && view.is_available(pod);
        let is_first = first_unhealthy.is_some_and(|name| name == pod::name(pod));
        if is_terminating(pod) || (!serves && !is_first) {
            // Go loses this wait; the set is looked at again all the same.
            part.look_again(view.wait_of(pod));
            part.ends = true;
            break;
        }
        let actions = end(pod);
        if !actions.is_empty() {
            part.act(actions);
            part.ends = true;
            break;
        }
    }
    part
}

/// The name of the pod with the lowest ordinal that is not healthy. None if a pod that is to come is before it.
fn first_unhealthy<'v>(view: &'v View<'_>) -> Option<&'v str> {
    let slots = view
        .slots
        .iter()
        .map(|slot| (slot.ordinal, slot.pod.as_ref().ok()));
    let condemned = view.condemned.iter().map(|(ordinal, pod)| (*ordinal, Some(pod)));
    slots
        .chain(condemned)
        .filter(|(_, pod)| pod.is_none_or(|pod| !view.is_healthy(pod)))
        .min_by_key(|(ordinal, _)| *ordinal)
        .and_then(|(_, pod)| pod.map(|pod| pod::name(pod)))
}
