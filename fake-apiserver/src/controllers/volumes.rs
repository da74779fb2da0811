//! Claims and volumes: binds the ones to the others, makes volumes for storage classes, and lets both go when nothing
//! uses them any more.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};

use super::runtime::{Cache, Controller, Cx, Key, Next, Res, list, text};
use super::workloads::pods::is_over;
use crate::meta::{ObjectMeta as _, at, string_map};
use crate::selector::matches_selector;
use crate::types::Quantity;

const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";
const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
const PROVISIONER: &str = "volume.kubernetes.io/storage-provisioner";
const DEFAULT_CLASS: &str = "storageclass.kubernetes.io/is-default-class";
const CLAIM_FINALIZER: &str = "kubernetes.io/pvc-protection";
const VOLUME_FINALIZER: &str = "kubernetes.io/pv-protection";
/// What says that a class makes no volumes.
const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";

/// The controller. Its keys are claims; a volume's has no namespace.
pub(super) struct Volumes;

fn class_of(object: &Value) -> &str {
    text(object, "spec.storageClassName")
}

fn size(object: &Value, path: &str) -> Quantity {
    at(object, path).map_or(Quantity::count(0), Quantity::of)
}

fn mode(object: &Value) -> &str {
    match text(object, "spec.volumeMode") {
        "" => "Filesystem",
        mode => mode,
    }
}

fn is_bound_to(volume: &Value, claim: &Value) -> bool {
    let reference = at(volume, "spec.claimRef");
    reference.is_some_and(|reference| {
        text(reference, "name") == claim.name()
            && text(reference, "namespace") == claim.namespace()
            && (text(reference, "uid").is_empty() || text(reference, "uid") == claim.uid())
    })
}

/// Whether a volume could serve a claim.
fn fits(volume: &Value, claim: &Value) -> bool {
    let selected = match at(claim, "spec.selector") {
        Some(selector) => matches_selector(Some(selector), string_map(volume, "labels")),
        None => true,
    };
    let free = at(volume, "spec.claimRef").is_none_or(Value::is_null) || is_bound_to(volume, claim);
    let modes = list(claim, "spec.accessModes")
        .iter()
        .all(|mode| list(volume, "spec.accessModes").contains(mode));
    let (has, wants) = (
        size(volume, "spec.capacity.storage"),
        size(claim, "spec.resources.requests.storage"),
    );
    free && selected
        && modes
        && class_of(volume) == class_of(claim)
        && mode(volume) == mode(claim)
        && has.nanos() >= wants.nanos()
        && !volume.is_terminating()
        && matches!(
            text(volume, "status.phase"),
            "" | "Pending" | "Available" | "Bound"
        )
}

/// The smallest volume that serves a claim; the first by name among equals.
fn choose<'a>(volumes: impl Iterator<Item = &'a Arc<Value>>, claim: &Value) -> Option<&'a Arc<Value>> {
    volumes.filter(|volume| fits(volume, claim)).min_by_key(|volume| {
        let own = is_bound_to(volume, claim);
        (
            !own,
            size(volume, "spec.capacity.storage").nanos(),
            volume.name().to_owned(),
        )
    })
}

fn annotation<'a>(object: &'a Value, key: &str) -> &'a str {
    string_map(object, "annotations")
        .get(key)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// The volume that a provisioner would make for a claim.
fn provisioned(class: &Value, claim: &Value) -> Value {
    let provisioner = text(class, "provisioner");
    let reclaim = match text(class, "reclaimPolicy") {
        "" => "Delete",
        policy => policy,
    };
    let mut volume = json!({
        "metadata": {"name": format!("pvc-{}", claim.uid()), "annotations": {PROVISIONED_BY: provisioner}},
        "spec": {
            "accessModes": claim.pointer("/spec/accessModes"),
            "capacity": {"storage": claim.pointer("/spec/resources/requests/storage")},
            "claimRef": reference(claim),
            "persistentVolumeReclaimPolicy": reclaim, "storageClassName": class.name(), "volumeMode": mode(claim),
            "hostPath": {"path": format!("/var/lib/volumes/pvc-{}", claim.uid()), "type": "DirectoryOrCreate"},
        },
    });
    let node = annotation(claim, SELECTED_NODE);
    if !node.is_empty() {
        volume["spec"]["nodeAffinity"] = json!({"required": {"nodeSelectorTerms": [{"matchExpressions": [
            {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]},
        ]}]}});
    }
    volume
}

