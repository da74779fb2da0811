//! Creating pods with their claims.

use client_kit::EventType;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kruise_kit::expectations::{Expected, Member};
use kruise_kit::{ActError, Kind, OnFailure, Owner, in_batches};
use serde_json::Value;

use super::objects::Actor;
use crate::build::{self, Blueprint, NewPod};

/// Pods to create.
pub struct Creation<'a> {
    /// The blueprint that the pods have in common.
    pub blueprint: Blueprint<'a>,
    /// The pods.
    pub pods: Vec<NewPod<'a>>,
    /// The claims that exist.
    pub claims: KnownClaims<'a>,
}

/// The claims that exist when pods are created.
#[derive(Debug, Clone, Copy)]
pub struct KnownClaims<'a> {
    /// The names of all of them.
    pub existing: &'a [String],
    /// The names of those that are being deleted, as far as pods wait for that.
    pub ending: &'a [String],
}

impl KnownClaims<'_> {
    /// Those of pods that have no claims.
    pub const NONE: Self = Self {
        existing: &[],
        ending: &[],
    };
}

impl Actor {
    /// Creates pods in batches that double: should something be wrong with them, only few requests fail.
    ///
    /// # Errors
    /// The first failure, after which no further batch begins.
    pub async fn create_pods(&self, creation: &Creation<'_>) -> Result<(), ActError> {
        self.try_to_create_pods(creation).await.into_iter().collect()
    }

    /// The same; gives the result of each pod that was tried, in their order.
    pub async fn try_to_create_pods(&self, creation: &Creation<'_>) -> Vec<Result<(), ActError>> {
        let owner = creation.blueprint.owner;
        let key = &owner.key;
        let member = |id: &str| Member::Pod(build::pod_name(owner, id));
        for pod in &creation.pods {
            self.expectations.expect(key, Expected::Creation, member(&pod.id));
        }
        let results = in_batches(&creation.pods, OnFailure::Stop, |pod| {
            self.create_pod(pod, creation)
        })
        .await;
        for pod in &creation.pods[results.len()..] {
            self.expectations.settle(key, Expected::Creation, member(&pod.id));
        }
        results
    }

    async fn create_pod(&self, new: &NewPod<'_>, creation: &Creation<'_>) -> Result<(), ActError> {
        let owner = creation.blueprint.owner;
        let key = &owner.key;
        let name = build::pod_name(owner, &new.id);
        let member = Member::Pod(name.clone());
        let claims = self
            .create_claims(&creation.blueprint, &new.id, creation.claims)
            .await;
        let pod = build::pod(&creation.blueprint, new, self.clock.now());
        if let Err(error) = claims {
            self.expectations.settle(key, Expected::Creation, member);
            if creation.blueprint.identity.is_ordinal() {
                self.not_created(owner, &name, &pod, &error);
            }
            return Err(error);
        }
        let result = match self.create::<Pod>(&key.namespace, &pod).await {
            Ok(_) => Ok(()),
            Err(error) if error.kind == Kind::Unknown => self.find_own(owner, &name, error).await,
            Err(error) => Err(error),
        };
        match result {
            Ok(()) => {
                let message = (self.words.created)(owner, &name);
                self.event(owner, EventType::Normal, "SuccessfulCreate", message);
                Ok(())
            }
            Err(error) => {
                self.unmet(key, Expected::Creation, member, &error);
                self.not_created(owner, &name, &pod, &error);
                Err(error)
            }
        }
    }

    /// Records that a pod could not be created.
    fn not_created(&self, owner: &Owner, name: &str, pod: &Value, error: &ActError) {
        if let Some(message) = (self.words.not_created)(owner, name, pod, error) {
            self.event(owner, EventType::Warning, "FailedCreate", message);
        }
    }

    /// The outcome for a pod whose creation ended in `error`, which leaves that open: `Ok` if it exists and is the set's, the error as
    /// one of a refusal if it is not, and as it is if the server does not say. To create another one meanwhile would be one too many.
    async fn find_own(&self, owner: &Owner, name: &str, error: ActError) -> Result<(), ActError> {
        let Ok(found) = self.api::<Pod>(&owner.key).get_opt(name).await else {
            return Err(error);
        };
        let own = found.is_some_and(|pod| owner.owns(&pod.metadata));
        if own {
            return Ok(());
        }
        Err(ActError {
            kind: Kind::Refused,
            ..error
        })
    }

    /// Creates the claims of a pod that are not there. The claims of an ordinal are all tried; those of an id up to the first
    /// failure.
    ///
    /// # Errors
    /// Those of the requests, and `pvc NAME is to be deleted` for a claim of that name that is being deleted.
    pub async fn create_claims(
        &self,
        blueprint: &Blueprint<'_>,
        id: &str,
        known: KnownClaims<'_>,
    ) -> Result<(), ActError> {
        let name = build::pod_name(blueprint.owner, id);
        let mut errors = Vec::new();
        for claim in build::claims(blueprint, id) {
            let created = self.create_claim(blueprint.owner, &name, &claim, known).await;
            errors.extend(created.err());
            if !errors.is_empty() && !blueprint.identity.is_ordinal() {
                break;
            }
        }
        ActError::joined(errors)
    }

    async fn create_claim(
        &self,
        owner: &Owner,
        pod: &str,
        claim: &Value,
        known: KnownClaims<'_>,
    ) -> Result<(), ActError> {
        let key = &owner.key;
        let name = claim
            .pointer("/metadata/name")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        if known.ending.contains(&name) {
            return Err(ActError::planned(&format!("pvc {name} is to be deleted")));
        }
        if known.existing.contains(&name) {
            return Ok(());
        }
        let member = Member::Claim(name.clone());
        // A claim without an owner wakes nobody, so nothing can be expected of it.
        let is_owned = claim.pointer("/metadata/ownerReferences").is_some();
        if is_owned {
            self.expectations.expect(key, Expected::Creation, member.clone());
        }
        let result = self.create::<PersistentVolumeClaim>(&key.namespace, claim).await;
        match result {
            Ok(_) => {
                if let Some(message) = (self.words.claim_created)(owner, pod, &name) {
                    self.event(owner, EventType::Normal, "SuccessfulCreate", message);
                }
                Ok(())
            }
            Err(error) if !is_owned && error.kind == Kind::AlreadyExists => Ok(()),
            Err(error) => {
                self.unmet(key, Expected::Creation, member, &error);
                let message = (self.words.claim_not_created)(owner, pod, claim, &error);
                self.event(owner, EventType::Warning, "FailedCreate", message);
                Err(error)
            }
        }
    }
}
