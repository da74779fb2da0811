//! The random spec of the CloneSet, as the user changes it.

use client_kit::Random;
use shared_json::{Value, json};

/// The labels that hold pods: before deletion and update while they are `yes`, before service until they are.
pub(super) const HELD_BEFORE_DELETE: &str = "hold/delete";
pub(super) const HELD_BEFORE_UPDATE: &str = "hold/update";
pub(super) const HELD_BEFORE_SERVICE: &str = "hold/service";

/// Where the pods' volumes come from.
pub(super) const STORAGE_CLASS: &str = "disks";

/// The wanted state of the set.
#[derive(Debug, Clone)]
pub(super) struct Wish {
    pub(super) replicas: i64,
    partition: Value,
    max_unavailable: Value,
    max_surge: Value,
    scale_max_unavailable: Value,
    min_ready_s: i64,
    paused: bool,
    image: u64,
    /// A part of the template that cannot change in place.
    env: u64,
    kind: &'static str,
    grace_s: i64,
    /// Whether pods are held before they are deleted, before they are updated in place, and before they are in service;
    /// and whether a pod that is held is marked as not ready.
    hooks: [bool; 4],
    /// Whether each pod has a volume of its own, which the next one of its name takes over.
    claims: Option<bool>,
    priority: bool,
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A number up to `max`, or a share.
fn number(random: &mut Random, max: u64, shares: [&str; 3]) -> Value {
    match random.below(6) {
        share @ 0..=2 => json!(shares[usize::try_from(share).unwrap_or(0)]),
        _ => json!(random.below(max + 1)),
    }
}

impl Wish {
    pub(super) fn random(random: &mut Random) -> Self {
        let max_surge = number(random, 2, ["0%", "30%", "50%"]);
        // One of both must be above zero, whatever the replicas are.
        let surges = max_surge != json!(0) && max_surge != json!("0%");
        let max_unavailable = match number(random, 2, ["10%", "20%", "60%"]) {
            zero if zero == json!(0) && !surges => json!(1),
            other => other,
        };
        let kind = ["ReCreate", "InPlaceIfPossible", "InPlaceIfPossible"][index(random, 3)];
        Self {
            replicas: signed(random.between(1, 6)),
            partition: json!(0),
            max_unavailable,
            max_surge,
            scale_max_unavailable: if random.below(4) == 0 {
                json!(random.between(1, 2))
            } else {
                Value::Null
            },
            min_ready_s: [0, 0, 3][index(random, 3)],
            paused: false,
            image: 1,
            env: 1,
            kind,
            grace_s: [0, 0, 2][index(random, 3)],
            hooks: [false; 4],
            claims: (random.below(4) == 0).then(|| random.below(2) == 0),
            priority: random.below(3) == 0,
        }
    }

    /// Asks for something else.
    pub(super) fn change(&mut self, random: &mut Random) {
        match random.below(9) {
            0 | 1 => self.replicas = signed(random.below(8)),
            2 | 3 => self.image = random.between(1, 3),
            4 => self.env = random.between(1, 2),
            5 => self.partition = number(random, 4, ["40%", "99%", "100%"]),
            6 => self.paused = !self.paused,
            7 => self.hooks = [(); 4].map(|()| random.below(2) == 1),
            _ => self.min_ready_s = signed(random.below(2)) * 3,
        }
    }

    /// Removes everything from the spec that keeps the set from reaching it.
    pub(super) fn come_to_rest(&mut self) {
        self.paused = false;
        self.partition = json!(0);
        self.hooks = [false; 4];
    }

    /// The set before anything is asked of it.
    pub(super) fn object(&self) -> Value {
        let mut spec = self.spec();
        spec["selector"] = json!({"matchLabels": {"app": "a"}});
        spec["template"]["metadata"] =
            json!({"labels": {"app": "a", HELD_BEFORE_DELETE: "yes", HELD_BEFORE_UPDATE: "yes"}});
        if let Some(reuse) = self.claims {
            spec["scaleStrategy"]["disablePVCReuse"] = json!(!reuse);
            spec["volumeClaimTemplates"] = json!([{
                "metadata": {"name": "data"},
                "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": STORAGE_CLASS,
                    "resources": {"requests": {"storage": "1Gi"}}},
            }]);
        }
        json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet", "metadata": {"name": "a"}, "spec": spec})
    }

    /// The fields of the spec that may change.
    pub(super) fn spec(&self) -> Value {
        let [before_delete, before_update, before_service, not_ready] = self.hooks;
        let hook = |on: bool, label: &str| match on {
            true => json!({"labelsHandler": {label: "yes"}, "markPodNotReady": not_ready.then_some(true)}),
            false => Value::Null,
        };
        let order = json!({"orderPriority": [{"orderedKey": "apps.kruise.io/cloneset-instance-id"}]});
        json!({
            "replicas": self.replicas,
            "minReadySeconds": self.min_ready_s,
            "lifecycle": {
                "preDelete": hook(before_delete, HELD_BEFORE_DELETE),
                "inPlaceUpdate": hook(before_update, HELD_BEFORE_UPDATE),
                "preNormal": hook(before_service, HELD_BEFORE_SERVICE),
            },
            "scaleStrategy": {"maxUnavailable": self.scale_max_unavailable},
            "template": {"spec": {"containers": [{
                "name": "main", "image": format!("app:v{}", self.image),
                "env": [{"name": "VARIANT", "value": self.env.to_string()}],
            }]}},
            "updateStrategy": {
                "type": self.kind, "partition": self.partition, "paused": self.paused,
                "maxUnavailable": self.max_unavailable, "maxSurge": self.max_surge,
                "inPlaceUpdateStrategy": {"gracePeriodSeconds": self.grace_s},
                "priorityStrategy": if self.priority { order } else { Value::Null },
            },
        })
    }
}

fn index(random: &mut Random, below: u64) -> usize {
    usize::try_from(random.below(below)).unwrap_or(0)
}
