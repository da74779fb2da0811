//! The objects that a node may reach: those that its pods name, and those that these name in turn.

use std::sync::Arc;

use machinery::meta::{ObjectMeta as _, at, list, string_map, text};
use shared_json::Value;
use store::{GroupResource, ObjectKey, Stored};

use crate::server::ServerState;

const MIRROR: &str = "kubernetes.io/config.mirror";

/// The sort of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    Secret,
    ConfigMap,
    Account,
    Claim,
    Volume,
    ResourceClaim,
    Pod,
    Attachment,
    Slice,
}

/// The objects in reach of a node.
pub(super) struct Reach<'a> {
    pub state: &'a ServerState,
    pub node: &'a str,
}

impl Reach<'_> {
    /// Whether the node has to do with an object.
    pub(super) fn has(&self, sort: Sort, namespace: &str, name: &str) -> bool {
        let is_here = |table: GroupResource, field: &str| {
            let found = self.state.store.get(&table, &ObjectKey::new(namespace, name));
            found.is_some_and(|found| text(&found.value, field) == self.node)
        };
        match sort {
            Sort::Pod => is_here(GroupResource::new("", "pods"), "spec.nodeName"),
            Sort::Attachment => is_here(
                GroupResource::new("storage.k8s.io", "volumeattachments"),
                "spec.nodeName",
            ),
            Sort::Slice => is_here(
                GroupResource::new("resource.k8s.io", "resourceslices"),
                "spec.nodeName",
            ),
            Sort::Volume => {
                let table = GroupResource::new("", "persistentvolumes");
                let volume = self.state.store.get(&table, &ObjectKey::new("", name));
                volume.is_some_and(|volume| self.mounts(&volume.value))
            }
            Sort::Secret => self.pods_name(sort, namespace, name) || self.volumes_name(namespace, name),
            _ => self.pods_name(sort, namespace, name),
        }
    }

    /// Whether a volume is bound to a claim of a pod on the node.
    fn mounts(&self, volume: &Value) -> bool {
        let claim = text(volume, "spec.claimRef.name");
        !claim.is_empty() && self.pods_name(Sort::Claim, text(volume, "spec.claimRef.namespace"), claim)
    }

    fn list(&self, resource: &str, namespace: Option<&str>) -> Vec<Arc<Stored>> {
        let table = GroupResource::new("", resource);
        let snapshot = self.state.store.list(&table, namespace, None, None);
        snapshot.map(|snapshot| snapshot.items).unwrap_or_default()
    }

    fn pods_name(&self, sort: Sort, namespace: &str, name: &str) -> bool {
        self.list("pods", Some(namespace)).iter().any(|pod| {
            let pod = &pod.value;
            text(pod, "spec.nodeName") == self.node
                && !string_map(pod, "annotations").contains_key(MIRROR)
                && is_named(pod, sort, name)
        })
    }

    fn volumes_name(&self, namespace: &str, name: &str) -> bool {
        self.list("persistentvolumes", None).iter().any(|volume| {
            let spec = at(&volume.value, "spec").unwrap_or(&Value::Null);
            let claims = text(&volume.value, "spec.claimRef.namespace");
            secrets_of_volume(spec, claims).contains(&(namespace, name)) && self.mounts(&volume.value)
        })
    }
}

/// Whether a pod names an object of its namespace.
fn is_named(pod: &Value, sort: Sort, name: &str) -> bool {
    let spec = at(pod, "spec").unwrap_or(&Value::Null);
    let holders: &[&str] = match sort {
        Sort::Account => return text(spec, "serviceAccountName") == name,
        Sort::Claim => return claims(pod).any(|claim| claim == name),
        Sort::ResourceClaim => return resource_claims(pod).any(|claim| claim == name),
        Sort::Secret => &["secretKeyRef", "secretRef", "nodePublishSecretRef", "secret"],
        Sort::ConfigMap => &["configMapKeyRef", "configMapRef", "configMap"],
        Sort::Volume | Sort::Pod | Sort::Attachment | Sort::Slice => return false,
    };
    let pulls = || {
        list(spec, "imagePullSecrets")
            .iter()
            .any(|secret| text(secret, "name") == name)
    };
    names_within(spec, holders, name) || sort == Sort::Secret && pulls()
}

