//! Rows of volumes that are made for claims, and of claims that grow: a class, a claim of it, actions, and the result. Source:
//! the library of all provisioners, `pv_controller.go`, and the recordings of the real controllers.

use shared_json::{Value, json};

use crate::binding_rows::{CLAIMS, VOLUMES, claim, volume};
use crate::support::play;

const CLASSES: &str = "/apis/storage.k8s.io/v1/storageclasses";
const CLAIM: &str = "/api/v1/namespaces/default/persistentvolumeclaims/c";
const EVENTS: &str = "/api/v1/namespaces/default/events?fieldSelector=involvedObject.name=c,reason=";

/// A class `k` with a provisioner, changed.
fn class(name: &str, more: Value) -> Value {
    let mut body = json!({"metadata": {"name": name}, "provisioner": "e.com/p"});
    body.merge(&more);
    json!({"do": format!("POST {CLASSES}"), "body": body, "code": 201, "wait": 1})
}

/// The claim `c` of the class `k`, changed. `$volume` stands for the volume that is made for it.
fn of_class(more: Value) -> Value {
    let mut claim = claim("c", json!({"spec": {"storageClassName": "k"}}));
    claim["body"].merge(&more);
    claim["save"] = json!({"uid": "/metadata/uid"});
    claim
}

#[track_caller]
fn check(steps: &[Value], path: &str, code: u16, has: Value) {
    let mut all = steps.to_vec();
    all.push(json!({"wait": 3, "do": format!("GET {path}"), "code": code, "has": has}));
    play(true, Value::from(all));
}

fn made() -> String {
    format!("{VOLUMES}/pvc-$uid")
}

fn grown(to: &str, code: u16) -> Value {
    let body = json!({"spec": {"resources": {"requests": {"storage": to}}}});
    json!({"do": format!("PATCH {CLAIM}"), "type": "merge", "body": body, "code": code, "wait": 2})
}

fn told(message: &str) -> Value {
    json!({"/items/0/message": message})
}

#[test]
fn what_is_made() {
    let plain = || [class("k", json!({})), of_class(json!({}))];
    check(
        &plain(),
        CLAIM,
        200,
        json!({"/status/phase": "Bound", "/spec/volumeName": "pvc-$uid", "/status/capacity/storage": "1Gi"}),
    );
    check(
        &plain(),
        &made(),
        200,
        json!({
            "/status/phase": "Bound", "/spec/capacity/storage": "1Gi", "/spec/persistentVolumeReclaimPolicy": "Delete",
            "/spec/storageClassName": "k", "/spec/volumeMode": "Filesystem", "/spec/accessModes/0": "ReadWriteOnce",
            "/spec/claimRef/name": "c", "/spec/claimRef/uid": "$uid", "/spec/mountOptions": null,
            "/metadata/annotations/pv.kubernetes.io~1provisioned-by": "e.com/p",
        }),
    );
    check(
        &plain(),
        CLAIM,
        200,
        json!({
            "/metadata/annotations/volume.kubernetes.io~1storage-provisioner": "e.com/p",
            "/metadata/annotations/pv.kubernetes.io~1bind-completed": "yes",
        }),
    );
    let of = |class_says: Value, claim_says: Value| [class("k", class_says), of_class(claim_says)];
    let has = |steps: [Value; 2], has: Value| check(&steps, &made(), 200, has);
    has(
        of(json!({"reclaimPolicy": "Retain"}), json!({})),
        json!({"/spec/persistentVolumeReclaimPolicy": "Retain"}),
    );
    has(
        of(json!({"mountOptions": ["ro", "soft"]}), json!({})),
        json!({"/spec/mountOptions/0": "ro", "/spec/mountOptions/1": "soft"}),
    );
    has(
        of(json!({}), json!({"spec": {"volumeMode": "Block"}})),
        json!({"/spec/volumeMode": "Block"}),
    );
    has(
        of(
            json!({}),
            json!({"spec": {"accessModes": ["ReadWriteMany", "ReadOnlyMany"]}}),
        ),
        json!({"/spec/accessModes/0": "ReadWriteMany", "/spec/accessModes/1": "ReadOnlyMany"}),
    );
    has(
        of(
            json!({}),
            json!({"spec": {"resources": {"requests": {"storage": "1500Mi"}}}}),
        ),
        json!({"/spec/capacity/storage": "1500Mi"}),
    );
    // What is there already is taken first.
    check(
        &[
            class("k", json!({})),
            volume("v", json!({"spec": {"storageClassName": "k"}})),
            of_class(json!({})),
        ],
        CLAIM,
        200,
        json!({"/spec/volumeName": "v"}),
    );
    check(
        &[
            class("k", json!({})),
            volume(
                "v",
                json!({"spec": {"storageClassName": "k", "capacity": {"storage": "1Mi"}}}),
            ),
            of_class(json!({})),
        ],
        CLAIM,
        200,
        json!({"/spec/volumeName": "pvc-$uid"}),
    );
    // Each claim gets its own.
    check(
        &[
            class("k", json!({})),
            of_class(json!({})),
            claim("d", json!({"spec": {"storageClassName": "k"}})),
        ],
        VOLUMES,
        200,
        json!({"/items/0/spec/claimRef/kind": "PersistentVolumeClaim", "/items/1/status/phase": "Bound", "/items/2": null}),
    );
}

