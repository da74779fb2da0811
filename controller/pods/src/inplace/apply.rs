//! The patches that bring a change into a pod, one batch of containers at a time.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kruise_api::labels;
use kruise_kit::json::merge;
use serde_json::{Value, json};

use super::state::{Batch, Change, ContainerImage, PreCheck, RefMetadata, UpdateState, annotation};
use crate::launch_priority::priority_of;
use crate::lifecycle::rfc3339;
use crate::pod::{self, Pod};

/// The patches that bring a change into a pod.
#[derive(Debug, Clone, PartialEq)]
pub struct Applied {
    /// The patch of the pod.
    pub patch: Value,
    /// The patch of its containers' resources, which goes before it.
    pub resize: Option<Value>,
}

impl Applied {
    /// A patch of the pod alone.
    pub fn plain(patch: Value) -> Self {
        Self { patch, resize: None }
    }
}

/// The first patch of an update: either the change, or, with a grace period, the announcement of it. Carries the state,
/// not the revision labels and the lifecycle state.
pub fn begin(pod: &Pod, change: &Change, now: Timestamp) -> Applied {
    let mut state = UpdateState {
        revision: change.revision.clone(),
        update_timestamp: rfc3339(now),
        update_env_from_metadata: change.update_env_from_metadata,
        update_images: !change.container_images.is_empty(),
        update_resources: !change.container_resources.is_empty(),
        ..UpdateState::default()
    };
    let Applied { mut patch, resize } = if change.grace_seconds > 0 {
        Applied::plain(
            json!({ "metadata": { "annotations": { labels::IN_PLACE_GRACE: annotation(change) } } }),
        )
    } else {
        let mut applied = apply(pod, change, &mut state, now);
        remove_grace(pod, &mut applied.patch);
        applied
    };
    merge(
        &mut patch,
        json!({ "metadata": { "annotations": { labels::IN_PLACE_STATE: annotation(&state) } } }),
    );
    if pod::annotation(pod, labels::IN_PLACE_STATE_OLD).is_some() {
        merge(
            &mut patch,
            json!({ "metadata": { "annotations": { labels::IN_PLACE_STATE_OLD: null } } }),
        );
    }
    Applied { patch, resize }
}

/// The patch after a grace period: the change itself.
pub fn after_grace(pod: &Pod, change: &Change, mut state: UpdateState, now: Timestamp) -> Applied {
    let mut applied = apply(pod, change, &mut state, now);
    merge(
        &mut applied.patch,
        json!({ "metadata": { "annotations": { labels::IN_PLACE_STATE: annotation(&state) } } }),
    );
    remove_grace(pod, &mut applied.patch);
    applied
}

/// The patch that forgets a change that waited.
pub fn drop_grace(pod: &Pod) -> Value {
    let mut patch = json!({});
    remove_grace(pod, &mut patch);
    patch
}

/// The patch of the next batch.
pub fn next_batch(pod: &Pod, mut state: UpdateState, now: Timestamp) -> Applied {
    let change = Change {
        container_images: std::mem::take(&mut state.next_container_images),
        container_ref_metadata: std::mem::take(&mut state.next_container_ref_metadata),
        container_resources: std::mem::take(&mut state.next_container_resources),
        ..Change::default()
    };
    let mut applied = apply(pod, &change, &mut state, now);
    merge(
        &mut applied.patch,
        json!({ "metadata": { "annotations": { labels::IN_PLACE_STATE: annotation(&state) } } }),
    );
    applied
}

fn remove_grace(pod: &Pod, patch: &mut Value) {
    for key in [labels::IN_PLACE_GRACE, labels::IN_PLACE_GRACE_OLD] {
        if pod::annotation(pod, key).is_some() {
            merge(patch, json!({ "metadata": { "annotations": { key: null } } }));
        }
    }
}

/// Patches the first batch of `change` and writes the rest down in `state`.
fn apply(pod: &Pod, change: &Change, state: &mut UpdateState, now: Timestamp) -> Applied {
    let batch = first_batch(pod, change);
    let mut patch = change.metadata_patch.clone().unwrap_or_else(|| json!({}));
    let mut containers = Vec::new();
    for container in pod::containers(pod) {
        let Some(image) = change.container_images.get(&container.name) else {
            continue;
        };
        if !batch.contains(&container.name) {
            state
                .next_container_images
                .insert(container.name.clone(), image.clone());
            continue;
        }
        containers.push(json!({ "name": container.name, "image": image }));
        let status = pod::container_statuses(pod)
            .iter()
            .find(|status| status.name == container.name);
        if let Some(status) = status {
            let last = state.last_container_statuses.get_or_insert_with(BTreeMap::new);
            last.insert(
                container.name.clone(),
                ContainerImage {
                    image_id: status.image_id.clone(),
                },
            );
        }
    }
    let mut resized = Vec::new();
    for (name, resources) in &change.container_resources {
        if batch.contains(name) {
            resized.push(json!({ "name": name, "resources": resources }));
        } else {
            state
                .next_container_resources
                .insert(name.clone(), resources.clone());
        }
    }
    for (name, refs) in &change.container_ref_metadata {
        if batch.contains(name) {
            merge(&mut patch, json!({ "metadata": refs_patch(refs) }));
        } else {
            state
                .next_container_ref_metadata
                .insert(name.clone(), refs.clone());
        }
    }
    if !containers.is_empty() {
        merge(&mut patch, json!({ "spec": { "containers": containers } }));
    }
    let names: Vec<String> = batch.into_iter().collect();
    let more = state.has_next();
    state.pre_check_before_next = more.then(|| PreCheck {
        containers_required_ready: names.clone(),
    });
    state.container_batches_record.push(Batch {
        timestamp: rfc3339(now),
        containers: names,
    });
    let resize = (!resized.is_empty()).then(|| json!({ "spec": { "containers": resized } }));
    Applied { patch, resize }
}

