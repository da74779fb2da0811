//! Claims of a StatefulSet's pods: made before the pods, and given owners by the retention policy.

use machinery::meta::ObjectMeta as _;
use shared_json::{Value, json};

use super::pod_control::refusal;
use super::pods::owner_reference;
use super::statefulset::{first, ordinal};
use crate::runtime::{Cache, Cx, Res, list, number, text};

/// The name of a pod's claim by a template.
pub(super) fn claim_name(template: &Value, set: &Value, ordinal: i64) -> String {
    format!("{}-{}-{ordinal}", text(template, "metadata.name"), set.name())
}

/// Makes the missing claims of a pod; or returns why some cannot be made.
pub(super) async fn ensure_claims(
    cx: &mut Cx<'_>,
    set: &Value,
    ordinal: i64,
) -> Result<(), (String, kube::Error)> {
    let (mut why, mut first) = (Vec::new(), None);
    for template in list(set, "spec.volumeClaimTemplates") {
        if let Err((text, error)) = ensure_claim(cx, set, template, ordinal).await {
            if !why.contains(&text) {
                why.push(text);
            }
            first.get_or_insert(error);
        }
    }
    match (first, why.as_slice()) {
        (None, _) => Ok(()),
        (Some(error), [only]) => Err((only.clone(), error)),
        (Some(error), several) => Err((format!("[{}]", several.join(", ")), error)),
    }
}

async fn ensure_claim(
    cx: &mut Cx<'_>,
    set: &Value,
    template: &Value,
    ordinal: i64,
) -> Result<(), (String, kube::Error)> {
    let name = claim_name(template, set, ordinal);
    if let Some(claim) = cx.cache.get(Res::Claims, set.namespace(), &name) {
        if claim.is_terminating() {
            let why = format!("pvc {name} is being deleted");
            let error = kube::Error::Api(kube::core::Status::failure(&why, "Conflict").boxed());
            return Err((why, error));
        }
        return Ok(());
    }
    let mut metadata = template.get("metadata").cloned().unwrap_or_else(|| json!({}));
    metadata["name"] = Value::from(name.clone());
    metadata["namespace"] = Value::from(set.namespace());
    let labels = set
        .pointer("/spec/selector/matchLabels")
        .and_then(Value::as_object);
    for (key, value) in labels.into_iter().flatten() {
        metadata["labels"][key] = value.clone();
    }
    let spec = template.get("spec").cloned().unwrap_or_else(|| json!({}));
    let claim = json!({"metadata": metadata, "spec": spec});
    let pod = format!("{}-{ordinal}", set.name());
    match cx.create(Res::Claims, set.namespace(), claim).await {
        Ok(_) => {
            let text = format!(
                "Create Claim {name} Pod {pod} in StatefulSet {} success",
                set.name()
            );
            cx.normal(Res::StatefulSets, set, "SuccessfulCreate", text);
            Ok(())
        }
        Err(error) => {
            let why = refusal(&error);
            let is_there = matches!(&error, kube::Error::Api(status) if status.is_already_exists());
            if !is_there {
                let text = format!(
                    "Create Claim {name} for Pod {pod} in StatefulSet {} failed error: {why}",
                    set.name()
                );
                cx.warning(Res::StatefulSets, set, "FailedCreate", text);
            }
            Err((format!("failed to create PVC {name}: {why}"), error))
        }
    }
}

fn goes(set: &Value, field: &str) -> bool {
    text(set, &format!("spec.persistentVolumeClaimRetentionPolicy.{field}")) == "Delete"
}

/// Whether a pod that is not there has to wait: a claim of its name still belongs to the one before it, and goes with that.
pub(super) fn waits_for_claims(cache: &Cache, set: &Value, ordinal: i64) -> bool {
    let pod = json!({"metadata": {"name": format!("{}-{ordinal}", set.name())}});
    let mut templates = list(set, "spec.volumeClaimTemplates").iter();
    goes(set, "whenScaled")
        && templates.any(|template| {
            cache
                .get(Res::Claims, set.namespace(), &claim_name(template, set, ordinal))
                .is_some_and(|claim| is_stale(claim, "v1", "Pod", &pod))
        })
}