#[test]
fn when_it_is_made() {
    let pending = || json!({"/status/phase": "Pending", "/spec/volumeName": null});
    check(&[of_class(json!({}))], CLAIM, 200, pending());
    check(
        &[of_class(json!({}))],
        &format!("{EVENTS}ProvisioningFailed"),
        200,
        told("storageclass.storage.k8s.io \"k\" not found"),
    );
    check(
        &[of_class(json!({})), class("k", json!({}))],
        CLAIM,
        200,
        json!({"/status/phase": "Bound"}),
    );
    let by_hand = || class("k", json!({"provisioner": "kubernetes.io/no-provisioner"}));
    check(&[by_hand(), of_class(json!({}))], CLAIM, 200, pending());
    check(
        &[by_hand(), of_class(json!({}))],
        &format!("{EVENTS}ProvisioningFailed"),
        200,
        told("no volume plugin matched name: kubernetes.io/no-provisioner"),
    );
    let late = || class("k", json!({"volumeBindingMode": "WaitForFirstConsumer"}));
    check(&[late(), of_class(json!({}))], CLAIM, 200, pending());
    check(
        &[late(), of_class(json!({}))],
        &format!("{EVENTS}WaitForFirstConsumer"),
        200,
        told("waiting for first consumer to be created before binding"),
    );
    // A scheduler says for which node it is.
    let selected = json!({"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "x"}}});
    check(
        &[late(), of_class(selected.clone())],
        &made(),
        200,
        json!({
            "/status/phase": "Bound",
            "/spec/nodeAffinity/required/nodeSelectorTerms/0/matchExpressions/0/values/0": "x",
        }),
    );
    // One without a class, or of the default one.
    let bare = |class: Value| of_class(json!({"spec": {"storageClassName": class}}));
    let default = |name: &str| {
        class(
            name,
            json!({"metadata": {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}}),
        )
    };
    check(&[default("k"), bare(json!(""))], CLAIM, 200, pending());
    check(
        &[default("k"), bare(json!(""))],
        &format!("{EVENTS}FailedBinding"),
        200,
        told("no persistent volumes available for this claim and no storage class is set"),
    );
    let of = |name: &str| json!({"/status/phase": "Bound", "/spec/storageClassName": name});
    check(&[default("k"), bare(Value::Null)], CLAIM, 200, of("k"));
    check(&[bare(Value::Null), default("k")], CLAIM, 200, of("k"));
    check(&[class("k", json!({})), bare(Value::Null)], CLAIM, 200, pending());
    check(
        &[default("k"), default("l"), bare(Value::Null)],
        CLAIM,
        200,
        of("l"),
    );
}

#[test]
fn what_becomes_of_it() {
    let of = |more: Value| [class("k", more), of_class(json!({}))];
    let deleted = |more: Value| {
        let mut steps = of(more).to_vec();
        steps.push(json!({"do": format!("DELETE {CLAIM}"), "wait": 2}));
        steps
    };
    check(&deleted(json!({})), &made(), 404, json!({}));
    check(
        &deleted(json!({"reclaimPolicy": "Retain"})),
        &made(),
        200,
        json!({"/status/phase": "Released", "/spec/claimRef/name": "c"}),
    );
    let grows = || of(json!({"allowVolumeExpansion": true})).to_vec();
    let growing = |steps: Vec<Value>, to: &str, code: u16| {
        let mut steps = steps;
        steps.push(grown(to, code));
        steps
    };
    let is = |storage: &str| json!({"/status/capacity/storage": storage, "/spec/resources/requests/storage": storage});
    check(&growing(grows(), "2Gi", 200), CLAIM, 200, is("2Gi"));
    check(
        &growing(grows(), "2Gi", 200),
        &made(),
        200,
        json!({"/spec/capacity/storage": "2Gi"}),
    );
    check(
        &growing(growing(grows(), "2Gi", 200), "3Gi", 200),
        CLAIM,
        200,
        is("3Gi"),
    );
    check(&growing(grows(), "1Gi", 200), CLAIM, 200, is("1Gi"));
    check(&growing(grows(), "1Mi", 422), CLAIM, 200, is("1Gi"));
    // Only where the class allows it, at that time.
    check(
        &growing(of(json!({})).to_vec(), "2Gi", 403),
        CLAIM,
        200,
        is("1Gi"),
    );
    let mut allowed = of(json!({})).to_vec();
    allowed.push(json!({
        "do": format!("PATCH {CLASSES}/k"), "type": "merge", "body": {"allowVolumeExpansion": true}, "wait": 1,
    }));
    check(&growing(allowed, "2Gi", 200), CLAIM, 200, is("2Gi"));
    let mut removed = grows();
    removed.push(json!({"do": format!("DELETE {CLASSES}/k"), "wait": 1}));
    check(&growing(removed, "2Gi", 403), CLAIM, 200, is("1Gi"));
    // One that has no volume yet cannot.
    let late = json!({"allowVolumeExpansion": true, "volumeBindingMode": "WaitForFirstConsumer"});
    check(
        &growing(of(late).to_vec(), "2Gi", 422),
        CLAIM,
        200,
        json!({"/status/phase": "Pending"}),
    );
    // What nobody has made, somebody else has to expand.
    let mut by_hand = vec![
        class("k", json!({"allowVolumeExpansion": true})),
        volume("v", json!({"spec": {"storageClassName": "k"}})),
        of_class(json!({})),
    ];
    by_hand = growing(by_hand, "2Gi", 200);
    check(
        &by_hand,
        &format!("{EVENTS}ExternalExpanding"),
        200,
        told("waiting for an external controller to expand this PVC"),
    );
    check(
        &by_hand,
        CLAIMS,
        200,
        json!({"/items/0/status/capacity/storage": "1Gi", "/items/0/spec/resources/requests/storage": "2Gi"}),
    );
}
