//! NodeRestriction: a kubelet writes about its own node and about the pods on it, and gives itself nothing that others decide.

use std::collections::BTreeSet;

use machinery::meta::{ObjectMeta as _, at, string_map, text};
use machinery::status::ApiError;
use rules::validation::fields::same;
use shared_json::Value;
use store::{GroupResource, ObjectKey};

use super::{Attributes, Operation};
use crate::authz;
use crate::server::ServerState;

const MIRROR: &str = "kubernetes.io/config.mirror";
const LEASES: &str = "kube-node-lease";
const SAME_LEASE: &str = "can only access node lease with the same name as the requesting node";
const SAME_CSI_NODE: &str = "can only access CSINode with the same name as the requesting node";

/// Labels of Kubernetes' own that kubelets set.
const KUBELET_LABELS: [&str; 11] = [
    "kubernetes.io/hostname",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "beta.kubernetes.io/instance-type",
    "node.kubernetes.io/instance-type",
    "kubernetes.io/os",
    "kubernetes.io/arch",
    "beta.kubernetes.io/os",
    "beta.kubernetes.io/arch",
];
const KUBELET_DOMAINS: [&str; 2] = ["kubelet.kubernetes.io", "node.kubernetes.io"];

/// Whether a node writes.
pub(super) fn is_concerned(attributes: &Attributes) -> bool {
    authz::node_of(&attributes.user).is_some()
}

/// Refuses writes that a node is not allowed.
///
/// # Errors
/// 403; 404 where the write is about a pod that does not exist.
pub(super) fn admit(state: &ServerState, attributes: &Attributes) -> Result<(), ApiError> {
    let Some(node) = authz::node_of(&attributes.user) else {
        return Ok(());
    };
    let write = Write {
        state,
        attributes,
        node,
    };
    let why = if node.is_empty() {
        Some(format!(
            "could not determine node from user {:?}",
            attributes.user.name
        ))
    } else {
        write.complaint()?
    };
    match why {
        None => Ok(()),
        Some(why) => Err(ApiError::forbidden(
            &attributes.resource.group_resource(),
            attributes.shown_name(),
            &why,
        )),
    }
}

struct Write<'a> {
    state: &'a ServerState,
    attributes: &'a Attributes,
    node: &'a str,
}

