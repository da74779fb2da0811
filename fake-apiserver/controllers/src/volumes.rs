//! Claims and volumes: binds the ones to the others, makes volumes for storage classes, and lets both go when nothing
//! uses them any more.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use client_kit::{EventRecorder, EventType};
use jiff::Timestamp;
use machinery::meta::{ObjectMeta as _, at};
use machinery::placement::{class_of, is_bound_to, mode, size, volume_fits as fits};
use shared_json::{Value, json};

use super::binding::{annotation, choose, default_class, in_use, mismatch, waiting};
use super::runtime::{Cache, Controller, Cx, Key, Next, Res, involved, list, text, until};

const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";
const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
const PROVISIONER: &str = "volume.kubernetes.io/storage-provisioner";
const CLAIM_FINALIZER: &str = "kubernetes.io/pvc-protection";
const VOLUME_FINALIZER: &str = "kubernetes.io/pv-protection";
/// The time until a finalizer that a client has removed is back.
const MOMENT: Duration = Duration::from_millis(100);
/// The source of events about growing claims.
const EXPANDER: &str = "volume_expand";
/// The provisioner of classes that make no volumes.
const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";

/// The controller. Its keys are claims; a volume's has no namespace.
#[derive(Default)]
pub(super) struct Volumes {
    /// Tells of claims that grow, in a name of its own.
    expander: Option<EventRecorder>,
    /// Since when claims and volumes have been without their finalizer.
    bare: BTreeMap<Key, Timestamp>,
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
    if !list(class, "mountOptions").is_empty() {
        volume["spec"]["mountOptions"] = json!(list(class, "mountOptions"));
    }
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
                // It has taken a volume: what else is kept for it is free again.
                if old.is_some_and(|old| text(old, "spec.volumeName").is_empty()) && !volume.is_empty() {
                    let kept = cache.all(Res::Volumes).filter(|kept| {
                        let claim = at(kept, "spec.claimRef");
                        kept.name() != volume && claim.is_some_and(|claim| text(claim, "uid") == object.uid())
                    });
                    keys.extend(kept.map(|kept| Key::new("", kept.name())));
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
                                let named = text(claim, "spec.volumeName");
                                named == object.name() || serves && named.is_empty()
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
                let used: Vec<Key> = list(object, "spec.volumes")
                    .iter()
                    .filter_map(|volume| match text(volume, "persistentVolumeClaim.claimName") {
                        "" if volume.get("ephemeral").is_some() => {
                            Some(format!("{}-{}", object.name(), text(volume, "name")))
                        }
                        "" => None,
                        name => Some(name.to_owned()),
                    })
                    .map(|name| Key::new(object.namespace(), &name))
                    .collect();
                // A pod that goes may have been the last to use a claim.
                let goes = || {
                    let there = cache.get(Res::Pods, object.namespace(), object.name());
                    there.is_none() || object.is_terminating()
                };
                if !used.is_empty() && goes() {
                    used
                } else {
                    Vec::new()
                }
            }
        }
    }

    async fn sync(&mut self, cx: &mut Cx<'_>, key: &Key) -> Result<Next, kube::Error> {
        let later = self.protect(cx, key).await?;
        if key.namespace.is_empty() {
            volume(cx, key).await?;
        } else {
            self.claim(cx, key).await?;
        }
        Ok(later.into())
    }
}

impl Volumes {
    /// Restores a finalizer that a client has removed, a moment later: a client that deletes the object at once is quicker, as
    /// with the real one. Says how long that still is.
    async fn protect(&mut self, cx: &mut Cx<'_>, key: &Key) -> Result<Option<Duration>, kube::Error> {
        let (res, finalizer) = if key.namespace.is_empty() {
            (Res::Volumes, VOLUME_FINALIZER)
        } else {
            (Res::Claims, CLAIM_FINALIZER)
        };
        let object = cx.cache.get(res, &key.namespace, &key.name).cloned();
        let is_bare =
            |object: &Arc<Value>| !object.is_terminating() && !object.finalizers().contains(&finalizer);
        let Some(object) = object.filter(is_bare) else {
            self.bare.remove(key);
            return Ok(None);
        };
        let now = cx.now();
        let since = *self.bare.entry(key.clone()).or_insert(now);
        let left = since.saturating_add(MOMENT).ok().and_then(|at| until(at, now));
        if left.is_some() {
            return Ok(left);
        }
        let mut finalizers = object.finalizers();
        finalizers.push(finalizer);
        let patch = json!({"metadata": {"finalizers": finalizers}});
        cx.patch(res, &object, "", patch).await?;
        self.bare.remove(key);
        Ok(None)
    }

