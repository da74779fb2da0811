//! The webhook of requests: it fills in the fields that the daemon needs. Texts and their order are those of OpenKruise.

use std::collections::BTreeSet;

use futures::FutureExt as _;
use k8s_openapi::api::core::v1::{Container, LifecycleHandler, Pod};
use kube::ResourceExt as _;
use serde_json::{Value, json};

use super::GATE;
use crate::api::labels::{REQUEST_ACTIVE, REQUEST_NODE, REQUEST_POD_UID, REQUEST_UNREADY};
use crate::api::v1alpha1::{
    ContainerContext, ContainerRecreateRequest, ContainerRecreateRequestSpec, PreStop, RecreateStrategy,
    RecreatedContainer,
};
use crate::kit::ObjectKey;
use crate::kit::admission::{Refusal, Request, Rule, Webhook, WebhookKind, patch};
use crate::pods::CachedNode;

/// The webhooks of requests.
pub(super) const WEBHOOKS: &[Webhook] = &[Webhook {
    rule: Rule::of_apps(
        (
            "mcontainerrecreaterequest.kb.io",
            "/mutate-apps-kruise-io-v1alpha1-containerrecreaterequest",
            WebhookKind::Mutating,
        ),
        &["v1alpha1"],
        &["containerrecreaterequests"],
        &["CREATE", "UPDATE"],
    ),
    answer: |request| answer(request).boxed(),
}];

/// The shortest deadline.
const DEADLINE_SECONDS_MIN: i64 = 3;
/// The condition of a pod whose phase did not wait for its sidecars: they can still be stopped.
const TERMINATED: &str = "SidecarTerminated";

async fn answer(request: &Request<'_>) -> Result<Option<Value>, Refusal> {
    if !request.surroundings.gates.is_on(GATE) {
        return Err(Refusal::new(403, format!("feature-gate {GATE} is not enabled")));
    }
    let object = request.decoded()?;
    let new = decoded(object)?;
    if let Some(old) = request.old {
        return match forbidden(&decoded(old)?, &new) {
            Some(message) => Err(Refusal::new(403, message)),
            None => Ok(None),
        };
    }
    let mut filled = new;
    let strategy = checked(&mut filled.spec).map_err(|message| Refusal::new(400, message))?;
    filled
        .labels_mut()
        .insert(REQUEST_ACTIVE.to_owned(), "true".to_owned());
    let pod = pod_of(request, &filled.spec.pod_name).await?;
    fill_from_node(request, &pod, &mut filled).await?;
    let uid = pod.uid().unwrap_or_default();
    filled.labels_mut().insert(REQUEST_POD_UID.to_owned(), uid);
    let grace = pod
        .spec
        .as_ref()
        .and_then(|spec| spec.termination_grace_period_seconds);
    filled.spec.strategy = Some(RecreateStrategy {
        termination_grace_period_seconds: strategy.termination_grace_period_seconds.or(grace),
        ..strategy
    });
    fill_containers(&mut filled.spec.containers, &pod).map_err(|message| Refusal::new(400, message))?;
    let mut after = object.clone();
    if let Some(after) = after.as_object_mut() {
        let metadata = after.entry("metadata").or_insert_with(|| json!({}));
        metadata["labels"] = json!(filled.metadata.labels);
        after.insert("spec".to_owned(), json!(filled.spec));
    }
    Ok(patch(object, after))
}

/// The request, with the error that Go's decoder has for a text in place of a number.
fn decoded(object: &Value) -> Result<ContainerRecreateRequest, Refusal> {
    const NUMBERS: [(&str, &str); 2] = [
        ("activeDeadlineSeconds", "int64"),
        ("ttlSecondsAfterFinished", "int32"),
    ];
    for (name, kind) in NUMBERS {
        if object
            .pointer(&format!("/spec/{name}"))
            .is_some_and(Value::is_string)
        {
            let field = format!("ContainerRecreateRequestSpec.spec.{name}");
            let message =
                format!("json: cannot unmarshal string into Go struct field {field} of type {kind}");
            return Err(Refusal::new(400, message));
        }
    }
    let mut object = object.clone();
    if let Some(spec) = object.pointer_mut("/spec").and_then(Value::as_object_mut) {
        // What is absent is checked for below.
        spec.entry("podName").or_insert_with(|| json!(""));
        if spec.get("containers").is_none_or(Value::is_null) {
            spec.insert("containers".to_owned(), json!([]));
        }
    }
    serde_json::from_value(object).map_err(|error| Refusal::new(400, error))
}

/// Why an update is not allowed.
fn forbidden(old: &ContainerRecreateRequest, new: &ContainerRecreateRequest) -> Option<String> {
    if old.spec != new.spec {
        return Some("spec of ContainerRecreateRequest is immutable".to_owned());
    }
    for label in [REQUEST_POD_UID, REQUEST_NODE] {
        if old.labels().get(label) != new.labels().get(label) {
            return Some(format!("not allowed to update immutable label {label}"));
        }
    }
    let noted = |request: &ContainerRecreateRequest| {
        let noted = request.annotations().get(REQUEST_UNREADY).cloned();
        noted.unwrap_or_default()
    };
    if !noted(old).is_empty() && noted(old) != noted(new) {
        return Some(format!(
            "not allowed to update immutable annotation {REQUEST_UNREADY}"
        ));
    }
    None
}