/// The owner of a claim: none, the set, or, once its pod is in excess, that pod, by the set's retention policy.
fn claim_owner<'a>(set: &'a Value, pod: &'a Value) -> Option<(&'static str, &'static str, &'a Value)> {
    let (start, count) = (first(set), number(set, "spec.replicas", 1));
    let is_condemned = ordinal(set, pod).is_some_and(|ordinal| ordinal < start || ordinal >= start + count);
    if goes(set, "whenScaled") && is_condemned {
        Some(("v1", "Pod", pod))
    } else {
        goes(set, "whenDeleted").then_some(("apps/v1", "StatefulSet", set))
    }
}

/// Whether a reference is to the set or the pod, by name: perhaps to one that was there before it.
fn names(owner: &Value, version: &str, kind: &str, object: &Value) -> bool {
    text(owner, "apiVersion") == version
        && text(owner, "kind") == kind
        && text(owner, "name") == object.name()
}

/// Whether a claim belongs to an object of the same name that was there before this one.
fn is_stale(claim: &Value, version: &str, kind: &str, object: &Value) -> bool {
    list(claim, "metadata.ownerReferences")
        .iter()
        .find(|owner| names(owner, version, kind, object))
        .is_some_and(|owner| text(owner, "uid") != object.uid())
}

/// Whether a claim whose owners matter belongs to another object.
fn is_another_s(set: &Value, pod: &Value, claim: &Value) -> bool {
    let mut owners = list(claim, "metadata.ownerReferences").iter();
    (goes(set, "whenDeleted") || goes(set, "whenScaled"))
        && owners.any(|owner| {
            if names(owner, "apps/v1", "StatefulSet", set) {
                text(owner, "uid") != set.uid()
            } else if names(owner, "v1", "Pod", pod) {
                text(owner, "uid") != pod.uid()
            } else {
                is_controller(owner)
            }
        })
}

fn is_controller(owner: &Value) -> bool {
    owner.get("controller").and_then(Value::as_bool) == Some(true)
}

/// The owners of a claim as they should be, if they are not. Those of a claim of an earlier set or pod are left alone.
fn claim_owners(set: &Value, pod: &Value, claim: &Value) -> Option<Vec<Value>> {
    if is_stale(claim, "apps/v1", "StatefulSet", set) || is_stale(claim, "v1", "Pod", pod) {
        return None;
    }
    let is_ours = |owner: &&Value| text(owner, "uid") == set.uid() || text(owner, "uid") == pod.uid();
    let (ours, mut owners): (Vec<&Value>, Vec<&Value>) =
        list(claim, "metadata.ownerReferences").iter().partition(is_ours);
    let owner = claim_owner(set, pod).filter(|_| !is_another_s(set, pod, claim));
    let wanted = owner.map(|(_, _, object)| object.uid());
    let is_well = ours.iter().all(|owner| is_controller(owner))
        && ours.iter().map(|owner| text(owner, "uid")).eq(wanted);
    if is_well {
        return None;
    }
    let added = owner.map(|(version, kind, object)| owner_reference(version, kind, object));
    owners.extend(&added);
    Some(owners.into_iter().cloned().collect())
}

/// Gives the claims of a pod the owners that the set's policy names; returns whether any owner changed.
async fn retain(cx: &mut Cx<'_>, set: &Value, pod: &Value) -> Result<bool, kube::Error> {
    let Some(ordinal) = ordinal(set, pod) else {
        return Ok(false);
    };
    let mut mended = false;
    for template in list(set, "spec.volumeClaimTemplates") {
        let name = claim_name(template, set, ordinal);
        let Some(claim) = cx.cache.get(Res::Claims, set.namespace(), &name).cloned() else {
            continue;
        };
        if is_another_s(set, pod, &claim) {
            let text = format!(
                "PersistentVolumeClaim {name} has a conflicting OwnerReference that acts as a manging controller, the \
                 retention policy is ignored for this claim"
            );
            cx.warning(Res::StatefulSets, set, "ConflictingController", text);
        }
        if let Some(owners) = claim_owners(set, pod, &claim) {
            let patch = json!({"metadata": {"ownerReferences": owners}});
            cx.patch(Res::Claims, &claim, "", patch).await?;
            mended = true;
        }
    }
    Ok(mended)
}