/// Whether one of the fields anywhere within a value names an object.
fn names_within(value: &Value, holders: &[&str], name: &str) -> bool {
    match value {
        Value::Object(map) => map.iter().any(|(field, part)| {
            let is_holder = holders.contains(&field.as_str()) && text(part, "name") == name;
            let is_secret = field == "secretName" && holders.contains(&"secret") && part == name;
            is_holder || is_secret || names_within(part, holders, name)
        }),
        Value::Array(items) => items.iter().any(|item| names_within(item, holders, name)),
        _ => false,
    }
}

/// The claims of a pod's volumes.
fn claims(pod: &Value) -> impl Iterator<Item = String> {
    list(pod, "spec.volumes").iter().filter_map(|volume| {
        let named = text(volume, "persistentVolumeClaim.claimName");
        match (named, volume.get("ephemeral")) {
            ("", Some(_)) => Some(format!("{}-{}", pod.name(), text(volume, "name"))),
            ("", None) => None,
            (named, _) => Some(named.to_owned()),
        }
    })
}

/// The claims of a pod's devices that are there.
fn resource_claims(pod: &Value) -> impl Iterator<Item = &str> {
    let named = list(pod, "spec.resourceClaims")
        .iter()
        .map(|claim| text(claim, "resourceClaimName"));
    let made = list(pod, "status.resourceClaimStatuses")
        .iter()
        .map(|claim| text(claim, "resourceClaimName"));
    let extended = text(pod, "status.extendedResourceClaimStatus.resourceClaimName");
    named
        .chain(made)
        .chain([extended])
        .filter(|name| !name.is_empty())
}

/// The secrets that a node needs for a volume, with their namespaces: where none is said, that of the volume's claim.
fn secrets_of_volume<'a>(spec: &'a Value, claims: &'a str) -> Vec<(&'a str, &'a str)> {
    let sources = spec.as_object().into_iter().flatten();
    let parts = sources.filter_map(|(_, source)| source.as_object()).flatten();
    let mut found = Vec::new();
    for (field, reference) in parts {
        let is_visible = field.ends_with("ecretRef") && !field.starts_with("controller");
        let (namespace, name) = match (field.as_str(), reference) {
            ("secretName", Value::String(name)) => ("", name.as_str()),
            _ if is_visible => (text(reference, "namespace"), text(reference, "name")),
            _ => continue,
        };
        found.push((if namespace.is_empty() { claims } else { namespace }, name));
    }
    found
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use shared_json::json;

    use super::*;

    #[rstest]
    #[case(Sort::Secret, "pull", true)]
    #[case(Sort::Secret, "env", true)]
    #[case(Sort::Secret, "volume", true)]
    #[case(Sort::Secret, "projected", true)]
    #[case(Sort::Secret, "config", false)]
    #[case(Sort::ConfigMap, "config", true)]
    #[case(Sort::ConfigMap, "env", false)]
    #[case(Sort::Account, "sa", true)]
    #[case(Sort::Claim, "data", true)]
    #[case(Sort::Claim, "p-scratch", true)]
    #[case(Sort::ResourceClaim, "made", true)]
    #[case(Sort::ResourceClaim, "other", false)]
    fn pods_name_objects(#[case] sort: Sort, #[case] name: &str, #[case] expected: bool) {
        let pod = json!({
            "metadata": {"name": "p"},
            "spec": {
                "serviceAccountName": "sa",
                "imagePullSecrets": [{"name": "pull"}],
                "containers": [{
                    "env": [{"valueFrom": {"secretKeyRef": {"name": "env", "key": "k"}}}],
                    "envFrom": [{"configMapRef": {"name": "config"}}],
                }],
                "volumes": [
                    {"name": "a", "secret": {"secretName": "volume"}},
                    {"name": "b", "projected": {"sources": [{"secret": {"name": "projected"}}]}},
                    {"name": "c", "persistentVolumeClaim": {"claimName": "data"}},
                    {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}},
                ],
            },
            "status": {"resourceClaimStatuses": [{"name": "d", "resourceClaimName": "made"}]},
        });
        assert_eq!(is_named(&pod, sort, name), expected);
    }

    #[rstest]
    #[case(json!({"csi": {"nodeStageSecretRef": {"name": "s", "namespace": "n"}}}), &[("n", "s")])]
    #[case(json!({"csi": {"controllerPublishSecretRef": {"name": "s", "namespace": "n"}}}), &[])]
    #[case(json!({"azureFile": {"secretName": "s"}}), &[("claims", "s")])]
    fn volumes_name_secrets(#[case] spec: Value, #[case] expected: &[(&str, &str)]) {
        assert_eq!(secrets_of_volume(&spec, "claims"), expected);
    }
}
