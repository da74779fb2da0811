//! Carries out the plan.

use k8s_openapi::api::batch::v1::Job;
use kube::api::{DeleteParams, PostParams, Preconditions, PropagationPolicy};
use kube::core::NamespaceResourceScope;
use kube::{Api, Client, Resource, ResourceExt as _};
use serde_json::Value;

use super::jobs::{Child, JobKind};
use super::plan::Plan;
use crate::api::v1beta1::{AdvancedCronJob, AdvancedCronJobStatus, BroadcastJob, ImageListPullJob};
use crate::kit::{ActError, requests, settled};

/// Does the work of a pass.
///
/// # Errors
/// The first failure but for those of the history, after which nothing is done.
pub(super) async fn perform(client: &Client, cron: &AdvancedCronJob, plan: &Plan) -> Result<(), ActError> {
    if cron.status.as_ref() != Some(&plan.status) {
        write_status(client, cron, &plan.status).await?;
    }
    let namespace = cron.namespace().unwrap_or_default();
    for child in &plan.history {
        if let Err(error) = delete(client, &namespace, child).await {
            tracing::warn!(job = child.reference.name, %error, "failed to delete an old job");
        }
    }
    for child in &plan.replaced {
        delete(client, &namespace, child).await?;
    }
    match &plan.create {
        Some((kind, job)) => create(client, &namespace, *kind, job).await,
        None => Ok(()),
    }
}

async fn write_status(
    client: &Client,
    cron: &AdvancedCronJob,
    status: &AdvancedCronJobStatus,
) -> Result<(), ActError> {
    let namespace = cron.namespace().unwrap_or_default();
    let api: Api<AdvancedCronJob> = Api::namespaced(client.clone(), &namespace);
    requests::write_status(&api, cron, |latest| latest.status = Some(status.clone())).await?;
    Ok(())
}

async fn create(client: &Client, namespace: &str, kind: JobKind, job: &Value) -> Result<(), ActError> {
    let params = PostParams::default();
    let created = match kind {
        JobKind::Job => requests::create::<Job>(client, namespace, &params, job).await,
        JobKind::Broadcast => requests::create::<BroadcastJob>(client, namespace, &params, job).await,
        JobKind::ImageList => requests::create::<ImageListPullJob>(client, namespace, &params, job).await,
    };
    created.map(|_| ())
}

/// Deletes a job, and its pods after it. One that is gone, or is another by now, is as good as deleted.
async fn delete(client: &Client, namespace: &str, child: &Child) -> Result<(), ActError> {
    match child.kind {
        JobKind::Job => delete_of::<Job>(client, namespace, child).await,
        JobKind::Broadcast => delete_of::<BroadcastJob>(client, namespace, child).await,
        JobKind::ImageList => delete_of::<ImageListPullJob>(client, namespace, child).await,
    }
}

async fn delete_of<K>(client: &Client, namespace: &str, child: &Child) -> Result<(), ActError>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + serde::de::DeserializeOwned,
{
    let api: Api<K> = Api::namespaced(client.clone(), namespace);
    let params = DeleteParams {
        propagation_policy: Some(PropagationPolicy::Background),
        preconditions: Some(Preconditions {
            uid: child.reference.uid.clone(),
            resource_version: None,
        }),
        ..DeleteParams::default()
    };
    let name = child.reference.name.as_deref().unwrap_or_default();
    settled(api.delete(name, &params).await)
}
