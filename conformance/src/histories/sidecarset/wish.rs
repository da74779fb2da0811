//! The random spec of the SidecarSet, as the user changes it.

use client_kit::Random;
use shared_json::{Value, json};

use super::judge;
use super::pod::MAIN;
use crate::histories::deeds::Deeds;
use crate::histories::wish::{Wish, index, number};
use crate::history::Change;

/// How many pods the ReplicaSet has.
const PODS: i64 = 4;

/// The wanted state of the set.
#[derive(Debug, Clone)]
pub(in crate::histories) struct SidecarSetWish {
    partition: Value,
    max_unavailable: Value,
    paused: bool,
    image: u64,
    /// The image of a second sidecar, if there is one.
    second: Option<u64>,
    /// Whether the first sidecar is updated by a second container beside it.
    hot: bool,
}

impl SidecarSetWish {
    pub(in crate::histories) fn random(random: &mut Random) -> Self {
        let hot = random.below(3) == 0;
        Self {
            partition: json!(0),
            max_unavailable: [json!(1), json!(2), json!("30%"), json!("100%")][index(random, 4)].clone(),
            paused: false,
            image: 1,
            second: (!hot && random.below(2) == 0).then_some(1),
            hot,
        }
    }

    fn sidecars(&self) -> Vec<Value> {
        let container = |name: &str, image: u64| json!({"name": name, "image": format!("{name}:v{image}")});
        let mut first = container("side", self.image);
        if self.hot {
            first["upgradeStrategy"] =
                json!({"upgradeType": "HotUpgrade", "hotUpgradeEmptyImage": "empty:v1"});
        }
        let second = self.second.map(|image| container("other", image));
        std::iter::once(first).chain(second).collect()
    }
}

impl Wish for SidecarSetWish {
    fn api_version(&self) -> &'static str {
        "apps.kruise.io/v1beta1"
    }

    fn kind(&self) -> &'static str {
        "SidecarSet"
    }

    fn resource(&self) -> &'static str {
        judge::RESOURCE
    }

    fn is_of_the_cluster(&self) -> bool {
        true
    }

    fn change(&mut self, random: &mut Random) {
        match random.below(8) {
            0..=2 => self.image = random.between(1, 3),
            3 => self.second = self.second.map(|_| random.between(1, 2)),
            4 | 5 => self.partition = number(random, 4, ["30%", "60%", "100%"]),
            6 => self.paused = !self.paused,
            _ => self.max_unavailable = json!(random.between(1, 3)),
        }
    }

    fn come_to_rest(&mut self) {
        self.paused = false;
        self.partition = json!(0);
    }

    fn object(&self) -> Value {
        let mut spec = self.spec();
        spec["selector"] = json!({"matchLabels": {"app": "a"}});
        json!({"apiVersion": self.api_version(), "kind": self.kind(), "metadata": {"name": "a"}, "spec": spec})
    }

    fn after(&self) -> Vec<Value> {
        let labels = json!({"app": "a"});
        vec![json!({
            "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "app", "namespace": "default"},
            "spec": {
                "replicas": PODS, "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"terminationGracePeriodSeconds": 1, "containers": [{"name": MAIN, "image": "app:v1"}]},
                },
            },
        })]
    }

    fn spec(&self) -> Value {
        json!({
            "containers": self.sidecars(),
            "updateStrategy": {
                "type": "RollingUpdate", "partition": self.partition, "paused": self.paused,
                "maxUnavailable": self.max_unavailable,
            },
        })
    }

    fn without(&mut self, _pod: &str) -> Option<Value> {
        None
    }

    fn wrongs(&self, history: &[Change], deeds: &Deeds) -> Vec<String> {
        judge::wrongs(history, deeds)
    }

    fn unlike(&self, set: &Value, pods: &[Value]) -> Vec<String> {
        judge::unlike(set, pods, PODS)
    }
}
