//! Claims of volumes and devices that a pod waits for.

use std::sync::Arc;

use client_kit::EventType;
use machinery::meta::{ObjectMeta as _, at, text};
use shared_json::Value;

use super::worker::PodWorker;
use crate::status::items;

/// Why a claim gives a pod no volume, if it does not.
fn unbound(claim: Option<&Value>, name: &str) -> Option<String> {
    match claim {
        None => Some(format!(
            "failed to fetch PVC from API server: persistentvolumeclaims \"{name}\" not found"
        )),
        Some(claim)
            if text(claim, "status.phase") != "Bound" || text(claim, "spec.volumeName").is_empty() =>
        {
            Some("PVC is not bound".to_owned())
        }
        Some(_) => None,
    }
}

/// Why a claim gives a pod no devices, if it does not.
fn unreserved(claim: Option<&Value>, name: &str, pod: &Value) -> Option<String> {
    let Some(claim) = claim else {
        return Some(format!(
            "fetch ResourceClaim {name}: resourceclaims.resource.k8s.io \"{name}\" not found"
        ));
    };
    let users = at(claim, "status.reservedFor").and_then(Value::as_array);
    let is_reserved = users
        .into_iter()
        .flatten()
        .any(|user| text(user, "uid") == pod.uid());
    (!is_reserved).then(|| {
        format!(
            "pod {} ({}) is not allowed to use ResourceClaim {name} ({})",
            pod.name(),
            pod.uid(),
            claim.uid()
        )
    })
}

/// The name of the claim behind an entry of the pod's; none if it needs none. The error says that it is not made yet.
fn claim_of_devices<'a>(pod: &'a Value, entry: &'a Value) -> Result<Option<&'a str>, String> {
    if let Some(name) = entry.get("resourceClaimName").and_then(Value::as_str) {
        return Ok(Some(name));
    }
    let statuses = at(pod, "status.resourceClaimStatuses").and_then(Value::as_array);
    let made = statuses
        .into_iter()
        .flatten()
        .find(|status| text(status, "name") == text(entry, "name"));
    let Some(made) = made else {
        return Err(format!(
            "pod \"{}/{}\": ResourceClaim not created yet",
            pod.namespace(),
            pod.name()
        ));
    };
    Ok(made.get("resourceClaimName").and_then(Value::as_str))
}

impl PodWorker {
    /// Whether all claims of the pod are satisfied. If not, records an event, and the worker looks again later.
    pub(super) async fn has_claims(&mut self) -> bool {
        let told = match self.without_volumes().await {
            Some(why) => Some(("FailedMount", why)),
            None => self.without_devices().await.map(|why| {
                let why = format!("Failed to prepare dynamic resources: prepare dynamic resources: {why}");
                ("FailedPrepareDynamicResources", why)
            }),
        };
        let Some((reason, message)) = told else {
            return true;
        };
        self.pod_event(EventType::Warning, reason, message);
        self.retry_later(None);
        false
    }

    async fn without_volumes(&mut self) -> Option<String> {
        let (mut names, mut reasons) = (Vec::new(), Vec::new());
        let pod = Arc::clone(&self.pod);
        for volume in items(&pod, "volumes") {
            let claim = match volume.pointer("/persistentVolumeClaim/claimName") {
                Some(name) => name.as_str().unwrap_or_default().to_owned(),
                None if volume.get("ephemeral").is_some() => {
                    format!("{}-{}", self.pod.name(), text(volume, "name"))
                }
                None => continue,
            };
            let namespace = self.pod.namespace();
            let path = format!("/api/v1/namespaces/{namespace}/persistentvolumeclaims/{claim}");
            let found = self.get(&path).await;
            if let Some(found) = &found {
                let behind = text(found, "spec.volumeName").to_owned();
                self.claimed.insert(text(volume, "name").to_owned(), behind);
            }
            if let Some(why) = unbound(found.as_ref(), &claim) {
                names.push(text(volume, "name").to_owned());
                reasons.push(format!("error processing PVC {namespace}/{claim}: {why}"));
            }
        }
        let names = names.join(" ");
        (!reasons.is_empty()).then(|| {
            format!(
                "Unable to attach or mount volumes: unmounted volumes=[{names}], unattached volumes=[], failed to process \
                 volumes=[{names}]: {}",
                reasons.join("; ")
            )
        })
    }

