//! The means of a pass: reading the cache, writing to the API, recording events.

use std::sync::Arc;

use client_kit::{EventRecorder, EventType, ObjectClient, SharedClock};
use http::Method;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use machinery::meta::ObjectMeta as _;
use machinery::types::rfc3339;
use pki::Authority;
use shared_json::{Value, json};

use super::cache::Cache;
use super::resource::{Key, Res};

/// The user agent of the requests, from which their field manager follows.
const USER_AGENT: &str = "kube-controller-manager";

/// The surroundings of a pass.
pub(crate) struct Cx<'a> {
    pub client: &'a Client,
    /// The same for single objects.
    pub objects: &'a ObjectClient,
    pub clock: &'a SharedClock,
    pub cache: &'a mut Cache,
    pub recorder: &'a EventRecorder,
    /// The signer of certificates, if there is one.
    pub authority: Option<&'a Authority>,
}

impl Cx<'_> {
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The present second, as it is written.
    pub(crate) fn stamp(&self) -> String {
        rfc3339(self.clock.now_seconds())
    }

    async fn send(&self, method: Method, path: &str, kind: &str, body: &Value) -> Result<Value, kube::Error> {
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header(http::header::CONTENT_TYPE, kind)
            .header(http::header::USER_AGENT, USER_AGENT)
            .body(body.clone())
            .map_err(kube::Error::HttpError)?;
        // A copy shares the memory.
        self.objects.request(request).await.map(Arc::unwrap_or_clone)
    }

    /// The object at a path of the API.
    pub(crate) async fn read(&self, path: &str) -> Result<Value, kube::Error> {
        self.send(Method::GET, path, "application/json", &Value::Null)
            .await
    }

    /// Sends something to a path of the API whose answer is in no cache.
    pub(crate) async fn post(&self, path: &str, object: &Value) -> Result<Value, kube::Error> {
        self.send(Method::POST, path, "application/json", object).await
    }

    /// Replaces an object at a path of the API that is in no cache.
    pub(crate) async fn write(&self, path: &str, object: &Value) -> Result<(), kube::Error> {
        let answer = self.send(Method::PUT, path, "application/json", object).await;
        answer.map(drop)
    }

    fn keep(&mut self, res: Res, object: &Value) {
        self.cache.keep(res, object.clone());
    }

    pub(crate) async fn create(
        &mut self,
        res: Res,
        namespace: &str,
        mut object: Value,
    ) -> Result<Value, kube::Error> {
        object["apiVersion"] = Value::from(res.api_version());
        object["kind"] = Value::from(res.kind());
        let created = self
            .send(Method::POST, &res.path(namespace), "application/json", &object)
            .await?;
        self.keep(res, &created);
        Ok(created)
    }

    /// Replaces an object; it is refused if it was changed since it was read.
    pub(crate) async fn update(&mut self, res: Res, object: &Value) -> Result<Value, kube::Error> {
        let path = format!("{}/{}", res.path(object.namespace()), object.name());
        let updated = self.send(Method::PUT, &path, "application/json", object).await?;
        self.keep(res, &updated);
        Ok(updated)
    }

    /// Merges into an object, or into a subresource of it (`/status`).
    pub(crate) async fn patch(
        &mut self,
        res: Res,
        object: &Value,
        subresource: &str,
        mut patch: Value,
    ) -> Result<Value, kube::Error> {
        patch["metadata"]["uid"] = Value::from(object.uid());
        let path = format!("{}/{}{subresource}", res.path(object.namespace()), object.name());
        let patched = self
            .send(Method::PATCH, &path, "application/merge-patch+json", &patch)
            .await?;
        self.keep(res, &patched);
        Ok(patched)
    }

    /// Applies fields of an object, or of a subresource of it (`/status`), for `manager`, which takes them from other owners.
    pub(crate) async fn apply(
        &mut self,
        res: Res,
        object: &Value,
        subresource: &str,
        mut applied: Value,
        manager: &str,
    ) -> Result<(), kube::Error> {
        applied["apiVersion"] = Value::from(res.api_version());
        applied["kind"] = Value::from(res.kind());
        applied["metadata"] = json!({"name": object.name()});
        let path = format!(
            "{}/{}{subresource}?fieldManager={manager}&force=true",
            res.path(object.namespace()),
            object.name()
        );
        let kind = "application/apply-patch+yaml";
        let updated = self.send(Method::PATCH, &path, kind, &applied).await?;
        self.keep(res, &updated);
        Ok(())
    }

    /// Replaces the status if it differs. Gives whether it did.
    pub(crate) async fn set_status(
        &mut self,
        res: Res,
        object: &Value,
        status: &Value,
    ) -> Result<bool, kube::Error> {
        let old = object.get("status").cloned().unwrap_or_else(|| json!({}));
        if old == *status {
            return Ok(false);
        }
        let mut changed = object.clone();
        changed["status"] = status.clone();
        self.put_status(res, changed).await?;
        Ok(true)
    }

    /// Writes an object by its status subresource: metadata that the resource lets such a write change changes as well.
    pub(crate) async fn put_status(&mut self, res: Res, mut changed: Value) -> Result<(), kube::Error> {
        changed["apiVersion"] = Value::from(res.api_version());
        changed["kind"] = Value::from(res.kind());
        let path = format!("{}/{}/status", res.path(changed.namespace()), changed.name());
        let updated = self
            .send(Method::PUT, &path, "application/json", &changed)
            .await?;
        self.keep(res, &updated);
        Ok(())
    }

    /// Deletes an object. One that is gone already is no failure.
    pub(crate) async fn delete(
        &mut self,
        res: Res,
        object: &Value,
        policy: Option<&str>,
    ) -> Result<(), kube::Error> {
        self.delete_with(res, object, policy, None).await
    }

    pub(crate) async fn delete_with(
        &mut self,
        res: Res,
        object: &Value,
        policy: Option<&str>,
        grace: Option<i64>,
    ) -> Result<(), kube::Error> {
        let mut options = json!({"preconditions": {"uid": object.uid()}});
        if let Some(policy) = policy {
            options["propagationPolicy"] = Value::from(policy);
        }
        if let Some(grace) = grace {
            options["gracePeriodSeconds"] = Value::from(grace);
        }
        let path = format!("{}/{}", res.path(object.namespace()), object.name());
        match self
            .send(Method::DELETE, &path, "application/json", &options)
            .await
        {
            Ok(answer)
                if answer
                    .get("metadata")
                    .is_some_and(|meta| meta.get("deletionTimestamp").is_some()) =>
            {
                // It goes later: a grace period or a finalizer.
                let held = number_of(&answer) > 0 || !answer.finalizers().is_empty();
                if held {
                    self.keep(res, &answer);
                } else {
                    self.cache.bury(res, &Key::of(object));
                }
                Ok(())
            }
            Ok(_) => {
                self.cache.bury(res, &Key::of(object));
                Ok(())
            }
            Err(error) if is_not_found(&error) => {
                self.cache.bury(res, &Key::of(object));
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Says something about an object.
    pub(crate) fn event(&self, res: Res, object: &Value, kind: EventType, reason: &str, message: String) {
        self.recorder.event(&involved(res, object), kind, reason, message);
    }

    pub(crate) fn normal(&self, res: Res, object: &Value, reason: &str, message: String) {
        self.event(res, object, EventType::Normal, reason, message);
    }

    pub(crate) fn warning(&self, res: Res, object: &Value, reason: &str, message: String) {
        self.event(res, object, EventType::Warning, reason, message);
    }
}

fn number_of(object: &Value) -> i64 {
    object
        .pointer("/metadata/deletionGracePeriodSeconds")
        .and_then(Value::as_i64)
        .unwrap_or_default()
}

/// An object as events name it.
pub(crate) fn involved(res: Res, object: &Value) -> ObjectReference {
    let text = |value: &str| Some(value.to_owned()).filter(|value| !value.is_empty());
    ObjectReference {
        api_version: text(res.api_version()),
        kind: text(res.kind()),
        name: text(object.name()),
        namespace: text(object.namespace()),
        uid: text(object.uid()),
        resource_version: text(object.resource_version()),
        field_path: None,
    }
}

/// Whether an object that was asked for is not there.
pub(crate) fn is_not_found(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}
