//! The writes of jobs and of the lists of nodes.

use client_kit::Seed;
use kube::api::{DeleteParams, PostParams, Preconditions};
use kube::{Api, ResourceExt as _};

use super::controller::Controller;
use super::plan::{Observed, Wish, put};
use crate::api::v1beta1::{ImagePullJob, ImagePullJobStatus, NodeImage};
use crate::images::KEPT;
use crate::kit::{ActError, Kind, ObjectKey, requests, settled};

/// How often the list of a node is written when somebody else wrote meanwhile (client-go's default for conflicts).
const TRIES_MAX: u32 = 5;

impl Controller {
    fn api(&self, job: &ImagePullJob) -> Api<ImagePullJob> {
        Api::namespaced(self.client.clone(), &job.namespace().unwrap_or_default())
    }

    /// Keeps a job from being gone before it has let go of its Secrets.
    pub(super) async fn hold(&self, job: &ImagePullJob) -> Result<ImagePullJob, ActError> {
        let mut job = job.clone();
        if job.finalizers().iter().any(|finalizer| finalizer == KEPT) {
            return Ok(job);
        }
        job.finalizers_mut().push(KEPT.to_owned());
        let written = self
            .api(&job)
            .replace(&job.name_any(), &PostParams::default(), &job)
            .await?;
        self.expectations.expect_object(&written);
        Ok(written)
    }

    /// Lets go of a job that is over or being deleted.
    pub(super) async fn let_go(&self, job: &ImagePullJob) -> Result<(), ActError> {
        self.release_secrets(job).await?;
        let mut job = job.clone();
        if !job.finalizers().iter().any(|finalizer| finalizer == KEPT) {
            return Ok(());
        }
        job.finalizers_mut().retain(|finalizer| finalizer != KEPT);
        let written = self
            .api(&job)
            .replace(&job.name_any(), &PostParams::default(), &job)
            .await;
        match written.map_err(ActError::from) {
            Ok(written) => {
                // The last finalizer of a job that is being deleted goes with the job.
                if written.metadata.deletion_timestamp.is_none() {
                    self.expectations.expect_object(&written);
                }
                Ok(())
            }
            Err(error) if error.kind == Kind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Deletes a job that has been over for as long as it may.
    pub(super) async fn delete(&self, job: &ImagePullJob) -> Result<(), ActError> {
        let preconditions = Preconditions {
            uid: job.uid(),
            resource_version: None,
        };
        let params = DeleteParams {
            preconditions: Some(preconditions),
            ..DeleteParams::default()
        };
        settled(self.api(job).delete(&job.name_any(), &params).await)
    }

    pub(super) async fn write_status(
        &self,
        job: &ImagePullJob,
        status: &ImagePullJobStatus,
    ) -> Result<(), ActError> {
        let written =
            requests::write_status(&self.api(job), job, |latest| latest.status = Some(status.clone()))
                .await?;
        self.expectations.expect_object(&written);
        Ok(())
    }

    /// Writes the wish of a job into the lists of these nodes.
    pub(super) async fn ask(&self, observed: &Observed, nodes: &[String]) -> Result<(), ActError> {
        let mut random = Seed(0).fork(&observed.job.uid().unwrap_or_default()).random();
        let wish = Wish::of(observed, self.kept_s, &mut random);
        for node in nodes {
            self.ask_node(node, &wish).await?;
        }
        Ok(())
    }

    async fn ask_node(&self, node: &str, wish: &Wish) -> Result<(), ActError> {
        let api: Api<NodeImage> = Api::all(self.client.clone());
        let mut known = self
            .images
            .get(&ObjectKey::new("", node))
            .map(|image| NodeImage::clone(&image));
        let mut attempt = 1;
        loop {
            // A list that is gone is not selected any more.
            let Some(changed) = known.as_ref().and_then(|image| put(image, wish)) else {
                return Ok(());
            };
            match api
                .replace(node, &PostParams::default(), &changed)
                .await
                .map_err(ActError::from)
            {
                Ok(written) => {
                    self.expectations.expect_object(&written);
                    return Ok(());
                }
                Err(error) if error.kind == Kind::Conflict && attempt < TRIES_MAX => {
                    attempt += 1;
                    known = api.get_opt(node).await?;
                }
                Err(error) => return Err(error),
            }
        }
    }
}
