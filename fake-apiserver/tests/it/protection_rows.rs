//! Rows of claims and volumes that are protected while they are used: their users, actions, and the remaining objects. Source:
//! the tables of the real controllers (`pvc_protection_controller_test.go`, `pv_protection_controller_test.go`).

use shared_json::{Value, json};

use crate::binding_rows::{CLAIMS, VOLUMES, check, volume};

const PODS: &str = "/api/v1/namespaces/default/pods";
const CLAIM: &str = "/api/v1/namespaces/default/persistentvolumeclaims/c";
const VOLUME: &str = "/api/v1/persistentvolumes/v";
const OWN: &str = "kubernetes.io/pvc-protection";
const OWN_OF_VOLUMES: &str = "kubernetes.io/pv-protection";

/// A pod `name` on this node (which no kubelet runs), with this volume.
fn pod(name: &str, node: &str, volume: Value) -> Value {
    let volume = crate::support::with(json!({"name": "v"}), volume);
    let mut spec = json!({"containers": [{"name": "a", "image": "nginx:1"}], "volumes": [volume, {"name": "e", "emptyDir": {}}]});
    if !node.is_empty() {
        spec["nodeName"] = json!(node);
    }
    json!({"do": format!("POST {PODS}"), "body": {"metadata": {"name": name}, "spec": spec}, "code": 201, "wait": 1})
}

fn using(claim: &str) -> Value {
    json!({"persistentVolumeClaim": {"claimName": claim}})
}

fn delete(path: &str) -> Value {
    json!({"do": format!("DELETE {path}"), "body": {"gracePeriodSeconds": 0}, "wait": 1})
}

fn finalizers(path: &str, names: Value) -> Value {
    let body = json!({"metadata": {"finalizers": names}});
    json!({"do": format!("PATCH {path}"), "type": "merge", "body": body, "wait": 1})
}

fn phase(name: &str, phase: &str) -> Value {
    let body = json!({"status": {"phase": phase}});
    json!({"do": format!("PATCH {PODS}/{name}/status"), "type": "merge", "body": body, "wait": 1})
}

/// The finalizers in this order and no more.
fn has(names: &[&str]) -> Value {
    let mut out = json!({});
    for (index, name) in names.iter().enumerate() {
        out[format!("/metadata/finalizers/{index}").as_str()] = json!(name);
    }
    out[format!("/metadata/finalizers/{}", names.len()).as_str()] = Value::Null;
    out
}

#[track_caller]
fn claim_has(steps: &[Value], names: &[&str]) {
    check(steps, CLAIM, 200, has(names));
}

#[track_caller]
fn claim_is_gone(steps: &[Value]) {
    check(steps, CLAIM, 404, json!({}));
}

#[test]
fn claims_that_stay() {
    claim_has(&[], &[OWN]);
    // Whoever takes it away is not listened to.
    claim_has(&[finalizers(CLAIM, json!(null))], &[OWN]);
    claim_has(&[finalizers(CLAIM, json!(["e.com/f"]))], &["e.com/f", OWN]);
    claim_has(&[finalizers(CLAIM, json!([OWN, "e.com/f"]))], &[OWN, "e.com/f"]);
}

