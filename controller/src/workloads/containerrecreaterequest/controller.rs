//! The reconciler: from a request to its end.

use std::sync::Arc;

use client_kit::SharedClock;
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};

use super::observe::Observed;
use super::plan::{Step, plan};
use super::wake::pod_changed;
use crate::api::labels::{REQUEST_ACTIVE, REQUEST_STATUSES, REQUEST_UNREADY};
use crate::api::v1alpha1::ContainerRecreateRequest;
use crate::kit::expectations::Expectations;
use crate::kit::{ActError, Change, Informer, Kind, Next, ObjectKey, Reconciler, Watches};
use crate::pods::CachedPod;
use crate::pods::conditions::{put_back_patch, taken_out_patch};
use crate::pods::lifecycle::rfc3339;
use crate::pods::pod::{self, Pod};

/// The controller's name in metrics and logs.
pub(super) const CONTROLLER: &str = "containerrecreaterequest-controller";
/// The name by which a request takes its pod out of service.
const USER_AGENT: &str = "ContainerRecreateRequest";

/// The reconciler.
pub(super) struct Controller {
    pub(super) client: Client,
    pub(super) clock: SharedClock,
    pub(super) requests: Informer<ContainerRecreateRequest>,
    pub(super) pods: Informer<CachedPod>,
    pub(super) expectations: Arc<Expectations>,
}

impl Reconciler for Controller {
    type Key = ObjectKey;

    fn name(&self) -> &'static str {
        CONTROLLER
    }

    fn watches(&self, watches: &mut Watches<ObjectKey>) {
        let expectations = Arc::clone(&self.expectations);
        watches.on(&self.requests, move |change, queue| {
            if let Change::Deleted(request) = change {
                expectations.forget_object(request.as_ref());
            }
            let (Change::Added(request) | Change::Updated(_, request) | Change::Deleted(request)) = change;
            queue.add(ObjectKey::of(request.as_ref()));
        });
        let requests = self.requests.clone();
        watches.on(&self.pods, move |change, queue| {
            pod_changed(&requests, change, queue)
        });
    }

    async fn pass(&self, key: &ObjectKey) -> Result<Next, ActError> {
        let Some(request) = self.requests.get(key) else {
            return Ok(Next::Event);
        };
        if let Some(left) = self.expectations.unseen_object(request.as_ref()) {
            // The event of the last write brings the next pass.
            return Ok(Next::After(left));
        }
        let pod = ObjectKey::new(&key.namespace, &request.spec.pod_name);
        let observed = Observed {
            request,
            pod: self.pods.get(&pod),
            now: self.clock.now(),
        };
        let plan = plan(&observed);
        let mut work = Work {
            controller: self,
            request: Arc::clone(&observed.request),
            pod: observed.pod,
        };
        for step in &plan.steps {
            match work.act(step).await {
                // The request has gone, or its pod: the event of that brings the next pass.
                Err(error) if error.kind == Kind::NotFound => return Ok(Next::Event),
                acted => acted?,
            }
        }
        Ok(plan.again.into())
    }
}

/// The request as the last step has left it, and its pod.
struct Work<'c> {
    controller: &'c Controller,
    request: Arc<ContainerRecreateRequest>,
    pod: Option<Arc<CachedPod>>,
}

impl Work<'_> {
    fn api(&self) -> Api<ContainerRecreateRequest> {
        let namespace = self.request.namespace().unwrap_or_default();
        Api::namespaced(self.controller.client.clone(), &namespace)
    }

    async fn act(&mut self, step: &Step) -> Result<(), ActError> {
        let now = self.controller.clock.now();
        match step {
            Step::PutBack => self.patch_pod(put_back_patch).await,
            Step::TakeOut => self.patch_pod(taken_out_patch).await,
            Step::Release => self.finalizers(false).await,
            Step::Hold => self.finalizers(true).await,
            Step::Deactivate => self.patch(json!({ "labels": { REQUEST_ACTIVE: null } })).await,
            Step::Sync(text) => {
                self.patch(json!({ "annotations": { REQUEST_STATUSES: text } }))
                    .await
            }
            Step::NoteUnready => {
                let annotations = json!({ REQUEST_UNREADY: rfc3339(now) });
                self.patch(json!({ "annotations": annotations })).await
            }
            Step::Delete => self.delete().await,
            Step::Complete(message) => {
                let status =
                    json!({ "phase": "Completed", "completionTime": rfc3339(now), "message": message });
                // The daemon may have ended it meanwhile: then that counts.
                let version = &self.request.metadata.resource_version;
                let patch = json!({ "metadata": { "resourceVersion": version }, "status": status });
                let params = PatchParams::default();
                let (api, name) = (self.api(), self.request.name_any());
                let written = api.patch_status(&name, &params, &Patch::Merge(&patch)).await?;
                self.wrote(written);
                Ok(())
            }
        }
    }

    /// Changes the request's metadata, if it is still the same object.
    async fn patch(&mut self, metadata: Value) -> Result<(), ActError> {
        let mut patch = json!({ "metadata": metadata });
        if let Some(metadata) = patch.pointer_mut("/metadata").and_then(Value::as_object_mut) {
            metadata.insert("uid".to_owned(), json!(self.request.metadata.uid));
        }
        let params = PatchParams::default();
        let api = self.api();
        let written = api
            .patch(&self.request.name_any(), &params, &Patch::Merge(&patch))
            .await?;
        self.wrote(written);
        Ok(())
    }

    fn wrote(&mut self, written: ContainerRecreateRequest) {
        self.controller.expectations.expect_object(&written);
        self.request = Arc::new(written);
    }

    /// Adds the finalizer, or takes it away. A change by another meanwhile is a conflict.
    async fn finalizers(&mut self, holds: bool) -> Result<(), ActError> {
        let mut finalizers = self.request.finalizers().to_vec();
        finalizers.retain(|finalizer| finalizer != REQUEST_UNREADY);
        if holds {
            finalizers.push(REQUEST_UNREADY.to_owned());
        }
        let version = self.request.metadata.resource_version.clone();
        self.patch(json!({ "finalizers": finalizers, "resourceVersion": version }))
            .await
    }

    async fn delete(&self) -> Result<(), ActError> {
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: self.request.uid(),
                resource_version: None,
            }),
            ..DeleteParams::default()
        };
        self.api().delete(&self.request.name_any(), &params).await?;
        Ok(())
    }

    /// Takes the pod out of service, or puts it back.
    async fn patch_pod(
        &self,
        patch: fn(&Pod, &str, &str, jiff::Timestamp) -> Option<Value>,
    ) -> Result<(), ActError> {
        let Some(pod) = self.pod.as_deref() else {
            return Ok(());
        };
        let namespace = self.request.namespace().unwrap_or_default();
        let key = format!("{namespace}/{}", self.request.name_any());
        let Some(mut patch) = patch(pod, USER_AGENT, &key, self.controller.clock.now()) else {
            return Ok(());
        };
        if let Some(patch) = patch.as_object_mut() {
            let version = &pod.metadata.resource_version;
            let metadata = json!({ "uid": pod::uid(pod), "resourceVersion": version });
            patch.insert("metadata".to_owned(), metadata);
        }
        let api: Api<Pod> = Api::namespaced(self.controller.client.clone(), &namespace);
        let params = PatchParams::default();
        let patched = api
            .patch_status(pod::name(pod), &params, &Patch::Strategic(&patch))
            .await;
        match patched.map_err(ActError::from) {
            // A pod that has gone needs nothing more; the request is told by the event of that.
            Err(error) if error.kind == Kind::NotFound => Ok(()),
            patched => patched.map(drop),
        }
    }
}