    async fn claim(&mut self, cx: &mut Cx<'_>, key: &Key) -> Result<(), kube::Error> {
        let Some(claim) = cx.cache.get(Res::Claims, &key.namespace, &key.name).cloned() else {
            return Ok(());
        };
        if claim.is_terminating() {
            if claim.finalizers().contains(&CLAIM_FINALIZER) && !in_use(cx.cache, &claim) {
                unprotect(cx, Res::Claims, &claim, CLAIM_FINALIZER).await?;
            }
            return Ok(());
        }
        let volume = text(&claim, "spec.volumeName");
        if annotation(&claim, BIND_COMPLETED).is_empty() {
            bind(cx, &claim).await?;
        } else if let Some((reason, why)) = lost(cx.cache, &claim) {
            lose(cx, &claim, reason, why).await?;
        } else if let Some(volume) = cx.cache.get(Res::Volumes, "", volume).cloned()
            && at(&volume, "spec.claimRef").is_none_or(Value::is_null)
        {
            // The volume was taken from its claim.
            join(cx, &claim, &volume).await?;
        } else {
            self.resize(cx, &claim).await?;
        }
        Ok(())
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

/// Why a claim that was bound has no volume any more, if it has none.
fn lost(cache: &Cache, claim: &Value) -> Option<(&'static str, &'static str)> {
    let name = text(claim, "spec.volumeName");
    if name.is_empty() {
        return Some((
            "ClaimLost",
            "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!",
        ));
    }
    let Some(volume) = cache.get(Res::Volumes, "", name) else {
        return Some((
            "ClaimLost",
            "Bound claim has lost its PersistentVolume. Data on the volume is lost!",
        ));
    };
    let kept_for = at(volume, "spec.claimRef").filter(|reference| reference.is_object())?;
    (text(kept_for, "uid") != claim.uid()).then_some((
        "ClaimMisbound",
        "Two claims are bound to the same volume, this one is bound incorrectly",
    ))
}

/// Tells once that a claim has lost its volume.
async fn lose(cx: &mut Cx<'_>, claim: &Value, reason: &str, why: &str) -> Result<(), kube::Error> {
    if text(claim, "status.phase") == "Lost" {
        return Ok(());
    }
    let status = json!({
        "phase": "Lost", "accessModes": null, "capacity": null, "currentVolumeAttributesClassName": null,
    });
    cx.patch(Res::Claims, claim, "/status", json!({"status": status}))
        .await?;
    cx.warning(Res::Claims, claim, reason, why.to_owned());
    Ok(())
}

/// Finds a claim's class: its own, or the default one if it names none.
fn find_class(cache: &Cache, claim: &Value) -> Option<Arc<Value>> {
    cache.get(Res::StorageClasses, "", class_of(claim)).cloned()
}

/// Binds a claim to the volume that it names, or says why that cannot be.
async fn bind_named(cx: &mut Cx<'_>, claim: &Value) -> Result<(), kube::Error> {
    let name = text(claim, "spec.volumeName");
    let Some(volume) = cx.cache.get(Res::Volumes, "", name).cloned() else {
        return Ok(());
    };
    let is_free = at(&volume, "spec.claimRef").is_none_or(Value::is_null);
    if !is_free && !is_bound_to(&volume, claim) {
        if annotation(claim, BOUND_BY_CONTROLLER).is_empty() {
            let text = format!("volume \"{name}\" already bound to a different claim.");
            cx.warning(Res::Claims, claim, "FailedBinding", text);
        }
        return Ok(());
    }
    match mismatch(&volume, claim).filter(|_| is_free) {
        Some(why) => {
            let text = format!("Cannot bind to requested volume \"{name}\": {why}");
            cx.warning(Res::Claims, claim, "VolumeMismatch", text);
            Ok(())
        }
        None => join(cx, claim, &volume).await,
    }
}

async fn bind(cx: &mut Cx<'_>, claim: &Arc<Value>) -> Result<(), kube::Error> {
    if !text(claim, "spec.volumeName").is_empty() {
        return bind_named(cx, claim).await;
    }
    let mut claim = Arc::clone(claim);
    let found = |cx: &Cx<'_>, claim: &Value| {
        let class = find_class(cx.cache, claim);
        let waits = class
            .as_ref()
            .is_some_and(|class| text(class, "volumeBindingMode") == "WaitForFirstConsumer")
            && annotation(claim, SELECTED_NODE).is_empty();
        let volume = choose(cx.cache.all(Res::Volumes), claim)
            .cloned()
            .filter(|volume| !waits || is_bound_to(volume, claim));
        (class, waits, volume)
    };
    let (mut class, mut waits, mut volume) = found(cx, &claim);
    // What names no class gets the default one, unless a volume without one serves it.
    if volume.is_none()
        && at(&claim, "spec.storageClassName").is_none()
        && let Some(name) = default_class(cx.cache)
    {
        let patch = json!({"spec": {"storageClassName": name}});
        claim = Arc::new(cx.patch(Res::Claims, &claim, "", patch).await?);
        (class, waits, volume) = found(cx, &claim);
    }
    if let Some(volume) = volume {
        return join(cx, &claim, &volume).await;
    }
    if waits {
        let (reason, text) = waiting(cx.cache, &claim);
        cx.normal(Res::Claims, &claim, reason, text);
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
    let mut status = json!({
        "phase": "Bound", "accessModes": volume.pointer("/spec/accessModes"),
        "capacity": volume.pointer("/spec/capacity"),
    });
    // Later it is up to who resizes.
    if text(&claim, "status.phase") == "Pending" {
        let attributes = volume.pointer("/spec/volumeAttributesClassName");
        status["currentVolumeAttributesClassName"] = attributes.cloned().unwrap_or_default();
    }
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
    let message = Some(message).filter(|message| !message.is_empty());
    let status = json!({"phase": phase, "lastPhaseTransitionTime": cx.stamp(), "message": message});
    cx.patch(Res::Volumes, volume, "/status", json!({"status": status}))
        .await
}

impl Volumes {
    /// A bound claim that asks for more gets it, where its class allows that.
    async fn resize(&mut self, cx: &mut Cx<'_>, claim: &Value) -> Result<(), kube::Error> {
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
        // What nobody here has made, somebody else must expand.
        if annotation(&volume, PROVISIONED_BY).is_empty() {
            let text = "waiting for an external controller to expand this PVC".to_owned();
            let expander = self.expander.get_or_insert_with(|| {
                EventRecorder::new(cx.client.clone(), EXPANDER, None, Arc::clone(cx.clock))
                    .with_reporting(true)
            });
            expander.event(
                &involved(Res::Claims, claim),
                EventType::Normal,
                "ExternalExpanding",
                text,
            );
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
}

async fn volume(cx: &mut Cx<'_>, key: &Key) -> Result<(), kube::Error> {
    let Some(volume) = cx.cache.get(Res::Volumes, "", &key.name).cloned() else {
        return Ok(());
    };
    let reference = at(&volume, "spec.claimRef").filter(|reference| reference.is_object());
    let claim = reference.and_then(|reference| {
        cx.cache
            .get(Res::Claims, text(reference, "namespace"), text(reference, "name"))
            .filter(|claim| text(reference, "uid").is_empty() || claim.uid() == text(reference, "uid"))
    });
    let phase = text(&volume, "status.phase");
    // One that goes is used for as long as it is told so.
    if volume.is_terminating() && phase != "Bound" {
        if volume.finalizers().contains(&VOLUME_FINALIZER) {
            unprotect(cx, Res::Volumes, &volume, VOLUME_FINALIZER).await?;
        }
        return Ok(());
    }
    match reference {
        // One that is kept for a claim that has not come yet is available as well: to that claim.
        None if phase != "Available" => {
            cx.patch(
                Res::Volumes,
                &volume,
                "/status",
                json!({"status": {"phase": "Available", "message": null}}),
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
        Some(reference) if text(reference, "uid").is_empty() && phase != "Available" => {
            set_phase(cx, &volume, "Available", "").await?;
        }
        Some(reference) if !text(reference, "uid").is_empty() => {
            if let Some(claim) = claim.cloned() {
                agree(cx, &volume, &claim).await?;
            }
        }
        _ => {}
    }
    Ok(())
}

/// Updates a volume that a claim was bound to by the claim's spec.
async fn agree(cx: &mut Cx<'_>, volume: &Value, claim: &Value) -> Result<(), kube::Error> {
    let phase = text(volume, "status.phase");
    match text(claim, "spec.volumeName") {
        "" if mode(volume) != mode(claim) => {
            let why = "due to incompatible volumeMode.";
            let name = claim.name();
            let told =
                format!("Cannot bind PersistentVolume to requested PersistentVolumeClaim \"{name}\" {why}");
            cx.warning(Res::Volumes, volume, "VolumeMismatch", told);
            let name = volume.name();
            let told =
                format!("Cannot bind PersistentVolume \"{name}\" to requested PersistentVolumeClaim {why}");
            cx.warning(Res::Claims, claim, "VolumeMismatch", told);
        }
        // The claim takes it.
        "" => {}
        name if name == volume.name() => {
            if phase != "Bound" {
                set_phase(cx, volume, "Bound", "").await?;
            }
        }
        _ if !annotation(volume, PROVISIONED_BY).is_empty()
            && text(volume, "spec.persistentVolumeReclaimPolicy") == "Delete" =>
        {
            if !matches!(phase, "Released" | "Failed") {
                set_phase(cx, volume, "Released", "").await?;
            }
            reclaim(cx, volume).await?;
        }
        _ => unbind(cx, volume).await?,
    }
    Ok(())
}

/// Takes a volume from its claim, which has another one. One that was kept for the claim by hand stays so.
async fn unbind(cx: &mut Cx<'_>, volume: &Value) -> Result<(), kube::Error> {
    let patch = if annotation(volume, BOUND_BY_CONTROLLER).is_empty() {
        json!({"spec": {"claimRef": {"uid": null}}})
    } else {
        json!({"metadata": {"annotations": {BOUND_BY_CONTROLLER: null}}, "spec": {"claimRef": null}})
    };
    let volume = cx.patch(Res::Volumes, volume, "", patch).await?;
    if text(&volume, "status.phase") != "Available" {
        set_phase(cx, &volume, "Available", "").await?;
    }
    Ok(())
}

/// Deletes a released volume, if possible: its storage must be the cluster's own.
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
