//! The random spec of the distribution, and the user's changes of namespaces and copies.

use std::time::Duration;

use client_kit::Random;
use shared_json::{Value, json};

use super::judge;
use crate::histories::deeds::Deeds;
use crate::histories::errand::Errand;
use crate::histories::wish::{Wish, index, without_nulls};
use crate::history::Change;
use crate::recording::environment::Environment;

/// The namespaces of the user.
const NAMESPACES: [&str; 5] = ["n1", "n2", "n3", "n4", "n5"];

/// The namespaces that get a copy.
#[derive(Debug, Clone, Copy)]
struct Targets {
    all: bool,
    /// Whether those with a label get one.
    labelled: bool,
    included: [bool; 5],
    excluded: [bool; 5],
}

impl Targets {
    fn random(random: &mut Random) -> Self {
        let included = [(); 5].map(|()| random.below(3) == 0);
        let mut excluded = [(); 5].map(|()| random.below(4) == 0);
        for (excluded, included) in excluded.iter_mut().zip(included) {
            *excluded &= !included;
        }
        Self {
            all: random.below(4) == 0,
            labelled: random.below(2) == 0,
            included,
            excluded,
        }
    }

    /// The field `targets` of a spec, as part of a merge patch.
    fn spec(self) -> Value {
        let list = |of: [bool; 5]| {
            let names = NAMESPACES.iter().zip(of).filter(|(_, is)| *is);
            let names: Vec<Value> = names.map(|(name, _)| json!({"name": name})).collect();
            json!({ "list": names })
        };
        let labels = if self.labelled { json!("1") } else { Value::Null };
        json!({
            "allNamespaces": self.all,
            "includedNamespaces": list(self.included), "excludedNamespaces": list(self.excluded),
            "namespaceLabelSelector": {"matchLabels": {"x": labels}},
        })
    }
}

/// The wanted state of the distribution.
#[derive(Debug, Clone)]
pub(in crate::histories) struct DistributionWish {
    targets: Targets,
    /// A number that the copies have.
    data: u64,
    /// Whether they have a second one.
    second: bool,
    secret: bool,
}

impl DistributionWish {
    pub(in crate::histories) fn random(random: &mut Random) -> Self {
        Self {
            targets: Targets::random(random),
            data: 1,
            second: false,
            secret: random.below(3) == 0,
        }
    }

    fn kind_of_copy(&self) -> &'static str {
        if self.secret { "Secret" } else { "ConfigMap" }
    }

    /// The copy in a namespace, with the fields of `more`.
    fn copy(&self, namespace: &str, more: Value) -> Value {
        let mut object = more;
        object["apiVersion"] = json!("v1");
        object["kind"] = json!(self.kind_of_copy());
        object["metadata"]["name"] = json!("conf");
        object["metadata"]["namespace"] = json!(namespace);
        object
    }

    /// Something that happens in a namespace.
    fn errand(&self, namespace: &str, random: &mut Random) -> Errand {
        let label = if random.below(2) == 0 {
            json!("1")
        } else {
            Value::Null
        };
        let itself = |more: Value| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": more}});
        match random.below(8) {
            0 | 1 => Errand::Create(without_nulls(&itself(json!({"x": label})))),
            2 => Errand::Patch(itself(json!({"x": label}))),
            3 => Errand::Delete(itself(json!({}))),
            4 => Errand::Patch(self.copy(namespace, json!({"data": {"a": "eA=="}}))),
            5 => Errand::Create(self.copy(namespace, json!({"data": {"foreign": "eA=="}}))),
            6 => Errand::Patch(self.copy(namespace, json!({"metadata": {"ownerReferences": null}}))),
            _ => Errand::Delete(self.copy(namespace, json!({}))),
        }
    }
}

impl Wish for DistributionWish {
    fn api_version(&self) -> &'static str {
        "apps.kruise.io/v1alpha1"
    }

    fn kind(&self) -> &'static str {
        "ResourceDistribution"
    }

    fn resource(&self) -> &'static str {
        judge::RESOURCE
    }

    fn is_of_the_cluster(&self) -> bool {
        true
    }

    fn environment(&self) -> Environment {
        Environment {
            gates: "ResourceDistributionGate=true".to_owned(),
            ..Environment::default()
        }
    }

    fn errands(&mut self, _pods: &[&str], random: &mut Random) -> Option<Vec<Errand>> {
        if random.below(4) == 0 {
            return None;
        }
        let count = random.between(1, 6);
        let errands = (0..count).map(|_| {
            let namespace = NAMESPACES[index(random, 5)];
            self.errand(namespace, random)
        });
        Some(errands.collect())
    }

    fn change(&mut self, random: &mut Random) {
        match random.below(3) {
            0 => self.data += 1,
            1 => self.second = !self.second,
            _ => self.targets = Targets::random(random),
        }
    }

    /// A distribution does not look again at a namespace in which it could do nothing: its last change has it do so.
    fn come_to_rest(&mut self) {
        self.data += 1;
    }

    /// Namespaces that are deleted are gone by then.
    fn calm(&self) -> Duration {
        Duration::from_secs(60)
    }

    fn object(&self) -> Value {
        let spec = without_nulls(&self.spec());
        json!({
            "apiVersion": self.api_version(), "kind": self.kind(), "metadata": {"name": "a"}, "spec": spec,
        })
    }

    fn after(&self) -> Vec<Value> {
        let namespace = |name| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        NAMESPACES[..3].iter().map(namespace).collect()
    }

    fn spec(&self) -> Value {
        // Both kinds take the texts of Secrets.
        let second = if self.second { json!("Yg==") } else { Value::Null };
        let digits = ["MQ==", "Mg==", "Mw==", "NA=="];
        let number = digits[usize::try_from(self.data).unwrap_or(0) % digits.len()];
        json!({
            "targets": self.targets.spec(),
            "resource": {
                "apiVersion": "v1", "kind": self.kind_of_copy(), "metadata": {"name": "conf"},
                "data": {"a": number, "b": second},
            },
        })
    }

    fn without(&mut self, _pod: &str) -> Option<Value> {
        None
    }

    fn wrongs(&self, history: &[Change], deeds: &Deeds) -> Vec<String> {
        judge::wrongs(history, deeds)
    }

    fn unlike(&self, _set: &Value, _pods: &[Value]) -> Vec<String> {
        Vec::new()
    }
}
