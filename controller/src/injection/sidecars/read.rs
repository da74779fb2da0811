//! Finds the sets of a new pod.

use std::sync::Arc;

use client_kit::Seed;
use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};
use serde_json::Value;

use super::history::{of_revision, wanted};
use super::inject::{Ways, inject};
use super::merge::texts;
use super::selection::{Labels, is_for, named_namespaces};
use crate::api::labels;
use crate::api::v1beta1::{SidecarSet, SidecarSetInjectRevision};
use crate::kit::admission::{Refusal, Request, Surroundings};
use crate::kit::{Informer, ObjectKey};

/// The gate that puts containers in order of their names.
const SORT: &str = "EnableSortSidecarContainerByName";

/// Fills the sets that select a new pod into it.
///
/// # Errors
/// The refusal of the pod.
pub(in crate::injection) async fn mutate(pod: &mut Value, request: &Request<'_>) -> Result<(), Refusal> {
    let surroundings = request.surroundings;
    let text = |pointer: &str| pod.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let is_over = matches!(text("/status/phase"), "Succeeded" | "Failed");
    if is_over || !text("/metadata/deletionTimestamp").is_empty() {
        return Ok(());
    }
    let sets: Informer<SidecarSet> = surroundings.cache().await?;
    let sets = sets.all();
    if sets.is_empty() {
        return Ok(());
    }
    let namespace = match text("/metadata/namespace") {
        "" => request.namespace,
        namespace => namespace,
    };
    let namespaces: Informer<Namespace> = surroundings.cache().await?;
    let namespace_labels = namespaces
        .get(&ObjectKey::new("", namespace))
        .map(|found| found.labels().clone());
    let pod_labels = texts(pod, "labels");
    // Sets that name their namespaces come first.
    let names = |set: &SidecarSet| {
        named_namespaces(set.spec.namespace_selector.as_ref()).map(|names| names.contains(&namespace))
    };
    let (named, others): (Vec<_>, Vec<_>) = sets
        .iter()
        .filter(|set| names(set) != Some(false))
        .partition(|set| names(set) == Some(true));
    let mut found = Vec::new();
    for set in named.into_iter().chain(others) {
        let is_for = is_for(set, &pod_labels, namespace_labels.as_ref());
        if is_for.map_err(|message| Refusal::new(500, message))? {
            found.push(version(set, &pod_labels, request).await?);
        }
    }
    let ways = Ways {
        sort_containers: surroundings.gates.is_on(SORT),
        now: surroundings.clock.now(),
    };
    inject(pod, &found, ways).map_err(|message| Refusal::new(500, message))
}

/// The set as the pod gets it: as it is, or as it was in a revision.
async fn version(
    set: &Arc<SidecarSet>,
    pod: &Labels,
    request: &Request<'_>,
) -> Result<Arc<SidecarSet>, Refusal> {
    let name = set.name_any();
    // Each review has a uid of its own.
    let percent = || Seed(0).fork(request.uid).fork(&name).random().between(1, 100);
    let refused = |message: String| Refusal::new(500, message);
    let Some(revision) = wanted(set, pod, percent).map_err(refused)? else {
        return Ok(Arc::clone(set));
    };
    let found = find(request.surroundings, &name, revision)
        .await
        .map_err(refused)?;
    let data = found.data.as_ref().map(|data| &data.0).unwrap_or(&Value::Null);
    let old = of_revision(set, &found.name_any(), data, found.metadata.annotations.as_ref());
    old.map(Arc::new).map_err(refused)
}

/// The revision of a set by its name or its custom version. Names need not be those of the set's own revisions.
///
/// # Errors
/// That there is none, or the error of the request.
pub(crate) async fn find(
    surroundings: &Surroundings,
    set: &str,
    wanted: &SidecarSetInjectRevision,
) -> Result<ControllerRevision, String> {
    let missing = |name: &str| format!("ControllerRevision.apps {name:?} not found");
    if let Some(name) = &wanted.revision_name {
        let key = ObjectKey::new(&surroundings.namespace, name);
        return surroundings.object(&key).await?.ok_or_else(|| missing(name));
    }
    let Some(client) = &surroundings.client else {
        return Err(missing(set));
    };
    let api: Api<ControllerRevision> = Api::namespaced(client.clone(), &surroundings.namespace);
    let version = wanted.custom_version.as_deref().unwrap_or_default();
    let selector = format!(
        "{}={set},{}={version}",
        labels::SIDECARS_NAME,
        labels::SIDECARS_CUSTOM_VERSION
    );
    let list = api.list(&ListParams::default().labels(&selector)).await;
    let list = list.map_err(|error| error.to_string())?;
    list.items
        .into_iter()
        .max_by_key(|revision| revision.revision)
        .ok_or_else(|| missing(set))
}
