//! One action.

use std::collections::BTreeMap;

use client_kit::EventType;
use k8s_openapi::api::storage::v1::StorageClass;
use kube::Api;
use serde_json::{Value, json};

use crate::api::labels;
use crate::api::v1beta1::{StatefulSet, StatefulSetStatus};
use crate::kit::{ActError, ObjectKey, OnFailure, Owner, in_batches, requests};
use crate::pods::actor::{Actor, Creation, KnownClaims};
use crate::pods::build::{Blueprint, Identity, NewPod};
use crate::pods::{PodAction, Revisions};
use crate::workloads::statefulset::gates::Gates;
use crate::workloads::statefulset::plan::{Action, FAILED_CREATE, FAILED_UPDATE, Which};

/// Does the actions of one pass over a set.
pub(in crate::workloads::statefulset) struct Performer<'a> {
    pub(in crate::workloads::statefulset) actor: &'a Actor,
    pub(in crate::workloads::statefulset) set: &'a StatefulSet,
    pub(in crate::workloads::statefulset) revisions: &'a Revisions,
    pub(in crate::workloads::statefulset) gates: Gates,
    /// The claims that are there.
    pub(in crate::workloads::statefulset) claims: KnownClaims<'a>,
}

/// A failure, and the condition that it becomes, if it becomes one.
pub(in crate::workloads::statefulset) type Failed = (ActError, Option<&'static str>);

impl Performer<'_> {
    /// Performs `action`.
    ///
    /// # Errors
    /// Those of the requests, and the failure that the action says.
    pub(in crate::workloads::statefulset) async fn perform(&self, action: &Action) -> Result<(), Failed> {
        let owner = Owner::of(self.set);
        match action {
            Action::Pod(action) => self.one(&owner, action).await.map_err(|error| (error, None)),
            Action::Create { ordinal, revision } => {
                let revision = match revision {
                    Which::Current => &self.revisions.current,
                    Which::Update => &self.revisions.update,
                };
                let creation = Creation {
                    blueprint: self.blueprint(&owner),
                    pods: vec![NewPod {
                        id: ordinal.to_string(),
                        revision,
                        node: "",
                    }],
                    claims: self.claims,
                };
                let created = self.actor.create_pods(&creation).await;
                created.map_err(|error| (error, Some(FAILED_CREATE)))
            }
            Action::CreateClaims { ordinal } => {
                let blueprint = self.blueprint(&owner);
                let id = ordinal.to_string();
                let created = self.actor.create_claims(&blueprint, &id, self.claims).await;
                created.map_err(|error| (error, None))
            }
            Action::GrowClaim {
                claim,
                pod,
                class,
                resources,
            } => {
                let grown = self.grow(&owner, claim, class, resources).await;
                let set = &owner.key.name;
                let (kind, reason, message) = match &grown {
                    Ok(()) => (
                        EventType::Normal,
                        "SuccessfulResize",
                        format!("resize Claim {claim} Pod {pod} in StatefulSet {set} success"),
                    ),
                    Err(error) => (
                        EventType::Warning,
                        "FailedResize",
                        format!(
                            "resize Claim {claim} for Pod {pod} in StatefulSet {set} failed error: {error}"
                        ),
                    ),
                };
                self.actor.event(&owner, kind, reason, message);
                grown.map_err(|error| (error, None))
            }
            Action::Identify { patch, name } => {
                let (pod, set) = (name, &owner.key.name);
                match self.one(&owner, patch).await {
                    Ok(()) => {
                        let message = format!("update Pod {pod} in StatefulSet {set} successful");
                        self.actor
                            .event(&owner, EventType::Normal, "SuccessfulUpdate", message);
                        Ok(())
                    }
                    Err(error) => {
                        let message = format!("update Pod {pod} in StatefulSet {set} failed error: {error}");
                        self.actor
                            .event(&owner, EventType::Warning, "FailedUpdate", message);
                        Err((error, Some(FAILED_UPDATE)))
                    }
                }
            }
            Action::Batches(all) => {
                let results = in_batches(all, OnFailure::Stop, |actions| self.all(&owner, actions)).await;
                let result: Result<(), ActError> = results.into_iter().collect();
                result.map_err(|error| (error, None))
            }
        }
    }

    /// Has a claim ask for more, if its class of storage allows that.
    async fn grow(&self, owner: &Owner, claim: &str, class: &str, resources: &Value) -> Result<(), ActError> {
        let classes: Api<StorageClass> = Api::all(self.actor.client.clone());
        let allows = classes.get(class).await?.allow_volume_expansion;
        if allows != Some(true) {
            let message = format!("storage class {class} for {claim} does not support volume expansion");
            return Err(ActError::planned(&message));
        }
        let patch = json!({
            "metadata": { "annotations": { labels::OWNED_BY_STATEFUL_SET: owner.key.name } },
            "spec": { "resources": resources },
        });
        let action = PodAction::PatchClaim {
            claim: claim.to_owned(),
            patch,
        };
        self.one(owner, &action).await
    }

    async fn one(&self, owner: &Owner, action: &PodAction) -> Result<(), ActError> {
        self.actor.perform(owner, action).await
    }

    async fn all(&self, owner: &Owner, actions: &[PodAction]) -> Result<(), ActError> {
        for action in actions {
            self.one(owner, action).await?;
        }
        Ok(())
    }

    fn blueprint<'b>(&'b self, owner: &'b Owner) -> Blueprint<'b> {
        static NONE: BTreeMap<String, String> = BTreeMap::new();
        let spec = &self.set.spec;
        Blueprint {
            owner,
            claim_templates: spec.claim_templates(),
            claim_labels: spec.selector.match_labels.as_ref().unwrap_or(&NONE),
            identity: Identity::Ordinal {
                subdomain: spec.service_name.as_deref().unwrap_or_default(),
                index_label: self.gates.index_label,
                pre_normal: spec
                    .lifecycle
                    .as_ref()
                    .and_then(|lifecycle| lifecycle.pre_normal.as_ref()),
            },
        }
    }
}

/// Writes the status.
pub(in crate::workloads::statefulset) async fn write_status(
    actor: &Actor,
    set: &StatefulSet,
    status: &StatefulSetStatus,
) -> Result<(), ActError> {
    let api = actor.api::<StatefulSet>(&ObjectKey::of(set));
    requests::write_status(&api, set, |latest| latest.status = Some(status.clone())).await?;
    Ok(())
}
