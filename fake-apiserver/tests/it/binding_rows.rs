//! Rows of claims and volumes that a client has bound or unbound: objects made or changed, and the result.

use shared_json::{Value, json};

use crate::support::play;

pub(crate) const CLAIMS: &str = "/api/v1/namespaces/default/persistentvolumeclaims";
pub(crate) const VOLUMES: &str = "/api/v1/persistentvolumes";
const EVENTS: &str = "/api/v1/namespaces/default/events";

pub(crate) fn volume(name: &str, more: Value) -> Value {
    let mut body = json!({
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "s",
            "hostPath": {"path": "/tmp/x"},
        },
    });
    body.merge(&more);
    json!({"do": format!("POST {VOLUMES}"), "body": body, "code": 201, "wait": 1})
}

pub(crate) fn claim(name: &str, more: Value) -> Value {
    let mut body = json!({
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": "s", "resources": {"requests": {"storage": "1Gi"}},
        },
    });
    body.merge(&more);
    json!({"do": format!("POST {CLAIMS}"), "body": body, "code": 201, "wait": 1})
}

/// A volume `v` and a claim `c` are bound; then the steps are done, and some seconds later a path is asked for.
#[track_caller]
pub(crate) fn check(steps: &[Value], path: &str, code: u16, has: Value) {
    let bound = json!({
        "wait": 2, "do": format!("GET {CLAIMS}/c"), "has": {"/status/phase": "Bound"}, "save": {"uid": "/metadata/uid"},
    });
    let mut all = vec![volume("v", json!({})), claim("c", json!({})), bound];
    all.extend(steps.iter().cloned());
    all.push(json!({"wait": 3, "do": format!("GET {path}"), "code": code, "has": has}));
    play(true, Value::from(all));
}

