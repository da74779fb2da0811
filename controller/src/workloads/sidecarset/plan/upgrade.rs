//! Changes a pod in place: the images of its sidecars, and the record of it in its annotations.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::hot;
use crate::api::labels;
use crate::api::v1beta1::SidecarSet;
use crate::injection::sidecars::{annotations, hash, metadata};
use crate::pods::inplace::state::{ContainerImage, UpdateState, annotation};
use crate::pods::lifecycle::rfc3339;
use crate::pods::pod::{self, Pod};
use crate::workloads::sidecarset::observe::Observed;
use crate::workloads::sidecarset::sidecars::{Pair, Sidecars, image_of, states};

/// A change of a pod.
pub(super) struct Change {
    /// The annotations that it is to have.
    pub(super) annotations: BTreeMap<String, String>,
    images: BTreeMap<String, String>,
    /// The images that ran before, of the containers that get another.
    last: BTreeMap<String, ContainerImage>,
}

impl Change {
    fn of(pod: &Pod) -> Self {
        Self {
            annotations: pod.metadata.annotations.clone().unwrap_or_default(),
            images: BTreeMap::new(),
            last: BTreeMap::new(),
        }
    }

    /// Gives a container an image.
    pub(super) fn image(&mut self, pod: &Pod, container: &str, image: &str) {
        self.images.insert(container.to_owned(), image.to_owned());
        let statuses = pod::container_statuses(pod);
        if let Some(status) = statuses.iter().find(|status| status.name == container) {
            let image_id = status.image_id.clone();
            self.last
                .insert(container.to_owned(), ContainerImage { image_id });
        }
    }

    /// Adds the images that ran before to the record of the set. The record keeps the version and the time of its beginning.
    fn record(&mut self, pod: &Pod, set: &SidecarSet, now: &str) {
        let mut states = states(pod).unwrap_or_default();
        let name = set.metadata.name.clone().unwrap_or_default();
        let state = states.entry(name).or_insert_with(|| UpdateState {
            revision: hash::full(set).to_owned(),
            update_timestamp: now.to_owned(),
            ..UpdateState::default()
        });
        let last = state.last_container_statuses.get_or_insert_default();
        last.append(&mut self.last);
        self.annotations
            .insert(labels::SIDECARS_IN_PLACE_STATE.to_owned(), annotation(&states));
    }

    /// The patch of the pod.
    fn patch(self, pod: &Pod) -> Value {
        let before = pod.metadata.annotations.as_ref();
        let changed: Map<String, Value> = self
            .annotations
            .into_iter()
            .filter(|(key, value)| before.and_then(|before| before.get(key)) != Some(value))
            .map(|(key, value)| (key, json!(value)))
            .collect();
        let mut patch = json!({ "metadata": { "annotations": changed } });
        if !self.images.is_empty() {
            // A strategic merge patch brings the containers that it lists into its own order, which must be the pod's.
            let containers: Vec<Value> = pod::containers(pod)
                .iter()
                .filter_map(|container| Some((&container.name, self.images.get(&container.name)?)))
                .map(|(name, image)| json!({ "name": name, "image": image }))
                .collect();
            patch["spec"] = json!({ "containers": containers });
        }
        patch
    }
}

/// The patch that brings a pod to the present version of the set, whose revision is `latest`.
///
/// # Errors
/// If an annotation that is to be merged is no JSON.
pub(super) fn plan(observed: &Observed, latest: &str, pod: &Pod) -> Result<Value, String> {
    let set = &observed.set;
    let sidecars = Sidecars::of(set);
    let mut change = Change::of(pod);
    for container in set.spec.sidecars() {
        if container.is_hot() {
            let version = set.metadata.resource_version.as_deref().unwrap_or_default();
            hot::upgrade(&sidecars, pod, container, version, &mut change);
        } else if image_of(pod, container.name()) != container.image() {
            change.image(pod, container.name(), container.image());
        }
    }
    let text = pod::annotation(pod, labels::SIDECARS_HASH);
    let mut versions = annotations::read(text).unwrap_or_default();
    let now = rfc3339(observed.now);
    let (mut applied, _) = annotations::applied(set, &now);
    applied.controller_revision = latest.into();
    versions.insert(sidecars.set_name().to_owned(), applied);
    change
        .annotations
        .insert(labels::SIDECARS_HASH.to_owned(), annotations::write(&versions));
    change.record(pod, set, &now);
    metadata::patch(set.spec.patches(), &mut change.annotations)?;
    Ok(change.patch(pod))
}

/// The patch that empties the idle containers of pairs.
pub(super) fn empty(observed: &Observed, pod: &Pod, pairs: &[Pair<'_>]) -> Value {
    let mut change = Change::of(pod);
    for pair in pairs {
        hot::empty(pod, pair, &mut change);
    }
    change.record(pod, &observed.set, &rfc3339(observed.now));
    change.patch(pod)
}