fn reference(claim: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": claim.namespace(), "name": claim.name(),
        "uid": claim.uid(), "resourceVersion": claim.resource_version(),
    })
}

/// Whether a pod that has not ended uses a claim.
fn in_use(cache: &Cache, claim: &Value) -> bool {
    cache
        .in_namespace(Res::Pods, claim.namespace())
        .any(|pod| !is_over(pod) && uses(pod, claim.name()))
}

fn uses(pod: &Value, claim: &str) -> bool {
    list(pod, "spec.volumes").iter().any(|volume| {
        text(volume, "persistentVolumeClaim.claimName") == claim
            || (volume.get("ephemeral").is_some()
                && format!("{}-{}", pod.name(), text(volume, "name")) == claim)
    })
}

#[async_trait]
impl Controller for Volumes {
    fn name(&self) -> &'static str {
        "persistentvolume-controller"
    }

    fn watches(&self) -> &'static [Res] {
        &[Res::Claims, Res::Volumes, Res::StorageClasses, Res::Pods]
    }

    fn affected(&self, cache: &Cache, res: Res, object: &Value, old: Option<&Value>) -> Vec<Key> {
        match res {
            Res::Claims => {
                let mut keys = vec![Key::of(object)];
                let volume = text(object, "spec.volumeName");
                if cache
                    .get(Res::Claims, object.namespace(), object.name())
                    .is_none()
                    && !volume.is_empty()
                {
                    keys.push(Key::new("", volume));
                }
                keys
            }
            Res::Volumes => {
                let mut keys = vec![Key::of(object)];
                let is_kept = |volume: &Value| at(volume, "spec.claimRef").is_some_and(Value::is_object);
                if old.is_none_or(|old| is_kept(old) && !is_kept(object)) {
                    keys.extend(
                        cache
                            .all(Res::Claims)
                            .filter(|claim| {
                                // One that is let go again says so only later.
                                let serves = match old {
                                    Some(_) => class_of(object) == class_of(claim),
                                    None => fits(object, claim),
                                };
                                serves && text(claim, "spec.volumeName").is_empty()
                            })
                            .map(|claim| Key::of(claim)),
                    );
                }
                let claim = at(object, "spec.claimRef").filter(|claim| claim.is_object());
                keys.extend(claim.map(|claim| Key::new(text(claim, "namespace"), text(claim, "name"))));
                keys
            }
            Res::StorageClasses => cache
                .all(Res::Claims)
                .filter(|claim| {
                    let takes =
                        at(claim, "spec.storageClassName").is_none() || class_of(claim) == object.name();
                    takes && text(claim, "spec.volumeName").is_empty()
                })
                .map(|claim| Key::of(claim))
                .collect(),
            _ => {
                // A pod that ends may have been the last to use a claim.
                let there = cache.get(Res::Pods, object.namespace(), object.name()).is_some();
                if there && !is_over(object) {
                    return Vec::new();
                }
                list(object, "spec.volumes")
                    .iter()
                    .map(|volume| text(volume, "persistentVolumeClaim.claimName"))
                    .filter(|name| !name.is_empty())
                    .map(|name| Key::new(object.namespace(), name))
                    .collect()
            }
        }
    }

    async fn sync(&mut self, cx: &mut Cx<'_>, key: &Key) -> Result<Next, kube::Error> {
        if key.namespace.is_empty() {
            return volume(cx, key).await;
        }
        let Some(claim) = cx.cache.get(Res::Claims, &key.namespace, &key.name).cloned() else {
            return Ok(Next::Change);
        };
        if claim.is_terminating() {
            if claim.finalizers().contains(&CLAIM_FINALIZER) && !in_use(cx.cache, &claim) {
                unprotect(cx, Res::Claims, &claim, CLAIM_FINALIZER).await?;
            }
            return Ok(Next::Change);
        }
        let volume = text(&claim, "spec.volumeName");
        if annotation(&claim, BIND_COMPLETED).is_empty() {
            bind(cx, &claim).await?;
        } else if cx.cache.get(Res::Volumes, "", volume).is_none() {
            lose(cx, &claim).await?;
        } else {
            resize(cx, &claim).await?;
        }
        Ok(Next::Change)
    }
}

async fn unprotect(cx: &mut Cx<'_>, res: Res, object: &Value, finalizer: &str) -> Result<(), kube::Error> {
    let left: Vec<&str> = object
        .finalizers()
        .into_iter()
        .filter(|name| *name != finalizer)
        .collect();
    match cx
        .patch(res, object, "", json!({"metadata": {"finalizers": left}}))
        .await
    {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        other => other.map(|_| ()),
    }
}

