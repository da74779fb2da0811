//! The smaller plugins: the default classes of storage and of ingresses, overhead of runtime classes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::StatusCode;
use machinery::meta::{ObjectMeta, at, string_map};
use machinery::placement::OS_IMAGE;
use machinery::status::ApiError;
use machinery::types::Quantity;
use pki::Request;
use shared_json::{Value, json};
use store::{GroupResource, ObjectKey};

use super::{Attributes, Operation};
use crate::server::ServerState;

const NOT_READY: &str = "node.kubernetes.io/not-ready";
const OTHER_OVERHEAD: &str = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";
const DEFAULT_CLASS: &str = "storageclass.kubernetes.io/is-default-class";
const DEFAULT_INGRESS_CLASS: &str = "ingressclass.kubernetes.io/is-default-class";

/// DefaultStorageClass: claims that name no class get the default one, the newest if there are several.
pub(super) fn default_storage_class(
    server: &ServerState,
    attributes: &mut Attributes,
) -> Result<(), ApiError> {
    if attributes.operation != Operation::Create || !attributes.is("", "persistentvolumeclaims") {
        return Ok(());
    }
    let Some(claim) = attributes.object.as_mut() else {
        return Ok(());
    };
    let named = at(claim, "spec.storageClassName").is_some()
        || string_map(claim, "annotations").contains_key("volume.beta.kubernetes.io/storage-class");
    if named {
        return Ok(());
    }
    let table = GroupResource::new("storage.k8s.io", "storageclasses");
    if let Some(class) = default_class(server, &table, DEFAULT_CLASS)? {
        claim["spec"]["storageClassName"] = Value::from(class);
    }
    Ok(())
}

/// DefaultIngressClass: ingresses that name no class get the default one in the same way.
pub(super) fn default_ingress_class(
    server: &ServerState,
    attributes: &mut Attributes,
) -> Result<(), ApiError> {
    if attributes.operation != Operation::Create || !attributes.is("networking.k8s.io", "ingresses") {
        return Ok(());
    }
    let Some(ingress) = attributes.object.as_mut() else {
        return Ok(());
    };
    let named = at(ingress, "spec.ingressClassName").is_some()
        || string_map(ingress, "annotations").contains_key("kubernetes.io/ingress.class");
    if named {
        return Ok(());
    }
    let table = GroupResource::new("networking.k8s.io", "ingressclasses");
    if let Some(class) = default_class(server, &table, DEFAULT_INGRESS_CLASS)? {
        ingress["spec"]["ingressClassName"] = Value::from(class);
    }
    Ok(())
}

/// The class that is the default one by an annotation: of several the newest, of equally new ones the first by name.
fn default_class(
    server: &ServerState,
    table: &GroupResource,
    annotation: &str,
) -> Result<Option<String>, ApiError> {
    let classes = server
        .store
        .list(table, None, None, None)
        .map_err(ApiError::expired)?
        .items;
    let defaults = classes.iter().filter(|class| {
        string_map(&class.value, "annotations")
            .get(annotation)
            .and_then(Value::as_str)
            == Some("true")
    });
    let newest = defaults.max_by_key(|class| {
        let created = class.value.meta_str("creationTimestamp").to_owned();
        (created, std::cmp::Reverse(class.key.name.clone()))
    });
    Ok(newest.map(|class| class.key.name.to_string()))
}

/// The request in a CertificateSigningRequest, if it can be read.
fn certificate_request(object: &Value) -> Option<Request> {
    let pem = STANDARD.decode(at(object, "spec.request")?.as_str()?).ok()?;
    Request::from_pem(&String::from_utf8_lossy(&pem))
}

/// The common name of a certificate request.
pub(super) fn certificate_name(object: &Value) -> Option<String> {
    Some(certificate_request(object)?.subject.common_name)
}

/// CertificateSubjectRestriction: refuses client certificates for the group `system:masters`.
pub(super) fn certificate_subject(attributes: &Attributes) -> Result<(), ApiError> {
    const SIGNER: &str = "kubernetes.io/kube-apiserver-client";
    if attributes.operation != Operation::Create
        || !attributes.is("certificates.k8s.io", "certificatesigningrequests")
        || !attributes.subresource.is_empty()
    {
        return Ok(());
    }
    let text = |path: &str| {
        let object = attributes.object.as_ref();
        object
            .and_then(|object| at(object, path)?.as_str())
            .unwrap_or_default()
    };
    if text("spec.signerName") != SIGNER {
        return Ok(());
    }
    let request = attributes.object.as_ref().and_then(certificate_request);
    let masters = |request: Request| {
        request
            .subject
            .organizations
            .iter()
            .any(|name| name == "system:masters")
    };
    if request.is_some_and(masters) {
        let resource = attributes.resource.group_resource();
        let why = format!("use of {SIGNER} signer with system:masters group is not allowed");
        return Err(ApiError::forbidden(&resource, attributes.shown_name(), &why));
    }
    Ok(())
}