#[test]
fn claims_that_are_deleted() {
    let on_node = |name: &str| pod(name, "x", using("c"));
    let gone = || delete(CLAIM);
    claim_is_gone(&[gone()]);
    claim_has(&[on_node("p"), gone()], &[OWN]);
    check(
        &[on_node("p"), gone()],
        CLAIM,
        200,
        json!({"/status/phase": "Bound", "/spec/volumeName": "v"}),
    );
    // One that no node has does not use it.
    claim_is_gone(&[pod("p", "", using("c")), gone()]);
    claim_is_gone(&[pod("p", "x", using("other")), gone()]);
    claim_is_gone(&[pod("p", "x", json!({"configMap": {"name": "c"}})), gone()]);
    // One that has ended does.
    for ended in ["Succeeded", "Failed", "Running", "Unknown"] {
        claim_has(&[on_node("p"), phase("p", ended), gone()], &[OWN]);
        claim_has(&[on_node("p"), gone(), phase("p", ended)], &[OWN]);
    }
    claim_is_gone(&[on_node("p"), gone(), delete(&format!("{PODS}/p"))]);
    claim_is_gone(&[on_node("p"), delete(&format!("{PODS}/p")), gone()]);
    let both = || [on_node("p"), on_node("q"), gone(), delete(&format!("{PODS}/p"))];
    claim_has(&both(), &[OWN]);
    let mut all = both().to_vec();
    all.push(delete(&format!("{PODS}/q")));
    claim_is_gone(&all);
    // Another pod of that name is another pod.
    let again = |volume: Value| {
        [
            on_node("p"),
            gone(),
            delete(&format!("{PODS}/p")),
            pod("p", "x", volume),
        ]
    };
    claim_is_gone(&again(using("other")));
    // Only this one is held, for as long as somebody else holds it.
    let held = finalizers(CLAIM, json!([OWN, "e.com/f"]));
    claim_has(&[held.clone(), gone()], &["e.com/f"]);
    claim_has(&[held.clone(), on_node("p"), gone()], &[OWN, "e.com/f"]);
    claim_has(
        &[held.clone(), on_node("p"), gone(), delete(&format!("{PODS}/p"))],
        &["e.com/f"],
    );
    // What goes does not get it back.
    claim_has(
        &[held, on_node("p"), gone(), finalizers(CLAIM, json!(["e.com/f"]))],
        &["e.com/f"],
    );
    claim_is_gone(&[on_node("p"), gone(), finalizers(CLAIM, json!(null))]);
    // A claim of that name in another namespace is another claim.
    let mut other = on_node("p");
    other["do"] = json!("POST /api/v1/namespaces/kube-system/pods");
    claim_is_gone(&[other, gone()]);
}

#[test]
fn volumes_that_are_protected() {
    let holds = |steps: &[Value], names: &[&str]| check(steps, VOLUME, 200, has(names));
    let is_gone = |steps: &[Value], name: &str| check(steps, &format!("{VOLUMES}/{name}"), 404, json!({}));
    holds(&[], &[OWN_OF_VOLUMES]);
    holds(&[finalizers(VOLUME, json!(null))], &[OWN_OF_VOLUMES]);
    holds(
        &[finalizers(VOLUME, json!(["e.com/f"]))],
        &["e.com/f", OWN_OF_VOLUMES],
    );
    // One that is bound waits, and is told to be bound meanwhile.
    holds(&[delete(VOLUME)], &[OWN_OF_VOLUMES]);
    check(
        &[delete(VOLUME)],
        VOLUME,
        200,
        json!({"/status/phase": "Bound", "/spec/claimRef/name": "c"}),
    );
    check(&[delete(VOLUME)], CLAIM, 200, json!({"/status/phase": "Bound"}));
    is_gone(&[delete(VOLUME), delete(CLAIM)], "v");
    is_gone(&[delete(CLAIM), delete(VOLUME)], "v");
    // For as long as a pod has the claim, the claim has the volume.
    holds(
        &[pod("p", "x", using("c")), delete(VOLUME), delete(CLAIM)],
        &[OWN_OF_VOLUMES],
    );
    is_gone(
        &[
            pod("p", "x", using("c")),
            delete(VOLUME),
            delete(CLAIM),
            delete(&format!("{PODS}/p")),
        ],
        "v",
    );
    // One that is let go while somebody else holds it has been released.
    let held = finalizers(VOLUME, json!([OWN_OF_VOLUMES, "e.com/f"]));
    holds(&[held.clone(), delete(VOLUME), delete(CLAIM)], &["e.com/f"]);
    check(
        &[held, delete(VOLUME), delete(CLAIM)],
        VOLUME,
        200,
        json!({"/status/phase": "Released"}),
    );
    // Nobody uses one that is free, or only kept for somebody.
    let kept =
        json!({"spec": {"storageClassName": "other", "claimRef": {"namespace": "default", "name": "later"}}});
    let free = json!({"spec": {"storageClassName": "other"}});
    is_gone(&[volume("w", free), delete(&format!("{VOLUMES}/w"))], "w");
    is_gone(&[volume("w", kept), delete(&format!("{VOLUMES}/w"))], "w");
    check(
        &[delete(VOLUME)],
        CLAIMS,
        200,
        json!({"/items/0/metadata/name": "c", "/items/1": null}),
    );
}
