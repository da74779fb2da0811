//! Claims of a StatefulSet's pods: made before the pods, and given owners by what is to become of them.

use std::sync::Arc;

use shared_json::{Value, json};

use super::pods::owner_reference;
use super::replicaset::refusal;
use super::statefulset::{first, ordinal};
use crate::controllers::runtime::{Cx, Res, list, number, text};
use crate::meta::ObjectMeta as _;

/// The name of a pod's claim by a template.
pub(super) fn claim_name(template: &Value, set: &Value, ordinal: i64) -> String {
    format!("{}-{}-{ordinal}", text(template, "metadata.name"), set.name())
}

/// Makes the claims of a pod that are not there; or tells why one is not to be had.
pub(super) async fn ensure_claims(
    cx: &mut Cx<'_>,
    set: &Value,
    ordinal: i64,
) -> Result<(), (String, kube::Error)> {
    for template in list(set, "spec.volumeClaimTemplates") {
        let name = claim_name(template, set, ordinal);
        if let Some(claim) = cx.cache.get(Res::Claims, set.namespace(), &name) {
            if claim.is_terminating() {
                let why = format!("pvc {name} is being deleted");
                let error = kube::Error::Api(kube::core::Status::failure(&why, "Conflict").boxed());
                return Err((why, error));
            }
            continue;
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
        if text(set, "spec.persistentVolumeClaimRetentionPolicy.whenDeleted") == "Delete" {
            metadata["ownerReferences"] = json!([owner_reference("apps/v1", "StatefulSet", set)]);
        }
        let spec = template.get("spec").cloned().unwrap_or_else(|| json!({}));
        let pod = format!("{}-{ordinal}", set.name());
        match cx
            .create(
                Res::Claims,
                set.namespace(),
                json!({"metadata": metadata, "spec": spec}),
            )
            .await
        {
            Ok(_) => {
                let text = format!(
                    "Create Claim {name} Pod {pod} in StatefulSet {} success",
                    set.name()
                );
                cx.normal(Res::StatefulSets, set, "SuccessfulCreate", text);
            }
            Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => {}
            Err(error) => {
                let why = refusal(&error);
                let text = format!(
                    "Create Claim {name} for Pod {pod} in StatefulSet {} failed error: {why}",
                    set.name()
                );
                cx.warning(Res::StatefulSets, set, "FailedCreate", text);
                return Err((format!("failed to create PVC {name}: {why}"), error));
            }
        }
    }
    Ok(())
}

/// Who a claim belongs to: nobody, the set, or, once its pod is too many, that pod, by what the set says is to become of it.
fn claim_owner<'a>(set: &'a Value, pod: &'a Value) -> Option<(&'static str, &'static str, &'a Value)> {
    let goes = |field: &str| {
        let path = format!("spec.persistentVolumeClaimRetentionPolicy.{field}");
        text(set, &path) == "Delete"
    };
    let (start, count) = (first(set), number(set, "spec.replicas", 1));
    let is_condemned = ordinal(set, pod).is_some_and(|ordinal| ordinal < start || ordinal >= start + count);
    if goes("whenScaled") && is_condemned {
        Some(("v1", "Pod", pod))
    } else {
        goes("whenDeleted").then_some(("apps/v1", "StatefulSet", set))
    }
}

/// Whether a reference is to the set or the pod, by name: perhaps to one that was there before it.
fn names(owner: &Value, kind: &str, object: &Value) -> bool {
    text(owner, "kind") == kind && text(owner, "name") == object.name()
}

/// Whether a claim whose owners matter is somebody else's.
fn is_another_s(set: &Value, pod: &Value, claim: &Value) -> bool {
    let policy = "spec.persistentVolumeClaimRetentionPolicy";
    let goes = |field: &str| text(set, &format!("{policy}.{field}")) == "Delete";
    let mut owners = list(claim, "metadata.ownerReferences").iter();
    (goes("whenDeleted") || goes("whenScaled"))
        && owners.any(|owner| {
            if names(owner, "StatefulSet", set) {
                text(owner, "uid") != set.uid()
            } else if names(owner, "Pod", pod) {
                text(owner, "uid") != pod.uid()
            } else {
                owner.get("controller").and_then(Value::as_bool) == Some(true)
            }
        })
}

/// The owners of a claim as they should be, if they are not.
fn claim_owners(set: &Value, pod: &Value, claim: &Value) -> Option<Vec<Value>> {
    let old = list(claim, "metadata.ownerReferences");
    let is_ours = |owner: &Value| text(owner, "uid") == set.uid() || text(owner, "uid") == pod.uid();
    let mut owners: Vec<Value> = old.iter().filter(|owner| !is_ours(owner)).cloned().collect();
    let owner = claim_owner(set, pod).filter(|_| !is_another_s(set, pod, claim));
    owners.extend(owner.map(|(version, kind, object)| owner_reference(version, kind, object)));
    let uids = |owners: &[Value]| {
        owners
            .iter()
            .map(|owner| text(owner, "uid").to_owned())
            .collect::<Vec<_>>()
    };
    (uids(&owners) != uids(old)).then_some(owners)
}

/// Gives the claims of pods the owners that the set says they are to have.
pub(super) async fn retain_claims(
    cx: &mut Cx<'_>,
    set: &Value,
    pods: &[Arc<Value>],
) -> Result<(), kube::Error> {
    let templates = list(set, "spec.volumeClaimTemplates");
    for pod in pods.iter().filter(|_| !templates.is_empty()) {
        let Some(ordinal) = ordinal(set, pod) else {
            continue;
        };
        for template in templates {
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
            }
        }
    }
    Ok(())
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
        let owners: Vec<Value> = owner
            .split_terminator(' ')
            .map(|uid| json!({"uid": uid}))
            .collect();
        let claim = json!({"metadata": {"ownerReferences": owners}});
        let found = claim_owners(&set, &pod, &claim).map(|owners| {
            let uids: Vec<&str> = owners.iter().map(|owner| text(owner, "uid")).collect();
            uids.join(" ")
        });
        assert_eq!(found.as_deref(), expected);
    }
}
