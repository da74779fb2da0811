//! The random spec of the budget, and the user's changes of the pods that it guards.

use client_kit::Random;
use shared_json::{Value, json};

use super::judge;
use super::pod::MARK;
use crate::histories::deeds::Deeds;
use crate::histories::errand::Errand;
use crate::histories::wish::{Wish, index, number, signed, without_nulls};
use crate::history::Change;
use crate::recording::environment::Environment;

/// How many requests are made at the same time.
const CLIENTS: u64 = 32;

/// The wanted state of the budget and of the CloneSet whose pods it guards.
#[derive(Debug, Clone)]
pub(in crate::histories) struct BudgetWish {
    budget: Value,
    /// Whether the budget says how many must be available, not how many may be missing.
    minimum: bool,
    /// Whether the budget names the CloneSet, not its pods' labels.
    by_target: bool,
    /// The operations that are guarded; all of them without any.
    operations: &'static str,
    replicas: i64,
    image: u64,
    in_place: bool,
}

impl BudgetWish {
    pub(in crate::histories) fn random(random: &mut Random) -> Self {
        Self {
            budget: budget(random),
            minimum: random.below(2) == 0,
            by_target: random.below(2) == 0,
            operations: ["", "", "DELETE,UPDATE,EVICT", "EVICT"][index(random, 4)],
            replicas: signed(random.between(2, 8)),
            image: 1,
            in_place: random.below(2) == 0,
        }
    }

    /// The CloneSet, or the fields of it that the user changes.
    fn set(&self) -> Value {
        let strategy = match self.in_place {
            true => "InPlaceIfPossible",
            false => "ReCreate",
        };
        let labels = json!({"app": "a"});
        json!({
            "apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet",
            "metadata": {"name": "w", "namespace": "default"},
            "spec": {
                "replicas": self.replicas, "selector": {"matchLabels": labels},
                "updateStrategy": {"type": strategy, "maxUnavailable": "100%"},
                "template": {"metadata": {"labels": labels}, "spec": {
                    "terminationGracePeriodSeconds": 1,
                    "containers": [{"name": "main", "image": format!("app:v{}", self.image)}],
                }},
            },
        })
    }
}

fn budget(random: &mut Random) -> Value {
    number(random, 4, ["20%", "50%", "80%"])
}

/// One request that takes a pod out of service.
fn request(pod: &str, random: &mut Random) -> Errand {
    let mut object = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": pod, "namespace": "default"},
    });
    match random.below(4) {
        0 => Errand::Evict(pod.to_owned()),
        1 => {
            object["metadata"]["labels"] = json!({format!("{MARK}{}", random.below(2)): "true"});
            Errand::Patch(object)
        }
        2 => {
            let image = format!("app:v{}", random.between(1, 3));
            object["spec"] = json!({"containers": [{"name": "main", "image": image}]});
            Errand::Patch(object)
        }
        _ => Errand::Delete(object),
    }
}

impl Wish for BudgetWish {
    fn api_version(&self) -> &'static str {
        "policy.kruise.io/v1alpha1"
    }

    fn kind(&self) -> &'static str {
        "PodUnavailableBudget"
    }

    fn resource(&self) -> &'static str {
        judge::RESOURCE
    }

    fn environment(&self) -> Environment {
        Environment {
            gates: "PodUnavailableBudgetUpdateGate=true".to_owned(),
            ..Environment::default()
        }
    }

    fn errands(&mut self, pods: &[&str], random: &mut Random) -> Option<Vec<Errand>> {
        match random.below(8) {
            0..=3 if !pods.is_empty() => {
                let count = u64::try_from(pods.len()).unwrap_or(1);
                let requests = (0..CLIENTS).map(|_| {
                    let pod = pods[index(random, count)];
                    request(pod, random)
                });
                Some(requests.collect())
            }
            4 => {
                self.replicas = signed(random.between(1, 8));
                Some(vec![Errand::Patch(self.set())])
            }
            5 => {
                self.image = random.between(1, 3);
                Some(vec![Errand::Patch(self.set())])
            }
            _ => None,
        }
    }

    fn change(&mut self, random: &mut Random) {
        self.budget = budget(random);
        self.minimum = random.below(2) == 0;
    }

    fn come_to_rest(&mut self) {}

    fn object(&self) -> Value {
        let mut spec = without_nulls(&self.spec());
        match self.by_target {
            true => {
                spec["targetRef"] =
                    json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet", "name": "w"});
            }
            false => spec["selector"] = json!({"matchLabels": {"app": "a"}}),
        }
        let annotations = match self.operations {
            "" => json!({}),
            operations => json!({"kruise.io/pub-protect-operations": operations}),
        };
        json!({
            "apiVersion": self.api_version(), "kind": self.kind(),
            "metadata": {"name": "a", "namespace": "default", "annotations": annotations}, "spec": spec,
        })
    }

    fn after(&self) -> Vec<Value> {
        vec![self.set()]
    }

    fn spec(&self) -> Value {
        match self.minimum {
            true => json!({"minAvailable": self.budget, "maxUnavailable": null}),
            false => json!({"minAvailable": null, "maxUnavailable": self.budget}),
        }
    }

    fn without(&mut self, _pod: &str) -> Option<Value> {
        None
    }

    fn wrongs(&self, history: &[Change], deeds: &Deeds) -> Vec<String> {
        judge::wrongs(history, deeds)
    }

    fn unlike(&self, budget: &Value, pods: &[Value]) -> Vec<String> {
        judge::unlike(budget, pods, self.replicas)
    }
}