fn refs_patch(refs: &RefMetadata) -> Value {
    let mut patch = json!({});
    if !refs.labels.is_empty() {
        merge(&mut patch, json!({ "labels": refs.labels }));
    }
    if !refs.annotations.is_empty() {
        merge(&mut patch, json!({ "annotations": refs.annotations }));
    }
    patch
}

/// The containers to change now: those without a priority and those with the highest; and those that refer to a label or
/// annotation that changes with one of them.
fn first_batch(pod: &Pod, change: &Change) -> BTreeSet<String> {
    let mut batch = BTreeSet::new();
    let mut highest: Option<(i64, BTreeSet<String>)> = None;
    for container in pod::containers(pod) {
        let name = &container.name;
        if !change.container_images.contains_key(name)
            && !change.container_ref_metadata.contains_key(name)
            && !change.container_resources.contains_key(name)
        {
            continue;
        }
        match (priority_of(container), &mut highest) {
            (None, _) => {
                batch.insert(name.clone());
            }
            (Some(priority), Some((best, names))) if *best == priority => {
                names.insert(name.clone());
            }
            (Some(priority), Some((best, _))) if *best > priority => {}
            (Some(priority), slot) => *slot = Some((priority, BTreeSet::from([name.clone()]))),
        }
    }
    batch.extend(highest.map(|(_, names)| names).unwrap_or_default());
    loop {
        let shared: Vec<String> = change
            .container_ref_metadata
            .iter()
            .filter(|(name, _)| !batch.contains(*name))
            .filter(|(_, refs)| {
                batch
                    .iter()
                    .filter_map(|name| change.container_ref_metadata.get(name))
                    .any(|other| shares(refs, other))
            })
            .map(|(name, _)| name.clone())
            .collect();
        if shared.is_empty() {
            return batch;
        }
        batch.extend(shared);
    }
}

fn shares(one: &RefMetadata, other: &RefMetadata) -> bool {
    one.labels.keys().any(|key| other.labels.contains_key(key))
        || one
            .annotations
            .keys()
            .any(|key| other.annotations.contains_key(key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn pod(priorities: &[(&str, Option<&str>)]) -> Pod {
        let containers: Vec<Value> = priorities
            .iter()
            .map(|(name, priority)| {
                let barrier = |value| {
                    let key = json!({ "name": "web-barrier", "key": format!("p_{value}") });
                    json!([{ "name": "KRUISE_CONTAINER_BARRIER", "valueFrom": { "configMapKeyRef": key } }])
                };
                let env = priority.map(barrier);
                json!({ "name": name, "image": "old", "env": env })
            })
            .collect();
        let statuses: Vec<Value> = priorities
            .iter()
            .map(|(name, _)| json!({ "name": name, "image": "old", "imageID": format!("id-{name}"), "ready": true, "restartCount": 0 }))
            .collect();
        serde_json::from_value(json!({ "metadata": {}, "spec": { "containers": containers }, "status": { "containerStatuses": statuses } }))
            .unwrap()
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[rstest]
    #[case(&[("a", None), ("b", None)], &["a b"])]
    #[case(&[("a", Some("1")), ("b", Some("5")), ("c", Some("5"))], &["b c", "a"])]
    #[case(&[("a", Some("1")), ("b", None), ("c", Some("-1"))], &["a b", "c"])]
    #[case(&[("a", Some("0")), ("b", Some("-1")), ("c", Some("-2"))], &["a", "b", "c"])]
    fn batches_follow_priorities(#[case] priorities: &[(&str, Option<&str>)], #[case] want: &[&str]) {
        let pod = pod(priorities);
        let images = priorities
            .iter()
            .map(|(name, _)| ((*name).to_owned(), "new".to_owned()))
            .collect();
        let mut patch = begin(
            &pod,
            &Change {
                container_images: images,
                ..Change::default()
            },
            at(0),
        )
        .patch;
        let mut got = Vec::new();
        loop {
            let names: Vec<&str> = patch["spec"]["containers"]
                .as_array()
                .unwrap()
                .iter()
                .map(|c| c["name"].as_str().unwrap())
                .collect();
            got.push(names.join(" "));
            let text = patch["metadata"]["annotations"][labels::IN_PLACE_STATE]
                .as_str()
                .unwrap();
            let state: UpdateState = serde_json::from_str(text).unwrap();
            if state.next_container_images.is_empty() {
                assert!(state.pre_check_before_next.is_none());
                assert_eq!(state.container_batches_record.len(), want.len());
                break;
            }
            assert!(state.pre_check_before_next.is_some());
            patch = next_batch(&pod, state, at(1)).patch;
        }
        assert_eq!(got, want);
    }

    #[test]
    fn a_grace_period_comes_first() {
        let pod = pod(&[("a", None)]);
        let change = Change {
            revision: "r".to_owned(),
            container_images: BTreeMap::from([("a".to_owned(), "new".to_owned())]),
            grace_seconds: 3,
            ..Change::default()
        };
        let patch = begin(&pod, &change, at(0)).patch;
        assert!(patch.get("spec").is_none(), "{patch}");
        let waiting = patch["metadata"]["annotations"][labels::IN_PLACE_GRACE]
            .as_str()
            .unwrap();
        assert_eq!(
            waiting,
            r#"{"revision":"r","containerImages":{"a":"new"},"graceSeconds":3}"#
        );
        let patch = after_grace(&pod, &change, UpdateState::default(), at(3)).patch;
        assert_eq!(
            patch["spec"]["containers"],
            json!([{ "name": "a", "image": "new" }])
        );
    }
}