/// The same for a pod whose claims have perhaps just been made.
pub(super) async fn retain_new(cx: &mut Cx<'_>, set: &Value, pod: &Value) -> Result<(), kube::Error> {
    retain(cx, set, pod).await.map(|_| ())
}

/// The same where the claims are there: only if the owners of one are not as they should be is anything said.
pub(super) async fn retain_claims(cx: &mut Cx<'_>, set: &Value, pod: &Value) -> Result<bool, kube::Error> {
    let Some(ordinal) = ordinal(set, pod) else {
        return Ok(false);
    };
    let is_off = list(set, "spec.volumeClaimTemplates").iter().any(|template| {
        cx.cache
            .get(Res::Claims, set.namespace(), &claim_name(template, set, ordinal))
            .is_some_and(|claim| claim_owners(set, pod, claim).is_some())
    });
    if is_off {
        retain(cx, set, pod).await
    } else {
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// Of the second pod's claim, under a policy when the set is deleted and one when it shrinks.
    #[rstest]
    #[case("Retain", "Retain", 2, "", None)]
    #[case("Retain", "Retain", 2, "set", Some(""))]
    #[case("Retain", "Retain", 1, "", None)]
    #[case("Delete", "Retain", 2, "", Some("set"))]
    #[case("Delete", "Retain", 1, "set", None)]
    #[case("Retain", "Delete", 2, "", None)]
    #[case("Retain", "Delete", 1, "", Some("pod"))]
    #[case("Retain", "Delete", 2, "pod", Some(""))]
    #[case("Delete", "Delete", 2, "", Some("set"))]
    #[case("Delete", "Delete", 1, "set", Some("pod"))]
    #[case("Delete", "Delete", 2, "pod", Some("set"))]
    #[case("Delete", "Delete", 2, "other", Some("other set"))]
    #[case("Retain", "Retain", 2, "other set", Some("other"))]
    #[case("Retain", "Retain", 2, "other! set", Some("other"))]
    #[case("Retain", "Retain", 2, "other!", None)]
    #[case("Delete", "Retain", 2, "other!", None)]
    #[case("Delete", "Retain", 2, "other! set", Some("other"))]
    #[case("Delete", "Retain", 2, "set-", Some("set"))]
    #[case("Retain", "Delete", 1, "pod-", Some("pod"))]
    #[case("Delete", "Retain", 2, "set+", None)]
    #[case("Retain", "Delete", 1, "pod+", None)]
    #[case("Retain", "Retain", 2, "pod+", None)]
    #[case("Delete", "Delete", 1, "set pod", Some("pod"))]
    #[case("Delete", "Delete", 1, "pod", None)]
    fn whose_claims(
        #[case] deleted: &str,
        #[case] scaled: &str,
        #[case] replicas: i64,
        #[case] owner: &str,
        #[case] expected: Option<&str>,
    ) {
        let set = json!({"metadata": {"name": "s", "uid": "set"}, "spec": {"replicas": replicas,
            "persistentVolumeClaimRetentionPolicy": {"whenDeleted": deleted, "whenScaled": scaled}}});
        let pod = json!({"metadata": {"name": "s-1", "uid": "pod"}});
        // In short: `!` for another controller, `-` for one of ours that is none, `+` for the one before one of ours.
        let owners: Vec<Value> = owner
            .split_terminator(' ')
            .map(|short| {
                let uid = short.trim_end_matches(['!', '-', '+']);
                let (version, kind, name) = match uid {
                    "set" => ("apps/v1", "StatefulSet", "s"),
                    "pod" => ("v1", "Pod", "s-1"),
                    _ => ("v1", "ConfigMap", "c"),
                };
                let uid = if short.ends_with('+') { "before" } else { uid };
                let controls = !short.ends_with('-') && short != "other";
                json!({"apiVersion": version, "kind": kind, "name": name, "uid": uid, "controller": controls})
            })
            .collect();
        let claim = json!({"metadata": {"ownerReferences": owners}});
        let found = claim_owners(&set, &pod, &claim).map(|owners| {
            let uids: Vec<&str> = owners.iter().map(|owner| text(owner, "uid")).collect();
            uids.join(" ")
        });
        assert_eq!(found.as_deref(), expected);
    }
}