/// Tells that a claim's volume is gone.
async fn lose(cx: &mut Cx<'_>, claim: &Value) -> Result<(), kube::Error> {
    if text(claim, "status.phase") == "Lost" {
        return Ok(());
    }
    let status = json!({"phase": "Lost", "accessModes": null, "capacity": null});
    cx.patch(Res::Claims, claim, "/status", json!({"status": status}))
        .await?;
    let text = "Bound claim has lost its PersistentVolume. Data on the volume is lost!".to_owned();
    cx.warning(Res::Claims, claim, "ClaimLost", text);
    Ok(())
}

/// Finds a claim's class: its own, or the default one if it names none.
fn find_class(cache: &Cache, claim: &Value) -> Option<Arc<Value>> {
    cache.get(Res::StorageClasses, "", class_of(claim)).cloned()
}

async fn bind(cx: &mut Cx<'_>, claim: &Arc<Value>) -> Result<(), kube::Error> {
    let mut claim = Arc::clone(claim);
    if at(&claim, "spec.storageClassName").is_none() && text(&claim, "spec.volumeName").is_empty() {
        let default = cx
            .cache
            .all(Res::StorageClasses)
            .find(|class| annotation(class, DEFAULT_CLASS) == "true")
            .map(|class| class.name().to_owned());
        if let Some(name) = default {
            claim = Arc::new(
                cx.patch(
                    Res::Claims,
                    &claim,
                    "",
                    json!({"spec": {"storageClassName": name}}),
                )
                .await?,
            );
        }
    }
    let named = text(&claim, "spec.volumeName");
    let class = find_class(cx.cache, &claim);
    let waits = class
        .as_ref()
        .is_some_and(|class| text(class, "volumeBindingMode") == "WaitForFirstConsumer")
        && annotation(&claim, SELECTED_NODE).is_empty();
    let volume = if named.is_empty() {
        choose(cx.cache.all(Res::Volumes), &claim)
            .cloned()
            .filter(|volume| !waits || is_bound_to(volume, &claim))
    } else {
        cx.cache
            .get(Res::Volumes, "", named)
            .filter(|volume| fits(volume, &claim))
            .cloned()
    };
    if let Some(volume) = volume {
        return join(cx, &claim, &volume).await;
    }
    if !named.is_empty() {
        return Ok(());
    }
    if waits {
        let text = "waiting for first consumer to be created before binding".to_owned();
        cx.normal(Res::Claims, &claim, "WaitForFirstConsumer", text);
        return Ok(());
    }
    provision(cx, &claim, class.as_deref()).await
}

async fn provision(cx: &mut Cx<'_>, claim: &Value, class: Option<&Value>) -> Result<(), kube::Error> {
    let Some(class) = class else {
        let name = class_of(claim);
        if name.is_empty() {
            let text =
                "no persistent volumes available for this claim and no storage class is set".to_owned();
            cx.normal(Res::Claims, claim, "FailedBinding", text);
        } else {
            let text = format!("storageclass.storage.k8s.io \"{name}\" not found");
            cx.warning(Res::Claims, claim, "ProvisioningFailed", text);
        }
        return Ok(());
    };
    let provisioner = text(class, "provisioner");
    if provisioner == NO_PROVISIONER {
        let text = format!("no volume plugin matched name: {provisioner}");
        cx.warning(Res::Claims, claim, "ProvisioningFailed", text);
        return Ok(());
    }
    let mut claim = claim.clone();
    if annotation(&claim, PROVISIONER).is_empty() {
        let patch = json!({"metadata": {"annotations": {
            PROVISIONER: provisioner, "volume.beta.kubernetes.io/storage-provisioner": provisioner,
        }}});
        claim = cx.patch(Res::Claims, &claim, "", patch).await?;
        let text = format!(
            "Waiting for a volume to be created either by the external provisioner '{provisioner}' or manually by the \
             system administrator. If volume creation is delayed, please verify that the provisioner is running and \
             correctly registered."
        );
        cx.normal(Res::Claims, &claim, "ExternalProvisioning", text);
    }
    match cx.create(Res::Volumes, "", provisioned(class, &claim)).await {
        Ok(volume) => {
            let text = format!("Successfully provisioned volume {}", volume.name());
            cx.normal(Res::Claims, &claim, "ProvisioningSucceeded", text);
            join(cx, &claim, &volume).await
        }
        Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => Ok(()),
        Err(error) => Err(error),
    }
}

