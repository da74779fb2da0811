//! The webhook of pods that go: each gives its place in its subset away. It refuses nothing on its own account.

use client_kit::Seed;
use kube::{Api, ResourceExt as _};
use serde::Deserialize as _;
use serde_json::Value;

use super::choose::{Moving, go, has_one_subset, has_ordinals};
use super::find::{replicas, white_list};
use super::matched::Matched;
use super::{GATE, room, version};
use crate::api::labels;
use crate::api::v1alpha1::WorkloadSpread;
use crate::kit::admission::{Refusal, Request};
use crate::kit::{ActError, Desk, Informer, ObjectKey, controller_of};
use crate::pods::CachedPod;
use crate::pods::pod;
use crate::targets::Lookup;

/// Records a pod that is to be deleted or evicted.
///
/// # Errors
/// The refusal of a request that could not be recorded.
pub(in crate::injection) async fn record(request: &Request<'_>) -> Result<(), Refusal> {
    let surroundings = request.surroundings;
    if !surroundings.gates.is_on(GATE) {
        return Ok(());
    }
    let Some(pod) = subject(request).await? else {
        return Ok(());
    };
    let Some(matched) = Matched::of(&pod) else {
        return Ok(());
    };
    let Some(owner) = controller_of(&pod.metadata).filter(|_| pod::is_active(&pod)) else {
        return Ok(());
    };
    let spreads: Informer<WorkloadSpread> = surroundings.cache().await?;
    let namespace = pod.namespace().unwrap_or_default();
    let Some(spread) = spreads.get(&ObjectKey::new(&namespace, &matched.name)) else {
        return Ok(());
    };
    let Some(client) = &surroundings.client else {
        return Ok(());
    };
    if has_one_subset(&spread) || has_ordinals(&spread) {
        return Ok(());
    }
    let list = &white_list(surroundings).await;
    let lookup = &Lookup::shared(client.clone(), &surroundings.shared);
    let moving = Moving {
        name: pod::name(&pod),
        version: version::of(&owner.kind, pod::all_labels(&pod)),
        replicas: 0,
        seed: Seed(0).fork(request.uid),
        now: surroundings.clock.now(),
    };
    let (subset, namespace) = (&*matched.subset, &*namespace);
    let decide = |mut current: WorkloadSpread| async move {
        let replicas = match room::depends(&current) {
            true => replicas(&current, (namespace, list, Some(lookup))).await,
            false => Ok(0),
        };
        let replicas = replicas.map_err(|message| ActError::planned(&message))?;
        let changed = go(&current, subset, Moving { replicas, ..moving }).map(|status| {
            current.status = Some(status);
            current
        });
        Ok::<_, ActError>((changed, ()))
    };
    let desk = surroundings.shared.of::<Desk<WorkloadSpread>>();
    let api = Api::namespaced(client.clone(), namespace);
    let written = desk.write(&api, &spread, moving.seed, decide).await;
    written.map(drop).map_err(|error| Refusal::new(400, error))
}

/// Whether a pod has a subset.
fn is_placed(pod: &Value) -> bool {
    let annotations = pod.pointer("/metadata/annotations");
    annotations.is_some_and(|notes| notes.get(labels::MATCHED_SPREAD).is_some())
}

/// The pod that goes; none if the request only tries that out, or is about something else.
async fn subject(request: &Request<'_>) -> Result<Option<CachedPod>, Refusal> {
    let refused = |message: String| Refusal::new(400, message);
    match (request.operation, request.subresource) {
        ("DELETE", "") if !request.dry_run => {
            let pod = request
                .old
                .filter(|old| is_placed(old))
                .map(CachedPod::deserialize)
                .transpose();
            pod.map_err(|error| refused(error.to_string()))
        }
        ("CREATE", "eviction") => {
            let options = request
                .object
                .and_then(|eviction| eviction.pointer("/deleteOptions/dryRun"));
            if options
                .and_then(Value::as_array)
                .is_some_and(|values| !values.is_empty())
            {
                return Ok(None);
            }
            let key = ObjectKey::new(request.namespace, request.name);
            let found = request
                .surroundings
                .object::<CachedPod>(&key)
                .await
                .map_err(refused)?;
            let missing = || refused(format!("Pod {:?} not found", request.name));
            found.map(Some).ok_or_else(missing)
        }
        _ => Ok(None),
    }
}