/// The strategy of a spec, with its defaults, if the spec alone is right.
fn checked(spec: &mut ContainerRecreateRequestSpec) -> Result<RecreateStrategy, String> {
    if spec.pod_name.is_empty() {
        return Err("podName can not be empty".to_owned());
    }
    let mut strategy = spec.strategy.take().unwrap_or_default();
    if spec.containers.is_empty() {
        return Err("containers list can not be null".to_owned());
    }
    if spec
        .active_deadline_seconds
        .is_some_and(|seconds| seconds < DEADLINE_SECONDS_MIN)
    {
        return Err(format!(
            "activeDeadlineSeconds can not be less than {DEADLINE_SECONDS_MIN}s"
        ));
    }
    for (name, seconds) in [
        (
            "terminationGracePeriodSeconds",
            strategy.termination_grace_period_seconds,
        ),
        ("unreadyGracePeriodSeconds", strategy.unready_grace_period_seconds),
    ] {
        if seconds.is_some_and(|seconds| seconds < 0) {
            return Err(format!("{name} must be non-negative integer"));
        }
    }
    match strategy.failure_policy.as_deref().unwrap_or_default() {
        "" => strategy.failure_policy = Some("Fail".to_owned()),
        "Fail" | "Ignore" => {}
        other => return Err(format!("unknown failurePolicy {other}")),
    }
    Ok(strategy)
}

/// The pod of a request, if its containers can be stopped.
async fn pod_of(request: &Request<'_>, name: &str) -> Result<Pod, Refusal> {
    let key = ObjectKey::new(request.namespace, name);
    let found = request.surroundings.object::<Pod>(&key).await;
    let pod = found.map_err(|error| Refusal::new(500, format!("failed to find Pod {name}: {error}")))?;
    let Some(pod) = pod else {
        return Err(Refusal::new(400, format!("no found Pod named {name}")));
    };
    let status = pod.status.as_ref();
    let phase = status
        .and_then(|status| status.phase.as_deref())
        .unwrap_or_default();
    let is_over = matches!(phase, "Succeeded" | "Failed") || pod.metadata.deletion_timestamp.is_some();
    let mut conditions = status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten());
    if is_over && !conditions.any(|condition| condition.type_ == TERMINATED) {
        return Err(Refusal::new(
            400,
            "not allowed to recreate containers in an inactive Pod",
        ));
    }
    if node_of(&pod).is_empty() {
        return Err(Refusal::new(
            400,
            "not allowed to recreate containers in a pending Pod",
        ));
    }
    Ok(pod)
}

fn node_of(pod: &Pod) -> &str {
    let spec = pod.spec.as_ref();
    spec.and_then(|spec| spec.node_name.as_deref())
        .unwrap_or_default()
}

/// Fills in the labels that name the node, which must be there.
async fn fill_from_node(
    request: &Request<'_>,
    pod: &Pod,
    filled: &mut ContainerRecreateRequest,
) -> Result<(), Refusal> {
    let name = node_of(pod);
    let nodes = request.surroundings.cache::<CachedNode>().await?;
    let Some(node) = nodes.get(&ObjectKey::new("", name)) else {
        let message = format!("failed to get Node {name}: Node \"{name}\" not found");
        return Err(Refusal::new(400, message));
    };
    let labels = filled.labels_mut();
    labels.insert(REQUEST_NODE.to_owned(), name.to_owned());
    if node.is_virtual() {
        labels.insert("type".to_owned(), "virtual-kubelet".to_owned());
    }
    Ok(())
}

/// Fills in the containers of a request from those of the pod.
fn fill_containers(containers: &mut [RecreatedContainer], pod: &Pod) -> Result<(), String> {
    let spec = pod.spec.as_ref();
    let regular = spec.iter().flat_map(|spec| &spec.containers);
    let init = spec.iter().flat_map(|spec| spec.init_containers.iter().flatten());
    let known: Vec<&Container> = regular.chain(init).collect();
    let statuses = pod
        .status
        .iter()
        .flat_map(|status| status.container_statuses.iter().flatten());
    let statuses: Vec<_> = statuses.collect();
    let mut names = BTreeSet::new();
    for container in containers {
        if container.pre_stop.is_some() || container.ports.is_some() || container.status_context.is_some() {
            return Err("preStop, ports, statusContext in container are ready-only fields".to_owned());
        }
        let name = container.name.clone();
        if !names.insert(name.clone()) {
            return Err(format!("can not recreate {name} multi times"));
        }
        let Some(found) = known.iter().find(|known| known.name == name) else {
            return Err(format!("container {name} not found in Pod"));
        };
        let Some(status) = statuses.iter().find(|status| status.name == name) else {
            return Err(format!("not found {name} containerStatus in Pod Status"));
        };
        let id = status.container_id.clone().unwrap_or_default();
        if id.is_empty() {
            return Err(format!(
                "no containerID in {name} containerStatus, maybe the container has not been initialized"
            ));
        }
        let hook = found
            .lifecycle
            .as_ref()
            .and_then(|lifecycle| lifecycle.pre_stop.as_ref());
        container.pre_stop = hook.map(pre_stop);
        if hook.is_some_and(|hook| hook.http_get.is_some()) {
            container.ports = found.ports.clone();
        }
        container.status_context = Some(ContainerContext {
            container_id: id,
            restart_count: status.restart_count,
        });
    }
    Ok(())
}

/// A hook as a request has it. One that sleeps becomes empty: requests have no field for it.
fn pre_stop(hook: &LifecycleHandler) -> PreStop {
    PreStop {
        exec: hook.exec.clone(),
        http_get: hook.http_get.clone(),
        tcp_socket: hook.tcp_socket.clone(),
    }
}

#[cfg(test)]
#[path = "webhook_tests.rs"]
mod tests;