impl Write<'_> {
    fn complaint(&self) -> Result<Option<String>, ApiError> {
        let resource = &self.attributes.resource;
        let subresource = self.attributes.subresource.as_str();
        Ok(match (resource.group.as_str(), resource.plural.as_str()) {
            ("", "pods") => match subresource {
                "" => self.pod()?,
                "status" => self.pod_status(),
                "eviction" => self.eviction()?,
                other => Some(format!(
                    "unexpected pod subresource {other:?}, only 'status' and 'eviction' are allowed"
                )),
            },
            ("", "nodes") => self.itself(),
            ("", "persistentvolumeclaims") if subresource == "status" => self.claim_status(),
            ("", "persistentvolumeclaims") => Some("may only update PVC status".to_owned()),
            ("", "serviceaccounts") if subresource == "token" => self.token()?,
            ("coordination.k8s.io", "leases") if self.attributes.namespace != LEASES => Some(format!(
                "can only access leases in the {LEASES:?} system namespace"
            )),
            ("coordination.k8s.io", "leases") => self.has_its_name(SAME_LEASE),
            ("storage.k8s.io", "csinodes") => self.has_its_name(SAME_CSI_NODE),
            ("resource.k8s.io", "resourceslices") => self.slice(),
            ("certificates.k8s.io", "certificatesigningrequests") => self.certificate(),
            _ => None,
        })
    }

    fn written(&self) -> &Value {
        self.attributes.object.as_ref().unwrap_or(&Value::Null)
    }

    fn old(&self) -> &Value {
        self.attributes.old.as_ref().unwrap_or(&Value::Null)
    }

    /// Whether a field of the object was something else before.
    fn changes(&self, field: &str) -> bool {
        !same(at(self.written(), field), at(self.old(), field))
    }

    fn has_its_name(&self, otherwise: &str) -> Option<String> {
        let name = match self.attributes.operation {
            Operation::Create => self.written().name(),
            _ => &self.attributes.name,
        };
        (name != self.node).then(|| otherwise.to_owned())
    }

    /// A pod of the request's namespace.
    fn find(&self, name: &str) -> Result<Value, ApiError> {
        self.get(("", "pods"), &self.attributes.namespace, name)
    }

    /// An object. The refusal for a missing one names its kind, as the real server's caches do.
    fn get(&self, table: (&str, &str), namespace: &str, name: &str) -> Result<Value, ApiError> {
        let (group, resource) = table;
        let key = ObjectKey::new(namespace, name);
        let found = self.state.store.get(&GroupResource::new(group, resource), &key);
        let kind = resource.strip_suffix('s').unwrap_or(resource);
        found
            .map(|found| found.value.clone())
            .ok_or_else(|| ApiError::not_found(&GroupResource::new(group, kind), name))
    }

    fn pod(&self) -> Result<Option<String>, ApiError> {
        let node = self.node;
        match self.attributes.operation {
            Operation::Create => self.mirror(),
            Operation::Delete => {
                let name = match self.attributes.name.as_str() {
                    "" => self.old().name(),
                    name => name,
                };
                let is_here = text(&self.find(name)?, "spec.nodeName") == node;
                Ok((!is_here)
                    .then(|| format!("node {node:?} can only delete pods with spec.nodeName set to itself")))
            }
            other => Ok(Some(format!(
                "unexpected operation {:?}, node {node:?} can only create and delete mirror pods",
                other.as_str()
            ))),
        }
    }

    /// A pod that shows one that the node runs of its own: it is on the node, the node's, and names nothing else.
    fn mirror(&self) -> Result<Option<String>, ApiError> {
        let (pod, node) = (self.written(), self.node);
        if !string_map(pod, "annotations").contains_key(MIRROR) {
            return Ok(Some(format!(
                "pod does not have {MIRROR:?} annotation, node {node:?} can only create mirror pods"
            )));
        }
        if text(pod, "spec.nodeName") != node {
            let why = format!("node {node:?} can only create pods with spec.nodeName set to itself");
            return Ok(Some(why));
        }
        let owners = at(pod, "metadata.ownerReferences").and_then(Value::as_array);
        let what = match owners.map_or(&[][..], |owners| owners.as_slice()) {
            [owner] => match self.owner(owner)? {
                Some(why) => return Ok(Some(why)),
                None => named_by(pod),
            },
            [] => {
                let why = format!("node {node:?} can only create pods with an owner reference set to itself");
                return Ok(Some(why));
            }
            _ => {
                let why =
                    format!("node {node:?} can only create pods with a single owner reference set to itself");
                return Ok(Some(why));
            }
        };
        Ok(what.map(|what| format!("node {node:?} can not create pods that reference {what}")))
    }

    fn owner(&self, owner: &Value) -> Result<Option<String>, ApiError> {
        let node = self.node;
        let is_node = text(owner, "apiVersion") == "v1" && text(owner, "kind") == "Node";
        let is = |field: &str| owner.get(field) == Some(&Value::Bool(true));
        let why = if !is_node || text(owner, "name") != node {
            "can only create pods with an owner reference set to itself"
        } else if !is("controller") {
            "can only create pods with a controller owner reference set to itself"
        } else if is("blockOwnerDeletion") {
            "must not set blockOwnerDeletion on an owner reference"
        } else {
            let found = self.get(("", "nodes"), "", node)?;
            let (wanted, is) = (text(owner, "uid"), found.uid());
            return Ok(
                (wanted != is).then(|| format!("node {node} UID mismatch: expected {wanted} got {is}"))
            );
        };
        Ok(Some(format!("node {node:?} {why}")))
    }

    fn pod_status(&self) -> Option<String> {
        let why = if text(self.old(), "spec.nodeName") != self.node {
            "can only update pod status for pods with spec.nodeName set to itself"
        } else if self.changes("metadata.labels") {
            "cannot update labels through pod status"
        } else if self.changes("status.resourceClaimStatuses") {
            "cannot update resource claim statues"
        } else if self.changes("status.extendedResourceClaimStatus") {
            "cannot update extended resource claim status"
        } else {
            return None;
        };
        Some(format!("node {:?} {why}", self.node))
    }

    fn eviction(&self) -> Result<Option<String>, ApiError> {
        let node = self.node;
        let is_here = text(&self.find(&self.attributes.name)?, "spec.nodeName") == node;
        Ok((!is_here).then(|| format!("node {node} can only evict pods with spec.nodeName set to itself")))
    }

    fn itself(&self) -> Option<String> {
        let node = self.node;
        let asked = match self.attributes.operation {
            Operation::Create => self.written().name(),
            _ => &self.attributes.name,
        };
        if asked != node {
            return Some(format!("node {node:?} is not allowed to modify node {asked:?}"));
        }
        match self.attributes.operation {
            Operation::Create => {
                let labels = self.forbidden_labels();
                (!labels.is_empty())
                    .then(|| format!("node {node:?} is not allowed to set the following labels: {labels}"))
            }
            Operation::Update if self.changes("spec.taints") => {
                Some(format!("node {node:?} is not allowed to modify taints"))
            }
            Operation::Update if self.changes("metadata.ownerReferences") => {
                Some(format!("node {node:?} is not allowed to modify ownerReferences"))
            }
            Operation::Update => {
                let labels = self.forbidden_labels();
                (!labels.is_empty()).then(|| format!("is not allowed to modify labels: {labels}"))
            }
            _ => None,
        }
    }

    /// The labels that change and are none of a kubelet's.
    fn forbidden_labels(&self) -> String {
        let (new, old) = (
            string_map(self.written(), "labels"),
            string_map(self.old(), "labels"),
        );
        let changed = new
            .keys()
            .chain(old.keys())
            .filter(|key| new.get(*key) != old.get(*key));
        let forbidden: BTreeSet<&str> = changed
            .map(|key| &**key)
            .filter(|key| is_forbidden(key))
            .collect();
        forbidden.into_iter().collect::<Vec<_>>().join(", ")
    }

    /// Of a claim, a node may write only its size and the state of its growth.
    fn claim_status(&self) -> Option<String> {
        let rest = |object: &Value| {
            let mut object = object.clone();
            for field in ["resourceVersion", "managedFields"] {
                object.metadata_mut().remove(field);
            }
            if let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) {
                for field in [
                    "capacity",
                    "conditions",
                    "allocatedResources",
                    "allocatedResourceStatuses",
                ] {
                    status.remove(field);
                }
            }
            object
        };
        (!same(Some(&rest(self.written())), Some(&rest(self.old())))).then(|| {
            format!(
                "node {:?} is not allowed to update fields other than status.quantity and status.conditions",
                self.node
            )
        })
    }

    /// A token is for a pod on the node, and for an audience that the pod asks for.
    fn token(&self) -> Result<Option<String>, ApiError> {
        let request = self.written();
        let bound = |field: &str| text(request, &format!("spec.boundObjectRef.{field}"));
        let is_pod = bound("apiVersion") == "v1" && bound("kind") == "Pod" && !bound("name").is_empty();
        let why = if !is_pod {
            "node requested token not bound to a pod".to_owned()
        } else if bound("uid").is_empty() {
            "node requested token with a pod binding without a uid".to_owned()
        } else {
            let pod = self.find(bound("name"))?;
            if bound("uid") != pod.uid() {
                format!(
                    "the UID in the bound object reference ({}) does not match the UID in record. The object might have been \
                     deleted and then recreated",
                    bound("uid")
                )
            } else if text(&pod, "spec.nodeName") != self.node {
                "node requested token bound to a pod scheduled on a different node".to_owned()
            } else {
                return Ok(self.audience(&pod));
            }
        };
        Ok(Some(why))
    }

    fn audience(&self, pod: &Value) -> Option<String> {
        let list = at(self.written(), "spec.audiences").and_then(Value::as_array);
        let audience = match list.map_or(&[][..], |list| list.as_slice()) {
            [] => "",
            [audience] => audience.as_str().unwrap_or_default(),
            _ => return Some("node may only request 0 or 1 audiences".to_owned()),
        };
        let volumes = at(pod, "spec.volumes").and_then(Value::as_array);
        let asks = |volume: &Value| {
            let sources = at(volume, "projected.sources").and_then(Value::as_array);
            sources.into_iter().flatten().any(|source| {
                let token = source.get("serviceAccountToken").filter(|token| !token.is_null());
                token.is_some_and(|token| text(token, "audience") == audience)
            })
        };
        let mut missing: Vec<String> = Vec::new();
        for volume in volumes.into_iter().flatten() {
            let of_driver = || self.driver_asks(pod, volume, audience);
            match if asks(volume) { Ok(true) } else { of_driver() } {
                Ok(true) => return None,
                Ok(false) => {}
                Err(error) if missing.contains(&error.message) => {}
                Err(error) => missing.push(error.message),
            }
        }
        match missing.as_slice() {
            [] => {}
            [one] => return Some(format!("error validating audience {audience:?}: {one}")),
            several => {
                let several = several.join(", ");
                return Some(format!("error validating audience {audience:?}: [{several}]"));
            }
        }
        let act = authz::Act {
            verb: "request-serviceaccounts-token-audience".to_owned(),
            resource: audience.to_owned(),
            namespace: self.attributes.namespace.clone(),
            name: self.attributes.name.clone(),
            ..authz::Act::default()
        };
        let user = &self.attributes.user;
        (!authz::allows(self.state, user, &act)).then(|| {
            format!(
                "audience {audience:?} not found in pod spec volume, {} is not authorized to request tokens for this audience",
                user.name
            )
        })
    }

    /// Whether the driver of a volume, be it behind a claim, asks for tokens.
    fn driver_asks(&self, pod: &Value, volume: &Value, audience: &str) -> Result<bool, ApiError> {
        let named = text(volume, "persistentVolumeClaim.claimName");
        let claim = match volume.get("ephemeral") {
            Some(_) => format!("{}-{}", pod.name(), text(volume, "name")),
            None => named.to_owned(),
        };
        let driver = if claim.is_empty() {
            text(volume, "csi.driver").to_owned()
        } else {
            let claim = self.get(("", "persistentvolumeclaims"), &self.attributes.namespace, &claim)?;
            let volume = self.get(("", "persistentvolumes"), "", text(&claim, "spec.volumeName"))?;
            text(&volume, "spec.csi.driver").to_owned()
        };
        if driver.is_empty() {
            return Ok(false);
        }
        let driver = self.get(("storage.k8s.io", "csidrivers"), "", &driver)?;
        let requests = at(&driver, "spec.tokenRequests").and_then(Value::as_array);
        let mut requests = requests.into_iter().flatten();
        Ok(requests.any(|request| text(request, "audience") == audience))
    }

    fn slice(&self) -> Option<String> {
        let (object, what) = match self.attributes.operation {
            Operation::Create => (self.written(), "create"),
            Operation::Delete => (self.old(), "delete"),
            _ => return None,
        };
        (text(object, "spec.nodeName") != self.node)
            .then(|| format!("can only {what} ResourceSlice with the same NodeName as the requesting node"))
    }

    fn certificate(&self) -> Option<String> {
        let signers = [
            "kubernetes.io/kubelet-serving",
            "kubernetes.io/kube-apiserver-client-kubelet",
        ];
        let is_new = self.attributes.operation == Operation::Create;
        if !is_new || !signers.contains(&text(self.written(), "spec.signerName")) {
            return None;
        }
        if let Some(problem) = rules::validation::request_problem(self.written()) {
            return Some(format!("unable to parse csr: {problem}"));
        }
        let wanted = format!("system:node:{}", self.node);
        let name = super::single_rule_plugins::certificate_name(self.written())?;
        (name != wanted).then(|| format!("can only create a node CSR with CN={wanted}"))
    }
}

