//! How a pod stands to a set: whether it has the set's containers, in which version, and whether they run.

use std::collections::BTreeMap;

use crate::api::labels;
use crate::api::v1beta1::{SidecarContainer, SidecarSet};
use crate::injection::sidecars::{annotations, hash, hot};
use crate::pods::inplace::consistent::is_consistent;
use crate::pods::inplace::state::UpdateState;
use crate::pods::pod::{self, Pod};

/// The containers of a set.
pub(super) struct Sidecars<'a> {
    set: &'a SidecarSet,
    /// The names of the set's containers in a pod.
    names: Vec<String>,
}

/// A container that is upgraded hot, in a pod.
pub(super) struct Pair<'a> {
    /// The container in the set.
    pub(super) container: &'a SidecarContainer,
    /// The name of the one that works.
    pub(super) working: String,
    /// The name of the other one.
    pub(super) idle: String,
}

/// The image of a container of the pod.
pub(super) fn image_of<'p>(pod: &'p Pod, name: &str) -> &'p str {
    let container = pod::containers(pod)
        .iter()
        .find(|container| container.name == name);
    container
        .and_then(|container| container.image.as_deref())
        .unwrap_or_default()
}

/// The records of updates in place of a pod's sidecars, by set; an error for a text that cannot be read.
pub(super) fn states(pod: &Pod) -> Result<BTreeMap<String, UpdateState>, ()> {
    match pod::annotation(pod, labels::SIDECARS_IN_PLACE_STATE) {
        Some(text) => serde_json::from_str(text).map_err(drop),
        None => Ok(BTreeMap::new()),
    }
}

/// The names of the sets that were injected into a pod.
pub(super) fn injected(pod: &Pod) -> impl Iterator<Item = &str> {
    annotations::injected(pod::annotation(pod, labels::SIDECARS_INJECTED)).into_iter()
}

impl<'a> Sidecars<'a> {
    /// The containers of `set`.
    pub(super) fn of(set: &'a SidecarSet) -> Self {
        Self {
            set,
            names: hot::pod_names(set.spec.sidecars()),
        }
    }

    /// The set's name.
    pub(super) fn set_name(&self) -> &'a str {
        self.set.metadata.name.as_deref().unwrap_or_default()
    }

    /// The names of the set's containers in a pod.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    /// The set's containers that are upgraded hot.
    pub(super) fn hot(&self) -> impl Iterator<Item = &'a SidecarContainer> {
        self.set
            .spec
            .sidecars()
            .iter()
            .filter(|container| container.is_hot())
    }

    /// Whether a pod has all of the set's containers. Init containers of the same name count, too.
    pub(super) fn are_in(&self, pod: &Pod) -> bool {
        let names = |name: &str| {
            let containers = pod::containers(pod)
                .iter()
                .map(|container| container.name.as_str());
            let inits = pod.spec.init_containers.iter().map(|init| &*init.name);
            containers.chain(inits).any(|other| other == name)
        };
        let working = hot::working(pod::annotation(pod, labels::SIDECARS_WORKING));
        self.names().all(names) && self.hot().all(|container| working.contains_key(container.name()))
    }

    /// Whether the set was injected into a pod that is still there, and the pod has all of its containers.
    pub(super) fn has(&self, pod: &Pod) -> bool {
        injected(pod).any(|name| name == self.set_name()) && self.are_in(pod)
    }

    /// Whether a pod has the present version.
    pub(super) fn is_updated(&self, pod: &Pod) -> bool {
        let text = pod::annotation(pod, labels::SIDECARS_HASH);
        annotations::hash_of(text, self.set_name()).as_deref() == Some(hash::full(self.set))
    }

    /// Whether a pod differs from the present version by images at most.
    pub(super) fn is_upgradable(&self, pod: &Pod) -> bool {
        let text = pod::annotation(pod, labels::SIDECARS_HASH_WITHOUT_IMAGE);
        annotations::hash_of(text, self.set_name()).as_deref() == Some(hash::without_image(self.set))
    }

    /// Whether these containers of a pod run their images.
    pub(super) fn run<'n>(&self, pod: &Pod, names: impl IntoIterator<Item = &'n str>) -> bool {
        let states = states(pod);
        let last = states.as_ref().map(|states| states.get(self.set_name()));
        is_consistent(pod, names, last.map_err(|&()| ()))
    }

    /// Whether all of the set's containers in a pod run their images.
    pub(super) fn all_run(&self, pod: &Pod) -> bool {
        self.run(pod, self.names())
    }

    /// Whether some container of the set is ready with another image than its own: the pod is between two images.
    pub(super) fn is_between_images(&self, pod: &Pod) -> bool {
        let statuses = pod::container_statuses(pod).iter();
        let ready = statuses
            .filter(|status| status.ready)
            .map(|status| status.name.as_str());
        ready
            .filter(|name| self.names().any(|own| own == *name))
            .any(|name| !self.run(pod, [name]))
    }

    /// The pairs of a pod of which it says which container works.
    pub(super) fn pairs(&self, pod: &Pod) -> Vec<Pair<'a>> {
        let working = hot::working(pod::annotation(pod, labels::SIDECARS_WORKING));
        let pair = |container: &'a SidecarContainer| {
            let [first, second] = hot::names(container.name());
            let working = working.get(container.name())?.clone();
            let idle = if working == first { second } else { first };
            Some(Pair {
                container,
                working,
                idle,
            })
        };
        self.hot().filter_map(pair).collect()
    }

    /// Whether a pod is in service, and no upgrade of it is under way.
    pub(super) fn is_ready(&self, pod: &Pod) -> bool {
        let is_empty = |pair: &Pair<'_>| image_of(pod, &pair.idle) == pair.container.empty_image();
        self.pairs(pod).iter().all(is_empty)
            && pod::phase(pod) == "Running"
            && pod::is_ready(pod)
            && pod.metadata.deletion_timestamp.is_none()
    }
}
