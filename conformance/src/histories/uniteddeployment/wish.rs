//! The random spec of the UnitedDeployment, as the user changes it.

use client_kit::Random;
use shared_json::{Map, Value, json};

use super::judge;
use crate::histories::deeds::Deeds;
use crate::histories::wish::{Wish, index, signed};
use crate::history::Change;

/// The names of subsets, of which the first ones are there.
const SUBSETS: [&str; 3] = ["x", "y", "z"];

/// The wanted state of the UnitedDeployment: CloneSets in one to three subsets.
#[derive(Debug, Clone)]
pub(in crate::histories) struct UnitedDeploymentWish {
    replicas: i64,
    /// How many subsets there are.
    subsets: usize,
    /// Whether subsets have minima and maxima.
    bounded: bool,
    /// The number of replicas in the first of several subsets.
    first: Value,
    partitions: Vec<i64>,
    image: u64,
    /// A part of the template that cannot change in place.
    env: u64,
    in_place: bool,
}

impl UnitedDeploymentWish {
    pub(in crate::histories) fn random(random: &mut Random) -> Self {
        Self {
            replicas: signed(random.below(7)),
            subsets: 1 + index(random, 3),
            bounded: random.below(2) == 0,
            first: Value::Null,
            partitions: vec![0; SUBSETS.len()],
            image: 1,
            env: 1,
            in_place: random.below(2) == 0,
        }
    }

    /// The subsets of the spec.
    fn topology(&self) -> Value {
        let last = self.subsets - 1;
        let subset = |(at, name): (usize, &&str)| match (self.bounded, at == last) {
            (true, true) => json!({"name": name, "minReplicas": 1}),
            (true, false) => json!({"name": name, "minReplicas": 1, "maxReplicas": 2}),
            (false, false) if at == 0 && !self.first.is_null() => {
                json!({"name": name, "replicas": self.first})
            }
            (false, _) => json!({"name": name}),
        };
        let subsets: Vec<Value> = SUBSETS
            .iter()
            .enumerate()
            .take(self.subsets)
            .map(subset)
            .collect();
        json!({ "subsets": subsets })
    }

    /// The partitions of the subsets that are there; an absent one is taken off.
    fn partitions(&self) -> Value {
        let partition = |(at, name): (usize, &&str)| {
            let number = self.partitions[at];
            let value = if at < self.subsets && number > 0 {
                json!(number)
            } else {
                Value::Null
            };
            ((*name).to_owned(), value)
        };
        let all: Map = SUBSETS.iter().enumerate().map(partition).collect();
        json!({"type": "Manual", "manualUpdate": {"partitions": all}})
    }
}

impl Wish for UnitedDeploymentWish {
    fn api_version(&self) -> &'static str {
        "apps.kruise.io/v1alpha1"
    }

    fn kind(&self) -> &'static str {
        "UnitedDeployment"
    }

    fn resource(&self) -> &'static str {
        judge::RESOURCE
    }

    fn change(&mut self, random: &mut Random) {
        match random.below(8) {
            0..=2 => self.replicas = signed(random.below(7)),
            3 | 4 => self.image = random.between(1, 3),
            5 => self.env = random.between(1, 2),
            6 => {
                let at = index(random, 3);
                self.partitions[at] = signed(random.below(4));
            }
            _ => self.subsets = 1 + index(random, 3),
        }
        self.first = match random.below(3) {
            0 => json!("50%"),
            1 => json!(self.replicas.min(1)),
            _ => Value::Null,
        };
    }

    fn come_to_rest(&mut self) {
        self.partitions = vec![0; SUBSETS.len()];
    }

    fn object(&self) -> Value {
        let mut spec = self.spec();
        spec["updateStrategy"] = json!({"type": "Manual"});
        spec["selector"] = json!({"matchLabels": {"app": "a"}});
        let template = &mut spec["template"]["cloneSetTemplate"];
        template["metadata"] = json!({"labels": {"app": "a"}});
        template["spec"]["selector"] = json!({"matchLabels": {"app": "a"}});
        template["spec"]["template"]["metadata"] = json!({"labels": {"app": "a"}});
        json!({"apiVersion": self.api_version(), "kind": self.kind(), "metadata": {"name": "a"}, "spec": spec})
    }

    fn spec(&self) -> Value {
        let kind = if self.in_place {
            "InPlaceIfPossible"
        } else {
            "ReCreate"
        };
        let containers = json!([{
            "name": "main", "image": format!("app:v{}", self.image),
            "env": [{"name": "VARIANT", "value": self.env.to_string()}],
        }]);
        json!({
            "replicas": self.replicas,
            "template": {"cloneSetTemplate": {"spec": {
                "template": {"spec": {"containers": containers}}, "updateStrategy": {"type": kind, "maxUnavailable": 1},
            }}},
            "topology": self.topology(),
            "updateStrategy": self.partitions(),
        })
    }

    fn without(&mut self, _pod: &str) -> Option<Value> {
        None
    }

    fn wrongs(&self, history: &[Change], deeds: &Deeds) -> Vec<String> {
        judge::wrongs(history, deeds)
    }

    fn unlike(&self, set: &Value, pods: &[Value]) -> Vec<String> {
        judge::unlike(set, pods, self.replicas, &SUBSETS[..self.subsets])
    }
}