/// Binds in four steps, as recorded: the volume's reference, its phase, the claim's volume, its phase.
async fn join(cx: &mut Cx<'_>, claim: &Value, volume: &Value) -> Result<(), kube::Error> {
    let mut volume = volume.clone();
    if text(&volume, "spec.claimRef.uid").is_empty() {
        let mut patch = json!({"spec": {"claimRef": reference(claim)}});
        if at(&volume, "spec.claimRef").is_none_or(Value::is_null) {
            patch["metadata"] = json!({"annotations": {BOUND_BY_CONTROLLER: "yes"}});
        }
        volume = cx.patch(Res::Volumes, &volume, "", patch).await?;
    }
    if text(&volume, "status.phase") != "Bound" {
        volume = set_phase(cx, &volume, "Bound", "").await?;
    }
    let mut annotations = json!({BIND_COMPLETED: "yes"});
    if text(claim, "spec.volumeName").is_empty() {
        annotations[BOUND_BY_CONTROLLER] = json!("yes");
    }
    let patch = json!({"metadata": {"annotations": annotations}, "spec": {"volumeName": volume.name()}});
    let claim = cx.patch(Res::Claims, claim, "", patch).await?;
    let status = json!({
        "phase": "Bound", "accessModes": volume.pointer("/spec/accessModes"),
        "capacity": volume.pointer("/spec/capacity"),
    });
    cx.patch(Res::Claims, &claim, "/status", json!({"status": status}))
        .await?;
    Ok(())
}

async fn set_phase(
    cx: &mut Cx<'_>,
    volume: &Value,
    phase: &str,
    message: &str,
) -> Result<Value, kube::Error> {
    let mut status = json!({"phase": phase, "lastPhaseTransitionTime": cx.stamp()});
    if !message.is_empty() {
        status["message"] = json!(message);
    }
    cx.patch(Res::Volumes, volume, "/status", json!({"status": status}))
        .await
}

/// A bound claim that asks for more gets it, where its class allows that.
async fn resize(cx: &mut Cx<'_>, claim: &Value) -> Result<(), kube::Error> {
    let wants = size(claim, "spec.resources.requests.storage");
    if text(claim, "status.phase") != "Bound"
        || wants.nanos() <= size(claim, "status.capacity.storage").nanos()
    {
        return Ok(());
    }
    let allowed = find_class(cx.cache, claim)
        .is_some_and(|class| at(&class, "allowVolumeExpansion").and_then(Value::as_bool) == Some(true));
    let Some(volume) = cx
        .cache
        .get(Res::Volumes, "", text(claim, "spec.volumeName"))
        .cloned()
    else {
        return Ok(());
    };
    if !allowed {
        return Ok(());
    }
    let storage = claim.pointer("/spec/resources/requests/storage");
    cx.patch(
        Res::Volumes,
        &volume,
        "",
        json!({"spec": {"capacity": {"storage": storage}}}),
    )
    .await?;
    cx.patch(
        Res::Claims,
        claim,
        "/status",
        json!({"status": {"capacity": {"storage": storage}}}),
    )
    .await?;
    Ok(())
}

async fn volume(cx: &mut Cx<'_>, key: &Key) -> Result<Next, kube::Error> {
    let Some(volume) = cx.cache.get(Res::Volumes, "", &key.name).cloned() else {
        return Ok(Next::Change);
    };
    let reference = at(&volume, "spec.claimRef").filter(|reference| reference.is_object());
    let claim = reference.and_then(|reference| {
        cx.cache
            .get(Res::Claims, text(reference, "namespace"), text(reference, "name"))
            .filter(|claim| text(reference, "uid").is_empty() || claim.uid() == text(reference, "uid"))
    });
    let phase = text(&volume, "status.phase");
    if volume.is_terminating() {
        let used = claim.is_some_and(|claim| text(claim, "spec.volumeName") == volume.name());
        if !used && volume.finalizers().contains(&VOLUME_FINALIZER) {
            unprotect(cx, Res::Volumes, &volume, VOLUME_FINALIZER).await?;
        }
        return Ok(Next::Change);
    }
    match reference {
        // One that is kept for a claim that has not come yet is available as well: to that claim.
        None if phase != "Available" => {
            cx.patch(
                Res::Volumes,
                &volume,
                "/status",
                json!({"status": {"phase": "Available"}}),
            )
            .await?;
        }
        Some(reference) if claim.is_none() && !text(reference, "uid").is_empty() => {
            if !matches!(phase, "Released" | "Failed") {
                set_phase(cx, &volume, "Released", "").await?;
            }
            if text(&volume, "spec.persistentVolumeReclaimPolicy") == "Delete" && phase != "Failed" {
                reclaim(cx, &volume).await?;
            }
        }
        Some(reference) if text(reference, "uid").is_empty() && phase.is_empty() | (phase == "Pending") => {
            set_phase(cx, &volume, "Available", "").await?;
        }
        _ => {}
    }
    Ok(Next::Change)
}

