//! The random spec of the DaemonSet, as the user changes it.

use client_kit::Random;
use shared_json::{Value, json};

use super::judge::{self, NODES};
use super::numbers::HOSTNAME;
use crate::histories::deeds::Deeds;
use crate::histories::wish::{HELD_BEFORE_DELETE, Wish, index, number, signed};
use crate::history::Change;

/// The wanted state of the set.
#[derive(Debug, Clone)]
pub(in crate::histories) struct DaemonSetWish {
    partition: Value,
    max_unavailable: Value,
    max_surge: Value,
    min_ready_s: i64,
    paused: bool,
    image: u64,
    /// A part of the template that cannot change in place.
    env: u64,
    in_place: bool,
    burst: Value,
    /// Whether pods are held before they are deleted.
    held: bool,
    /// The only node that is to have a pod.
    only: Option<u64>,
}

impl DaemonSetWish {
    pub(in crate::histories) fn random(random: &mut Random) -> Self {
        let surges = random.below(3) == 0;
        let positive = |value: Value| if value == json!(0) { json!(1) } else { value };
        let budget = positive(number(random, 3, ["20%", "50%", "100%"]));
        Self {
            partition: json!(0),
            max_unavailable: if surges { json!(0) } else { budget.clone() },
            max_surge: if surges { budget } else { json!(0) },
            min_ready_s: [0, 0, 3][index(random, 3)],
            paused: false,
            image: 1,
            env: 1,
            in_place: !surges && random.below(2) == 0,
            burst: [json!(250), json!(1), json!("50%")][index(random, 3)].clone(),
            held: false,
            only: None,
        }
    }
}

impl Wish for DaemonSetWish {
    fn api_version(&self) -> &'static str {
        "apps.kruise.io/v1beta1"
    }

    fn kind(&self) -> &'static str {
        "DaemonSet"
    }

    fn resource(&self) -> &'static str {
        judge::RESOURCE
    }

    fn change(&mut self, random: &mut Random) {
        match random.below(9) {
            0..=2 => self.image = random.between(1, 3),
            3 => self.env = random.between(1, 2),
            4 => self.partition = number(random, 3, ["40%", "70%", "100%"]),
            5 => self.paused = !self.paused,
            6 => self.held = !self.held,
            7 => self.only = (random.below(2) == 0).then(|| random.between(1, 3)),
            _ => self.min_ready_s = signed(random.below(2)) * 3,
        }
    }

    fn come_to_rest(&mut self) {
        self.paused = false;
        self.partition = json!(0);
        self.held = false;
    }

    fn object(&self) -> Value {
        let mut spec = self.spec();
        spec["selector"] = json!({"matchLabels": {"app": "a"}});
        // It is taken off by a patch alone.
        spec["template"]["spec"]["nodeSelector"] = json!({});
        spec["template"]["metadata"] = json!({"labels": {"app": "a", HELD_BEFORE_DELETE: "yes"}});
        json!({"apiVersion": self.api_version(), "kind": self.kind(), "metadata": {"name": "a"}, "spec": spec})
    }

    fn spec(&self) -> Value {
        let hook = match self.held {
            true => json!({"labelsHandler": {HELD_BEFORE_DELETE: "yes"}}),
            false => Value::Null,
        };
        let kind = if self.in_place {
            "InPlaceIfPossible"
        } else {
            "Standard"
        };
        let node = self.only.map(|only| format!("node{only}"));
        json!({
            "burstReplicas": self.burst,
            "minReadySeconds": self.min_ready_s,
            "lifecycle": {"preDelete": hook},
            "template": {"spec": {
                "nodeSelector": {HOSTNAME: node},
                "containers": [{
                    "name": "main", "image": format!("app:v{}", self.image),
                    "env": [{"name": "VARIANT", "value": self.env.to_string()}],
                }],
            }},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {
                "rollingUpdateType": kind, "partition": self.partition, "paused": self.paused,
                "maxUnavailable": self.max_unavailable, "maxSurge": self.max_surge,
            }},
        })
    }

    fn without(&mut self, _pod: &str) -> Option<Value> {
        None
    }

    fn wrongs(&self, history: &[Change], deeds: &Deeds) -> Vec<String> {
        judge::wrongs(history, deeds)
    }

    fn unlike(&self, set: &Value, pods: &[Value]) -> Vec<String> {
        let desired = if self.only.is_some() { 1 } else { NODES };
        judge::unlike(set, pods, desired)
    }
}
