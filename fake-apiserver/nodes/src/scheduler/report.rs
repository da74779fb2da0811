//! The scheduler's writes: events in the form of the newer events API, and the condition `PodScheduled`.

use std::collections::BTreeMap;
use std::sync::Arc;

use client_kit::{ObjectClient, SharedClock};
use machinery::meta::{ObjectMeta as _, at};
use machinery::types::rfc3339;
use shared_json::{Value, json};

/// The scheduler's name in pods and events.
pub(super) const NAME: &str = "default-scheduler";

/// Writes for the scheduler.
pub(super) struct Reporter {
    client: ObjectClient,
    clock: SharedClock,
    stamp: i128,
    /// Events that were written: path and how often they were seen, by pod, reason and message.
    written: BTreeMap<(String, String, String), (String, u32)>,
}

impl Reporter {
    pub(super) fn new(client: ObjectClient, clock: SharedClock) -> Self {
        Self {
            client,
            clock,
            stamp: 0,
            written: BTreeMap::new(),
        }
    }

    pub(super) async fn send(
        &self,
        method: http::Method,
        path: &str,
        kind: &str,
        body: &Value,
    ) -> Result<Arc<Value>, kube::Error> {
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header(http::header::CONTENT_TYPE, kind)
            .header(http::header::USER_AGENT, "kube-scheduler")
            .body(body.clone())
            .map_err(kube::Error::HttpError)?;
        self.client.request(request).await
    }

    /// Forgets the messages about a pod that is gone.
    pub(super) fn forget(&mut self, uid: &str) {
        let keys: Vec<_> = self
            .written
            .range((uid.to_owned(), String::new(), String::new())..)
            .take_while(|(key, _)| key.0 == uid)
            .map(|(key, _)| key.clone())
            .collect();
        for key in keys {
            self.written.remove(&key);
        }
    }

    /// Records an event of a pod. A repeated one makes a series of the first one.
    pub(super) async fn event(
        &mut self,
        pod: &Value,
        severity: &str,
        reason: &str,
        action: &str,
        message: String,
    ) {
        let now = self.clock.now();
        let micro = format!("{now:.6}");
        let key = (pod.uid().to_owned(), reason.to_owned(), message.clone());
        if severity == "Warning"
            && let Some((path, count)) = self.written.get_mut(&key)
        {
            *count += 1;
            let patch = json!({"series": {"count": *count, "lastObservedTime": micro}});
            let path = path.clone();
            let sent = self
                .send(
                    http::Method::PATCH,
                    &path,
                    "application/strategic-merge-patch+json",
                    &patch,
                )
                .await;
            if sent.is_ok() {
                return;
            }
        }
        self.stamp = now.as_nanosecond().max(self.stamp + 1);
        let name = format!("{}.{:x}", pod.name(), self.stamp);
        let event = json!({
            "apiVersion": "v1", "kind": "Event",
            "metadata": {"name": name, "namespace": pod.namespace()},
            "involvedObject": {
                "apiVersion": "v1", "kind": "Pod", "name": pod.name(), "namespace": pod.namespace(),
                "uid": pod.uid(), "resourceVersion": pod.resource_version(),
            },
            "type": severity, "reason": reason, "action": action, "message": message, "eventTime": micro,
            "firstTimestamp": null, "lastTimestamp": null, "source": {},
            "reportingComponent": NAME, "reportingInstance": format!("{NAME}-0"),
        });
        let path = format!("/api/v1/namespaces/{}/events", pod.namespace());
        match self
            .send(http::Method::POST, &path, "application/json", &event)
            .await
        {
            Ok(_) if severity == "Warning" => {
                self.written.insert(key, (format!("{path}/{name}"), 1));
            }
            Ok(_) => {}
            Err(error) => tracing::debug!(%error, "write an event"),
        }
    }

    /// Tells in the pod's status that it fits nowhere, and which node is being made free for it, or with an empty name that none is.
    pub(super) async fn unschedulable(
        &self,
        pod: &Value,
        reason: &str,
        message: &str,
        nominated: Option<&str>,
    ) {
        let old = crate::status::condition_of(pod, "PodScheduled");
        let same = |field: &str, value: &str| {
            old.and_then(|old| old.get(field)).and_then(Value::as_str) == Some(value)
        };
        let was = at(pod, "status.nominatedNodeName").and_then(Value::as_str);
        let nominated = nominated.filter(|node| was.unwrap_or_default() != *node);
        if same("status", "False") && same("message", message) && nominated.is_none() {
            return;
        }
        let now = rfc3339(self.clock.now_seconds());
        let since = old
            .filter(|_| same("status", "False"))
            .and_then(|old| old.get("lastTransitionTime"))
            .cloned()
            .unwrap_or_else(|| json!(now));
        let mut condition = json!({
            "type": "PodScheduled", "status": "False", "reason": reason, "message": message,
            "lastProbeTime": null, "lastTransitionTime": since,
        });
        if pod.generation() > 0 {
            condition["observedGeneration"] = json!(pod.generation());
        }
        let mut status = json!({"conditions": [condition]});
        if let Some(node) = nominated {
            status["nominatedNodeName"] = json!(Some(node).filter(|node| !node.is_empty()));
        }
        self.patch_status(pod, &json!({"metadata": {"uid": pod.uid()}, "status": status}))
            .await;
    }

    /// Tells where a pod will go once its volumes are bound.
    pub(super) async fn nominate(&self, pod: &Value, node: &str) {
        self.patch_status(
            pod,
            &json!({"metadata": {"uid": pod.uid()}, "status": {"nominatedNodeName": node}}),
        )
        .await;
    }

    pub(super) async fn patch_status(&self, pod: &Value, patch: &Value) {
        let path = format!(
            "/api/v1/namespaces/{}/pods/{}/status",
            pod.namespace(),
            pod.name()
        );
        let sent = self
            .send(
                http::Method::PATCH,
                &path,
                "application/strategic-merge-patch+json",
                patch,
            )
            .await;
        if let Err(error) = sent {
            tracing::debug!(%error, pod = %pod.name(), "write a pod's status");
        }
    }
}