/// Deletes a released volume, if it can be: what is behind it must be the cluster's own.
async fn reclaim(cx: &mut Cx<'_>, volume: &Value) -> Result<(), kube::Error> {
    let path = text(volume, "spec.hostPath.path");
    let own = !annotation(volume, PROVISIONED_BY).is_empty();
    if !path.is_empty() && !path.starts_with("/tmp/") && !own {
        let why = format!("host_path deleter only supports /tmp/.+ but received provided {path}");
        let newest = cx.cache.get(Res::Volumes, "", volume.name()).cloned();
        if let Some(newest) = newest {
            let status = json!({"phase": "Failed", "message": why});
            cx.patch(Res::Volumes, &newest, "/status", json!({"status": status}))
                .await?;
        }
        cx.warning(Res::Volumes, volume, "VolumeFailedDelete", why);
        return Ok(());
    }
    if path.is_empty() && !own {
        return Ok(());
    }
    cx.delete(Res::Volumes, volume, None).await
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn volume(name: &str, storage: &str, extra: Value) -> Arc<Value> {
        let mut volume = json!({
            "metadata": {"name": name, "labels": {"tier": "gold"}}, "status": {"phase": "Available"},
            "spec": {"capacity": {"storage": storage}, "accessModes": ["ReadWriteOnce"], "storageClassName": "c"},
        });
        json_patch::merge(&mut volume, &extra);
        Arc::new(volume)
    }

    #[rstest]
    #[case(volume("v", "1Gi", json!({})), true)]
    #[case(volume("v", "1", json!({})), false)]
    #[case(volume("v", "5Gi", json!({})), true)]
    #[case(volume("v", "1Gi", json!({"spec": {"storageClassName": "d"}})), false)]
    #[case(volume("v", "1Gi", json!({"spec": {"accessModes": ["ReadOnlyMany"]}})), false)]
    #[case(volume("v", "1Gi", json!({"spec": {"volumeMode": "Block"}})), false)]
    #[case(volume("v", "1Gi", json!({"spec": {"claimRef": {"namespace": "d", "name": "c"}}})), true)]
    #[case(volume("v", "1Gi", json!({"spec": {"claimRef": {"namespace": "d", "name": "c", "uid": "9"}}})), false)]
    #[case(volume("v", "1Gi", json!({"spec": {"claimRef": {"namespace": "d", "name": "x"}}})), false)]
    #[case(volume("v", "1Gi", json!({"metadata": {"labels": {"tier": "tin"}}})), false)]
    #[case(volume("v", "1Gi", json!({"status": {"phase": "Released"}})), false)]
    #[case(volume("v", "1Gi", json!({"metadata": {"deletionTimestamp": "x"}})), false)]
    fn which_volume_serves(#[case] volume: Arc<Value>, #[case] expected: bool) {
        let claim = json!({
            "metadata": {"namespace": "d", "name": "c", "uid": "1"},
            "spec": {
                "accessModes": ["ReadWriteOnce"], "storageClassName": "c", "selector": {"matchLabels": {"tier": "gold"}},
                "resources": {"requests": {"storage": "1Gi"}},
            },
        });
        assert_eq!(fits(&volume, &claim), expected);
    }

    #[test]
    fn the_smallest_is_enough() {
        let claim = json!({"metadata": {"namespace": "d", "name": "c", "uid": "1"}, "spec": {"storageClassName": "c", "resources": {"requests": {"storage": "2Gi"}}}});
        let volumes = [
            volume("a", "9Gi", json!({})),
            volume("b", "3Gi", json!({})),
            volume("c", "3Gi", json!({})),
            volume("d", "1Gi", json!({})),
        ];
        assert_eq!(
            choose(volumes.iter(), &claim).map(|found| found.name()),
            Some("b")
        );
    }
}