    async fn without_devices(&self) -> Option<String> {
        let named = items(&self.pod, "resourceClaims").iter();
        let named = named.map(|entry| claim_of_devices(&self.pod, entry));
        let made = at(&self.pod, "status.extendedResourceClaimStatus.resourceClaimName");
        for name in named.chain([Ok(made.and_then(Value::as_str))]) {
            let name = match name {
                Ok(Some(name)) => name,
                Ok(None) => continue,
                Err(why) => return Some(why),
            };
            let namespace = self.pod.namespace();
            let path = format!("/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims/{name}");
            if let Some(why) = unreserved(self.get(&path).await.as_ref(), name, &self.pod) {
                return Some(why);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use shared_json::json;

    use super::*;

    #[rstest]
    #[case::missing(
        None,
        "failed to fetch PVC from API server: persistentvolumeclaims \"c\" not found"
    )]
    #[case::new(Some(json!({})), "PVC is not bound")]
    #[case::pending(Some(json!({"status": {"phase": "Pending"}})), "PVC is not bound")]
    #[case::named(Some(json!({"spec": {"volumeName": "v"}, "status": {"phase": "Pending"}})), "PVC is not bound")]
    #[case::lost(Some(json!({"spec": {"volumeName": "v"}, "status": {"phase": "Lost"}})), "PVC is not bound")]
    #[case::without_volume(Some(json!({"status": {"phase": "Bound"}})), "PVC is not bound")]
    #[case::bound(Some(json!({"spec": {"volumeName": "v"}, "status": {"phase": "Bound"}})), "")]
    fn volumes(#[case] claim: Option<Value>, #[case] expected: &str) {
        assert_eq!(unbound(claim.as_ref(), "c").unwrap_or_default(), expected);
    }

    #[rstest]
    #[case::missing(None, "fetch ResourceClaim c: resourceclaims.resource.k8s.io \"c\" not found")]
    #[case::unallocated(Some(json!({"metadata": {"uid": "2"}})), "pod p (1) is not allowed to use ResourceClaim c (2)")]
    #[case::another_s(Some(json!({"metadata": {"uid": "2"}, "status": {"reservedFor": [{"uid": "3"}]}})),
        "pod p (1) is not allowed to use ResourceClaim c (2)")]
    #[case::reserved(Some(json!({"metadata": {"uid": "2"}, "status": {"reservedFor": [{"uid": "3"}, {"uid": "1"}]}})), "")]
    fn devices(#[case] claim: Option<Value>, #[case] expected: &str) {
        let pod = json!({"metadata": {"name": "p", "uid": "1"}});
        let found = unreserved(claim.as_ref(), "c", &pod);
        assert_eq!(found.unwrap_or_default(), expected);
    }

    #[rstest]
    #[case::by_name(json!({"name": "a", "resourceClaimName": "c"}), json!({}), Ok(Some("c")))]
    #[case::by_template(json!({"name": "a", "resourceClaimTemplateName": "t"}),
        json!({"resourceClaimStatuses": [{"name": "b", "resourceClaimName": "x"}, {"name": "a", "resourceClaimName": "c"}]}), Ok(Some("c")))]
    #[case::not_needed(json!({"name": "a", "resourceClaimTemplateName": "t"}), json!({"resourceClaimStatuses": [{"name": "a"}]}), Ok(None))]
    #[case::not_made(json!({"name": "a", "resourceClaimTemplateName": "t"}), json!({}),
        Err("pod \"d/p\": ResourceClaim not created yet"))]
    fn names_of_claims(
        #[case] entry: Value,
        #[case] status: Value,
        #[case] expected: Result<Option<&str>, &str>,
    ) {
        let pod = json!({"metadata": {"name": "p", "namespace": "d"}, "status": status});
        assert_eq!(claim_of_devices(&pod, &entry), expected.map_err(str::to_owned));
    }
}
