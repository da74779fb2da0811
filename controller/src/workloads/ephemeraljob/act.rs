//! Carries out the plan.

use client_kit::EventType;
use kube::ResourceExt as _;
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use serde_json::{Value, json};

use super::FINALIZER;
use super::plan::{Plan, Work};
use crate::api::v1alpha1::{EphemeralJob, EphemeralJobStatus};
use crate::kit::{ActError, Kind, Next, ObjectKey, OnFailure, Owner, in_batches, requests};
use crate::pods::actor::Actor;
use crate::pods::{PodAction, PodRef};

/// The variable by which a container says which job it is of.
const JOB_ID: &str = "KRUISE_EJOB_ID";

/// Does the work of one pass over a job.
pub(super) struct Performer<'a> {
    pub(super) actor: &'a Actor,
    pub(super) job: &'a EphemeralJob,
}

impl Performer<'_> {
    /// Performs `plan`.
    ///
    /// # Errors
    /// The first failure. The status is written all the same.
    pub(super) async fn perform(&self, plan: Plan) -> Result<Next, ActError> {
        match plan {
            Plan::Rest(delay) => Ok(delay.into()),
            Plan::Hold => self.finalizers(true).await,
            Plan::LetGo => self.finalizers(false).await,
            Plan::Remove => self.remove().await,
            Plan::Work(work) => self.work(&work).await,
        }
    }

    /// Adds the finalizer, or takes it away. The watch shows it.
    async fn finalizers(&self, holds: bool) -> Result<Next, ActError> {
        let mut finalizers = self.job.metadata.finalizers.clone().unwrap_or_default();
        finalizers.retain(|finalizer| finalizer != FINALIZER);
        if holds {
            finalizers.push(FINALIZER.to_owned());
        }
        // A change by another meanwhile is a conflict.
        let patch = json!({ "metadata": { "finalizers": finalizers, "resourceVersion": self.job.metadata.resource_version } });
        let api = self.actor.api::<EphemeralJob>(&ObjectKey::of(self.job));
        let params = PatchParams::default();
        let patched = api
            .patch(&self.job.name_any(), &params, &Patch::Merge(&patch))
            .await;
        match patched.map_err(ActError::from) {
            Err(error) if error.kind != Kind::NotFound => Err(error),
            _ => Ok(Next::Event),
        }
    }

    async fn remove(&self) -> Result<Next, ActError> {
        let api = self.actor.api::<EphemeralJob>(&ObjectKey::of(self.job));
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: self.job.uid(),
                resource_version: None,
            }),
            ..DeleteParams::default()
        };
        match api
            .delete(&self.job.name_any(), &params)
            .await
            .map_err(ActError::from)
        {
            Err(error) if error.kind != Kind::NotFound => Err(error),
            _ => Ok(Next::Event),
        }
    }

    async fn work(&self, work: &Work) -> Result<Next, ActError> {
        let results = in_batches(&work.inject, OnFailure::Stop, |pod| self.inject(pod)).await;
        let injected: Result<(), ActError> = results.into_iter().collect();
        if self.job.status.as_ref() != Some(&work.status) {
            self.write_status(&work.status).await?;
        }
        injected?;
        Ok(work.requeue.into())
    }

    /// Gives a pod the containers.
    async fn inject(&self, pod: &PodRef) -> Result<(), ActError> {
        let owner = Owner::of(self.job);
        let patch = json!({ "spec": { "ephemeralContainers": containers(self.job) } });
        let action = PodAction::PatchEphemeral {
            pod: pod.clone(),
            patch: patch.into(),
        };
        let result = self.actor.perform(&owner, &action).await;
        if let Err(error) = &result {
            let ObjectKey { namespace, .. } = &owner.key;
            let name = &pod.name;
            let message = format!("failed to create ephemeral container in pod {namespace}/{name}: {error}");
            self.actor
                .event(&owner, EventType::Warning, "CreateFailed", message);
        }
        result
    }

    async fn write_status(&self, status: &EphemeralJobStatus) -> Result<(), ActError> {
        let api = self.actor.api::<EphemeralJob>(&ObjectKey::of(self.job));
        requests::write_status(&api, self.job, |latest| latest.status = Some(status.clone())).await?;
        Ok(())
    }
}

/// The containers of a job, each of which says which job it is of.
fn containers(job: &EphemeralJob) -> Vec<Value> {
    let mut containers = job
        .spec
        .template
        .ephemeral_containers
        .as_array()
        .cloned()
        .unwrap_or_default();
    for container in containers.iter_mut().filter_map(Value::as_object_mut) {
        let env = container.entry("env").or_insert_with(|| json!([]));
        if let Some(env) = env.as_array_mut() {
            env.push(json!({ "name": JOB_ID, "value": job.metadata.uid }));
        }
    }
    containers
}