/// PersistentVolumeClaimResize: only bound claims may grow, and only where their class allows it.
pub(super) fn claim_resize(server: &ServerState, attributes: &Attributes) -> Result<(), ApiError> {
    if attributes.operation != Operation::Update
        || !attributes.is("", "persistentvolumeclaims")
        || !attributes.subresource.is_empty()
    {
        return Ok(());
    }
    let (Some(claim), Some(old)) = (&attributes.object, &attributes.old) else {
        return Ok(());
    };
    let size = |claim: &Value| {
        at(claim, "spec.resources.requests.storage").map_or(0, |size| Quantity::of(size).nanos())
    };
    if size(claim) <= size(old) {
        return Ok(());
    }
    let refuse = |why: &str| {
        let resource = attributes.resource.group_resource();
        Err(ApiError::forbidden(&resource, attributes.shown_name(), why))
    };
    if at(old, "status.phase").and_then(Value::as_str) != Some("Bound") {
        return refuse("Only bound persistent volume claims can be expanded");
    }
    let class = string_map(claim, "annotations")
        .get("volume.beta.kubernetes.io/storage-class")
        .or_else(|| at(claim, "spec.storageClassName"))
        .and_then(Value::as_str)
        .unwrap_or_default();
    let table = GroupResource::new("storage.k8s.io", "storageclasses");
    let class = server.store.get(&table, &ObjectKey::new("", class));
    let allows = |class: &Value| class.get("allowVolumeExpansion").and_then(Value::as_bool) == Some(true);
    if class.is_some_and(|class| allows(&class.value)) {
        return Ok(());
    }
    refuse(
        "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize",
    )
}

/// TaintNodesByCondition: a new node takes no pods until a controller takes the taint off. A simulated node that is ready when
/// it is registered does without.
pub(super) fn taint_node(attributes: &mut Attributes) {
    if attributes.operation != Operation::Create || !attributes.is("", "nodes") {
        return;
    }
    let Some(node) = attributes.object.as_mut() else {
        return;
    };
    let conditions = at(node, "status.conditions").and_then(Value::as_array);
    let is_simulated = at(node, "status.nodeInfo.osImage").is_some_and(|image| image == OS_IMAGE);
    let ready = is_simulated
        && conditions.into_iter().flatten().any(|condition| {
            condition.get("type").and_then(Value::as_str) == Some("Ready")
                && condition.get("status").and_then(Value::as_str) == Some("True")
        });
    let taint = json!({"key": NOT_READY, "effect": "NoSchedule"});
    let mut taints = at(node, "spec.taints")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let there = |given: &Value| {
        given.get("key").and_then(Value::as_str) == Some(NOT_READY)
            && given.get("effect").and_then(Value::as_str) == Some("NoSchedule")
    };
    if !ready && !taints.iter().any(there) {
        taints.push(taint);
        node["spec"]["taints"] = Value::Array(taints);
    }
}