/// The annotation of a completed binding.
fn completed(volume: Value) -> Value {
    json!({"metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}, "spec": {"volumeName": volume}})
}

/// A second volume for the claim, which has one.
fn second(annotations: Value, policy: &str) -> Value {
    let reference =
        json!({"kind": "PersistentVolumeClaim", "namespace": "default", "name": "c", "uid": "$uid"});
    volume(
        "w",
        json!({
            "metadata": {"annotations": annotations},
            "spec": {"claimRef": reference, "persistentVolumeReclaimPolicy": policy},
        }),
    )
}

fn said(of: &str) -> String {
    format!("{EVENTS}?fieldSelector=involvedObject.name={of}")
}

#[test]
fn claims_that_have_lost_their_volume() {
    let of = |volume: Value| claim("d", completed(volume));
    let lost = json!({"/status/phase": "Lost", "/status/capacity": null, "/status/accessModes": null});
    let told = |reason: &str, message: &str| json!({"/items/0/reason": reason, "/items/0/message": message, "/items/1": null});
    let path = format!("{CLAIMS}/d");
    check(&[of(json!("v"))], &path, 200, lost.clone());
    check(
        &[of(json!("v"))],
        &said("d"),
        200,
        told(
            "ClaimMisbound",
            "Two claims are bound to the same volume, this one is bound incorrectly",
        ),
    );
    check(&[of(json!("x"))], &path, 200, lost.clone());
    check(
        &[of(json!("x"))],
        &said("d"),
        200,
        told(
            "ClaimLost",
            "Bound claim has lost its PersistentVolume. Data on the volume is lost!",
        ),
    );
    check(&[of(Value::Null)], &path, 200, lost);
    check(
        &[of(Value::Null)],
        &said("d"),
        200,
        told(
            "ClaimLost",
            "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!",
        ),
    );
    // The one that has it keeps it.
    check(
        &[of(json!("v"))],
        &format!("{VOLUMES}/v"),
        200,
        json!({"/status/phase": "Bound", "/spec/claimRef/name": "c"}),
    );
}

#[test]
fn volumes_that_are_taken_from_their_claims() {
    let take = json!({
        "do": format!("PATCH {VOLUMES}/v"), "type": "merge", "body": {"spec": {"claimRef": null}},
    });
    let again = json!({"/status/phase": "Bound", "/spec/claimRef/name": "c"});
    check(std::slice::from_ref(&take), &format!("{VOLUMES}/v"), 200, again);
    check(
        &[take],
        &format!("{CLAIMS}/c"),
        200,
        json!({"/status/phase": "Bound", "/spec/volumeName": "v"}),
    );
}

#[test]
fn volumes_whose_claim_has_another() {
    let w = format!("{VOLUMES}/w");
    let by_hand =
        json!({"/status/phase": "Available", "/spec/claimRef/name": "c", "/spec/claimRef/uid": null});
    check(&[second(json!({}), "Retain")], &w, 200, by_hand.clone());
    check(&[second(json!({}), "Delete")], &w, 200, by_hand.clone());
    let bound = json!({"pv.kubernetes.io/bound-by-controller": "yes"});
    let free = json!({"/status/phase": "Available", "/spec/claimRef": null, "/metadata/annotations": null});
    check(&[second(bound, "Retain")], &w, 200, free);
    let made = || json!({"pv.kubernetes.io/provisioned-by": "e.com/p"});
    check(&[second(made(), "Retain")], &w, 200, by_hand);
    check(&[second(made(), "Delete")], &w, 404, json!({}));
    check(
        &[second(made(), "Delete")],
        &format!("{CLAIMS}/c"),
        200,
        json!({"/status/phase": "Bound", "/spec/volumeName": "v"}),
    );
}

/// A volume that is kept for a claim and too small for it, and its state once the claim has another. (The real controller
/// notices at its next look at all volumes, within fifteen seconds.)
#[test]
fn volumes_whose_claim_takes_another() {
    let mut waiting = claim("d", json!({"spec": {"storageClassName": "t"}}));
    waiting["save"] = json!({"waiting": "/metadata/uid"});
    let small = |annotations: Value, uid: &str| {
        let reference =
            json!({"kind": "PersistentVolumeClaim", "namespace": "default", "name": "d", "uid": uid});
        let spec = json!({"storageClassName": "t", "capacity": {"storage": "1Mi"}, "claimRef": reference});
        volume(
            "w",
            json!({"metadata": {"annotations": annotations}, "spec": spec}),
        )
    };
    let large = || volume("x", json!({"spec": {"storageClassName": "t"}}));
    let (w, d) = (format!("{VOLUMES}/w"), format!("{CLAIMS}/d"));
    let none = || json!({});
    let bound = || json!({"pv.kubernetes.io/bound-by-controller": "yes"});
    let steps = |annotations: Value, uid: &str| [waiting.clone(), small(annotations, uid), large()];
    check(
        &steps(none(), "$waiting"),
        &d,
        200,
        json!({"/status/phase": "Bound", "/spec/volumeName": "x"}),
    );
    check(
        &steps(none(), "$waiting"),
        &w,
        200,
        json!({"/status/phase": "Available", "/spec/claimRef/name": "d", "/spec/claimRef/uid": null}),
    );
    check(
        &steps(bound(), "$waiting"),
        &w,
        200,
        json!({"/status/phase": "Available", "/spec/claimRef": null}),
    );
    // One that is kept for a claim of that name and of another identity has been released.
    check(
        &steps(none(), "other"),
        &w,
        200,
        json!({"/status/phase": "Released", "/spec/claimRef/uid": "other"}),
    );
}

#[test]
fn attributes_of_volumes() {
    let driver = json!({"driver": "e.com", "volumeHandle": "h"});
    let spec = json!({"volumeAttributesClassName": "gold", "hostPath": null, "csi": driver});
    let gold = || volume("w", json!({"spec": spec}));
    let of = |class: Value| claim("d", json!({"spec": {"volumeAttributesClassName": class}}));
    let path = format!("{CLAIMS}/d");
    let found = |phase: &str, volume: Value| json!({"/status/phase": phase, "/spec/volumeName": volume});
    check(
        &[gold(), of(Value::Null)],
        &path,
        200,
        found("Pending", Value::Null),
    );
    check(
        &[gold(), of(json!("tin"))],
        &path,
        200,
        found("Pending", Value::Null),
    );
    check(
        &[gold(), of(json!("gold"))],
        &path,
        200,
        found("Bound", json!("w")),
    );
    let in_force = |class: Value| json!({"/status/currentVolumeAttributesClassName": class});
    check(&[gold(), of(json!("gold"))], &path, 200, in_force(json!("gold")));
    check(&[], &format!("{CLAIMS}/c"), 200, in_force(Value::Null));
}

#[test]
fn phases_that_somebody_else_has_set() {
    for phase in ["Available", "Released", "Failed"] {
        let set = json!({
            "do": format!("PATCH {VOLUMES}/v/status"), "type": "merge", "body": {"status": {"phase": phase}}, "code": 200,
        });
        check(
            &[set],
            &format!("{VOLUMES}/v"),
            200,
            json!({"/status/phase": "Bound"}),
        );
    }
}

#[test]
fn volumes_of_another_mode_that_are_kept_for_a_claim() {
    let mut raw = claim("d", json!({"spec": {"volumeMode": "Block"}}));
    raw["save"] = json!({"raw": "/metadata/uid"});
    let kept = |mode: &str| {
        let reference =
            json!({"kind": "PersistentVolumeClaim", "namespace": "default", "name": "d", "uid": "$raw"});
        volume("w", json!({"spec": {"claimRef": reference, "volumeMode": mode}}))
    };
    let of = |name: &str| format!("{EVENTS}?fieldSelector=involvedObject.name={name},reason=VolumeMismatch");
    let told = |message: &str| json!({"/items/0/message": message, "/items/1": null});
    let on_volume = "Cannot bind PersistentVolume to requested PersistentVolumeClaim \"d\" due to incompatible volumeMode.";
    let on_claim = "Cannot bind PersistentVolume \"w\" to requested PersistentVolumeClaim due to incompatible volumeMode.";
    let differing = [raw.clone(), kept("Filesystem")];
    check(&differing, &of("w"), 200, told(on_volume));
    check(&differing, &of("d"), 200, told(on_claim));
    check(
        &differing,
        &format!("{CLAIMS}/d"),
        200,
        json!({"/status/phase": "Pending"}),
    );
    let alike = [raw, kept("Block")];
    check(&alike, &of("w"), 200, json!({"/items/0": null}));
    check(
        &alike,
        &format!("{CLAIMS}/d"),
        200,
        json!({"/status/phase": "Bound", "/spec/volumeName": "w"}),
    );
}

#[test]
fn volumes_that_would_be_recycled() {
    let steps = [
        json!({
            "do": format!("PATCH {VOLUMES}/v"), "type": "merge",
            "body": {"spec": {"persistentVolumeReclaimPolicy": "Recycle"}},
        }),
        json!({"do": format!("DELETE {CLAIMS}/c"), "wait": 1}),
    ];
    let stays = json!({"/status/phase": "Released", "/spec/claimRef/name": "c"});
    check(&steps, &format!("{VOLUMES}/v"), 200, stays);
}
