//! The random spec of the CloneSet, as the user changes it.

use client_kit::Random;
use shared_json::{Value, json};

use super::judge;
use crate::histories::deeds::Deeds;
use crate::histories::wish::{
    HELD_BEFORE_DELETE, HELD_BEFORE_UPDATE, Hooks, STORAGE_CLASS, Wish, index, number, signed,
};
use crate::history::{Change, number as number_at};

/// The wanted state of the set.
#[derive(Debug, Clone)]
pub(in crate::histories) struct CloneSetWish {
    replicas: i64,
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
    hooks: Hooks,
    /// Whether each pod has a volume of its own, which the next one of its name takes over.
    claims: Option<bool>,
    priority: bool,
}

impl CloneSetWish {
    pub(in crate::histories) fn random(random: &mut Random) -> Self {
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
            hooks: Hooks::default(),
            claims: (random.below(4) == 0).then(|| random.below(2) == 0),
            priority: random.below(3) == 0,
        }
    }
}

impl Wish for CloneSetWish {
    fn api_version(&self) -> &'static str {
        "apps.kruise.io/v1alpha1"
    }

    fn kind(&self) -> &'static str {
        "CloneSet"
    }

    fn resource(&self) -> &'static str {
        "clonesets"
    }

    /// Asks for something else.
    fn change(&mut self, random: &mut Random) {
        match random.below(9) {
            0 | 1 => self.replicas = signed(random.below(8)),
            2 | 3 => self.image = random.between(1, 3),
            4 => self.env = random.between(1, 2),
            5 => self.partition = number(random, 4, ["40%", "99%", "100%"]),
            6 => self.paused = !self.paused,
            7 => self.hooks = Hooks::random(random),
            _ => self.min_ready_s = signed(random.below(2)) * 3,
        }
    }

    /// Removes everything from the spec that keeps the set from reaching it.
    fn come_to_rest(&mut self) {
        self.paused = false;
        self.partition = json!(0);
        self.hooks = Hooks::default();
    }

    /// The set before anything is asked of it.
    fn object(&self) -> Value {
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
    fn spec(&self) -> Value {
        let order = json!({"orderPriority": [{"orderedKey": "apps.kruise.io/cloneset-instance-id"}]});
        json!({
            "replicas": self.replicas,
            "minReadySeconds": self.min_ready_s,
            "lifecycle": self.hooks.spec(),
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

    fn without(&mut self, pod: &str) -> Option<Value> {
        if self.replicas <= 1 {
            return None;
        }
        self.replicas -= 1;
        Some(json!({"replicas": self.replicas, "scaleStrategy": {"podsToDelete": [pod]}}))
    }

    fn wrongs(&self, history: &[Change], deeds: &Deeds) -> Vec<String> {
        judge::wrongs(history, deeds)
    }

    fn unlike(&self, set: &Value, _pods: &[Value]) -> Vec<String> {
        let counters = [
            "replicas",
            "readyReplicas",
            "availableReplicas",
            "updatedReplicas",
            "updatedReadyReplicas",
        ];
        let wrong = counters.into_iter().filter_map(|counter| {
            let found = number_at(set, &format!("/status/{counter}"));
            (found != self.replicas)
                .then(|| format!("at the end {counter} is {found}, not {}", self.replicas))
        });
        wrong.collect()
    }
}