/// Whether a kubelet may not decide over a label: those of Kubernetes' own that are not for it, and those that keep pods apart.
fn is_forbidden(key: &str) -> bool {
    let domain = key.split_once('/').map_or("", |(domain, _)| domain);
    let is_in = |suffix: &str| {
        domain == suffix
            || domain
                .strip_suffix(suffix)
                .is_some_and(|rest| rest.ends_with('.'))
    };
    let is_own = is_in("kubernetes.io") || is_in("k8s.io");
    let is_kubelets = KUBELET_LABELS.contains(&key) || KUBELET_DOMAINS.into_iter().any(is_in);
    is_in("node-restriction.kubernetes.io") || is_own && !is_kubelets
}

/// A kind of other object that a pod names.
fn named_by(pod: &Value) -> Option<&'static str> {
    fn has(value: &Value, fields: &[&str]) -> bool {
        match value {
            Value::Object(map) => map
                .iter()
                .any(|(field, part)| fields.contains(&field.as_str()) || has(part, fields)),
            Value::Array(items) => items.iter().any(|item| has(item, fields)),
            _ => false,
        }
    }
    let spec = at(pod, "spec").unwrap_or(&Value::Null);
    let secrets = [
        "secret",
        "secretRef",
        "secretKeyRef",
        "secretName",
        "imagePullSecrets",
        "nodePublishSecretRef",
    ];
    let kinds: [(&str, &[&str]); 9] = [
        ("serviceaccounts", &["serviceAccountName"]),
        ("secrets", &secrets),
        ("configmaps", &["configMap", "configMapRef", "configMapKeyRef"]),
        ("resourceclaims", &["resourceClaims"]),
        ("csidrivers (via CSI volumes)", &["csi"]),
        ("endpoints (via glusterFS volumes)", &["glusterfs"]),
        ("persistentvolumeclaims", &["persistentVolumeClaim"]),
        ("persistentvolumeclaims (via ephemeral volumes)", &["ephemeral"]),
        (
            "serviceaccounts (via projected volumes)",
            &["serviceAccountToken"],
        ),
    ];
    kinds
        .into_iter()
        .find(|(_, fields)| has(spec, fields))
        .map(|(kind, _)| kind)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("a", false)]
    #[case("example.com/a", false)]
    #[case("kubernetes.io/hostname", false)]
    #[case("x.node.kubernetes.io/a", false)]
    #[case("kubelet.kubernetes.io/a", false)]
    #[case("kubernetes.io/a", true)]
    #[case("x.k8s.io/a", true)]
    #[case("node-restriction.kubernetes.io/a", true)]
    #[case("x.node-restriction.kubernetes.io/a", true)]
    #[case("notkubernetes.io/a", false)]
    fn labels_of_others(#[case] key: &str, #[case] expected: bool) {
        assert_eq!(is_forbidden(key), expected);
    }
}
