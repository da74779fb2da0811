//! Changes a pod for the sets that it gets.

use std::borrow::Borrow;
use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::container::{self, Around};
use super::merge::{self, Injected, by_name, name, texts};
use super::{annotations, hot, metadata};
use crate::api::v1beta1::{SidecarContainer, SidecarSet};
use crate::pods::lifecycle::rfc3339;

/// How injection is done.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ways {
    /// Whether containers are put in order of their names over all sets.
    pub(crate) sort_containers: bool,
    /// When.
    pub(crate) now: Timestamp,
}

/// The parts that all sets give to a pod.
#[derive(Default)]
struct Gifts {
    inits: Vec<Injected>,
    containers: Vec<Injected>,
    volumes: Vec<Value>,
    secrets: Vec<Value>,
}

/// Fills the sets into a new pod, in this order.
///
/// # Errors
/// The text with which the pod is refused.
pub(crate) fn inject(pod: &mut Value, sets: &[impl Borrow<SidecarSet>], ways: Ways) -> Result<(), String> {
    if sets.is_empty() {
        return Ok(());
    }
    let sets: Vec<&SidecarSet> = sets.iter().map(Borrow::borrow).collect();
    let sets = &sets[..];
    let labels = texts(pod, "labels");
    let mut notes = texts(pod, "annotations");
    for set in sets {
        metadata::patch(set.spec.patches(), &mut notes)?;
    }
    let list = |field: &str| {
        pod.pointer(&format!("/spec/{field}"))
            .and_then(Value::as_array)
            .cloned()
    };
    let (inits, containers) = (
        list("initContainers").unwrap_or_default(),
        list("containers").unwrap_or_default(),
    );
    let around = Around {
        containers: &containers,
        resource_targets: resource_targets(&inits, &containers, sets),
        labels: &labels,
        annotations: &notes,
    };
    let mut gifts = gifts(sets, &around)?;
    gifts
        .inits
        .sort_by(|one, other| name(&one.container).cmp(name(&other.container)));
    if ways.sort_containers {
        gifts
            .containers
            .sort_by(|one, other| name(&one.container).cmp(name(&other.container)));
    }
    let hot: Vec<&SidecarContainer> = sets
        .iter()
        .flat_map(|set| set.spec.inits().iter().chain(set.spec.sidecars()))
        .collect();
    hot::annotations(&hot, &mut notes);
    annotations::add(sets, &rfc3339(ways.now), &mut notes).map_err(|error| {
        let text = |field: &str| pod.pointer(field).and_then(Value::as_str).unwrap_or_default();
        format!(
            "pod({}/{}) {error}",
            text("/metadata/namespace"),
            text("/metadata/name")
        )
    })?;
    write(pod, gifts);
    if let Some(meta) = pod.get_mut("metadata").and_then(Value::as_object_mut) {
        let notes = notes.into_iter().map(|(key, note)| (key, Value::String(note)));
        meta.insert("annotations".to_owned(), notes.collect());
    }
    Ok(())
}

/// The pod's containers whose resources count for policies.
fn resource_targets<'a>(inits: &'a [Value], containers: &'a [Value], sets: &[&SidecarSet]) -> Vec<&'a Value> {
    let of_sets: BTreeSet<&str> = sets
        .iter()
        .flat_map(|set| set.spec.inits().iter().chain(set.spec.sidecars()))
        .map(SidecarContainer::name)
        .collect();
    let native = inits
        .iter()
        .filter(|init| init.get("restartPolicy").and_then(Value::as_str) == Some("Always"));
    native
        .chain(containers)
        .filter(|container| !of_sets.contains(name(container)))
        .collect()
}

fn gifts(sets: &[&SidecarSet], around: &Around<'_>) -> Result<Gifts, String> {
    let mut gifts = Gifts::default();
    for set in sets {
        for init in set.spec.inits() {
            gifts.inits.extend(made(init, set, around, &mut gifts.volumes)?);
        }
        for sidecar in set.spec.sidecars() {
            gifts
                .containers
                .extend(made(sidecar, set, around, &mut gifts.volumes)?);
        }
        let secrets = set.spec.image_pull_secrets.iter().flatten();
        gifts
            .secrets
            .extend(secrets.map(|secret| json!({ "name": secret.name })));
    }
    Ok(gifts)
}

/// The containers that one of a set becomes. The set's volumes that it uses are added to `volumes`.
fn made(
    sidecar: &SidecarContainer,
    set: &SidecarSet,
    around: &Around<'_>,
    volumes: &mut Vec<Value>,
) -> Result<Vec<Injected>, String> {
    let container = container::made(sidecar, around)?;
    for wanted in container::volumes(sidecar) {
        let volume = set
            .spec
            .volume_list()
            .iter()
            .find(|volume| name(volume) == wanted);
        volumes.extend(volume.cloned());
    }
    let containers = match sidecar.is_hot() {
        true => hot::pair(sidecar, &container).to_vec(),
        false => vec![container],
    };
    let before = sidecar.is_before();
    Ok(containers
        .into_iter()
        .map(|container| Injected { container, before })
        .collect())
}

fn write(pod: &mut Value, gifts: Gifts) {
    let Some(spec) = pod.get_mut("spec") else { return };
    for (field, injected) in [("initContainers", gifts.inits), ("containers", gifts.containers)] {
        if !injected.is_empty()
            && let Some(own) = merge::list(spec, field)
        {
            merge::containers(own, injected);
        }
    }
    for (field, injected) in [("volumes", gifts.volumes), ("imagePullSecrets", gifts.secrets)] {
        if !injected.is_empty()
            && let Some(own) = merge::list(spec, field)
        {
            by_name(own, injected);
        }
    }
}