/// RuntimeClass: pods get the overhead and the nodes of their class.
pub(super) fn runtime_class(server: &ServerState, attributes: &mut Attributes) -> Result<(), ApiError> {
    let resource = attributes.resource.group_resource();
    let name = attributes.shown_name().to_owned();
    let refuse = |why: String| Err(ApiError::forbidden(&resource, &name, &why));
    let Some(pod) = attributes.object.as_mut() else {
        return Ok(());
    };
    let Some(class) = at(pod, "spec.runtimeClassName").and_then(Value::as_str) else {
        return Ok(());
    };
    if class.is_empty() {
        // Asked for it, the real server's client says so.
        let why = "resource name may not be empty";
        return Err(ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "", why));
    }
    let class = class.to_owned();
    let table = GroupResource::new("node.k8s.io", "runtimeclasses");
    let Some(stored) = server.store.get(&table, &ObjectKey::new("", &class)) else {
        return refuse(format!("pod rejected: RuntimeClass \"{class}\" not found"));
    };
    let spec = &mut pod["spec"];
    if let Some(overhead) = at(&stored.value, "overhead.podFixed") {
        if has_overhead(spec) && spec.get("overhead") != Some(overhead) {
            return refuse(OTHER_OVERHEAD.to_owned());
        }
        spec["overhead"] = overhead.clone();
    }
    if let Some(labels) = at(&stored.value, "scheduling.nodeSelector").and_then(Value::as_object) {
        for (key, value) in labels {
            if spec
                .get("nodeSelector")
                .and_then(|given| given.get(key))
                .is_some_and(|given| given != value)
            {
                let why = format!(
                    "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {}; pod.spec.nodeSelector[{key}] = {}",
                    value.as_str().unwrap_or_default(),
                    at(spec, "nodeSelector")
                        .and_then(|given| given.get(key)?.as_str())
                        .unwrap_or_default()
                );
                return refuse(why);
            }
            if !spec.get("nodeSelector").is_some_and(Value::is_object) {
                spec["nodeSelector"] = json!({});
            }
            spec["nodeSelector"][key] = value.clone();
        }
    }
    if let Some(more) = at(&stored.value, "scheduling.tolerations").and_then(Value::as_array) {
        let given = spec.get("tolerations").and_then(Value::as_array);
        let all: Vec<Value> = given.into_iter().flatten().chain(more).cloned().collect();
        spec["tolerations"] = Value::from(widest(&all));
    }
    Ok(())
}

fn has_overhead(spec: &Value) -> bool {
    let overhead = spec.get("overhead").and_then(Value::as_object);
    overhead.is_some_and(|overhead| !overhead.is_empty())
}

/// RuntimeClass, once more: a pod has the overhead of its class, and none without one.
pub(super) fn pod_overhead(server: &ServerState, attributes: &Attributes) -> Result<(), ApiError> {
    let (Operation::Create, true, Some(pod)) = (
        attributes.operation,
        attributes.is("", "pods"),
        &attributes.object,
    ) else {
        return Ok(());
    };
    let class = at(pod, "spec.runtimeClassName")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let table = GroupResource::new("node.k8s.io", "runtimeclasses");
    let class = server.store.get(&table, &ObjectKey::new("", class));
    let defined = class
        .as_ref()
        .and_then(|class| at(&class.value, "overhead.podFixed"));
    let why = match (defined, at(pod, "spec.overhead")) {
        (Some(defined), Some(given)) if defined == given => return Ok(()),
        (Some(_), _) => OTHER_OVERHEAD,
        (None, Some(_)) => {
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
        }
        (None, None) => return Ok(()),
    };
    let resource = attributes.resource.group_resource();
    Err(ApiError::forbidden(&resource, attributes.shown_name(), why))
}

/// Tolerations without those that others among them include.
fn widest(all: &[Value]) -> Vec<Value> {
    let mut merged: Vec<Value> = Vec::new();
    for (index, toleration) in all.iter().enumerate() {
        let later = all.get(index + 1..).unwrap_or_default();
        let is_included = merged.iter().any(|kept| includes(kept, toleration))
            || later
                .iter()
                .any(|other| other != toleration && includes(other, toleration));
        if !is_included {
            merged.push(toleration.clone());
        }
    }
    merged
}

/// Whether a toleration tolerates all that another one does.
fn includes(wide: &Value, narrow: &Value) -> bool {
    if wide == narrow {
        return true;
    }
    let text = |of: &'_ Value, field: &str| {
        let text = of.get(field).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    let seconds = |of: &Value| of.get("tolerationSeconds").and_then(Value::as_i64);
    let (key, effect) = (text(wide, "key"), text(wide, "effect"));
    let of_any = text(wide, "operator") == "Exists";
    if text(narrow, "key") != key && !(key.is_empty() && of_any) {
        return false;
    }
    if text(narrow, "effect") != effect && !effect.is_empty() {
        return false;
    }
    if effect == "NoExecute"
        && let Some(most) = seconds(wide)
        && seconds(narrow).is_none_or(|asked| asked > most)
    {
        return false;
    }
    match text(wide, "operator").as_str() {
        "Equal" | "" => text(narrow, "operator") == "Equal" && text(narrow, "value") == text(wide, "value"),
        _ => of_any,
    }
}
