//! The actor: it makes requests and records events for owners.

use std::sync::Arc;

use client_kit::{EventRecorder, EventType, SharedClock, SharedNames};
use kruise_kit::expectations::{Expectations, Expected, Member};
use kruise_kit::{ActError, Kind, ObjectKey, Owner, requests};
use kube::api::{Api, PatchParams, PostParams};
use kube::{Client, Resource};
use serde_json::Value;

use super::refusals::Refusals;
use super::words::Words;
use crate::PodRef;
use crate::leave::Leave;

/// Acts for owners: writes objects, records events, and tells the expectations.
#[derive(Clone)]
pub struct Actor {
    /// The client that it writes with.
    pub client: Client,
    /// Where its events go.
    pub recorder: EventRecorder,
    /// What it has written and the caches have not shown yet.
    pub expectations: Arc<Expectations>,
    /// Where the ids of new pods come from.
    pub names: SharedNames,
    /// Where the time comes from.
    pub clock: SharedClock,
    /// The texts of its events.
    pub words: &'static Words,
    /// Gives pods leave to go out of service; without it, all of them have it.
    pub leave: Option<Arc<dyn Leave>>,
    /// Updates in place that the server refused.
    pub refusals: Arc<Refusals>,
}

impl Actor {
    /// Records an event about `owner`.
    pub fn event(&self, owner: &Owner, kind: EventType, reason: &str, message: String) {
        self.recorder.event(&owner.subject(), kind, reason, message);
    }

    /// An expectation ended in `error`: it will not be seen, or, where the error leaves that open, the server has to be asked.
    pub(super) fn unmet(&self, key: &ObjectKey, expected: Expected, member: Member, error: &ActError) {
        match error.kind {
            Kind::Unknown => self.expectations.doubt(key, expected, member),
            _ => self.expectations.settle(key, expected, member),
        }
    }

    /// Asks for leave for a pod.
    pub(super) async fn ask_leave(&self, owner: &Owner, pod: &PodRef) -> Result<(), ActError> {
        let Some(leave) = &self.leave else { return Ok(()) };
        match leave.ask(&owner.key.namespace, pod).await? {
            true => Ok(()),
            false => Err(ActError::withheld(&pod.name)),
        }
    }

    /// The objects of a kind in a namespace.
    pub fn api<K>(&self, key: &ObjectKey) -> Api<K>
    where
        K: Resource<Scope = kube::core::NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), &key.namespace)
    }

    /// Creates an object as it is written, field by field.
    pub(super) async fn create<K>(&self, namespace: &str, object: &Value) -> Result<Value, ActError>
    where
        K: Resource<DynamicType = ()>,
    {
        requests::create::<K>(&self.client, namespace, &PostParams::default(), object).await
    }
}

/// The parameters of patches.
pub(super) fn patch_params() -> PatchParams {
    PatchParams::default()
}
