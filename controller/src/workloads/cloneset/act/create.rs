//! Creating pods with their claims.

use client_kit::EventType;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::ResourceExt;
use serde_json::Value;

use super::objects::Actor;
use crate::api::v1alpha1::CloneSet;
use crate::kit::ObjectKey;
use crate::kit::{ActError, Kind, OnFailure, in_batches};
use crate::template::to_go_json;
use crate::workloads::cloneset::expectations::{Expected, Member};
use crate::workloads::cloneset::observe::{Revision, Revisions};
use crate::workloads::cloneset::{build, ids};

/// What to create.
pub(super) struct Creation<'a> {
    pub(super) count: i32,
    pub(super) of_current: i32,
    pub(super) reuse_ids: &'a [String],
    pub(super) taken_ids: &'a [String],
    pub(super) existing_claims: &'a [String],
    pub(super) short_hash: bool,
}

impl Actor {
    /// Creates pods, the first ones of the current revision, in batches that double: should something be wrong with
    /// them, only few requests fail.
    pub(super) async fn create_pods(
        &self,
        set: &CloneSet,
        revisions: &Revisions,
        creation: &Creation<'_>,
    ) -> Result<(), ActError> {
        let key = ObjectKey::of(set);
        let prefix = format!("{}-", key.name);
        let count = usize::try_from(creation.count).unwrap_or(0);
        let of_current = usize::try_from(creation.of_current).unwrap_or(0);
        let ids = ids::pick(
            count,
            creation.reuse_ids,
            creation.taken_ids,
            &prefix,
            self.names.as_ref(),
        );
        let pods: Vec<(String, &Revision)> = ids
            .into_iter()
            .enumerate()
            .map(|(at, id)| {
                (
                    id,
                    if at < of_current {
                        &revisions.current
                    } else {
                        &revisions.update
                    },
                )
            })
            .collect();
        for (id, _) in &pods {
            self.expectations
                .expect(&key, Expected::Creation, Member::Pod(build::pod_name(set, id)));
        }
        let results = in_batches(&pods, OnFailure::Stop, |(id, revision)| {
            self.create_pod(set, revision, id, creation)
        })
        .await;
        for (id, _) in &pods[results.len()..] {
            self.expectations
                .settle(&key, Expected::Creation, Member::Pod(build::pod_name(set, id)));
        }
        results.into_iter().collect()
    }

    async fn create_pod(
        &self,
        set: &CloneSet,
        revision: &Revision,
        id: &str,
        creation: &Creation<'_>,
    ) -> Result<(), ActError> {
        let key = ObjectKey::of(set);
        let name = build::pod_name(set, id);
        let member = Member::Pod(name.clone());
        for claim in build::claims(set, id) {
            if let Err(error) = self.create_claim(set, &claim, creation).await {
                self.expectations.settle(&key, Expected::Creation, member);
                return Err(error);
            }
        }
        let pod = build::pod(set, revision, id, creation.short_hash, self.clock.now());
        let result = match self.create::<Pod>(&key.namespace, &pod).await {
            Ok(_) => Ok(()),
            Err(error) if error.kind == Kind::Unknown => self.find_own(set, &name, error).await,
            Err(error) => Err(error),
        };
        match result {
            Ok(()) => {
                self.event(
                    set,
                    EventType::Normal,
                    "SuccessfulCreate",
                    format!("succeed to create pod {name}"),
                );
                Ok(())
            }
            Err(error) => {
                self.unmet(&key, Expected::Creation, member, &error);
                let message = format!("failed to create pod: {error}, pod: {}", to_go_json(&pod));
                self.event(set, EventType::Warning, "FailedCreate", message);
                Err(error)
            }
        }
    }

    /// What became of a pod whose creation ended in `error`, which leaves that open: `Ok` if it exists and is the set's, the error as
    /// one of a refusal if it is not, and as it is if the server does not say. To create another one meanwhile would be one too many.
    async fn find_own(&self, set: &CloneSet, name: &str, error: ActError) -> Result<(), ActError> {
        let Ok(found) = self.api::<Pod>(&ObjectKey::of(set)).get_opt(name).await else {
            return Err(error);
        };
        let own = found.is_some_and(|pod| {
            pod.owner_references()
                .iter()
                .any(|owner| Some(&owner.uid) == set.uid().as_ref())
        });
        if own {
            return Ok(());
        }
        Err(ActError {
            kind: Kind::Refused,
            ..error
        })
    }

    async fn create_claim(
        &self,
        set: &CloneSet,
        claim: &Value,
        creation: &Creation<'_>,
    ) -> Result<(), ActError> {
        let key = ObjectKey::of(set);
        let name = claim
            .pointer("/metadata/name")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        if creation.existing_claims.contains(&name) {
            return Ok(());
        }
        let member = Member::Claim(name);
        self.expectations.expect(&key, Expected::Creation, member.clone());
        let result = self.create::<PersistentVolumeClaim>(&key.namespace, claim).await;
        result.map(drop).map_err(|error| {
            self.unmet(&key, Expected::Creation, member, &error);
            let message = format!("failed to create pvc: {error}, pvc: {}", to_go_json(claim));
            self.event(set, EventType::Warning, "FailedCreate", message);
            error
        })
    }
}
