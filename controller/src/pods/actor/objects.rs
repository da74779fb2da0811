//! The actor: it makes requests and records events for owners.

use std::sync::Arc;

use client_kit::{EventRecorder, EventType, SharedClock, SharedNames};
use kube::api::{Api, PatchParams, PostParams};
use kube::{Client, Resource};
use serde_json::Value;

use super::refusals::Refusals;
use super::words::Words;
use crate::kit::expectations::{Expectations, Expected, Member};
use crate::kit::{ActError, Kind, ObjectKey, Owner, requests};
use crate::pods::PodRef;
use crate::pods::leave::Leave;

/// Acts for owners: writes objects, records events, and tells the expectations.
#[derive(Clone)]
pub(crate) struct Actor {
    pub(crate) client: Client,
    pub(crate) recorder: EventRecorder,
    pub(crate) expectations: Arc<Expectations>,
    pub(crate) names: SharedNames,
    pub(crate) clock: SharedClock,
    pub(crate) words: &'static Words,
    /// Gives pods leave to go out of service; without it, all of them have it.
    pub(crate) leave: Option<Arc<dyn Leave>>,
    /// Updates in place that the server refused.
    pub(crate) refusals: Arc<Refusals>,
}

impl Actor {
    /// Records an event about `owner`.
    pub(crate) fn event(&self, owner: &Owner, kind: EventType, reason: &str, message: String) {
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
    pub(crate) fn api<K>(&self, key: &ObjectKey) -> Api<K>
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
