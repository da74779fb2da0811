//! The random spec of the StatefulSet, as the user changes it.

use client_kit::Random;
use shared_json::{Value, json};

use super::judge;
use super::numbers::Numbers;
use crate::histories::deeds::Deeds;
use crate::histories::wish::{
    HELD_BEFORE_DELETE, HELD_BEFORE_UPDATE, Hooks, STORAGE_CLASS, Wish, index, number, signed,
};
use crate::history::{Change, number as number_at, text};

/// The wanted state of the set.
#[derive(Debug, Clone)]
pub(in crate::histories) struct StatefulSetWish {
    replicas: i64,
    /// Whether pods come and go one by one. Hooks, budgets and orders by labels are for the others.
    ordered: bool,
    partition: i64,
    max_unavailable: Value,
    scale_max_unavailable: Value,
    min_ready_s: i64,
    paused: bool,
    image: u64,
    /// A part of the template that cannot change in place.
    env: u64,
    policy: &'static str,
    grace_s: i64,
    hooks: Hooks,
    reserved: Vec<i64>,
    /// Whether each pod has a claim, and whether it goes with its pod when the set shrinks.
    claims: Option<bool>,
    /// Whether pods are updated by their labels.
    unordered: bool,
}

impl StatefulSetWish {
    pub(in crate::histories) fn random(random: &mut Random) -> Self {
        let ordered = random.below(3) == 0;
        let max_unavailable = match number(random, 3, ["20%", "50%", "100%"]) {
            zero if zero == json!(0) => json!(1),
            other => other,
        };
        Self {
            replicas: signed(random.between(1, 6)),
            ordered,
            partition: 0,
            max_unavailable: if ordered { json!(1) } else { max_unavailable },
            scale_max_unavailable: if random.below(4) == 0 && !ordered {
                json!(random.between(1, 3))
            } else {
                Value::Null
            },
            min_ready_s: [0, 0, 3][index(random, 3)],
            paused: false,
            image: 1,
            env: 1,
            policy: ["ReCreate", "InPlaceIfPossible", "InPlaceIfPossible"][index(random, 3)],
            grace_s: [0, 0, 2][index(random, 3)],
            hooks: Hooks::default(),
            reserved: Vec::new(),
            claims: (random.below(3) == 0).then(|| random.below(2) == 0),
            unordered: random.below(4) == 0 && !ordered,
        }
    }
}

impl Wish for StatefulSetWish {
    fn api_version(&self) -> &'static str {
        "apps.kruise.io/v1beta1"
    }

    fn kind(&self) -> &'static str {
        "StatefulSet"
    }

    fn resource(&self) -> &'static str {
        judge::RESOURCE
    }

    fn change(&mut self, random: &mut Random) {
        match random.below(10) {
            0 | 1 => self.replicas = signed(random.below(8)),
            2 | 3 => self.image = random.between(1, 3),
            4 => self.env = random.between(1, 2),
            5 => self.partition = signed(random.below(6)),
            6 => self.paused = !self.paused,
            7 if !self.ordered => self.hooks = Hooks::random(random),
            8 => self.reserved = (0..random.below(3)).map(|_| signed(random.below(6))).collect(),
            _ => self.min_ready_s = signed(random.below(2)) * 3,
        }
    }

    fn come_to_rest(&mut self) {
        self.paused = false;
        self.partition = 0;
        self.hooks = Hooks::default();
    }

    fn object(&self) -> Value {
        let mut spec = self.spec();
        spec["selector"] = json!({"matchLabels": {"app": "a"}});
        spec["serviceName"] = json!("a");
        spec["podManagementPolicy"] = json!(if self.ordered { "OrderedReady" } else { "Parallel" });
        spec["template"]["metadata"] =
            json!({"labels": {"app": "a", HELD_BEFORE_DELETE: "yes", HELD_BEFORE_UPDATE: "yes"}});
        if let Some(go) = self.claims {
            let policy = if go { "Delete" } else { "Retain" };
            spec["persistentVolumeClaimRetentionPolicy"] =
                json!({"whenScaled": policy, "whenDeleted": policy});
            spec["volumeClaimTemplates"] = json!([{
                "metadata": {"name": "data"},
                "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": STORAGE_CLASS,
                    "resources": {"requests": {"storage": "1Gi"}}},
            }]);
        }
        json!({"apiVersion": self.api_version(), "kind": self.kind(), "metadata": {"name": "a"}, "spec": spec})
    }

    fn spec(&self) -> Value {
        let order =
            json!({"priorityStrategy": {"orderPriority": [{"orderedKey": "apps.kubernetes.io/pod-index"}]}});
        json!({
            "replicas": self.replicas,
            "reserveOrdinals": self.reserved,
            "lifecycle": self.hooks.spec(),
            "scaleStrategy": {"maxUnavailable": self.scale_max_unavailable},
            "template": {"spec": {
                "readinessGates": [{"conditionType": "InPlaceUpdateReady"}],
                "containers": [{
                    "name": "main", "image": format!("app:v{}", self.image),
                    "env": [{"name": "VARIANT", "value": self.env.to_string()}],
                }],
            }},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {
                "partition": self.partition, "paused": self.paused, "maxUnavailable": self.max_unavailable,
                "minReadySeconds": self.min_ready_s, "podUpdatePolicy": self.policy,
                "inPlaceUpdateStrategy": {"gracePeriodSeconds": self.grace_s},
                "unorderedUpdate": if self.unordered { order } else { Value::Null },
            }},
        })
    }

    fn without(&mut self, pod: &str) -> Option<Value> {
        if self.replicas <= 1 {
            return None;
        }
        let ordinal = pod.rsplit('-').next()?.parse().ok()?;
        self.replicas -= 1;
        self.reserved.push(ordinal);
        Some(json!({"replicas": self.replicas, "reserveOrdinals": self.reserved}))
    }

    fn wrongs(&self, history: &[Change], deeds: &Deeds) -> Vec<String> {
        judge::wrongs(history, deeds)
    }

    fn unlike(&self, set: &Value, pods: &[Value]) -> Vec<String> {
        let mut wrongs = Vec::new();
        // A pod that was to be deleted and is wanted again stays held, as in OpenKruise.
        let held = pods.iter().filter(|pod| judge::is_held(pod)).count();
        let serving = self.replicas - i64::try_from(held).unwrap_or(0);
        for (counter, expected) in [
            ("replicas", self.replicas),
            ("updatedReplicas", self.replicas),
            ("availableReplicas", serving),
        ] {
            let found = number_at(set, &format!("/status/{counter}"));
            if found != expected {
                wrongs.push(format!("at the end {counter} is {found}, not {expected}"));
            }
        }
        let mut found: Vec<i64> = pods
            .iter()
            .filter_map(|pod| judge::ordinal(&text(pod, "/metadata/name")))
            .collect();
        found.sort_unstable();
        let expected = Numbers::of(set).ordinals;
        if found != expected {
            wrongs.push(format!(
                "at the end there are the ordinals {found:?}, not {expected:?}"
            ));
        }
        wrongs
    }
}
