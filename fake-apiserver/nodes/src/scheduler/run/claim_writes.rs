//! The scheduler's writes of claims: those of devices, and those of volumes that are bound on a pod's node.

use std::sync::Arc;

use machinery::meta::ObjectMeta as _;
use machinery::types::rfc3339;
use shared_json::{Value, json};

use super::super::cluster::PodInfo;
use super::super::devices;
use super::super::filters::{claims_of, is_bound, waits_for_consumer};
use super::super::hints::Event;
use super::{CLAIM_FINALIZER, SELECTED_NODE, Scheduler};

impl Scheduler {
    /// Makes the claim for a pod's extended resources, and gives its namespace and name. None if it could not be made.
    pub(super) async fn make_claim(
        &mut self,
        pod: &PodInfo,
        special: devices::Special,
        allocation: Value,
    ) -> Option<(String, String)> {
        let object = &pod.object;
        let mut claim = special.claim.clone();
        if let Some(metadata) = claim.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("name");
        }
        let path = format!(
            "/apis/resource.k8s.io/v1/namespaces/{}/resourceclaims",
            object.namespace()
        );
        let sent = self
            .reporter
            .send(http::Method::POST, &path, "application/json", &claim)
            .await;
        let made = match sent {
            Ok(made) => made,
            Err(error) => {
                tracing::debug!(%error, pod = %object.name(), "make a claim for extended resources");
                return None;
            }
        };
        let mut claim = Value::clone(&made);
        let stamp = rfc3339(self.clock.now_seconds());
        devices::reserve(&mut claim, object, Some(allocation), &stamp);
        self.allocate(claim).await;
        let status = special.status(made.name());
        self.reporter
            .patch_status(
                object,
                &json!({"metadata": {"uid": object.uid()}, "status": status}),
            )
            .await;
        Some((made.namespace().to_owned(), made.name().to_owned()))
    }

    /// Deletes a claim of devices that nothing keeps any more.
    pub(super) async fn delete_claim(&mut self, mut claim: Value) {
        let mut finalizers: Vec<String> = claim.finalizers().into_iter().map(str::to_owned).collect();
        finalizers.retain(|name| name != CLAIM_FINALIZER);
        claim["metadata"]["finalizers"] = json!(finalizers);
        let path = format!(
            "/apis/resource.k8s.io/v1/namespaces/{}/resourceclaims/{}",
            claim.namespace(),
            claim.name()
        );
        self.put_claim(claim, "").await;
        let sent = self
            .reporter
            .send(http::Method::DELETE, &path, "application/json", &json!({}))
            .await;
        if let Err(error) = sent {
            tracing::debug!(%error, path, "delete a claim of devices");
        }
    }

    /// Writes that a claim has its devices: first that it is not to go before they are given back, then which they are.
    pub(super) async fn allocate(&mut self, mut claim: Value) {
        let mut finalizers: Vec<String> = claim.finalizers().into_iter().map(str::to_owned).collect();
        if !finalizers.iter().any(|name| name == CLAIM_FINALIZER) {
            finalizers.push(CLAIM_FINALIZER.to_owned());
            claim["metadata"]["finalizers"] = json!(finalizers);
            let Some(written) = self.put_claim(claim.clone(), "").await else {
                return;
            };
            claim["metadata"]["resourceVersion"] = json!(written.resource_version());
        }
        self.put_claim(claim, "/status").await;
    }

    /// Writes a claim of devices; the scheduler's own view has the new version at once.
    pub(super) async fn put_claim(&mut self, claim: Value, subresource: &str) -> Option<Arc<Value>> {
        let key = (claim.namespace().to_owned(), claim.name().to_owned());
        let path = format!(
            "/apis/resource.k8s.io/v1/namespaces/{}/resourceclaims/{}{subresource}",
            key.0, key.1
        );
        let sent = self
            .reporter
            .send(http::Method::PUT, &path, "application/json", &claim)
            .await;
        match sent {
            Ok(written) => {
                let old = self.cluster.device_claims.insert(key, Value::clone(&written));
                self.tell(&Event::DeviceClaim(old.as_ref(), &written));
                Some(written)
            }
            Err(error) => {
                tracing::debug!(%error, claim = claim.name(), "write a claim of devices");
                None
            }
        }
    }

    pub(super) fn claims<'a>(&'a self, pod: &'a PodInfo) -> impl Iterator<Item = &'a Value> {
        claims_of(&pod.object).into_iter().filter_map(|name| {
            self.cluster
                .claims
                .get(&(pod.object.namespace().to_owned(), name))
        })
    }

    pub(super) fn needs_volumes(&self, pod: &PodInfo) -> bool {
        self.claims(pod).any(|claim| !is_bound(claim))
    }

    /// Tells the binder on which node the pod's claims are needed.
    pub(super) async fn ask_for_volumes(&self, pod: &PodInfo, node: &str) {
        let waiting: Vec<Value> = self
            .claims(pod)
            .filter(|claim| !is_bound(claim) && waits_for_consumer(&self.cluster, claim))
            .cloned()
            .collect();
        for claim in waiting {
            let patch = json!({"metadata": {"annotations": {SELECTED_NODE: node}}});
            let path = format!(
                "/api/v1/namespaces/{}/persistentvolumeclaims/{}",
                claim.namespace(),
                claim.name()
            );
            let sent = self
                .reporter
                .send(http::Method::PATCH, &path, "application/merge-patch+json", &patch)
                .await;
            if let Err(error) = sent {
                tracing::debug!(%error, claim = claim.name(), "select a claim's node");
            }
        }
    }
}
