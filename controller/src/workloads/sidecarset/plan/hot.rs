//! Pairs of containers that are upgraded hot: the idle one gets the new image and works from then on, then the other one is emptied.

use std::collections::BTreeMap;

use super::upgrade::Change;
use crate::api::labels;
use crate::api::v1beta1::SidecarContainer;
use crate::injection::sidecars::hot;
use crate::pods::pod::{self, Pod};
use crate::workloads::sidecarset::sidecars::{Pair, Sidecars, image_of};

/// Has the new image run beside the old one. `version` is the version of the set.
pub(super) fn upgrade(
    sidecars: &Sidecars<'_>,
    pod: &Pod,
    container: &SidecarContainer,
    version: &str,
    change: &mut Change,
) {
    let [first, second] = hot::names(container.name());
    let (target, other) = if is_second(sidecars, pod, container, [&first, &second]) {
        (second, first)
    } else {
        (first, second)
    };
    let wanted = container.image();
    if image_of(pod, &other) == wanted || image_of(pod, &target) == wanted {
        return;
    }
    change.image(pod, &target, wanted);
    let annotation = |key: &str| pod::annotation(pod, key).unwrap_or_default().to_owned();
    let before = annotation(&hot::version_key(&other));
    change
        .annotations
        .insert(hot::version_key(&target), version.to_owned());
    change
        .annotations
        .insert(hot::alternate_key(&other), version.to_owned());
    change.annotations.insert(hot::alternate_key(&target), before);
    let works = change
        .annotations
        .get(labels::SIDECARS_WORKING)
        .map(String::as_str);
    let mut working = hot::working(works);
    working.insert(container.name().to_owned(), target);
    write_working(&working, change);
}

fn write_working(working: &BTreeMap<String, String>, change: &mut Change) {
    let text = serde_json::to_string(working).unwrap_or_default();
    change
        .annotations
        .insert(labels::SIDECARS_WORKING.to_owned(), text);
}

/// Whether the second container of a pair gets the new image: the one that is empty; or, while an upgrade is under way, the one that
/// does not run well, or else the one that does not work.
fn is_second(
    sidecars: &Sidecars<'_>,
    pod: &Pod,
    container: &SidecarContainer,
    [first, second]: [&String; 2],
) -> bool {
    let is_empty = |name: &str| image_of(pod, name) == container.empty_image();
    if is_empty(first) || is_empty(second) {
        return !is_empty(first);
    }
    let runs_well = |name: &str| {
        let ready = pod::container_statuses(pod)
            .iter()
            .any(|status| status.name == name && status.ready);
        ready && sidecars.run(pod, [name])
    };
    match (runs_well(first), runs_well(second)) {
        (true, false) => true,
        (false, true) => false,
        _ => {
            let working = hot::working(pod::annotation(pod, labels::SIDECARS_WORKING));
            working.get(container.name()) != Some(second)
        }
    }
}

/// The pairs of a pod whose idle container is to be emptied: all others run well.
pub(super) fn to_empty<'a>(sidecars: &Sidecars<'a>, pod: &Pod) -> Vec<Pair<'a>> {
    let pairs = sidecars.pairs(pod);
    let is_full = |pair: &&Pair<'_>| image_of(pod, &pair.idle) != pair.container.empty_image();
    if !pairs.iter().any(|pair| is_full(&pair)) {
        return Vec::new();
    }
    let is_idle = |name: &str| pairs.iter().any(|pair| pair.idle == name);
    let others: Vec<&str> = sidecars.names().filter(|name| !is_idle(name)).collect();
    if !sidecars.run(pod, others) {
        return Vec::new();
    }
    let serves = pod::phase(pod) == "Running" && pod::is_ready(pod);
    let all_ready = || {
        let statuses = pod::container_statuses(pod);
        statuses
            .iter()
            .all(|status| status.ready || is_idle(&status.name))
    };
    if !serves && !all_ready() {
        return Vec::new();
    }
    pairs.into_iter().filter(|pair| is_full(&pair)).collect()
}

/// Empties the idle container of a pair.
pub(super) fn empty(pod: &Pod, pair: &Pair<'_>, change: &mut Change) {
    change.image(pod, &pair.idle, pair.container.empty_image());
    for key in [hot::version_key(&pair.idle), hot::alternate_key(&pair.working)] {
        change.annotations.insert(key, "0".to_owned());
    }
}
